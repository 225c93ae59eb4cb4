/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce in one round; with no elements a barrier. Each rank sends its vector to all others and
 * combines all vectors itself, in rank order. At most PLAN_MESSAGES / 2 + 1 ranks. From IN to OUT;
 * same: they are the same memory.
 *
 * This algorithm sends the most messages, but a rank waits only until all ranks have made the call.
 * A rank that shares its processor needs it just once per call: it finds the last call complete and
 * begins the next one.
 */
#include "coll/plan/plan_own.h"

static size_t plan_direct_rounds(const struct plan_part *p)
{
	return p->size > 1;
}

static size_t plan_direct_scratch(const struct plan_part *p)
{
	return (p->size - 1) * p->count;
}

/* Returns the place of rank i's vector: IN, or the scratch, sorted by rank. */
static struct plan_place plan_direct_operand(const struct plan_part *p, uint32_t i)
{
	return i == p->rank ? plan_in(0) : plan_tmp((i - (i > p->rank)) * p->count);
}

/* The partial result is in the scratch, because OUT may be IN, which is read later. */
static void plan_direct_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_place sum = plan_direct_operand(p, 0), grown = plan_tmp(0);

	(void)n;
	for (uint32_t step = 1; step < p->size; step++)
		plan_send(r, (p->rank + step) % p->size, plan_in(0), p->count);
	for (uint32_t i = 0; i < p->size; i++)
		if (i != p->rank)
			plan_receive(r, i, plan_direct_operand(p, i), p->count);
	for (uint32_t i = 1; i < p->size; i++) {
		if (i == p->size - 1)
			grown = plan_out(0);
		plan_reduce(r, grown, sum, plan_direct_operand(p, i), p->count);
		sum = grown;
	}
}

const struct plan_algorithm plan_direct = {"direct exchange", plan_direct_rounds,
					   plan_direct_scratch, plan_direct_round_of};
