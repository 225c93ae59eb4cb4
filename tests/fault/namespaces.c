/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints in different namespaces and of different users: across pid namespaces they talk, in network
 * namespaces that nothing joins they do not see each other. Another user's they reach across the network;
 * where there is none they are refused with a clear error.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "talk.h"

#define ROUNDS    5
#define REFUSE_MS 1000
#define NOBODY    65534

/* Where one side lives. */
enum place { HERE, OTHER_PIDS, OTHER_NET, OTHER_USER };

struct life {
	enum place place;
	void (*live)(int end, int which);
	int which;
};

static int ends[2];

/* In a new network namespace it is down. */
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
 * A new pid namespace is for the children of who asks: one more process in between. It ends without
 * exit(), in which LeakSanitizer would start a thread, in that namespace, and wait for it for ever.
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

/* Until both are done. */
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
	peer = talk_meet(&n, end);
	for (unsigned int i = 0; i < ROUNDS; i++)
		talk(&n, peer, i, which);
	meet_again(end);
	node_close(&n);
}

/* The error a send to `peer` ends with, at once or by a completion. Neither is a failure here. */
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

/* Serves the other's attempts until it says that it is done. */
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

/* Each tries the other while that one looks. */
static void live_refused(int end, int which)
{
	char buf[64];
	fi_addr_t peer;
	struct node n;

	node_open(&n, NULL);
	must(fi_recv(n.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	peer = talk_meet(&n, end);
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

/* The same address in two network namespaces is two addresses. */
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

/* No exit() here either. */
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
	setenv("FI_TCP_IFACE", "lo", 1); /* the one that is in all of them */
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
