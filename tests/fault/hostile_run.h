/* SPDX-License-Identifier: BSD-2-Clause */
/* What one run of a hostile peer has: its random choices, its connections, its names. */
#ifndef FAULT_HOSTILE_RUN_H
#define FAULT_HOSTILE_RUN_H

#include "hostile_packets.h"

#define LINKS_MAX 90
#define NAMES     8   /* names that a hostile peer uses beside the one that the endpoint knows */
#define BURST_IN  100 /* acts, of which one is a burst */
#define BURST_MS  300
#define STEP_MS   20 /* how long it waits for an answer */

struct run {
	struct rng rng;
	struct raw_link *link[LINKS_MAX]; /* `count` of them; the last one is in use */
	unsigned int count;
	int listener; /* of the name that the endpoint knows */
	uint64_t serial;
	uint32_t from; /* the hostile peer's address: not that of the others */
};

/* Where the endpoint finds the hostile peer that it sends to: number 0 of good_hello. */
static inline struct hello foe_hello(struct run *r, unsigned int n)
{
	struct hello h = good_hello(n);

	if (n == 0) {
		h.name_len = (uint32_t)scene->foe.len;
		memcpy(h.name, scene->foe.bytes, scene->foe.len);
	}
	h.incarnation = rng_one_in(&r->rng, 3) ? rng_next(&r->rng) : 1000 + n;
	h.serial = ++r->serial;
	h.your_id = (uint32_t)rng_bits(&r->rng, 32);
	h.cma_addr = rng_one_in(&r->rng, 2) ? (uintptr_t)&raw_probe : rng_bits(&r->rng, 64);
	h.cma_value = raw_probe;
	return h;
}

/* Shared memory or TCP, as the endpoint has them. */
static inline bool run_inside(struct run *r)
{
	if (!strcmp(provider(), "shm"))
		return true;
	return strcmp(provider(), "tcp") != 0 && rng_one_in(&r->rng, 2);
}

/* Returns a connected socket without a hello; NULL: there are enough. */
static inline struct raw_link *run_connect(struct run *r)
{
	struct raw_link *l;

	if (r->count == LINKS_MAX)
		return NULL;
	l = r->link[r->count++] = calloc(1, sizeof(*l));
	raw_link_connect(l, &scene->endpoint, run_inside(r), r->from);
	return l;
}

static inline struct raw_link *run_join(struct run *r, unsigned int ms)
{
	struct hello h = foe_hello(r, rng_below(&r->rng, NAMES));
	struct raw_link *l = run_connect(r);

	if (l)
		raw_link_join(l, &h, ms);
	return l;
}

/* Returns the connection in use: the last one. */
static inline struct raw_link *run_link(const struct run *r)
{
	return r->link[r->count - 1];
}

static inline void run_end(struct run *r)
{
	while (r->count) {
		struct raw_link *l = r->link[--r->count];

		raw_link_close(l, rng_one_in(&r->rng, 2));
		free(l);
	}
}

/* Returns how often to do something: up to `most` times, rarely 300 times as often. */
static inline uint32_t run_times(struct run *r, uint32_t most)
{
	return 1 + rng_below(&r->rng, rng_one_in(&r->rng, BURST_IN) ? most * 300 : most);
}

/* Counts *n down to 0. A burst ends after BURST_MS. */
static inline bool run_again(uint32_t *n, uint32_t since)
{
	if (*n % 64 == 0 && (uint32_t)now_ms() - since > BURST_MS)
		return false;
	return (*n)-- != 0;
}

/* Does something several times, or very often. */
#define RUN_OFTEN(r, most)                                                                         \
	for (uint32_t left = run_times(r, most), at_ms = (uint32_t)now_ms();                       \
	     run_again(&left, at_ms);)

/* ---- What an honest peer would do ---- */

static inline void put(struct raw_link *l, unsigned int op, unsigned int flags, uint32_t id,
		       uint64_t tag, uint64_t data, uint32_t len)
{
	memset(hostile.payload, 0x5a, len);
	raw_link_put(l,
		     (struct frame){
			     .head = HEAD(op, flags, 0, id), .tag = tag, .data = data, .len = len},
		     hostile.payload);
}

/* A long message, streamed as the endpoint asks for it. */
static inline void obey_long(struct run *r, struct raw_link *l)
{
	uint64_t cts = l->count[WIRE_CTS], ats = l->count[WIRE_ATS];
	uint32_t len = 1 + rng_below(&r->rng, sizeof(foe_source)), part = SHM_PACKET_MAX - 64;
	uint64_t words[] = {len, 1, (uintptr_t)foe_source, len, 0};
	uint64_t end = now_ms() + STEP_MS;

	raw_link_put(l,
		     (struct frame){.head = HEAD(WIRE_RTS, TAGGED, 0, 77),
				    .tag = FOE_TAG,
				    .len = sizeof(words)},
		     words);
	while (l->count[WIRE_CTS] == cts && l->count[WIRE_ATS] == ats && now_ms() < end)
		raw_link_await(l, WIRE_CTS, cts, 1);
	for (uint32_t at = 0; l->count[WIRE_CTS] > cts && at < len; at += part)
		put(l, WIRE_FRAG, 0, (uint32_t)l->seen[WIRE_CTS].tag, at, 0,
		    len - at < part ? len - at : part);
	raw_link_await(l, WIRE_ATS, ats, STEP_MS);
}

/* Answers what the endpoint has asked for. */
static inline void obey_answers(struct raw_link *l)
{
	raw_link_hear(l);
	if (l->count[WIRE_RTS])
		put(l, rng_one_in(&(struct rng){l->count[WIRE_RTS]}, 2) ? WIRE_CTS : WIRE_ATS, 0,
		    (uint32_t)(l->seen[WIRE_RTS].head >> 32), 0, 0, 0);
	if (l->count[WIRE_PUT])
		put(l, WIRE_DONE, 0, (uint32_t)(l->seen[WIRE_PUT].head >> 32), 0, 0, 0);
}

static inline void obey(struct run *r, struct raw_link *l)
{
	uint64_t before;

	switch (rng_below(&r->rng, 6)) {
	case 0:
		put(l, WIRE_MSG, rng_one_in(&r->rng, 2) ? TAGGED | DATA : TAGGED, 0, FOE_TAG, 1,
		    rng_below(&r->rng, 9000));
		break;
	case 1:
		put(l, WIRE_MSG, rng_one_in(&r->rng, 2) ? ACKS : 0, 12, 0, 0,
		    (uint32_t)rng_bits(&r->rng, l->inside ? 14 : 17));
		break;
	case 2:
		obey_long(r, l);
		break;
	case 3:
		before = l->count[WIRE_DONE];
		put(l, WIRE_PUT, DATA, 1 + (uint32_t)before, rng_below(&r->rng, 1000), FOE_KEY,
		    rng_below(&r->rng, 9000));
		raw_link_await(l, WIRE_DONE, before, STEP_MS);
		break;
	case 4:
		before = l->count[WIRE_RESULT];
		memcpy(hostile.payload, &(uint64_t){rng_below(&r->rng, FOE_LEN)}, 8);
		raw_link_put(l,
			     (struct frame){
				     .head = HEAD(WIRE_GET, DATA, 0, 9), .data = FOE_KEY, .len = 8},
			     hostile.payload);
		raw_link_await(l, WIRE_RESULT, before, STEP_MS);
		break;
	default:
		obey_answers(l);
	}
}

#endif
