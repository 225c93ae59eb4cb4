/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Moves pieces of a vector up a tree: each rank sends the pieces of its span.
 *
 * plan_gather:  from each rank's IN (one piece) to the vector in the root's OUT. Inner ranks keep
 *               their span's pieces in the scratch, their own first. same: the root's own piece is
 *               in its place in OUT.
 * plan_collect: each rank has a whole vector in OUT with its piece in place; received pieces go to
 *               their places.
 */
#include "coll/plan/plan_tree.h"

enum { WINDOW = PLAN_MESSAGES - 1 }; /* a child may need two messages */

static size_t plan_gather_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return plan_tree_windows(t.children, WINDOW) + (t.turned != 0);
}

static size_t plan_gather_scratch(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return t.turned && t.children ? plan_tree_elements(p, plan_tree_own(&t)) : 0;
}

/* `own`: the place of this rank's span; the piece of rank `origin` is at its start. */
static void plan_gather_up(const struct plan_part *p, size_t n, const struct plan_pieces *own,
			   struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	struct plan_pieces pieces = *own;
	uint32_t child = (uint32_t)n * WINDOW, end;

	if (child >= t.children) {
		pieces.peer = plan_tree_parent(&t);
		pieces.send = true;
		plan_tree_pieces(p, &pieces, plan_tree_own(&t), r);
		return;
	}
	end = t.children - child < WINDOW ? t.children : child + WINDOW;
	for (; child < end; child++) {
		struct plan_span span = plan_tree_child(&t, child);

		pieces.peer = plan_tree_rank(&t, span.begin);
		plan_tree_pieces(p, &pieces, span, r);
	}
}

static void plan_gather_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	size_t at = plan_cut(p->count, p->size, p->rank);
	size_t len = plan_cut(p->count, p->size, p->rank + 1) - at;

	if (!t.turned)
		plan_gather_up(p, n, &(struct plan_pieces){.base = plan_out(0)}, r);
	else
		plan_gather_up(p, n,
			       &(struct plan_pieces){.base = t.children ? plan_tmp(0) : plan_in(0),
						     .origin = p->rank},
			       r);
	if (n == 0 && t.children && !(p->same && !t.turned))
		plan_copy(r, t.turned ? plan_tmp(0) : plan_out(at), plan_in(0), len);
}

static void plan_gather_collect(const struct plan_part *p, size_t n, struct plan_round *r)
{
	plan_gather_up(p, n, &(struct plan_pieces){.base = plan_out(0)}, r);
}

const struct plan_algorithm plan_gather = {"gather", plan_gather_rounds, plan_gather_scratch,
					   plan_gather_round};
const struct plan_algorithm plan_collect = {"collect", plan_gather_rounds, NULL,
					    plan_gather_collect};
