/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Staying behind the sender of a stream of one-sided requests. An owner that serves each request as soon as it has come
 * reads slots that the sender is about to write: their lines go back and forth, and both sides wait for them. An owner
 * that lets some requests gather reads lines that nobody writes. Figures are in docs/SHM-LAYOUT.md. Domain locked.
 */
#ifndef WEFT_HW_SHM_GATHER_H
#define WEFT_HW_SHM_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/trial.h"

struct shm;

struct shm_gather {
	uint64_t
		clear; /* requests before it (as `next` of the cursor) are served without another look */
	uint64_t since; /* ns: when a request came last, as far as the waiting owner has seen */
	uint32_t call;  /* shm->progress_calls at the last look */
	uint32_t
		gap; /* the request at the cursor waits for one so many slots behind it; 0: it does not wait */
	uint32_t run; /* requests served since a sender has paused, or since waiting was left out */
	struct trial trial; /* of waiting */
};

static inline bool shm_gather_is_clear(const struct shm_gather *g, uint64_t next)
{
	return (int64_t)(next - g->clear) < 0;
}

/* Ends a wait, too. */
static inline void shm_gather_clear(struct shm_gather *g, uint64_t next)
{
	g->clear = next;
	g->gap = 0;
}

/* Must the request at the cursor, which is not clear, wait for others? Then the next progress call asks again. */
bool shm_gather_waits(struct shm *shm);

#endif
