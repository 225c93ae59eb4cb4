/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stream of short messages, which a transport may gather and send together: all arrive in order
 * whatever the sender does behind the last one, and completions tell the truth.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

#define COUNT 500
#define LONG  100000

/* What the sender does after its last message. */
enum then { SLEEP, CLOSE, EXIT, KEEP_READING };

struct stream {
	enum then then;
	uint64_t flags; /* of each send; FI_INJECT: by fi_injectdata, without completions */
	bool mixed;     /* some messages are long */
};

static unsigned char out[LONG], in[LONG];

static size_t length_of(const struct stream *st, unsigned int i)
{
	return st->mixed && i % 7 == 6 ? LONG - i : 8;
}

/* Posts once there is space. Returns 0 or an error. */
static ssize_t try_post(struct side *s, const struct stream *st, unsigned int i)
{
	struct iovec iov = {out, length_of(st, i)};
	struct fi_msg msg = {.msg_iov = &iov,
			     .iov_count = 1,
			     .addr = s->addr[0],
			     .data = i,
			     .context = (void *)(uintptr_t)(i + 1)};
	ssize_t ret;

	do
		ret = st->flags & FI_INJECT
			      ? fi_injectdata(s->ep, out, iov.iov_len, i, s->addr[0])
			      : fi_sendmsg(s->ep, &msg, st->flags | FI_REMOTE_CQ_DATA);
	while (ret == -FI_EAGAIN);
	return ret;
}

static void post(struct side *s, const struct stream *st, unsigned int i)
{
	CHECK_EQ(try_post(s, st, i), 0);
}

/* Connects: the first message to a peer waits for that. */
static void greet(struct side *s)
{
	if (s->a->rank) {
		POST(s, fi_send(s->ep, out, 1, NULL, s->addr[0], NULL));
		side_take(s, s->tx);
	} else {
		OK(fi_recv(s->ep, in, 1, NULL, FI_ADDR_UNSPEC, NULL));
		side_take(s, s->rx);
	}
}

/* Completions of short messages come in order; long ones may wait for the receiver. */
static void reap(struct side *s, const struct stream *st)
{
	bool ended[COUNT] = {false};

	for (unsigned int i = 0; i < COUNT; i++) {
		uintptr_t at = (uintptr_t)side_take(s, s->tx).op_context - 1;

		CHECK(at < COUNT && !ended[at]);
		CHECK(st->mixed || at == i);
		ended[at] = true;
	}
}

static void send_all(struct side *s, const struct stream *st)
{
	for (unsigned int i = 0; i < COUNT; i++)
		post(s, st, i);
	switch (st->then) {
	case SLEEP:
		api_meet_still(s->a); /* with the receiver, when all have come */
		break;
	case CLOSE:
		OK(fi_close(&s->ep->fid));
		s->ep = NULL;
		break;
	case EXIT:
		exit(0);
	case KEEP_READING:
		break;
	}
	if (!(st->flags & FI_INJECT))
		reap(s, st);
}

static void receive_all(struct side *s, const struct stream *st)
{
	for (unsigned int i = 0; i < COUNT; i++) {
		struct fi_cq_tagged_entry e;

		OK(fi_recv(s->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
		e = side_take(s, s->rx);
		CHECK_EQ(e.data, i);
		CHECK_EQ(e.len, length_of(st, i));
	}
	if (st->then == SLEEP)
		api_meet_still(s->a);
}

static void run_stream(struct api *a, const struct stream *st)
{
	struct side s;

	side_open(&s, a, &(struct side_opts){0});
	greet(&s);
	if (a->rank == 0)
		receive_all(&s, st);
	else
		send_all(&s, st);
	if (st->then == CLOSE || st->then == EXIT)
		side_close_alone(&s);
	else
		side_close(&s);
}

static void sleeps(struct api *a)
{
	run_stream(a, &(struct stream){.then = SLEEP});
}

static void sleeps_injecting(struct api *a)
{
	run_stream(a, &(struct stream){.then = SLEEP, .flags = FI_INJECT});
}

/* FI_MORE announces a message that never comes. */
static void dangling(struct api *a)
{
	run_stream(a, &(struct stream){.then = SLEEP, .flags = FI_MORE | FI_COMPLETION});
}

static void closes(struct api *a)
{
	run_stream(a, &(struct stream){.then = CLOSE});
}

static void exits(struct api *a)
{
	run_stream(a, &(struct stream){.then = EXIT});
}

static void exits_injecting(struct api *a)
{
	run_stream(a, &(struct stream){.then = EXIT, .flags = FI_INJECT});
}

static void mixes(struct api *a)
{
	run_stream(a, &(struct stream){.then = KEEP_READING, .mixed = true});
}

/* The receiver dies: each send that was accepted ends once, with success or an error. */
static void dies(struct api *a)
{
	const struct stream st = {.flags = FI_COMPLETION};
	struct fi_cq_err_entry err;
	unsigned int ended = 0, i = 0;
	struct side s;
	ssize_t ret;

	side_open(&s, a, &(struct side_opts){0});
	greet(&s);
	if (a->rank == 0) {
		api_meet_still(a);
		_exit(0);
	}
	while (i < 20)
		post(&s, &st, i++);
	api_meet_still(a);
	while (i < COUNT && try_post(&s, &st, i) == 0)
		i++;
	while (ended < i) {
		struct fi_cq_tagged_entry e;

		ret = fi_cq_read(s.tx, &e, 1);
		if (ret == -FI_EAVAIL) {
			CHECK_EQ(fi_cq_readerr(s.tx, &err, 0), 1);
			CHECK((uintptr_t)err.op_context <= COUNT);
		}
		ended += ret == 1 || ret == -FI_EAVAIL;
	}
	side_quiet(&s, s.tx, 20);
	side_close_alone(&s);
}

/* Broadcasts by a root that reads each completion, and then sleeps until all members have all, or closes. */
static void run_broadcasts(struct api *a, enum then then)
{
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	group_barrier(&g);
	for (uint64_t i = 1; i <= COUNT; i++) {
		uint64_t value = a->rank ? 0 : i;

		POST(&c.s,
		     fi_broadcast(c.s.ep, &value, 1, NULL, g.addr, c.s.addr[0], FI_UINT64, 0, &g));
		GROUP_DONE(&c, &g);
		CHECK_EQ(value, i);
	}
	if (then == SLEEP)
		api_meet_still(a);
	group_close(&g);
	club_end(&c);
}

static void broadcasts_sleep(struct api *a)
{
	run_broadcasts(a, SLEEP);
}

static void broadcasts_close(struct api *a)
{
	run_broadcasts(a, CLOSE);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"sleeps", sleeps, 2, {0}},
		{"sleeps-injecting", sleeps_injecting, 2, {0}},
		{"dangling", dangling, 2, {0}},
		{"closes", closes, 2, {0}},
		{"exits", exits, 2, {0}},
		{"exits-injecting", exits_injecting, 2, {0}},
		{"mixes", mixes, 2, {0}},
		{"dies", dies, 2, {0}},
		{"broadcasts-sleep", broadcasts_sleep, 3, {0}},
		{"broadcasts-close", broadcasts_close, 3, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
