/* SPDX-License-Identifier: BSD-2-Clause */
/* The survivor of tests/fault/kill.c: its operations with the victims and with the steady peer. */
#ifndef FAULT_KILL_H
#define FAULT_KILL_H

#include "node.h"

#define VICTIMS 2
#define DEEP    8 /* operations under way with each peer */
#define LONG    300000
#define WINDOW  64 /* messages of the steady peer without an answer */
#define ROUNDS  200
#define SPELL   20 /* rounds with one measurement of the heap */
/*
 * The heap may grow by this much (bytes) after the first spell: unexpected messages of dead peers
 * are kept, and their number depends on when the peers died.
 */
#define GROWTH (512 * 1024)
#define OVER   UINT64_MAX

/* Description of a round. */
struct round {
	unsigned int number;
	bool victims_send, long_messages;
	struct name names[VICTIMS];
};

enum order { ORDER_MEET, ORDER_DEAD, ORDER_END };

struct word {
	enum order order;
	struct round round;
};

struct op {
	int whose; /* index of the victim; -1: the steady peer */
	bool busy, receive;
	uint64_t
		number; /* of the message for it: receives match in order, and may complete in another */
	unsigned char buf[LONG];
};

struct victim {
	fi_addr_t addr;
	uint64_t got, sent, posted; /* messages, and receives */
	bool lost;                  /* an operation with the victim failed */
	struct op ops[DEEP], probe;
	struct op sentinel; /* a receive that ends only by the victim's death */
};

struct survivor {
	struct node n;
	int end;
	struct round round;
	struct victim victims[VICTIMS];
	struct op steady[DEEP];
	fi_addr_t steady_addr;
	uint64_t steady_got, steady_posted, answered;
	bool over;                   /* the steady peer has been told to end */
	int fds, rings;              /* counted before the first death */
	size_t heap[ROUNDS / SPELL]; /* bytes in use, the least seen in each spell */
};

/*
 * Returns the length of a message. Small messages go out eagerly, so that none fails alone. Most
 * take many ring slots, so that a victim often dies with a message half written.
 */
static inline size_t message_len(const struct round *r, uint64_t number)
{
	return r->long_messages ? LONG : 16 + number * 997 % 4000;
}

static inline void message_fill(unsigned char *buf, size_t len, uint64_t number)
{
	memset(buf, (int)(number * 5 & 0xff), len);
	memcpy(buf, &number, sizeof(number));
}

static inline void message_check(const unsigned char *buf, size_t len, uint64_t number,
				 const char *from)
{
	uint64_t is;

	memcpy(&is, buf, sizeof(is));
	if (is != number)
		fail("message %llu from %s instead of %llu", (unsigned long long)is, from,
		     (unsigned long long)number);
	for (size_t i = sizeof(is); i < len; i++)
		if (buf[i] != (unsigned char)(number * 5))
			fail("message %llu from %s: byte %zu of %zu differs",
			     (unsigned long long)number, from, i, len);
}

static inline void survivor_receive(struct survivor *s, struct op *op)
{
	fi_addr_t from = op->whose < 0 ? s->steady_addr : s->victims[op->whose].addr;

	must(fi_recv(s->n.ep, op->buf, LONG, NULL, from, op), "fi_recv");
	op->number = op->whose < 0 ? s->steady_posted++ : s->victims[op->whose].posted++;
	op->busy = op->receive = true;
}

static inline void survivor_send(struct survivor *s, struct op *op)
{
	struct victim *v = &s->victims[op->whose];
	size_t len = message_len(&s->round, v->sent);
	ssize_t ret;

	message_fill(op->buf, len, v->sent);
	ret = fi_send(s->n.ep, op->buf, len, NULL, v->addr, op);
	if (ret == -FI_EAGAIN)
		return;
	if (ret) {
		v->lost = true;
		return;
	}
	op->busy = true;
	op->receive = false;
	v->sent++;
}

static inline void survivor_victim_event(struct survivor *s, struct op *op, const struct event *e)
{
	struct victim *v = &s->victims[op->whose];

	op->busy = false;
	if (e->err) {
		v->lost = true;
		return;
	}
	if (op == &v->sentinel)
		fail("the sentinel receive got something");
	if (!op->receive)
		return;
	v->got++;
	message_check(op->buf, e->len, op->number, "a victim");
	if (e->len != message_len(&s->round, op->number))
		fail("message %llu of a victim has %zu bytes", (unsigned long long)op->number,
		     e->len);
	if (!v->lost)
		survivor_receive(s, op);
}

static inline void survivor_step(struct survivor *s)
{
	struct event e;
	struct op *op;

	if (!s->over && s->steady_got - s->answered >= WINDOW / 4 &&
	    !fi_inject(s->n.ep, &s->steady_got, sizeof(s->steady_got), s->steady_addr))
		s->answered = s->steady_got;
	if (!node_poll(&s->n, &e)) {
		sched_yield();
		return;
	}
	if (!e.context)
		fail("an operation without a context ended: %s", fi_strerror(e.err));
	if (((struct op *)e.context)->whose >= 0) {
		survivor_victim_event(s, e.context, &e);
		return;
	}
	if (e.err)
		fail("a receive for the steady one ended with %s", fi_strerror(e.err));
	s->steady_got++;
	op = e.context;
	message_check(op->buf, e.len, op->number, "the steady one");
	survivor_receive(s, op);
}

static inline void survivor_meet(struct survivor *s)
{
	for (int i = 0; i < VICTIMS; i++) {
		struct victim *v = &s->victims[i];

		v->addr = node_insert(&s->n, &s->round.names[i]);
		v->got = v->sent = v->posted = 0;
		v->lost = false;
		for (int k = 0; s->round.victims_send && k < DEEP; k++)
			survivor_receive(s, &v->ops[k]);
		must(fi_trecv(s->n.ep, v->sentinel.buf, 1, NULL, v->addr, 1, 0, &v->sentinel),
		     "fi_trecv");
		v->sentinel.busy = v->sentinel.receive = true;
	}
}

/* Keeps DEEP sends to each victim under way while victims receive. */
static inline void survivor_feed(struct survivor *s)
{
	for (int i = 0; !s->round.victims_send && i < VICTIMS; i++)
		for (int k = 0; k < DEEP; k++)
			if (!s->victims[i].lost && !s->victims[i].ops[k].busy)
				survivor_send(s, &s->victims[i].ops[k]);
}

static inline void survivor_cancel(struct survivor *s, struct op *op)
{
	if (op->busy && op->receive)
		fi_cancel(&s->n.ep->fid, op);
}

/* Receives the messages that the dead victim had sent, until none is left. */
static inline void survivor_inherit(struct survivor *s, struct victim *v)
{
	struct op *op = &v->ops[0];

	do {
		survivor_receive(s, op);
		for (int i = 0; i < WINDOW && op->busy; i++)
			survivor_step(s);
	} while (!op->busy);
	survivor_cancel(s, op);
	while (op->busy)
		survivor_step(s);
}

/*
 * Checks that operations with a dead victim end by `end` (ms) and that a new send fails. Receives
 * that were posted after the death was noticed, or before the victim connected, stay and are
 * cancelled.
 */
static inline void survivor_expect_ends(struct survivor *s, struct victim *v, uint64_t end)
{
	int left;

	v->lost = false;
	while (!v->lost && now_ms() < end) {
		if (!v->probe.busy)
			survivor_send(s, &v->probe);
		survivor_step(s);
	}
	if (!v->lost)
		fail("a send to the dead finds no end");
	if (v->got == 0)
		survivor_cancel(s, &v->sentinel);
	for (int k = 0; k < DEEP; k++)
		survivor_cancel(s, &v->ops[k]);
	do {
		survivor_step(s);
		left = v->sentinel.busy + v->probe.busy;
		for (int k = 0; k < DEEP; k++)
			left += v->ops[k].busy;
	} while (left && now_ms() < end);
	if (left)
		fail("%d operations with the dead have no end%s", left,
		     v->sentinel.busy ? ", a receive from it among them" : "");
	survivor_inherit(s, v);
	must(fi_av_remove(s->n.av, &v->addr, 1, 0), "fi_av_remove");
}

#endif
