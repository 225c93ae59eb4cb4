/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a progress call that finds nothing looks at. After a progress call of a worker without other work the
 * engine grants a number of calls that do no more than look at one word in memory. Domain locked.
 */
#ifndef WEFT_LINK_IDLE_H
#define WEFT_LINK_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The word by which a transport learns of its next packet: until then *at differs from `next` in more than the
 * CURSOR_STATE_BITS highest bits.
 */
struct link_cursor {
	const uint64_t *at;
	uint64_t next;
};

#define CURSOR_STATE_BITS 3

/* Returns whether progress of the transport would find something. Pairs with the release of the packet's sender. */
static inline bool link_cursor_came(const struct link_cursor *c)
{
	return (__atomic_load_n(c->at, __ATOMIC_ACQUIRE) - c->next) << CURSOR_STATE_BITS == 0;
}

/* Of a worker. */
struct idle {
	const struct link_cursor *cursor; /* of the transport that has one; never NULL */
	unsigned int calls;               /* granted and not used yet */
	unsigned int progress_calls;      /* made so far, and granted */
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

/* Uses one of the calls granted. False: a progress call is due, worker_progress_due. */
static inline bool idle_pass(struct idle *idle)
{
	if (!idle->calls || link_cursor_came(idle->cursor))
		return false;
	idle->calls--;
	return true;
}

#endif
