/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a plan from a shape. */
#include "coll/plan/layout.h"
#include "coll/plan/plan_build.h"

void plan_add(const struct plan_build *b, const struct plan_algorithm *algorithm, size_t count,
	      bool same)
{
	const struct plan_shape *s = &b->shape;
	struct plan_part part = {s->rank, s->size, s->root, count, b->tune, same};
	struct plan_place tmp = plan_tmp(b->plan->kept);
	size_t rounds = algorithm->rounds(&part);
	size_t end = tmp.at + (algorithm->scratch ? algorithm->scratch(&part) : 0);

	if (!rounds)
		return;
	assert(b->plan->phases < PLAN_PHASES);
	b->plan->phase[b->plan->phases++] =
		(struct plan_phase){algorithm, part, {b->in, b->out, tmp}, b->among, rounds};
	if (b->plan->scratch < end)
		b->plan->scratch = end;
}

struct plan_place plan_keep(struct plan *plan, size_t count)
{
	struct plan_place place = plan_tmp(plan->kept);

	plan->kept += count;
	if (plan->scratch < plan->kept)
		plan->scratch = plan->kept;
	return place;
}

size_t plan_vector(const struct plan_shape *shape)
{
	switch (shape->kind) {
	case FI_ALLTOALL:
	case FI_REDUCE_SCATTER:
		return shape->count * shape->size;
	default:
		return shape->count;
	}
}

/* Sets what the collective does not use to default values. */
static struct plan_shape plain_shape(const struct plan_shape *shape)
{
	struct plan_shape s = *shape;

	s.ordered = s.ordered && plan_reduces(s.kind);
	if (!plan_rooted(s.kind))
		s.root = 0;
	if (s.kind == FI_BARRIER || s.kind == FI_BROADCAST ||
	    (plan_rooted(s.kind) && s.rank != s.root))
		s.overlap = PLAN_APART;
	return s;
}

/* In place: copies the input first, if the result would overwrite input that is read later. */
static void set_aside(struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	bool whole = s->kind == FI_ALLREDUCE || s->kind == FI_REDUCE;
	struct plan_build copy = *b;

	if (s->size == 1 || !(plan_reduces(s->kind) || s->kind == FI_ALLTOALL) ||
	    s->overlap == PLAN_APART || (whole && s->overlap == PLAN_SAME))
		return;
	copy.out = plan_keep(b->plan, plan_vector(s));
	plan_add(&copy, &plan_place_own, plan_vector(s), false);
	b->in = copy.out;
	b->shape.overlap = PLAN_APART;
}

void plan_make(struct plan *plan, const struct plan_shape *shape)
{
	struct plan_build b = {.plan = plan,
			       .shape = plain_shape(shape),
			       .in = plan_in(0),
			       .out = plan_out(0),
			       .near = shape->layout && shape->layout->hosts == 1};

	plan->scratch = plan->kept = 0;
	plan->phases = 0;
	plan->chunk = 0;
	plan->root = plan->root_host = 0;
	plan->layout = shape->layout;
	if (!shape->count && shape->kind != FI_BARRIER)
		return;
	set_aside(&b);
	if (!plan_levels(&b))
		choose_flat(&b);
}
