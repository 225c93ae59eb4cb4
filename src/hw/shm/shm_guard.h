/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Access guards. A peer that accesses the memory of a worker's process directly holds one, in the page of the
 * worker's ring, from before it looks up the key until its last byte is copied. The owner takes a region out of
 * its table, then waits until the guards held at that time are released. A guard's word counts its uses, so that a
 * guard taken anew is not waited for.
 */
#ifndef WEFT_HW_SHM_GUARD_H
#define WEFT_HW_SHM_GUARD_H

#include "hw/shm/shm_ring.h"

/* A guard that is held. */
struct shm_guard {
	uint64_t *at;
	uint64_t word;
};

/*
 * Peer: takes a guard as `id`, the owner's name for us. False: none is free, or the owner is closing its worker.
 */
bool shm_guard_enter(struct ring *r, uint32_t id, struct shm_guard *guard);
void shm_guard_leave(const struct shm_guard *guard);

/* Owner: lets no peer take a guard any more. */
void shm_guard_close(struct ring *r);
/* Peer: had the owner closed before we read its memory? */
bool shm_guard_closed(const struct ring *r);
/* Owner: the words of the guards that are held now; zero for the others. */
void shm_guard_note(const struct ring *r, uint64_t noted[RING_GUARDS]);
/* Owner: are the noted guards released? Zeroes those that are; *id is a peer that still holds one. */
bool shm_guard_ended(const struct ring *r, uint64_t noted[RING_GUARDS], uint32_t *id);
/* Owner: releases the guards of a dead peer. */
void shm_guard_clear(struct ring *r, uint32_t id);

#endif
