/* SPDX-License-Identifier: BSD-2-Clause */
/* Building plans from phases. */
#ifndef WEFT_COLL_PLAN_BUILD_H
#define WEFT_COLL_PLAN_BUILD_H

#include "coll/plan/plan_own.h"

/* A collective among some of the members, to add to a plan. */
struct plan_build {
	struct plan *plan;
	struct plan_shape shape; /* from the view of these members */
	struct plan_place in, out;
	enum plan_among among;
	bool near;   /* all members are on one host */
	size_t tune; /* from the row of the table */
};

/*
 * Adds an algorithm for `count` elements, from b->in to b->out. Adds nothing if this member has no
 * rounds. `same`: see struct plan_part.
 */
void plan_add(const struct plan_build *b, const struct plan_algorithm *algorithm, size_t count,
	      bool same);

/* Makes the phases, all that the plan has, run for each chunk of the vector. */
void plan_by_chunks(struct plan *plan, size_t chunk, size_t vector);

/* Reserves elements of the scratch; phases added later do not use them. */
struct plan_place plan_keep(struct plan *plan, size_t count);

/* Adds the collective by the algorithms of the table; ignores which members share hosts. */
void choose_flat(const struct plan_build *b);

/* Adds the collective in levels: inside hosts and between hosts. False: no better than flat. */
bool plan_levels(const struct plan_build *b);

/* Returns the elements of a whole vector of the collective. */
size_t plan_vector(const struct plan_shape *shape);

#endif
