/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Guards: who goes straight to the memory of a worker's process carries one, in the page of the worker's
 * ring, from before it looks a key up until its last byte has moved. The owner, having taken a region
 * out of its table, waits until those guards are gone that it sees then. A word counts its uses, so
 * that a guard given back and taken anew is not waited for.
 */
#ifndef WEFT_HW_SHM_GUARD_H
#define WEFT_HW_SHM_GUARD_H

#include "hw/shm/shm_ring.h"

/* One that is carried. */
struct shm_guard {
	uint64_t *at;
	uint64_t word;
};

/*
 * Peer: takes one as `id`, which is what the owner calls us. false: all are taken and stay so, or
 * the owner is closing its worker.
 */
bool shm_guard_enter(struct ring *r, uint32_t id, struct shm_guard *guard);
void shm_guard_leave(const struct shm_guard *guard);

/* Owner: nobody gets one any more. */
void shm_guard_close(struct ring *r);
/* Peer: was that so before what we have read of its memory? */
bool shm_guard_closed(const struct ring *r);
/* Owner: what is taken now; zeroes else. */
void shm_guard_note(const struct ring *r, uint64_t noted[RING_GUARDS]);
/* Owner: are they given back? Those that are become zero; *id is one who still has his. */
bool shm_guard_ended(const struct ring *r, uint64_t noted[RING_GUARDS], uint32_t *id);
/* Owner: gives back what this peer had; it is dead. */
void shm_guard_clear(struct ring *r, uint32_t id);

#endif
