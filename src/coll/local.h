/* SPDX-License-Identifier: BSD-2-Clause */
/* The local steps of plans, done to memory. */
#ifndef WEFT_COLL_LOCAL_H
#define WEFT_COLL_LOCAL_H

#include "atomic/atomic.h"
#include "coll/plan/plan.h"

/* What PLAN_IN, PLAN_OUT and PLAN_TMP are for one collective. */
struct local {
	char *space[PLAN_SPACES]; /* each aligned as the datatype asks; NULL where there is none */
	size_t width;             /* bytes of an element */
	plain_kernel *kernel;     /* NULL where nothing is reduced */
	bool commutes;            /* a OP b and b OP a are the same bit by bit: saves copies */
};

/* Bytes of a place. */
static inline char *local_at(const struct local *l, struct plan_place place)
{
	return l->space[place.space] + place.at * l->width;
}

/* Does all local steps of a round, in their order. */
void local_run(const struct local *l, const struct plan_round *round);

#endif
