/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast of OUT down a tree: a rank sends what it received from its parent to all children, the
 * child with the largest span first.
 */
#include "coll/plan/plan_tree.h"

static size_t plan_tree_broadcast_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return (t.turned != 0) + plan_tree_windows(t.children, PLAN_MESSAGES);
}

static void plan_tree_broadcast_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	uint32_t child;

	if (t.turned && n-- == 0) {
		plan_receive(r, plan_tree_parent(&t), plan_out(0), p->count);
		return;
	}
	child = (uint32_t)n * PLAN_MESSAGES;
	for (; child < t.children && r->messages < PLAN_MESSAGES; child++)
		plan_send(r, plan_tree_rank(&t, plan_tree_child(&t, t.children - 1 - child).begin),
			  plan_out(0), p->count);
}

const struct plan_algorithm plan_tree_broadcast = {"tree broadcast", plan_tree_broadcast_rounds,
						   NULL, plan_tree_broadcast_round_of};
