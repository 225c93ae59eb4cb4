/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that flow control bounds memory. The receiver is stopped, or posts no receive: the sender
 * gets -FI_EAGAIN, neither process grows without bound, and once the receiver goes on all messages
 * arrive in order.
 */
#include "node.h"

#define STALL_MS 700 /* nothing but -FI_EAGAIN for this long: no credits left */
/* Each process may grow by this much (kB), which includes the limit for unexpected messages. */
#ifndef __SANITIZE_ADDRESS__
#define GROWTH_KB 40000
#else
#define GROWTH_KB 400000
#endif
#define KEEP    4000000 /* bytes of unexpected messages */
#define SMALL   600
#define LONG    70000
#define ROUNDS  2
#define WAIT_MS 5000

enum order { ORDER_READ, ORDER_IDLE, ORDER_END };

static int ends[2];
static unsigned char pattern[LONG + 509];

/* Returns the payload of message `i`; its length is the caller's choice. */
static const unsigned char *payload_of(uint64_t i)
{
	return pattern + i % 509;
}

/* ---- Receiver: makes progress without receives, or receives messages, as ordered ---- */

struct order_word {
	enum order order;
	uint64_t first, count;
	size_t len;
};

static void read_messages(struct node *n, const struct order_word *o)
{
	static unsigned char buf[LONG];

	for (uint64_t i = o->first; i < o->first + o->count; i++) {
		struct event e;

		must(fi_recv(n->ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
		e = node_wait(n, WAIT_MS, "a message sent while the receiver stood still");
		if (e.err || e.len != o->len || e.data != i)
			fail("message %llu of %zu bytes: got %llu, %zu bytes, %s",
			     (unsigned long long)i, o->len, (unsigned long long)e.data, e.len,
			     fi_strerror(e.err));
		if (memcmp(buf, payload_of(i), o->len))
			fail("message %llu differs", (unsigned long long)i);
	}
}

static void receiver(void *arg)
{
	struct order_word o = {.order = ORDER_IDLE};
	struct name name;
	struct node n;

	(void)arg;
	node_open(&n, NULL);
	name = node_name(&n);
	tell(ends[1], &name, sizeof(name));
	while (o.order != ORDER_END) {
		if (recv(ends[1], &o, sizeof(o), MSG_DONTWAIT) == sizeof(o)) {
			if (o.order == ORDER_READ) {
				read_messages(&n, &o);
				tell(ends[1], "", 1);
			}
		}
		fi_cq_read(n.cq, NULL, 0);
		usleep(50);
	}
	node_close(&n);
}

/* ---- Sender ---- */

struct sender {
	struct node n;
	fi_addr_t to;
	uint64_t posted, done;
};

static void reap(struct sender *s)
{
	struct event e;

	while (node_poll(&s->n, &e)) {
		if (e.err)
			fail("a send ended with %s", fi_strerror(e.err));
		s->done++;
	}
}

static int post(struct sender *s, size_t len)
{
	ssize_t ret =
		fi_senddata(s->n.ep, payload_of(s->posted), len, NULL, s->posted, s->to, NULL);

	if (ret == -FI_EAGAIN)
		return 0;
	must(ret, "fi_send");
	s->posted++;
	return 1;
}

/* Sends until credits run out, and checks the growth of both processes. */
static void storm(struct sender *s, size_t len, pid_t pid)
{
	long mine = memory_of(getpid()), theirs = memory_of(pid);
	uint64_t first = s->posted, moved = now_ms();

	while (now_ms() - moved < STALL_MS) {
		if (post(s, len))
			moved = now_ms();
		else
			usleep(100);
		reap(s);
		if (memory_of(getpid()) - mine > GROWTH_KB)
			fail("after %llu messages of %zu bytes the sender has grown by %ld kB",
			     (unsigned long long)(s->posted - first), len,
			     memory_of(getpid()) - mine);
		if (memory_of(pid) - theirs > GROWTH_KB)
			fail("after %llu messages of %zu bytes the receiver has grown by %ld kB",
			     (unsigned long long)(s->posted - first), len, memory_of(pid) - theirs);
	}
	if (s->posted == first)
		fail("no message of %zu bytes could be sent at all", len);
}

static void drain(struct sender *s, uint64_t first, size_t len)
{
	struct order_word o = {ORDER_READ, first, s->posted - first, len};
	uint64_t end;
	char word;

	tell(ends[0], &o, sizeof(o));
	while (recv(ends[0], &word, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		reap(s);
	for (end = now_ms() + WAIT_MS; s->done < s->posted && now_ms() < end;)
		reap(s);
	if (s->done < s->posted)
		fail("all has arrived, but %llu sends never ended",
		     (unsigned long long)(s->posted - s->done));
}

static void stop(pid_t pid)
{
	int status;

	kill(pid, SIGSTOP);
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		fail("the receiver does not stop");
}

/* Each round: once with the receiver stopped, once with a receiver that runs but posts nothing. */
static void rounds(struct sender *s, size_t len, pid_t pid)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t first = s->posted;

		stop(pid);
		storm(s, len, pid);
		kill(pid, SIGCONT);
		drain(s, first, len);
		first = s->posted;
		storm(s, len, pid);
		drain(s, first, len);
	}
}

int main(void)
{
	struct order_word over = {.order = ORDER_END};
	struct sender s = {.posted = 0};
	struct name name;
	char keep[32];
	pid_t pid;

	alarm(LIMIT);
	need_provider();
	snprintf(keep, sizeof(keep), "%d", KEEP);
	setenv("FI_WEFT_UNEXPECTED_MAX", keep, 1);
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i * 13 + i / 255);
	wire(ends);
	pid = start("receiver", receiver, NULL);
	hear(ends[0], &name, sizeof(name));
	node_open(&s.n, NULL);
	s.to = node_insert(&s.n, &name);
	while (!post(&s, SMALL))
		reap(&s);
	drain(&s, 0, SMALL);
	rounds(&s, SMALL, pid);
	rounds(&s, LONG, pid);
	tell(ends[0], &over, sizeof(over));
	finish(pid, "receiver");
	node_close(&s.n);
	return EXIT_SUCCESS;
}
