/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access guards. A peer that accesses our memory by CMA holds a guard in the page of our ring, from
 * before it looks up the key until the last byte is copied. The owner of the ring removes a region
 * from its table, then waits until all guards held at that time are released. A guard's word counts
 * its uses, so the owner does not wait for a guard that was taken again.
 */
#ifndef WEFT_HW_SHM_GUARD_H
#define WEFT_HW_SHM_GUARD_H

#include "hw/shm/shm_ring.h"

/* A held guard. */
struct shm_guard {
	uint64_t *at;
	uint64_t word;
};

/*
 * Peer: takes a guard. `id` is the number by which the owner knows us. False: no guard is free, or
 * the owner is closing its worker.
 */
bool shm_guard_enter(struct ring *r, uint32_t id, struct shm_guard *guard);
void shm_guard_leave(const struct shm_guard *guard);

/* Owner: from now on no peer can take a guard. */
void shm_guard_close(struct ring *r);
/* Peer, after reading the owner's memory: had the owner called shm_guard_close by then? */
bool shm_guard_closed(const struct ring *r);
/* Owner: writes the words of the held guards to `noted`, 0 for free guards. */
void shm_guard_note(const struct ring *r, uint64_t noted[RING_GUARDS]);
/* Owner: are all noted guards released? If not, *id is a peer that holds one. */
bool shm_guard_ended(const struct ring *r, uint64_t noted[RING_GUARDS], uint32_t *id);
/* Owner: `id` makes no access. Releases its guards; noted ones have ended, even if it writes them. */
void shm_guard_disown(struct ring *r, uint64_t noted[RING_GUARDS], uint32_t id);
/* Owner: releases the guards of the dead peer `id`. */
void shm_guard_clear(struct ring *r, uint32_t id);

#endif
