/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that every operation ends within the bound of docs/NETWORKS.md, for each kind of failure, and prints the times.
 * A number as argument replaces the peer timeout (ms). Across the network each failure has two hosts of its own; over
 * shm the two processes share this one.
 */
#define NODE_WAIT FI_WAIT_UNSPEC
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#include <rdma/fi_rma.h>

#include "hello.h"
#include "lab.h"
#include "raw_client.h"
#include "talk.h"

#define LONG        1000000
#define AT_ONCE_MS  1500 /* one second of it is the kernel's: a SYN meets a closing listener */
#define OPS         3
#define SLACK_MS    3000 /* how long the test waits beyond the bound, to tell how long it takes */
#define FULL        4    /* connections that fill a backlog of one, of TCP */
#define FULL_INSIDE 2    /* and of a Unix socket */

static unsigned int timeout_ms = 2000;
static bool own_network; /* inside a host: of this test alone */
static bool asleep;      /* waits in fi_cq_sread, else polls */
static struct lab lab;
static struct node n;
static fi_addr_t peer;
static char buf[OPS][LONG];
static unsigned int ended; /* operations */

/* The bound for a peer that does not answer; below 12 s the kernel's probes, a second apart, count. */
static unsigned int silent_ms(void)
{
	unsigned int more = timeout_ms / 2;

	return timeout_ms + (more > 3000 ? more : 3000);
}

static unsigned int at_once_ms(void)
{
	return AT_ONCE_MS;
}

/* ---- What fails; called by the process that has the operations, with the other one's id ---- */

static void kill_peer(pid_t pid)
{
	kill(pid, SIGKILL);
}

static void stop_peer(pid_t pid)
{
	kill(pid, SIGSTOP);
}

static void pull_cable(pid_t pid)
{
	(void)pid;
	if (run("ip link set eth0 down"))
		fail("the link stays up");
}

/* The other process does it. */
static void leave_it(pid_t pid)
{
	(void)pid;
	tell(lab.end, "", 1);
	hear(lab.end, &(char){0}, 1);
}

/* Connections that wait to be accepted; those of TCP have to say something first. */
static void fill_network(const struct name *name)
{
	for (int i = 0; i < FULL; i++) {
		int sock = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

		connect(sock, (const struct sockaddr *)(const void *)name->bytes,
			sizeof(struct sockaddr_in));
		usleep(20000);
		send(sock, "", 1, MSG_NOSIGNAL);
	}
}

/* A further connection would block. */
static void fill_inside(const struct name *name)
{
	for (int i = 0; i < FULL_INSIDE; i++)
		raw_connect(name);
}

static void fill_listener(pid_t pid)
{
	struct name name = {.len = sizeof(name.bytes)};

	must(fi_av_lookup(n.av, peer, name.bytes, &name.len), "fi_av_lookup");
	stop_peer(pid);
	if (strcmp(provider(), "shm"))
		fill_network(&name);
	else
		fill_inside(&name);
}

/* ---- What the other process does ---- */

static void lose_address(void)
{
	if (run("ip addr flush dev eth0"))
		fail("the address stays");
}

static void go_down(void)
{
	if (run("ip link set eth0 down"))
		fail("the host stays");
}

static void close_port(void)
{
	node_close(&n);
}

static const struct failure {
	const char *name;
	void (*happen)(pid_t pid);
	void (*other)(void); /* done by the other process, when it is told; or NULL */
	unsigned int (*bound)(void);
	bool connected; /* both have talked, and operations are under way */
	bool gives_up;  /* with FI_WEFT_OPERATION_TIMEOUT, the same time as the peer timeout */
	bool inside;    /* possible inside a host */
	bool narrow;    /* needs listeners with a backlog of one */
} failures[] = {
	{"killed", kill_peer, NULL, at_once_ms, true, false, true, false},
	{"port closed", leave_it, close_port, at_once_ms, false, false, true, false},
	{"host gone", leave_it, go_down, silent_ms, true, false, false, false},
	{"host gone before", leave_it, go_down, silent_ms, false, false, false, false},
	{"address removed", leave_it, lose_address, silent_ms, true, false, false, false},
	{"address removed before", leave_it, lose_address, silent_ms, false, false, false, false},
	{"cable pulled", pull_cable, NULL, silent_ms, true, false, false, false},
	{"cable pulled before", pull_cable, NULL, silent_ms, false, false, false, false},
	{"SIGSTOP", stop_peer, NULL, silent_ms, true, true, false, false},
	{"SIGSTOP before", stop_peer, NULL, silent_ms, false, true, true, false},
	{"listener full", fill_listener, NULL, silent_ms, false, false, true, true},
};

#define FAILURES (sizeof(failures) / sizeof(failures[0]))

struct life {
	struct lab lab;
	const struct failure *failure;
};

static void begin(const struct failure *f)
{
	must(fi_send(n.ep, buf[0], LONG, NULL, peer, NULL), "fi_send");
	must(fi_read(n.ep, buf[1], 64, NULL, peer, 0, 1, NULL), "fi_read");
	/* A receive that names its sender ends with the connection, if there was one. */
	if (f->connected)
		must(fi_recv(n.ep, buf[2], LONG, NULL, peer, NULL), "fi_recv");
	else
		must(fi_send(n.ep, buf[2], 8, NULL, peer, NULL), "fi_send");
}

/* Sleeps until there is an error to read; nothing may succeed. */
static void sleep_for(unsigned int ms)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = fi_cq_sread(n.cq, &entry, 1, NULL, (int)ms);

	if (ret != -FI_EAVAIL && ret != -FI_EAGAIN)
		fail("fi_cq_sread returned %zd", ret);
}

/* The cases run at once: a process that polls without a pause would only keep the others from running. */
static struct event wait_for(const struct failure *f)
{
	uint64_t end = now_ms() + f->bound() + SLACK_MS;
	struct event e;

	if (asleep)
		sleep_for(f->bound() + SLACK_MS);
	while (!node_poll(&n, &e)) {
		if (now_ms() > end)
			fail("%s: no completion within %u ms, after %u", f->name,
			     f->bound() + SLACK_MS, ended);
		usleep(100);
	}
	ended++;
	return e;
}

static bool is_fitting(int err)
{
	switch (err) {
	case FI_ETIMEDOUT:
	case FI_ECONNREFUSED:
	case FI_ECONNRESET:
	case FI_EHOSTUNREACH:
	case FI_ENETUNREACH:
	case FI_ESHUTDOWN:
		return true;
	default:
		return false;
	}
}

/* An operation may also be refused by the call. */
static void measure(const struct failure *f, uint64_t from)
{
	unsigned int took = 0, bound = f->bound();
	struct event e;

	for (int i = 0; i < OPS; i++) {
		e = wait_for(f);
		took = (unsigned int)(now_ms() - from);
		if (!is_fitting(e.err))
			fail("%s: an operation ended with %s", f->name, fi_strerror(e.err));
	}
	printf("%-24s %-5s %s %6u ms, bound %6u ms, %s\n", f->name, provider(),
	       asleep ? "asleep " : "polling", took, bound, fi_strerror(e.err));
	if (took > bound)
		fail("%s: %u ms, more than %u", f->name, took, bound);
}

/* There is no connection, and nothing ends without one. */
static void wait_a_while(const struct failure *f, uint64_t from)
{
	if (now_ms() - from > f->bound() + SLACK_MS)
		fail("%s: no end within %u ms", f->name, f->bound() + SLACK_MS);
	if (asleep)
		sleep_for(1);
	else
		usleep(100);
}

/* The call that finds the peer gone may itself return the error: then nothing has begun. */
static bool is_refused(const struct failure *f, uint64_t from)
{
	ssize_t ret;

	if (f->connected)
		return false;
	while ((ret = fi_send(n.ep, buf[0], 8, NULL, peer, NULL)) == -FI_EAGAIN)
		wait_a_while(f, from);
	if (!ret) {
		struct event e = wait_for(f);

		if (!is_fitting(e.err))
			fail("%s: ended with %s", f->name, fi_strerror(e.err));
		ret = -e.err;
	}
	printf("%-24s %-5s %s %6u ms, bound %6u ms, %s\n", f->name, provider(),
	       asleep ? "asleep " : "polling", (unsigned int)(now_ms() - from), f->bound(),
	       fi_strerror((int)-ret));
	if (!is_fitting((int)-ret) || now_ms() - from > f->bound())
		fail("%s: not within the bound", f->name);
	return true;
}

static void near(const struct failure *f)
{
	pid_t other;
	uint64_t from;

	hear(lab.end, &other, sizeof(other));
	if (f->connected) {
		talk(&n, peer, 0, lab.which);
		hear(lab.end, &(char){0}, 1); /* the other one is done, too */
		begin(f);
	}
	from = now_ms();
	f->happen(other);
	if (!is_refused(f, from))
		measure(f, from);
}

static void far(const struct failure *f)
{
	pid_t self = getpid();

	tell(lab.end, &self, sizeof(self));
	if (f->connected) {
		talk(&n, peer, 0, lab.which);
		tell(lab.end, "", 1);
	}
	if (f->other) {
		hear(lab.end, &(char){0}, 1);
		f->other();
		tell(lab.end, "", 1);
	}
	/* No progress: the long message stays under way. */
	for (;;)
		pause();
}

/* Listeners of this network have a backlog of one from now on. */
static void make_narrow(void)
{
	if (run("echo 1 > /proc/sys/net/core/somaxconn"))
		fail("no short backlog");
}

static void live(void *arg)
{
	const struct life *life = arg;
	const struct failure *f = life->failure;
	bool network = strcmp(provider(), "shm");
	char text[16];

	lab = life->lab;
	snprintf(text, sizeof(text), "%u", timeout_ms);
	setenv("FI_WEFT_PEER_TIMEOUT", text, 1);
	if (f->gives_up)
		setenv("FI_WEFT_OPERATION_TIMEOUT", text, 1);
	if (network)
		lab_enter(&lab);
	if (network && f->narrow)
		make_narrow();
	node_open(&n, NULL);
	peer = node_meet(&n, lab.end);
	if (lab.which == 0)
		near(f);
	else
		far(f);
}

static bool is_possible(const struct failure *f)
{
	return strcmp(provider(), "shm") || (f->inside && (!f->narrow || own_network));
}

/* Runs the cases of this name, or all, at once: they mostly wait. */
static void run_cases(const char *name)
{
	pid_t pids[FAILURES][2] = {0};

	for (size_t i = 0; i < FAILURES; i++) {
		struct life life = {.failure = &failures[i]};
		int ends[2];

		if (!is_possible(&failures[i]) || (name && strcmp(name, failures[i].name) != 0))
			continue;
		wire(ends);
		life.lab = (struct lab){.end = ends[1], .which = 1};
		pids[i][1] = start("far", live, &life);
		life.lab = (struct lab){.end = ends[0], .which = 0, .peer = pids[i][1]};
		pids[i][0] = start("near", live, &life);
		close(ends[0]);
		close(ends[1]);
	}
	for (size_t i = 0; i < FAILURES; i++)
		if (pids[i][0]) {
			finish(pids[i][0], failures[i].name);
			slay(pids[i][1]);
		}
}

/* Both processes share this host, in a network of their own if that is permitted. */
static void enter_network(void)
{
	own_network = geteuid() == 0 && !unshare(CLONE_NEWNET);
	if (own_network)
		make_narrow();
	else
		printf("no network of our own: no full listener\n");
}

int main(int argc, char **argv)
{
	alarm(LIMIT);
	if (argc > 1)
		timeout_ms = (unsigned int)strtoul(argv[1], NULL, 10);
	need_provider();
	if (strcmp(provider(), "shm"))
		need_lab();
	else
		enter_network();
	for (int i = 0; i < 2; i++) {
		asleep = i;
		run_cases(argc > 2 ? argv[2] : NULL);
	}
	return EXIT_SUCCESS;
}
