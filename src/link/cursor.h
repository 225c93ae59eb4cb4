/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the next packet of a LINK_HOST transport appears, and how it lies there. What progress of the transport does
 * at the cursor the engine can do itself with a short message: src/xfer/msg/rx_read.c. Domain locked.
 */
#ifndef WEFT_LINK_CURSOR_H
#define WEFT_LINK_CURSOR_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
