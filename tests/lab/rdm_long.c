/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages between two processes, each with an endpoint at the named interface:
 *
 *	rdm_long CASE IFACE IFACE
 */
#include "rdm_pair.h"

#define HUGE ((size_t)16 << 20)
#define FILL 0xa5

struct message {
	size_t len, room;
	bool late; /* the receive is posted after the message has arrived */
	int pieces;
};

static const struct message messages[] = {
	{9217, 9217, false, 1},
	{65536, 65536, false, 1},
	{65537, 70000, true, 1},
	{1 << 20, 1 << 20, false, 3},
	{(2 << 20) + 3, 3 << 20, true, 2},
	{300000, 100001, false, 1},
	{300000, 100001, true, 4},
	{50000, 0, false, 1},
};
#define MESSAGES ((int)(sizeof(messages) / sizeof(messages[0])))

static void segments(struct iovec *iov, unsigned char *buf, size_t len, int count)
{
	for (int i = 0; i < count; i++) {
		size_t from = len * (size_t)i / (size_t)count,
		       to = len * (size_t)(i + 1) / (size_t)count;

		iov[i] = (struct iovec){buf + from, to - from};
	}
}

static void post(struct side *s, const struct message *m, unsigned int which, unsigned char *buf,
		 bool out)
{
	struct iovec iov[4];
	struct fi_msg_tagged msg = {.msg_iov = iov,
				    .iov_count = (size_t)m->pieces,
				    .addr = s->peer,
				    .tag = which,
				    .context = buf};

	segments(iov, buf, out ? m->len : m->room, m->pieces);
	if (out)
		MUST(s->n.cq, fi_tsendmsg(s->n.ep, &msg, FI_COMPLETION));
	else
		must(fi_trecvmsg(s->n.ep, &msg, FI_COMPLETION), "fi_trecvmsg");
}

/* Sends and receives one message, in both directions at the same time. */
static void exchange(struct side *s, const struct message *m, unsigned int which)
{
	unsigned char *out = side_memory(m->len), *in = side_memory(m->room + 1);
	size_t got = m->len < m->room ? m->len : m->room;
	struct event e;

	side_fill(out, which, m->len);
	memset(in, FILL, m->room + 1);
	if (!m->late)
		post(s, m, which, in, false);
	side_meet(s);
	post(s, m, which, out, true);
	if (m->late) {
		uint64_t end = now_ms() + 100;

		while (now_ms() < end)
			if (node_poll(&s->n, &e))
				fail("something has ended too early");
		side_meet(s); /* the other side no longer polls either */
		post(s, m, which, in, false);
	}
	for (int i = 0; i < 2; i++) {
		e = node_wait(&s->n, PATIENCE_MS, "a message");
		if (e.context == out && e.err)
			fail("send: %s", fi_strerror(e.err));
		if (e.context == in &&
		    (e.err != (m->len > m->room ? FI_ETRUNC : 0) || e.len != got))
			fail("receive of %zu: %zu, %s", m->room, e.len, fi_strerror(e.err));
	}
	side_check(in, which, got);
	for (size_t i = got; i <= m->room; i++)
		if (in[i] != FILL)
			fail("message %u: byte %zu was written to", which, i);
	free(out);
	free(in);
}

static void data(struct side *s)
{
	for (unsigned int round = 0; round < 2; round++)
		for (int i = 0; i < MESSAGES; i++)
			exchange(s, &messages[i], round * MESSAGES + (unsigned int)i);
	side_meet(s);
	node_close(&s->n);
}

/* Many messages in flight, which must arrive in order. */
static void many(struct side *s)
{
	enum { COUNT = 40, LEN = 100000 };
	unsigned char *out[COUNT], *in[COUNT];
	unsigned int sent = 0, got = 0;
	struct event e;

	for (unsigned int i = 0; i < COUNT; i++) {
		out[i] = side_memory(LEN);
		in[i] = side_memory(LEN);
		side_fill(out[i], i, LEN);
		must(fi_recv(s->n.ep, in[i], LEN, NULL, s->peer, in[i]), "fi_recv");
	}
	side_meet(s);
	while (sent < COUNT) {
		ssize_t ret = fi_send(s->n.ep, out[sent], LEN, NULL, s->peer, NULL);

		if (ret != -FI_EAGAIN) {
			must(ret, "fi_send");
			sent++;
		}
		if (node_poll(&s->n, &e))
			got += e.err ? (fail("%s", fi_strerror(e.err)), 0) : 1;
	}
	for (; got < 2 * COUNT; got++) {
		e = node_wait(&s->n, PATIENCE_MS, "one of many");
		if (e.err)
			fail("%s", fi_strerror(e.err));
	}
	for (unsigned int i = 0; i < COUNT; i++) {
		side_check(in[i], i, LEN);
		free(in[i]);
		free(out[i]);
	}
	side_meet(s);
	node_close(&s->n);
}

/* Receives a huge message. Returns when a part of it has arrived, but not all. */
static unsigned char *begin_receiving(struct side *s)
{
	unsigned char *in = side_memory(HUGE);
	uint64_t end = now_ms() + PATIENCE_MS;
	struct event e;

	memset(in, FILL, HUGE);
	must(fi_recv(s->n.ep, in, HUGE, NULL, s->peer, in), "fi_recv");
	side_meet(s);
	while (*(volatile unsigned char *)in == FILL) {
		if (node_poll(&s->n, &e))
			fail("it has ended: %s", fi_strerror(e.err));
		if (now_ms() > end)
			fail("nothing comes");
	}
	if (in[HUGE - 1] != FILL)
		fail("all has come at once");
	return in;
}

static unsigned char *begin_sending(struct side *s)
{
	unsigned char *out = side_memory(HUGE);

	side_fill(out, 0, HUGE);
	out[0] = 1;
	side_meet(s);
	MUST(s->n.cq, fi_send(s->n.ep, out, HUGE, NULL, s->peer, out));
	return out;
}

/* Checks that the memory is not written any more. */
static void still(unsigned char *in)
{
	memset(in, 0x5a, HUGE);
	usleep(1000000);
	for (size_t i = 0; i < HUGE; i++)
		if (in[i] != 0x5a)
			fail("byte %zu was written to after the end", i);
	free(in);
}

/* A receive that has begun to arrive can no longer be cancelled. */
static void cancel_receive(struct side *s)
{
	unsigned char *in = begin_receiving(s);
	ssize_t ret = fi_cancel(&s->n.ep->fid, in);
	struct event e = node_wait(&s->n, PATIENCE_MS, "the receive");

	if (ret != -FI_ENOENT)
		must(ret, "fi_cancel");
	if (e.context != in || e.err || e.len != HUGE)
		fail("the receive ended by %s, with %zu bytes", fi_strerror(e.err), e.len);
	in[0] = side_byte(0, 0); /* the sender sent another first byte, to show arrival */
	side_check(in, 0, HUGE);
	side_meet(s);
	node_close(&s->n);
}

static void cancel_send(struct side *s)
{
	unsigned char *out = begin_sending(s);
	struct event e = node_wait(&s->n, PATIENCE_MS, "the send");

	if (e.err)
		fail("send: %s", fi_strerror(e.err));
	free(out);
	side_meet(s);
	node_close(&s->n);
}

/*
 * The receiver closes its endpoint: its memory is not accessed any more, and the sender gets an
 * error, unless all had come by then.
 */
static void close_receive(struct side *s)
{
	unsigned char *in = begin_receiving(s);
	char whole;

	must(fi_close(&s->n.ep->fid), "fi_close");
	whole = in[HUGE - 1] == side_byte(0, HUGE - 1);
	tell(s->end, &whole, 1);
	still(in);
	side_meet(s);
}

static void close_send(struct side *s)
{
	unsigned char *out = begin_sending(s);
	char whole;
	struct event e = node_wait(&s->n, PATIENCE_MS, "the send");

	hear(s->end, &whole, 1);
	if (!e.err && !whole)
		fail("a message arrived where nobody is");
	printf("%s: the send ended: %s\n", who, fi_strerror(e.err));
	free(out);
	side_meet(s);
	node_close(&s->n);
}

/* The sender dies in the middle of a message. */
static void kill_receive(struct side *s)
{
	unsigned char *in = begin_receiving(s);
	struct event e;
	pid_t pid;

	hear(s->end, &pid, sizeof(pid));
	kill(pid, SIGKILL);
	e = node_wait(&s->n, PATIENCE_MS, "the receive");
	if (e.context != in || !e.err)
		fail("all of a message has come from somebody who is dead");
	printf("%s: the receive ended: %s\n", who, fi_strerror(e.err));
	still(in);
	node_close(&s->n);
}

static void kill_send(struct side *s)
{
	struct event e;
	pid_t pid = getpid();

	begin_sending(s);
	tell(s->end, &pid, sizeof(pid));
	for (;;)
		if (node_poll(&s->n, &e))
			fail("the send ended: %s", fi_strerror(e.err));
}

/* NOLINTNEXTLINE(bugprone-macro-parentheses): names of functions */
#define CASE(of, zero, one)                                                                        \
	{                                                                                          \
		.name = (of), .run = { zero, one }                                                 \
	}
static const struct side_case cases[] = {
	CASE("data", data, data),
	CASE("many", many, many),
	CASE("cancel", cancel_receive, cancel_send),
	CASE("close", close_receive, close_send),
	CASE("kill", kill_receive, kill_send),
	{.name = NULL},
};

int main(int argc, char **argv)
{
	return side_main(cases, argc, argv);
}
