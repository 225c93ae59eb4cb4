/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the next packet of a LINK_HOST transport appears, and how it lies there. What progress of the transport does
 * at the cursor the engine can do itself with a short message, by link_place: src/xfer/msg/rx_read.c. It knows no slots.
 * Domain locked.
 */
#ifndef WEFT_LINK_CURSOR_H
#define WEFT_LINK_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/once.h"
#include "link/link.h"
#include "link/wire.h"

#define LINK_SLOT 64u

/*
 * First slot of a packet. With WIRE_DATA eight bytes of data follow, then the payload. The sender can write to it at
 * any time: base/once.h.
 */
struct link_slot {
	uint64_t token;
	uint32_t src; /* the sender's number at the owner */
	uint32_t len; /* payload bytes */
	uint64_t head;
	uint64_t tag;
	unsigned char rest[LINK_SLOT - 32];
};

_Static_assert(sizeof(struct link_slot) == LINK_SLOT, "a slot is a cache line");

/*
 * The token at `at` is `next` once a packet is there, and before that differs from it in more than the CURSOR_STATE_BITS
 * highest bits. These are set in one-sided requests alone.
 */
struct link_cursor {
	struct link_slot *at;
	uint64_t next;
	/* Behind it not many slots are passed without progress of the transport. */
	const struct link_slot *stop;
	/* `next` before and behind the last packet of several slots; the same if none has to be checked. */
	uint64_t wide_from, wide_to;
};

#define CURSOR_STATE_BITS 3

/* Of a worker without a transport that has one: no packet comes. */
extern struct link_cursor link_cursor_never;

/* Returns how the token differs from `next`. Pairs with the release of the packet's sender. */
static inline uint64_t link_cursor_state(const struct link_cursor *c)
{
	return __atomic_load_n(&c->at->token, __ATOMIC_ACQUIRE) - c->next;
}

/* Returns whether progress of the transport would find something. */
static inline bool link_cursor_came(const struct link_cursor *c)
{
	return link_cursor_state(c) << CURSOR_STATE_BITS == 0;
}

/* Returns the slots of a packet whose payload of `len` bytes begins at `payload`. */
static inline uint32_t link_slots(const struct link_slot *first, const void *payload, size_t len)
{
	size_t head = (size_t)((const char *)payload - (const char *)first);

	return (uint32_t)((head + len + LINK_SLOT - 1) / LINK_SLOT);
}

/* Goes on behind the packet, which takes so many slots. */
static inline void link_cursor_pass(struct link_cursor *c, uint32_t slots)
{
	if (slots > 1) {
		c->wide_from = c->next;
		c->wide_to = c->next + slots;
	}
	c->at += slots;
	c->next += slots;
}

/* Is progress of the transport due before a packet can be read? */
static inline bool link_cursor_stops(const struct link_cursor *c)
{
	return c->at >= c->stop;
}

/* Where the packet lies that has come: for the functions below, and for nobody to look into. */
typedef const struct link_slot *link_place;

static inline link_place link_cursor_place(const struct link_cursor *c)
{
	return c->at;
}

static inline uint64_t link_place_head(link_place at)
{
	return ONCE(at->head);
}

/* Returns the bytes of payload. */
static inline uint32_t link_place_len(link_place at)
{
	return ONCE(at->len);
}

/* Returns the number of the sender. */
static inline uint32_t link_place_src(link_place at)
{
	return ONCE(at->src);
}

static inline uint64_t link_place_tag(link_place at)
{
	return ONCE(at->tag);
}

/* Reads the data, if the head says that there are some, and finds the payload. */
static inline void link_place_payload(link_place at, struct packet *p)
{
	p->payload = at->rest;
	if (wire_flags(p->head) & WIRE_DATA) {
		once_copy(&p->data, at->rest, sizeof(p->data));
		p->payload = at->rest + sizeof(p->data);
	}
}

/* The lines of a packet with `len` bytes of payload come at once, while something else is done. */
static inline void link_place_want(link_place at, size_t len)
{
	link_place end = at + link_slots(at, at->rest + sizeof(uint64_t), len);

	while (++at < end)
		__builtin_prefetch(at);
}

/* Goes on behind the packet that was read. `one`: it is known to fill no more than one line. */
static inline void link_cursor_take(struct link_cursor *c, link_place at, const struct packet *p,
				    bool one)
{
	link_cursor_pass(c, one ? 1 : link_slots(at, p->payload, p->len));
}

/*
 * ---- Idle ----
 *
 * What a progress call that finds nothing looks at. After a progress call of a worker without other work the
 * engine grants a number of calls that do no more than look at one word in memory. Domain locked.
 */
/* Calls that are granted at most, 2^n - 1. */
#define IDLE_CALLS_MAX 63u

/* Of a worker. */
struct idle {
	struct link_cursor *cursor;  /* of the transport that has one; never NULL */
	unsigned int calls;          /* granted and not used yet */
	unsigned int progress_calls; /* made so far, and granted */
};

static inline void idle_begin(struct idle *idle, unsigned int calls)
{
	idle->calls = calls;
	idle->progress_calls += calls;
}

/* Something waits for the next progress call of the worker, which has to be a whole one. */
static inline void idle_end(struct idle *idle)
{
	idle->progress_calls -= idle->calls;
	idle->calls = 0;
}

/* The next progress call is a whole one, and looks at the sockets if that was not done lately. */
static inline void idle_expect_all(struct idle *idle)
{
	idle_end(idle);
	idle->progress_calls |= IDLE_CALLS_MAX;
}

static inline void idle_use(struct idle *idle)
{
	idle->calls--;
}

/* Uses one of the calls granted. False: a progress call is due, driven_due. */
static inline bool idle_pass(struct idle *idle)
{
	if (!idle->calls || link_cursor_came(idle->cursor))
		return false;
	idle_use(idle);
	return true;
}

#endif
