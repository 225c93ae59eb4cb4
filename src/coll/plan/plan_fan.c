/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast of OUT from the root to all others at once, in chunks of `tune` elements. The next
 * chunk follows when all have the one before. Members that share processors of one host copy each
 * chunk while it is in a cache.
 */
#include "coll/plan/plan_tree.h"

static size_t plan_fan_windows(const struct plan_part *p)
{
	return p->rank == p->root ? plan_tree_windows(p->size - 1, PLAN_MESSAGES) : 1;
}

static size_t plan_fan_rounds(const struct plan_part *p)
{
	return plan_chunks(p) * plan_fan_windows(p);
}

static void plan_fan_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	size_t chunk = n / plan_fan_windows(p), at = chunk * p->tune, count = plan_chunk(p, chunk);
	uint32_t step = (uint32_t)(n % plan_fan_windows(p)) * PLAN_MESSAGES + 1;

	if (p->rank != p->root) {
		plan_receive(r, p->root, plan_out(at), count);
		return;
	}
	for (; step < p->size && r->messages < PLAN_MESSAGES; step++)
		plan_send(r, (uint32_t)(((uint64_t)p->root + step) % p->size), plan_out(at), count);
}

const struct plan_algorithm plan_fan = {"fan", plan_fan_rounds, NULL, plan_fan_round_of};
