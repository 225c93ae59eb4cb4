/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive ring of a worker: one memfd, written by every peer of the host, read by its owner. Behind
 * it lies the worker's bounce: shm_bounce.h.
 *
 * Slots are cache lines; a message takes one or more in a row. Positions count up for ever, the lap
 * is the position divided by the number of slots. A sender
 *   claims  by compare-exchange on the claim word of the first slot: lap, its own id, slots taken;
 *   writes  header and payload (the ring is mapped twice in a row, so nothing wraps);
 *   publishes by storing the slot's token, which no stale or payload byte can equal by accident:
 *           a secret of the ring plus the position.
 * The token also says who owns the message: one that may be taken back (WIRE_PUT) changes hands by a
 * compare-exchange on it, of the owner who reads it or of the sender who recalls it.
 * The claim words lie apart from the slots, so that a single sender keeps them in its own cache and
 * exactly one line per small message changes hands. A claim names its claimer, so the owner skips
 * what a dead one left unpublished. Before it sleeps, the owner sets the SLEEP bit in the claim
 * word at its head: the sender that claims that slot sees it in the very word it replaces, so neither side
 * needs a fence to be sure of the wake-up. A dead peer's claims need not be at the head when its death
 * is noticed: the owner writes RING_DEAD into them and skips each when it gets there.
 */
#ifndef WEFT_HW_SHM_RING_H
#define WEFT_HW_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_SLOT   64u
#define RING_BOUNCE (1u << 19) /* bytes of the bounce buffer, */
#define RING_UNITS  64u        /* and its units: see shm_bounce.h */
#define RING_MAGIC  0x676e6972u

#define RING_GUARDS 56u

/* Access guards: see shm_guard.h. */
struct ring_guard {
	uint64_t word __attribute__((aligned(64)));
};

/* First page of the segment. The owner writes; senders read `head` and share `hint` and guards. */
struct ring_page {
	uint32_t magic;
	uint32_t slots; /* power of two */
	uint64_t secret;
	uint64_t head __attribute__((aligned(64)));   /* slots before it are free again */
	uint64_t hint __attribute__((aligned(64)));   /* start of a message near the frontier */
	uint32_t closed __attribute__((aligned(64))); /* no guard is given any more */
	struct ring_guard guards[RING_GUARDS];
	uint32_t uses[RING_UNITS]; /* of the bounce buffer: the current use of each unit */
};

_Static_assert(sizeof(struct ring_page) <= 4096, "the first page");

/* First line of a message. With WIRE_DATA eight bytes of data follow, then the payload. */
struct ring_slot {
	uint64_t token;
	uint32_t src; /* the sender, as the owner named it */
	uint32_t len; /* payload bytes */
	uint64_t head;
	uint64_t tag;
	unsigned char rest[RING_SLOT - 32];
};

_Static_assert(sizeof(struct ring_slot) == RING_SLOT, "a slot is a cache line");

struct ring {
	struct ring_page *page;
	uint64_t *claims;
	unsigned char *slots;  /* mapped twice in a row */
	unsigned char *bounce; /* see shm_bounce.h */
	uint64_t secret;       /* copies: the page is writable by others */
	uint32_t mask;
	uint32_t shift; /* position to lap */
	size_t map_len;
};

/* Claim word: lap (31 bits), SLEEP, owner (20 bits), slots (12 bits). */
#define CLAIM_SLOTS_MAX 4095u
#define CLAIM_SLEEP     (UINT64_C(1) << 32)
#define RING_DEAD       0xfffffu /* as owner: dead; no peer has this index */

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

/* The lap of a position, placed as in a claim word. */
static inline uint64_t ring_lap_bits(const struct ring *r, uint64_t pos)
{
	return pos >> r->shift << 33;
}

/* The word is of an earlier lap than those bits; laps compare as signed distances. */
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

static inline struct ring_slot *ring_slot_at(const struct ring *r, uint64_t pos)
{
	return (struct ring_slot *)(r->slots + (pos & r->mask) * (size_t)RING_SLOT);
}

/* Makes a ring of at least `bytes`; *fd is its sealed memfd, the caller's. */
int shm_ring_create(struct ring *r, size_t bytes, int *fd);
/* Maps a peer's ring. -FI_EINVAL when it is not one, or may still be resized. */
int shm_ring_attach(struct ring *r, int fd);
void shm_ring_unmap(struct ring *r);
/* Populates the memory of the first MiB, so that the first lap does not fault at each page. For a busy ring. */
void shm_ring_populate(const struct ring *r);

/*
 * Claims `slots` slots at or after *pos for `owner`; *pos becomes their position, *word the claim it replaced (for
 * CLAIM_SLEEP). 0 or -FI_EAGAIN: the ring is full. The slow path, for when *pos is no longer the frontier.
 */
int shm_ring_claim(struct ring *r, uint64_t *pos, uint32_t owner, uint32_t slots, uint64_t *word);

/* Owner: asks to be woken at the next claim. false: something is claimed at `head` already. */
bool shm_ring_sleep(struct ring *r, uint64_t head);
/*
 * Owner: steps from *pos, the start of a message at or after the head, over one claim of this lap. Returns its
 * word, or 0 at the frontier.
 */
uint64_t shm_ring_step(const struct ring *r, uint64_t *pos);
/*
 * Owner: the state of the message that starts at `pos`, see below; any other value while it is being written.
 * Pairs with the release of its publisher.
 */
static inline uint64_t ring_state(const struct ring *r, uint64_t pos)
{
	return __atomic_load_n(&ring_slot_at(r, pos)->token, __ATOMIC_ACQUIRE) - (r->secret + pos);
}

/* States, added to the token; positions never reach these bits. */
#define RING_PUBLISHED 0u
#define RING_CANCELLED (UINT64_C(1) << 63) /* its sender recalled it */
#define RING_TAKEN     (UINT64_C(1) << 62) /* the owner has it: its sender can no longer recall it */
#define RING_RECALLING (UINT64_C(1) << 61) /* its sender is recalling it: the owner waits */

static inline bool ring_published(const struct ring *r, uint64_t pos)
{
	return ring_state(r, pos) == RING_PUBLISHED;
}
/*
 * Owner: `owner` is dead. What it claimed at or after `head` and never published is marked for
 * shm_ring_skip_dead; the number of these messages.
 */
uint32_t shm_ring_reap(struct ring *r, uint64_t head, uint32_t owner);
/* Owner: the slots to skip at `head` because the sender that claimed them is dead; 0: none. */
uint32_t shm_ring_skip_dead(const struct ring *r, uint64_t head);
/* Owner: the same because the message there was recalled. */
uint32_t shm_ring_skip_cancelled(const struct ring *r, uint64_t head);

#endif
