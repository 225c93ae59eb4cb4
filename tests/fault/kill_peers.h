/* SPDX-License-Identifier: BSD-2-Clause */
/* The survivor's peers in tests/fault/kill.c: the victims and the steady peer. */
#ifndef FAULT_KILL_PEERS_H
#define FAULT_KILL_PEERS_H

#include "kill.h"

/* ---- A victim sends, or receives, until it is killed ---- */

struct victim_life {
	struct round round;
	struct name survivor;
	int end;
};

static void victim_send(struct node *n, fi_addr_t to, const struct round *r)
{
	static unsigned char bufs[DEEP][LONG];
	static uint64_t busy[DEEP];
	struct event e;

	for (uint64_t number = 0;; number++) {
		size_t len = message_len(r, number);
		unsigned int i = number % DEEP;

		while (busy[i])
			if (node_poll(n, &e))
				*(uint64_t *)e.context = 0;
		message_fill(bufs[i], len, number);
		busy[i] = 1;
		while (fi_send(n->ep, bufs[i], len, NULL, to, &busy[i]) == -FI_EAGAIN)
			if (node_poll(n, &e))
				*(uint64_t *)e.context = 0;
	}
}

static void victim_receive(struct node *n, const struct round *r)
{
	static struct op ops[DEEP];
	uint64_t posted = 0;

	for (; posted < DEEP; posted++) {
		struct op *op = &ops[posted];

		op->number = posted;
		must(fi_recv(n->ep, op->buf, LONG, NULL, FI_ADDR_UNSPEC, op), "fi_recv");
	}
	for (;;) {
		struct event e;
		struct op *op;

		if (!node_poll(n, &e))
			continue;
		op = e.context;
		if (e.err)
			fail("a receive ended with %s", fi_strerror(e.err));
		if (e.len != message_len(r, op->number))
			fail("message %llu has %zu bytes", (unsigned long long)op->number, e.len);
		message_check(op->buf, e.len, op->number, "the survivor");
		op->number = posted++;
		must(fi_recv(n->ep, op->buf, LONG, NULL, FI_ADDR_UNSPEC, op), "fi_recv");
	}
}

static void victim(void *arg)
{
	struct victim_life *life = arg;
	struct name name;
	fi_addr_t to;
	struct node n;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(life->end, &name, sizeof(name));
	to = node_insert(&n, &life->survivor);
	hear(life->end, &(char){0}, 1);
	if (life->round.victims_send)
		victim_send(&n, to, &life->round);
	victim_receive(&n, &life->round);
}

/* ---- The steady peer sends to the survivor all the time, and waits for its answers ---- */

static void steady(void *arg)
{
	static unsigned char buf[LONG];
	uint64_t sent = 0, done = 0, answered = 0, answer = 0, end = now_ms() + 10 * DEAD_MS;
	struct name name;
	struct event e;
	fi_addr_t to;
	struct node n;
	int wire_end = *(int *)arg;

	node_open(&n, NULL);
	name = node_name(&n);
	tell(wire_end, &name, sizeof(name));
	hear(wire_end, &name, sizeof(name));
	to = node_insert(&n, &name);
	must(fi_recv(n.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, &answer), "fi_recv");
	while (answered != OVER || done < sent) {
		size_t len = sent % 50 == 49 ? LONG : 16 + sent * 31 % 3000;

		/* There is one buffer, so only one message is under way. */
		if (answered != OVER && sent == done && sent - answered < WINDOW) {
			message_fill(buf, len, sent);
			if (!fi_send(n.ep, buf, len, NULL, to, NULL))
				sent++;
		}
		if (node_poll(&n, &e)) {
			if (e.err)
				fail("its %s ended with %s", e.context ? "receive" : "send",
				     fi_strerror(e.err));
			end = now_ms() + 10 * DEAD_MS;
			done += !e.context;
			if (!e.context)
				continue;
			answered = answered == OVER ? OVER : answer;
			must(fi_recv(n.ep, &answer, sizeof(answer), NULL, FI_ADDR_UNSPEC, &answer),
			     "fi_recv");
		} else {
			usleep(50);
		}
		if (now_ms() > end)
			fail("has no answer: %llu sent, %llu answered", (unsigned long long)sent,
			     (unsigned long long)answered);
	}
	node_close(&n);
}

#endif
