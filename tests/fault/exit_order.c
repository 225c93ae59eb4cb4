/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that endpoints may open and close in any order: messages sent before a close arrive, and
 * crossing connects resolve to one connection.
 */
#include "node.h"

#define UNREAD  200
#define CYCLES  100
#define CROSSES 300
#define SMALL   900
#define LONG    100000
#define BATCH   5 /* messages of a cycle, at most */
#define WAIT_MS 5000

static int ends[2];
static unsigned char room[UNREAD][SMALL], big[BATCH][LONG];

static void fill(unsigned char *buf, size_t len, unsigned int seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)(seed + i * 7 + i / 251);
}

static void check(const unsigned char *buf, size_t len, unsigned int seed, const char *what)
{
	for (size_t i = 0; i < len; i++)
		if (buf[i] != (unsigned char)(seed + i * 7 + i / 251))
			fail("%s %u differs at byte %zu of %zu", what, seed, i, len);
}

/* Posts a send, again after -FI_EAGAIN; adds completions that come meanwhile to *done. */
static void send_one(struct node *n, fi_addr_t to, const void *buf, size_t len, int *done)
{
	uint64_t end = now_ms() + WAIT_MS;
	struct event e;
	ssize_t ret;

	while ((ret = fi_send(n->ep, buf, len, NULL, to, NULL)) == -FI_EAGAIN) {
		while (node_poll(n, &e))
			if (e.err)
				fail("a send ended with %s", fi_strerror(e.err));
			else
				++*done;
		if (now_ms() > end)
			fail("no room for a message of %zu bytes within %d ms", len, WAIT_MS);
		sched_yield();
	}
	must(ret, "fi_send");
}

/* ---- Closed with messages unread ---- */

struct unread {
	bool reader_connects; /* else the writer does */
	bool posted;          /* receives are posted before the writer sends */
};

/* Connects by one message, then sends UNREAD messages while the reader makes no progress. */
static void writer(void *arg)
{
	struct unread *u = arg;
	unsigned char buf[SMALL];
	fi_addr_t peer;
	struct node n;
	int done = 0;
	char c;

	node_open(&n, NULL);
	peer = node_meet(&n, ends[1]);
	if (u->reader_connects) {
		must(fi_recv(n.ep, buf, 1, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		node_wait(&n, WAIT_MS, "the reader's first message");
	} else {
		send_one(&n, peer, buf, 1, &done);
		while (done < 1)
			done += !node_wait(&n, WAIT_MS, "the first send").err;
	}
	hear(ends[1], &c, 1);
	done = 0;
	for (unsigned int i = 0; i < UNREAD; i++) {
		fill(buf, SMALL, i);
		send_one(&n, peer, buf, SMALL, &done);
	}
	while (done < UNREAD)
		done += !node_wait(&n, WAIT_MS, "a send").err;
	node_close(&n);
}

static void post_all(struct node *n)
{
	for (unsigned int i = 0; i < UNREAD; i++)
		must(fi_recv(n->ep, room[i], SMALL, NULL, FI_ADDR_UNSPEC, room[i]), "fi_recv");
}

static void reader(struct unread u)
{
	pid_t pid = start("writer", writer, &u);
	fi_addr_t peer;
	struct node n;
	int done = 0;

	node_open(&n, NULL);
	peer = node_meet(&n, ends[0]);
	if (u.reader_connects) {
		send_one(&n, peer, "", 1, &done);
		while (done < 1)
			done += !node_wait(&n, WAIT_MS, "the first send").err;
	} else {
		must(fi_recv(n.ep, room[0], 1, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		node_wait(&n, WAIT_MS, "the writer's first message");
	}
	if (u.posted)
		post_all(&n);
	tell(ends[0], "", 1);
	finish(pid, "writer");
	if (!u.posted)
		post_all(&n);
	for (unsigned int i = 0; i < UNREAD; i++) {
		struct event e = node_wait(&n, WAIT_MS, "a message of an endpoint that was closed");

		if (e.err || e.context != room[i] || e.len != SMALL)
			fail("message %u: %s, %zu bytes", i, fi_strerror(e.err), e.len);
		check(room[i], SMALL, i, "unread message");
	}
	node_close(&n);
}

/* ---- Cycles: both open, send a few messages to each other, close ---- */

struct cycle {
	unsigned int round, side, mine, theirs; /* messages */
	bool crossing;
};

static size_t length(unsigned int round, unsigned int i)
{
	return (round + i) % 3 == 2 ? LONG : 8 + i;
}

/* Sends `mine` messages and receives `theirs`; some are long. */
static void exchange(struct node *n, fi_addr_t peer, const struct cycle *c)
{
	static unsigned char out[BATCH][LONG];
	int done = 0;

	for (unsigned int i = 0; i < c->theirs; i++)
		must(fi_recv(n->ep, big[i], LONG, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	for (unsigned int i = 0; i < c->mine; i++) {
		fill(out[i], length(c->round, i), c->round + c->side + i);
		send_one(n, peer, out[i], length(c->round, i), &done);
	}
	while (done < (int)(c->mine + c->theirs)) {
		struct event e = node_wait(n, WAIT_MS, c->crossing ? "crossing" : "cycle");

		if (e.err)
			fail("round %u: %s ended with %s", c->round,
			     e.flags & FI_RECV ? "receive" : "send", fi_strerror(e.err));
		done++;
	}
	for (unsigned int i = 0; i < c->theirs; i++)
		check(big[i], length(c->round, i), c->round + !c->side + i, "message");
}

static void pause_us(unsigned int us)
{
	if (us)
		usleep(us);
}

static void one_cycle(int end, struct cycle c, unsigned int *seed)
{
	fi_addr_t peer;
	struct node n;
	char sync = 0;

	c.mine = 1 + (unsigned int)rand_r(seed) % BATCH;
	node_open(&n, NULL);
	peer = node_meet(&n, end);
	tell(end, &c.mine, sizeof(c.mine));
	hear(end, &c.theirs, sizeof(c.theirs));
	if (c.crossing) {
		tell(end, &sync, 1);
		hear(end, &sync, 1);
		pause_us(c.round % 3 == c.side ? (unsigned int)rand_r(seed) % 200 : 0);
	} else {
		pause_us((unsigned int)rand_r(seed) % 2000);
	}
	exchange(&n, peer, &c);
	pause_us(c.crossing ? 0 : (unsigned int)rand_r(seed) % 1000);
	node_close(&n);
}

static void all_cycles(int end, unsigned int side)
{
	unsigned int seed = 4711 + side;
	int fds = 0;

	for (unsigned int i = 0; i < CYCLES + CROSSES; i++) {
		one_cycle(end, (struct cycle){.round = i, .side = side, .crossing = i >= CYCLES},
			  &seed);
		if (i == 0)
			fds = count_fds(getpid());
	}
	/* A thread closes sockets in which the other side has left descriptors: those of the first cycle maybe after `fds`. */
	for (uint64_t end = now_ms() + 5000; count_fds(getpid()) > fds && now_ms() < end;)
		usleep(10000);
	if (count_fds(getpid()) > fds)
		fail("%d descriptors became %d", fds, count_fds(getpid()));
}

static void other_side(void *arg)
{
	(void)arg;
	all_cycles(ends[1], 1);
}

int main(void)
{
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	wire(ends);
	for (int i = 0; i < 4; i++)
		reader((struct unread){.reader_connects = i & 1, .posted = i & 2});
	pid = start("other side", other_side, NULL);
	all_cycles(ends[0], 0);
	finish(pid, "other side");
	return EXIT_SUCCESS;
}
