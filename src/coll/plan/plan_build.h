/* SPDX-License-Identifier: BSD-2-Clause */
/* How plans are put together from phases. */
#ifndef WEFT_COLL_PLAN_BUILD_H
#define WEFT_COLL_PLAN_BUILD_H

#include "coll/plan/plan_own.h"

/* A collective among some of the members, to be added to a plan. */
struct plan_build {
	struct plan *plan;
	struct plan_shape shape; /* as they see it */
	struct plan_place in, out;
	enum plan_among among;
	bool near;   /* all on one host */
	size_t tune; /* of the row of the table */
};

/*
 * Adds an algorithm for `count` elements; from b->in to b->out. Nothing is added where this member has
 * no rounds. same: see struct plan_part.
 */
void plan_add(const struct plan_build *b, const struct plan_algorithm *algorithm, size_t count,
	      bool same);

/* Elements of the scratch, out of the reach of all phases that are added later. */
struct plan_place plan_keep(struct plan *plan, size_t count);

/* Adds the collective by the algorithms of the table, without regard to which members share hosts. */
void choose_flat(const struct plan_build *b);

/* Adds it in levels, inside hosts and between them. False: that would be no better. */
bool plan_levels(const struct plan_build *b);

/* It combines operands. */
bool plan_reduces(enum fi_collective_op kind);

/* Elements of a whole vector of the collective. */
size_t plan_vector(const struct plan_shape *shape);

#endif
