/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_gather.h"

#include "base/clock.h"
#include "base/once.h"
#include "hw/shm/shm.h"

/* Slots that the owner stays behind. Less than what the second mapping of the slots adds to the ring. */
#define GAP_MAX  32u
#define GAP_STEP 4u
/* A sender that has not written GAP_STEP requests in this time (ns) has paused. */
#define PAUSE_NS 1000u
/* Requests that are served between two looks, except after a pause. So many in one progress call are a stream. */
#define LOOK_STEP 8u
/* Waiting was of use if the sender has not paused for so many requests. */
#define RUN_MIN 128u
/* An owner that takes so long (ns) to look again does other things between two progress calls. */
#define RARE_NS 8000u

/* Has a packet come to the slot that is `gap` slots behind the cursor? Only its owner will read it: no order is needed. */
static bool has_come(const struct link_cursor *cursor, uint32_t gap)
{
	return __atomic_load_n(&cursor->at[gap].token, __ATOMIC_RELAXED) == cursor->next + gap;
}

/* Does the request at the cursor take one slot? Behind a longer one the slots to look at need not begin a packet. */
static bool is_short(const struct link_cursor *cursor)
{
	return link_slots(cursor->at, cursor->at->rest + sizeof(uint64_t), ONCE(cursor->at->len)) ==
	       1;
}

static void wait_for(struct shm_gather *g, uint32_t gap, uint64_t now)
{
	g->gap = gap;
	g->since = now;
}

/* Had the owner looked a short time before this look? */
static bool looks_often(struct shm_gather *g, uint64_t now)
{
	bool often = now - g->since < RARE_NS;

	g->since = now;
	return often;
}

/* Goes on waiting, for a later request if this one has come. False: enough have come, or the sender has *paused. */
static bool waits_on(struct shm_gather *g, const struct link_cursor *cursor, bool *paused)
{
	uint64_t now = clock_ns();

	if (now - g->since >= PAUSE_NS) {
		g->often = looks_often(g, now);
		trial_judge(&g->trial, g->run >= RUN_MIN && g->often);
		g->run = 0;
		*paused = true;
		return false;
	}
	if (!has_come(cursor, g->gap))
		return true;
	if (g->gap >= GAP_MAX || has_come(cursor, GAP_MAX))
		return false;
	wait_for(g, g->gap + GAP_STEP, now);
	return true;
}

/*
 * Begins to wait if the owner makes progress all the time, waiting is not left out, and the sender is close ahead. `stream`:
 * the request is one of a stream in this progress call. Single requests read no clock.
 */
static bool shm_gather_begins(struct shm_gather *g, const struct link_cursor *cursor, bool stream)
{
	if (!stream)
		g->often = g->stream && looks_often(g, clock_ns());
	else if (!g->often)
		g->since = clock_ns(); /* for the next call */
	if (!g->often || g->trial.skip) {
		if (g->often)
			g->trial.skip--;
		g->run = 0;
		return false;
	}
	if (!is_short(cursor) || has_come(cursor, GAP_MAX))
		return false;
	wait_for(g, GAP_STEP, clock_ns());
	return true;
}

bool shm_gather_waits(struct shm *shm)
{
	struct shm_gather *g = &shm->gather;
	bool stream = g->gap || g->call == shm->progress_calls, paused = false;

	if (g->gap ? waits_on(g, &shm->cursor, &paused)
		   : shm_gather_begins(g, &shm->cursor, stream))
		return true;
	if (stream)
		g->run += LOOK_STEP;
	g->stream = stream;
	g->call = shm->progress_calls;
	shm_gather_clear(g, (paused ? GAP_MAX : LOOK_STEP) - 1); /* and the one at the cursor */
	return false;
}
