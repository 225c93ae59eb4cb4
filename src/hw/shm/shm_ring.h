/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive ring of a worker: one memfd that every peer on the host writes and the owner reads.
 *
 * A slot is a cache line; a packet takes one or more consecutive slots. Positions count slots and
 * never wrap; the lap is the position divided by the number of slots. A sender
 *   claims  by compare-exchange on the claim word of the first slot: lap, its own id, slots taken;
 *   writes  header and payload (the slots are mapped twice in a row, so nothing wraps);
 *   publishes by storing the first slot's token: a secret of the ring plus the position. No stale
 *           or payload byte equals a token by accident.
 * The token also says whether a packet that can be recalled (WIRE_PUT, WIRE_GET) belongs to the
 * owner or the sender: the owner takes it, or the sender recalls it, by a compare-exchange on the
 * token.
 * Claim words lie apart from the slots. A single sender thus keeps the claim words in its own
 * cache, and one small packet moves exactly one cache line between processors. Before the owner
 * sleeps, it sets the SLEEP bit in the claim word at its head. The sender that claims that slot
 * sees the bit in the very word it replaces, so neither side needs a fence to be sure of the
 * wake-up. A claim names its sender, so the owner can skip claims that a dead sender never
 * published. Such claims may lie behind the head when the death is noticed: the owner writes
 * RING_DEAD into them and skips each one when it gets there.
 */
#ifndef WEFT_HW_SHM_RING_H
#define WEFT_HW_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "link/cursor.h"

#define RING_SLOT  LINK_SLOT
#define RING_MAGIC 0x326e6972u /* another one for each layout */

#define RING_GUARDS 55u

/* Access guards: see shm_guard.h. */
struct ring_guard {
	uint64_t word __attribute__((aligned(64)));
};

/* Of a copy that the owner and a peer make together: see shm_joint.h. */
struct ring_joint {
	uint64_t left __attribute__((aligned(64))); /* the chunks that nobody has taken */
	uint64_t helped;                            /* the peer writes what it has done */
};

/* First page of the segment. The owner writes; senders read `head` and write `hint`, guards and `joint`. */
struct ring_page {
	uint32_t magic;
	uint32_t slots; /* power of two */
	uint64_t secret;
	uint64_t head __attribute__((aligned(64)));   /* slots at earlier positions are free */
	uint64_t hint __attribute__((aligned(64)));   /* start of a claim near the frontier */
	uint32_t closed __attribute__((aligned(64))); /* not 0: no peer can take a guard */
	struct ring_guard guards[RING_GUARDS];
	struct ring_joint joint;
};

_Static_assert(sizeof(struct ring_page) <= 4096, "the first page");

struct ring {
	struct ring_page *page;
	uint64_t *claims;
	unsigned char *slots; /* mapped twice in a row */
	uint64_t secret;      /* copy of the page's: peers can overwrite the page */
	uint32_t mask;
	uint32_t shift; /* log2 of the number of slots: lap = position >> shift */
	size_t map_len;
};

/* Claim word: lap (31 bits), SLEEP, owner (20 bits), slots (12 bits). */
#define CLAIM_SLOTS_MAX 4095u
#define CLAIM_SLEEP     (UINT64_C(1) << 32)
#define RING_DEAD       0xfffffu /* owner of a claim whose sender died; no peer has this id */
/*
 * Longest payload of one packet. The claim word counts slots in 12 bits, and one packet must not
 * occupy most of the smallest ring.
 */
#define SHM_PACKET_MAX 16384u
/* Most slots that one packet takes. */
#define PACKET_SLOTS                                                                               \
	((offsetof(struct link_slot, rest) + 8 + SHM_PACKET_MAX + RING_SLOT - 1) / RING_SLOT)

static inline uint64_t claim_word(uint32_t lap, uint32_t owner, uint32_t slots)
{
	return (uint64_t)(lap & 0x7fffffff) << 33 | (uint64_t)(owner & 0xfffff) << 12 | slots;
}

static inline uint32_t claim_lap(uint64_t word)
{
	return word >> 33;
}

static inline uint32_t claim_owner(uint64_t word)
{
	return word >> 12 & 0xfffff;
}

static inline uint32_t claim_slots(uint64_t word)
{
	return word & CLAIM_SLOTS_MAX;
}

/* Returns the lap of a position, shifted as in a claim word. */
static inline uint64_t ring_lap_bits(const struct ring *r, uint64_t pos)
{
	return pos >> r->shift << 33;
}

/* Is `word` of an earlier lap than `lap_bits`? Laps compare as signed distances. */
static inline bool claim_stale(uint64_t word, uint64_t lap_bits)
{
	return (int64_t)(word - lap_bits) < 0;
}

static inline uint32_t ring_lap(const struct ring *r, uint64_t pos)
{
	return pos >> r->shift & 0x7fffffff;
}

static inline uint64_t *ring_claim_at(const struct ring *r, uint64_t pos)
{
	return &r->claims[pos & r->mask];
}

/* Is this the word of a claim at `pos` that a sender can have made? */
static inline bool ring_is_claim(const struct ring *r, uint64_t pos, uint64_t word)
{
	return claim_lap(word) == ring_lap(r, pos) && claim_slots(word) - 1 < PACKET_SLOTS;
}

static inline struct link_slot *ring_slot_at(const struct ring *r, uint64_t pos)
{
	return (struct link_slot *)(r->slots + (pos & r->mask) * (size_t)RING_SLOT);
}

/* Makes a ring with at least `bytes` bytes of slots. The caller owns *fd, its sealed memfd. */
int shm_ring_create(struct ring *r, size_t bytes, int *fd);
/* Maps a peer's ring. -FI_EINVAL: `fd` is no ring, or its size can still be changed. */
int shm_ring_attach(struct ring *r, int fd);
void shm_ring_unmap(struct ring *r);
/* Populates the first MiB of slots of a busy ring: the first lap does not fault at each page. */
void shm_ring_populate(const struct ring *r);

/*
 * Claims `slots` slots at or after *pos for `owner`. *pos becomes the claim's position, *word the
 * replaced claim word (for CLAIM_SLEEP). 0 or -FI_EAGAIN: the ring is full. The slow path, for when
 * *pos is no longer the frontier.
 */
int shm_ring_claim(struct ring *r, uint64_t *pos, uint32_t owner, uint32_t slots, uint64_t *word);

/* Owner: asks to be woken by the next claim. False: the slot at `head` is claimed already. */
bool shm_ring_sleep(struct ring *r, uint64_t head);
/* Owner: moves *pos to the next claim. Returns the claim word, or 0 at the frontier. */
uint64_t shm_ring_step(const struct ring *r, uint64_t *pos);
/*
 * Owner: returns the state (below) of the packet at `pos`; any other value while the packet is
 * being written. Pairs with the release store of `publish` in shm_tx.c.
 */
static inline uint64_t ring_state(const struct ring *r, uint64_t pos)
{
	return __atomic_load_n(&ring_slot_at(r, pos)->token, __ATOMIC_ACQUIRE) - (r->secret + pos);
}

/* States: added to the token, in bits that positions never reach. */
#define RING_PUBLISHED 0u
#define RING_CANCELLED (UINT64_C(1) << 63) /* recalled by the sender: the owner skips it */
#define RING_TAKEN     (UINT64_C(1) << 62) /* the owner processes it: no recall is possible */
#define RING_RECALLING (UINT64_C(1) << 61) /* the sender is recalling it: the owner waits */

static inline bool ring_published(const struct ring *r, uint64_t pos)
{
	return ring_state(r, pos) == RING_PUBLISHED;
}
/*
 * Owner: marks the claims that the dead peer `owner` made at or after `head` and never published,
 * for shm_ring_skip_dead. Returns their number.
 */
uint32_t shm_ring_reap(struct ring *r, uint64_t head, uint32_t owner);
/* Owner: returns the slots to skip at `head` because their sender is dead; 0: none. */
uint32_t shm_ring_skip_dead(const struct ring *r, uint64_t head);
/* Owner: returns the slots to skip at `head` because the packet was recalled; 0: none. */
uint32_t shm_ring_skip_cancelled(const struct ring *r, uint64_t head);

#endif
