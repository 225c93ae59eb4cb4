/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves pieces of a vector down a tree: each rank receives the pieces of its span.
 *
 * plan_scatter: from the root's IN to one piece at the start of each OUT. Inner ranks hold their
 *               span's pieces in the scratch, their own first.
 * plan_spread:  each rank has space for a whole vector in OUT; its piece ends in its place there.
 *               The root's vector is in OUT from the start.
 */
#include "coll/plan/plan_tree.h"

enum { WINDOW = PLAN_MESSAGES - 1 }; /* a child may need two messages */

static size_t plan_scatter_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return (t.turned != 0) + plan_tree_windows(t.children, WINDOW);
}

static size_t plan_scatter_scratch(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return t.turned && t.children ? plan_tree_elements(p, plan_tree_own(&t)) : 0;
}

/* `own`: the place of this rank's span; the piece of rank `origin` is at its start. */
static void plan_scatter_down(const struct plan_part *p, size_t n, const struct plan_pieces *own,
			      struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	struct plan_pieces pieces = *own;
	uint32_t child, end;

	if (t.turned && n-- == 0) {
		pieces.peer = plan_tree_parent(&t);
		plan_tree_pieces(p, &pieces, plan_tree_own(&t), r);
		return;
	}
	child = (uint32_t)n * WINDOW;
	end = t.children - child < WINDOW ? t.children : child + WINDOW;
	pieces.send = true;
	for (; child < end; child++) {
		struct plan_span span = plan_tree_child(&t, t.children - 1 - child);

		pieces.peer = plan_tree_rank(&t, span.begin);
		plan_tree_pieces(p, &pieces, span, r);
	}
}

static void plan_scatter_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	size_t at = plan_cut(p->count, p->size, p->rank);
	size_t len = plan_cut(p->count, p->size, p->rank + 1) - at;

	if (!t.turned)
		plan_scatter_down(p, n, &(struct plan_pieces){.base = plan_in(0)}, r);
	else
		plan_scatter_down(
			p, n,
			&(struct plan_pieces){.base = t.children ? plan_tmp(0) : plan_out(0),
					      .origin = p->rank},
			r);
	if (t.children && n == plan_scatter_rounds(p) - 1)
		plan_copy(r, plan_out(0), t.turned ? plan_tmp(0) : plan_in(at), len);
}

static void plan_scatter_spread(const struct plan_part *p, size_t n, struct plan_round *r)
{
	plan_scatter_down(p, n, &(struct plan_pieces){.base = plan_out(0)}, r);
}

const struct plan_algorithm plan_scatter = {"scatter", plan_scatter_rounds, plan_scatter_scratch,
					    plan_scatter_round};
const struct plan_algorithm plan_spread = {"spread", plan_scatter_rounds, NULL,
					   plan_scatter_spread};
