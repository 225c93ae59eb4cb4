/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduce-scatter by recursive halving. Ranks half the group apart exchange the half of the vector
 * that the other's half of the group needs, combine, and continue in their own half. A rank's piece
 * ends at the start of OUT, which does not overlap IN. log2(size) rounds; two more if size is no
 * power of two. The lower rank's operand is on the left, but the whole is not in rank order.
 *
 * Scratch: the partial result, then space for received operands.
 */
#include "coll/plan/plan_fold.h"

struct range {
	size_t at, count;
};

/* Returns the elements of core ranks [begin, begin + len). */
static struct range plan_halving_range(const struct plan_part *p, const struct plan_fold *f,
				       uint32_t begin, uint32_t len)
{
	size_t at = plan_cut(p->count, p->size, plan_fold_first(f, begin));

	return (struct range){at,
			      plan_cut(p->count, p->size, plan_fold_first(f, begin + len)) - at};
}

/* Returns the elements of the core ranks on the side of rank `id` at a level. */
static struct range plan_halving_side(const struct plan_part *p, const struct plan_fold *f,
				      uint32_t id, unsigned int level)
{
	uint32_t half = f->core >> (level + 1);

	return plan_halving_range(p, f, id & ~(half - 1), half);
}

static size_t plan_halving_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 2 : f.levels + 2 * f.paired;
}

static size_t sum_size(const struct plan_part *p, const struct plan_fold *f)
{
	return f->paired ? p->count : plan_halving_side(p, f, f->id, 0).count;
}

static size_t plan_halving_scratch(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 0 : sum_size(p, &f) + plan_halving_side(p, &f, f.id, 0).count;
}

static struct plan_place sum_at(const struct plan_part *p, const struct plan_fold *f, size_t at)
{
	return plan_tmp(at - (f->paired ? 0 : plan_halving_side(p, f, f->id, 0).at));
}

static void plan_halving_halve(const struct plan_part *p, const struct plan_fold *f,
			       unsigned int level, struct plan_round *r)
{
	uint32_t peer = f->id ^ f->core >> (level + 1);
	struct range own = plan_halving_side(p, f, f->id, level),
		     others = plan_halving_side(p, f, peer, level);
	bool first = !level && !f->paired, last = level + 1 == f->levels && !f->paired;

	if (others.count)
		plan_send(r, plan_fold_rank(f, peer),
			  first ? plan_in(others.at) : sum_at(p, f, others.at), others.count);
	plan_take(r,
		  &(struct plan_operand){.peer = plan_fold_rank(f, peer),
					 .left = peer < f->id,
					 .own = first ? plan_in(own.at) : sum_at(p, f, own.at),
					 .sum = last ? plan_out(0) : sum_at(p, f, own.at),
					 .room = plan_tmp(sum_size(p, f)),
					 .count = own.count},
		  first || last);
}

static void plan_halving_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	size_t at = plan_cut(p->count, p->size, p->rank);
	size_t len = plan_cut(p->count, p->size, p->rank + 1) - at;

	if (f.out && n == 0) {
		plan_send(r, f.other, plan_in(0), p->count);
	} else if (f.out) {
		plan_receive(r, f.other, plan_out(0), len);
	} else if (f.paired && n == 0) {
		plan_receive(r, f.other, plan_tmp(0), p->count);
		plan_reduce(r, plan_tmp(0), plan_tmp(0), plan_in(0), p->count);
	} else if (n - f.paired < f.levels) {
		plan_halving_halve(p, &f, (unsigned int)n - f.paired, r);
	} else {
		size_t begin = plan_cut(p->count, p->size, f.other);

		plan_send(r, f.other, sum_at(p, &f, begin), at - begin);
		plan_copy(r, plan_out(0), sum_at(p, &f, at), len);
	}
}

const struct plan_algorithm plan_halving = {"recursive halving", plan_halving_rounds,
					    plan_halving_scratch, plan_halving_round_of};
