/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Networks where only one side can connect. The "hidden" endpoint has an address that the other host, the "open" one,
 * sends into the dark; it connects to the open one from the address of its wire. Both exchange messages, whichever side sends
 * first, and an operation that nobody can serve ends in time, with a log line that names both addresses.
 */
#include "hello.h"
#include "lab.h"
#include "talk.h"

#define TIMEOUT_MS 3000
#define SLACK_MS   2000
/* Two SYN have to be lost before a hello from elsewhere counts; coarse clocks and a busy host need the rest. */
#define UNANSWERED_MS 4000
#define HIDDEN_IP     "10.98.0.2"
#define OPEN_IP       "10.99.0.1"
#define ROUNDS        3
/* A SYN that was lost is repeated after one second and after three. */
#define AGAIN_MS  5000
#define NOTICE_MS 12000 /* a broken connection is noticed within this time */

static struct lab lab;
static struct node n;
static fi_addr_t peer;

static const struct way {
	const char *name;
	const char *timeout; /* FI_WEFT_PEER_TIMEOUT (ms) */
	int first;    /* the side that sends first: 0 open, 1 hidden, 2 both; -1: nobody can */
	bool flagged; /* the open side inserts the hidden one with FI_FIREWALL_ADDR */
	bool hides;   /* the hidden side sets FI_OPT_FIREWALL_ADDR */
	unsigned int bound_ms; /* of the first exchange */
	bool breaks;           /* the connection breaks afterwards, and another exchange follows */
	int err;               /* of the open side's operation, if nobody can */
} ways[] = {
	{"the open side sends first", "30000", 0, true, true, 1000, false, 0},
	{"the hidden side sends first", "30000", 1, false, false, 1000, false, 0},
	{"the hidden side sends first, and the other knows", "30000", 1, true, false, 1000, false,
	 0},
	{"both send, nothing is flagged", "30000", 2, false, false, UNANSWERED_MS, false, 0},
	{"the open side sends first, and again", "6000", 0, true, true, AGAIN_MS, true, 0},
	{"the hidden side never connects", "3000", -1, true, false, TIMEOUT_MS + SLACK_MS, false,
	 FI_EFIREWALLADDR},
	{"nothing is flagged", "3000", -1, false, false, TIMEOUT_MS + SLACK_MS, false,
	 FI_ETIMEDOUT},
};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static const struct way *way;

/* Packets to the hidden address go to a MAC address that nobody has. */
static void make_dark(void)
{
	if (run("ip neigh replace 10.99.0.66 lladdr 02:00:00:00:00:99 dev eth0 nud permanent && "
		"ip route add " HIDDEN_IP "/32 via 10.99.0.66"))
		fail("no dark route");
}

/* Opens the endpoint; the hidden one at its own address. */
static void open_node(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct name name = {.len = sizeof(in)};
	bool yes = true;

	if (lab.which == 1) {
		if (run("ip addr add " HIDDEN_IP "/32 dev lo"))
			fail("no hidden address");
		inet_pton(AF_INET, HIDDEN_IP, &in.sin_addr);
	} else {
		make_dark();
		inet_pton(AF_INET, OPEN_IP, &in.sin_addr);
	}
	memcpy(name.bytes, &in, sizeof(in));
	node_create(&n, &name);
	if (lab.which == 1 && way->hides)
		must(fi_setopt(&n.ep->fid, FI_OPT_ENDPOINT, FI_OPT_FIREWALL_ADDR, &yes,
			       sizeof(yes)),
		     "fi_setopt");
	node_bind(&n);
}

static void meet(void)
{
	struct name mine = node_name(&n), theirs;
	uint64_t flags = lab.which == 0 && way->flagged ? FI_FIREWALL_ADDR : 0;

	tell(lab.end, &mine, sizeof(mine));
	hear(lab.end, &theirs, sizeof(theirs));
	if (fi_av_insert(n.av, theirs.bytes, 1, &peer, flags, NULL) != 1)
		fail("fi_av_insert refuses an address");
}

/* One message from each side, that of `way->first` first. */
static void first_exchange(void)
{
	static char in[8], out[8] = "reached";
	bool sends_first = way->first == lab.which || way->first == 2;
	uint64_t begin = now_ms();
	int left = 2;

	must(fi_recv(n.ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in), "fi_recv");
	if (sends_first)
		MUST(n.cq, fi_send(n.ep, out, sizeof(out), NULL, peer, out));
	for (bool sent = sends_first; left; left--) {
		struct event e = node_wait(&n, way->bound_ms, way->name);

		if (e.err)
			fail("%s: %s", way->name, fi_strerror(e.err));
		if (e.context == in && memcmp(in, out, sizeof(out)) != 0)
			fail("%s: another message came", way->name);
		if (!sent)
			MUST(n.cq, fi_send(n.ep, out, sizeof(out), NULL, peer, out));
		sent = true;
	}
	printf("%s: %s side done after %llu ms\n", way->name, lab.which ? "hidden" : "open",
	       (unsigned long long)(now_ms() - begin));
	if (now_ms() - begin > way->bound_ms)
		fail("%s: took %llu ms", way->name, (unsigned long long)(now_ms() - begin));
}

static void stand_by(void)
{
	struct event e;
	char word;

	while (recv(lab.end, &word, 1, MSG_DONTWAIT) != 1) {
		if (node_poll(&n, &e))
			fail("%s: something came through", way->name);
		usleep(1000);
	}
}

/*
 * The wire loses all packets until both sides have noticed. The hidden one connects again by itself, so that the open one,
 * which cannot, may send.
 */
static void break_connection(void)
{
	static char in[8];
	struct event e;

	lab_dark(&lab);
	must(fi_recv(n.ep, in, sizeof(in), NULL, peer, NULL), "fi_recv");
	e = node_wait(&n, NOTICE_MS, "the end of a connection");
	if (!e.err)
		fail("a message came from the dark");
	tell(lab.end, "", 1);
	hear(lab.end, &(char){0}, 1);
	lab_light(&lab);
	tell(lab.end, "", 1);
	hear(lab.end, &(char){0}, 1);
}

/* The log of this process goes to a file from now on. Returns its descriptor. */
static int catch_log(void)
{
	char path[] = "/tmp/one_way.XXXXXX";
	int fd = mkstemp(path);

	if (fd < 0 || unlink(path) || dup2(fd, STDERR_FILENO) < 0)
		fail("no file for the log: %s", strerror(errno));
	return fd;
}

/* The operation ends in time, with the error that tells why, and a line of both addresses. */
static void in_vain(void)
{
	int log = catch_log();
	char text[8192] = "", *line;
	uint64_t begin = now_ms();
	ssize_t ret;

	while ((ret = fi_send(n.ep, "nobody", 6, NULL, peer, NULL)) == -FI_EAGAIN)
		if (now_ms() - begin > way->bound_ms)
			fail("%s: no end within %u ms", way->name, way->bound_ms);
	if (ret != -way->err)
		fail("%s: ended with %s", way->name, fi_strerror((int)-ret));
	printf("%s: error after %llu ms\n", way->name, (unsigned long long)(now_ms() - begin));
	if (now_ms() - begin < TIMEOUT_MS / 2)
		fail("%s: nobody was waited for", way->name);
	if (pread(log, text, sizeof(text) - 1, 0) < 0)
		fail("no log");
	line = strstr(text, "no connection with");
	if (!line || !strstr(line, HIDDEN_IP) || !strstr(line, OPEN_IP) || !strstr(line, " ms"))
		fail("%s: the log tells \"%s\"", way->name, text);
}

static void live(void *arg)
{
	lab = *(struct lab *)arg;
	setenv("FI_WEFT_PEER_TIMEOUT", way->timeout, 1);
	setenv("FI_LOG_LEVEL", "warn", 1);
	lab_enter(&lab);
	open_node();
	meet();
	if (way->first >= 0) {
		first_exchange();
		for (unsigned int i = 0; i < ROUNDS; i++)
			talk(&n, peer, i, lab.which);
		if (way->breaks) {
			break_connection();
			first_exchange();
		}
		tell(lab.end, "", 1);
		hear(lab.end, &(char){0}, 1);
	} else if (lab.which == 0) {
		in_vain();
		tell(lab.end, "", 1);
	} else {
		stand_by();
	}
	node_close(&n);
}

/* Runs all cases at once: they mostly wait. */
int main(void)
{
	pid_t pids[WAYS][2];

	alarm(LIMIT);
	need_lab();
	need_network();
	for (size_t i = 0; i < WAYS; i++) {
		struct lab hidden = {.which = 1}, open = {.which = 0};
		int ends[2];

		way = &ways[i];
		wire(ends);
		hidden.end = ends[1];
		open.end = ends[0];
		open.peer = pids[i][1] = start("hidden", live, &hidden);
		pids[i][0] = start("open", live, &open);
		close(ends[0]);
		close(ends[1]);
	}
	for (size_t i = 0; i < WAYS; i++) {
		finish(pids[i][0], ways[i].name);
		finish(pids[i][1], ways[i].name);
	}
	return EXIT_SUCCESS;
}
