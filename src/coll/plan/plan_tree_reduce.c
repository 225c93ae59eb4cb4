/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduction of whole vectors up a tree, from each rank's IN to the root's OUT. Combines in the
 * order of ranks that starts at the root, so rank order needs root 0.
 *
 * Receives the vectors of up to WINDOW children at once, each into a slot of the scratch. A rank
 * that is neither root nor leaf keeps its partial result in the first slot.
 */
#include "coll/plan/plan_tree.h"

enum { WINDOW = 7 };

static size_t plan_tree_reduce_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return plan_tree_windows(t.children, WINDOW) + (t.turned != 0);
}

static size_t plan_tree_reduce_scratch(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);
	size_t slots = t.children < WINDOW ? t.children : WINDOW;

	return (slots + (t.turned && t.children)) * p->count;
}

static void plan_tree_reduce_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	uint32_t child = (uint32_t)n * WINDOW;
	struct plan_place sum = t.turned ? plan_tmp(0) : plan_out(0);
	struct plan_place slot = plan_tmp(t.turned ? p->count : 0);

	if (child >= t.children) {
		plan_send(r, plan_tree_parent(&t), t.children ? sum : plan_in(0), p->count);
		return;
	}
	for (; child < t.children && r->messages < WINDOW; child++) {
		plan_receive(r, plan_tree_rank(&t, plan_tree_child(&t, child).begin), slot,
			     p->count);
		plan_reduce(r, sum, child ? sum : plan_in(0), slot, p->count);
		slot = plan_past(slot, p->count);
	}
}

const struct plan_algorithm plan_tree_reduce = {"tree reduce", plan_tree_reduce_rounds,
						plan_tree_reduce_scratch,
						plan_tree_reduce_round_of};
