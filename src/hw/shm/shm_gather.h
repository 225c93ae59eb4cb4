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
	/* ns: a recent look; while the owner waits, when a request came last, as far as it has seen */
	uint64_t since;
	int32_t clear; /* so many requests are served without another look; none if negative */
	uint32_t call; /* shm->progress_calls at the last look */
	uint32_t
		gap; /* the request at the cursor waits for one so many slots behind it; 0: it does not wait */
	uint32_t run; /* requests served since a sender has paused, or since waiting was left out */
	bool stream;  /* the last look was at a request of a stream */
	bool often;   /* the owner had looked at a stream a short time before this progress call */
	struct trial trial; /* of waiting */
};

/* Is the next request served without a look? Uses that up. */
static inline bool shm_gather_is_clear(struct shm_gather *g)
{
	return --g->clear >= 0;
}

/* So many requests are served without another look. Ends a wait, too. */
static inline void shm_gather_clear(struct shm_gather *g, uint32_t requests)
{
	g->clear = (int32_t)requests;
	g->gap = 0;
}

/* Must the request at the cursor, which is not clear, wait for others? Then the next progress call asks again. */
bool shm_gather_waits(struct shm *shm);

#endif
