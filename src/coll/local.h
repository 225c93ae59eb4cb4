/* SPDX-License-Identifier: BSD-2-Clause */
/* Executes the local steps of plans. */
#ifndef WEFT_COLL_LOCAL_H
#define WEFT_COLL_LOCAL_H

#include "atomic/atomic.h"
#include "coll/plan/plan.h"

/* The memory of PLAN_IN, PLAN_OUT and PLAN_TMP in one collective. */
struct local {
	char *space[PLAN_SPACES]; /* aligned for the datatype */
	size_t width;             /* bytes of an element */
	plain_kernel *kernel;     /* NULL if the collective does not reduce */
	bool commutes;            /* a OP b equals b OP a bit by bit, which saves copies */
};

/* Returns the address of a place. */
static inline char *local_at(const struct local *l, struct plan_place place)
{
	return l->space[place.space] + place.at * l->width;
}

/*
 * Is the memory of a message that is received apart from all that the round's messages and local steps
 * read and write? Cautious: blocks with steps count as not apart.
 */
bool local_apart(const struct local *l, const struct plan_round *round,
		 const struct plan_message *received);

/* Executes all local steps of a round in order. */
void local_run(const struct local *l, const struct plan_round *round);

#endif
