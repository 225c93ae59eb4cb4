/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce by recursive doubling. In round k ranks 2^k apart exchange their vectors and both
 * combine them, the lower rank's on the left. log2(size) rounds; two more if size is no power of
 * two. From IN to OUT; same: they are the same memory. Combines in rank order.
 */
#include "coll/plan/plan_fold.h"

static size_t plan_doubling_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 2 : f.levels + 2 * f.paired;
}

static size_t plan_doubling_scratch(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 0 : p->count;
}

static void plan_doubling_combine(const struct plan_part *p, uint32_t peer, bool first,
				  struct plan_round *r)
{
	plan_take(r,
		  &(struct plan_operand){.peer = peer,
					 .left = peer < p->rank,
					 .own = first ? plan_in(0) : plan_out(0),
					 .sum = plan_out(0),
					 .room = plan_tmp(0),
					 .count = p->count},
		  first && !p->same);
}

static void plan_doubling_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	bool first = n == 0;

	if (f.out && first) {
		plan_send(r, f.other, plan_in(0), p->count);
	} else if (f.out) {
		plan_receive(r, f.other, plan_out(0), p->count);
	} else if (f.paired && first) {
		plan_doubling_combine(p, f.other, true, r);
	} else if (n - f.paired < f.levels) {
		uint32_t peer = plan_fold_rank(&f, f.id ^ (uint32_t)1 << (n - f.paired));

		plan_send(r, peer, first ? plan_in(0) : plan_out(0), p->count);
		plan_doubling_combine(p, peer, first, r);
	} else {
		plan_send(r, f.other, plan_out(0), p->count);
	}
}

const struct plan_algorithm plan_doubling = {"recursive doubling", plan_doubling_rounds,
					     plan_doubling_scratch, plan_doubling_round_of};
