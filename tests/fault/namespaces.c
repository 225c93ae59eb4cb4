/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves which endpoints reach each other across namespaces and users. Endpoints in different pid
 * namespaces exchange messages. Endpoints in unconnected network namespaces get an error. Endpoints
 * of different users connect over TCP; the shm provider refuses with a clear error.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "talk.h"

#define ROUNDS    5
#define REFUSE_MS 1000
#define NOBODY    65534

/* The namespaces and user of one side. */
enum place { HERE, OTHER_PIDS, OTHER_NET, OTHER_USER };

struct life {
	enum place place;
	void (*live)(int end, int which);
	int which;
};

static int ends[2];

/* Brings up the loopback interface, which is down in a new network namespace. */
static void loopback_up(void)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || ioctl(sock, SIOCSIFFLAGS, &req))
		fail("no loopback: %s", strerror(errno));
	close(sock);
}

static void leave(enum place place)
{
	int flags = place == OTHER_NET ? CLONE_NEWNET : 0;

	if ((flags && unshare(flags)) ||
	    (place == OTHER_USER && (setgid(NOBODY) || setuid(NOBODY))))
		fail("cannot go there: %s", strerror(errno));
	if (place == OTHER_NET)
		loopback_up();
}

static void quiesce(void *arg)
{
	const struct life *life = arg;

	leave(life->place);
	life->live(ends[life->which], life->which);
}

/*
 * unshare(CLONE_NEWPID) affects only later children, so the side runs in a child. This process ends
 * by _exit: in exit() LeakSanitizer would start a thread in the new namespace and wait for it for
 * ever.
 */
static void quiesce_apart(void *arg)
{
	if (unshare(CLONE_NEWPID))
		fail("unshare: %s", strerror(errno));
	finish(start("apart", quiesce, arg), "the process in a pid namespace of its own");
	_exit(EXIT_SUCCESS);
}

static void pair(enum place a, enum place b, void (*live)(int end, int which))
{
	struct life lives[2] = {{a, live, 0}, {b, live, 1}};
	pid_t pids[2];

	wire(ends);
	for (int i = 0; i < 2; i++)
		pids[i] = start(i ? "second" : "first",
				lives[i].place == OTHER_PIDS ? quiesce_apart : quiesce, &lives[i]);
	close(ends[0]);
	close(ends[1]);
	for (int i = 0; i < 2; i++)
		finish(pids[i], i ? "second" : "first");
}

/* Waits until both sides get here. */
static void meet_again(int end)
{
	char word = 0;

	tell(end, &word, 1);
	hear(end, &word, 1);
}

static void live_and_talk(int end, int which)
{
	fi_addr_t peer;
	struct node n;

	node_open(&n, NULL);
	peer = node_meet(&n, end);
	for (unsigned int i = 0; i < ROUNDS; i++)
		talk(&n, peer, i, which);
	meet_again(end);
	node_close(&n);
}

/*
 * Returns the error (positive) of a send to `peer`, from the call or its completion; 0: it
 * succeeded.
 */
static int refusal(struct node *n, fi_addr_t peer)
{
	uint64_t end = now_ms() + REFUSE_MS;
	struct event e;
	ssize_t ret;

	do {
		ret = fi_send(n->ep, "hello", 5, NULL, peer, NULL);
		if (ret == -FI_EAGAIN)
			fi_cq_read(n->cq, NULL, 0);
	} while (ret == -FI_EAGAIN && now_ms() < end);
	if (ret)
		return (int)-ret;
	e = node_wait(n, REFUSE_MS, "a send that should be refused");
	return e.err;
}

/* Makes progress for the other side's attempts until it sends a byte. No completion may come. */
static void stand_by(struct node *n, int end)
{
	struct event e;
	char word;

	while (recv(end, &word, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
		if (node_poll(n, &e))
			fail("something came through: %s", fi_strerror(e.err));
		usleep(100);
	}
}

/* Each side in turn sends while the other makes progress; the send is refused. */
static void live_refused(int end, int which)
{
	char buf[64];
	fi_addr_t peer;
	struct node n;

	node_open(&n, NULL);
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	peer = node_meet(&n, end);
	for (int round = 0; round < 2; round++) {
		if (round == which) {
			int err = refusal(&n, peer);

			if (err != FI_EACCES && err != FI_ECONNREFUSED && err != FI_EHOSTUNREACH)
				fail("a send to somebody else's endpoint ended with %s",
				     err ? fi_strerror(err) : "success");
			tell(end, "", 1);
		} else {
			stand_by(&n, end);
		}
	}
	meet_again(end);
	node_close(&n);
}

/* The same address can be taken once in each network namespace. */
static void live_alike(int end, int which)
{
	struct name name, mine;
	struct node n;

	if (which == 1)
		hear(end, &name, sizeof(name));
	node_open(&n, which == 1 ? &name : NULL);
	mine = node_name(&n);
	if (which == 0)
		tell(end, &mine, sizeof(mine));
	else if (mine.len != name.len || memcmp(mine.bytes, name.bytes, name.len))
		fail("the address is taken, in another network namespace");
	meet_again(end);
	node_close(&n);
}

/* Ends without exit(), as quiesce_apart. */
static void try_unshare(void *arg)
{
	(void)arg;
	_exit(unshare(CLONE_NEWPID | CLONE_NEWNET) ? EXIT_FAILURE : EXIT_SUCCESS);
}

static bool possible(void)
{
	int status;

	return waitpid(start("try", try_unshare, NULL), &status, 0) > 0 && status == 0;
}

int main(void)
{
	alarm(LIMIT);
	if (geteuid() != 0) {
		printf("needs root\n");
		return 77;
	}
	setenv("FI_TCP_IFACE", "lo", 1); /* the interface that every namespace has */
	need_provider();
	if (!possible()) {
		printf("no new pid and network namespaces here\n");
		return 77;
	}
	pair(HERE, OTHER_PIDS, live_and_talk);
	pair(OTHER_PIDS, HERE, live_and_talk);
	pair(OTHER_PIDS, OTHER_PIDS, live_and_talk);
	pair(HERE, OTHER_USER, strcmp(provider(), "shm") ? live_and_talk : live_refused);
	pair(OTHER_NET, OTHER_NET, live_refused);
	pair(HERE, OTHER_NET, live_refused);
	pair(HERE, OTHER_NET, live_alike);
	return EXIT_SUCCESS;
}
