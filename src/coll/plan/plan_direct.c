/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allreduce in one round, of no elements a barrier: everyone tells everyone, straight, and each combines
 * all for itself, in the order of ranks. For few ranks: PLAN_MESSAGES / 2 + 1 at most. IN to OUT; same:
 * they are one.
 *
 * The most messages of all, but nobody waits for more than that all have come to the call: of ranks that
 * share a processor each needs it but once for every call, as it then finds the end of the last one and
 * goes on to the next.
 */
#include "coll/plan/plan_own.h"

static size_t rounds(const struct plan_part *p)
{
	return p->size > 1;
}

static size_t scratch(const struct plan_part *p)
{
	return (p->size - 1) * p->count;
}

/* What rank i brings: the others' lie in the scratch, by rank. */
static struct plan_place operand(const struct plan_part *p, uint32_t i)
{
	return i == p->rank ? plan_in(0) : plan_tmp((i - (i > p->rank)) * p->count);
}

/* The sum grows in the scratch: OUT may be IN, which is not read until its turn comes. */
static void round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_place sum = operand(p, 0), grown = plan_tmp(0);

	(void)n;
	for (uint32_t step = 1; step < p->size; step++)
		plan_send(r, (p->rank + step) % p->size, plan_in(0), p->count);
	for (uint32_t i = 0; i < p->size; i++)
		if (i != p->rank)
			plan_receive(r, i, operand(p, i), p->count);
	for (uint32_t i = 1; i < p->size; i++) {
		if (i == p->size - 1)
			grown = plan_out(0);
		plan_reduce(r, grown, sum, operand(p, i), p->count);
		sum = grown;
	}
}

const struct plan_algorithm plan_direct = {"direct exchange", rounds, scratch, round_of};
