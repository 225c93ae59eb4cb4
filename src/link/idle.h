/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a progress call that finds nothing looks at. After a progress call of a worker without other work the
 * engine grants a number of calls that do no more than look at one word in memory. Domain locked.
 */
#ifndef WEFT_LINK_IDLE_H
#define WEFT_LINK_IDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "link/cursor.h"

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
