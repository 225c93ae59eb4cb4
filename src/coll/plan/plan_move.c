/* SPDX-License-Identifier: BSD-2-Clause */
/* Elementary algorithms: a copy, and one message. */
#include "coll/plan/plan_own.h"

static size_t plan_move_one(const struct plan_part *p)
{
	(void)p;
	return 1;
}

/* Copies `count` elements from IN to OUT. */
static void place_own(const struct plan_part *p, size_t n, struct plan_round *r)
{
	(void)n;
	plan_copy(r, plan_out(0), plan_in(0), p->count);
}

/* Sends `count` elements from rank 0's IN to the root's OUT. */
static size_t hand_over_rounds(const struct plan_part *p)
{
	return p->root && (p->rank == 0 || p->rank == p->root);
}

static void plan_move_hand_over(const struct plan_part *p, size_t n, struct plan_round *r)
{
	(void)n;
	if (p->rank == 0)
		plan_send(r, p->root, plan_in(0), p->count);
	else
		plan_receive(r, 0, plan_out(0), p->count);
}

const struct plan_algorithm plan_place_own = {"copy", plan_move_one, NULL, place_own};
const struct plan_algorithm plan_hand_over = {"hand over", hand_over_rounds, NULL,
					      plan_move_hand_over};
