/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barrier by dissemination: in round k each rank sends to the rank 2^k after it. After ceil(log2
 * size) rounds each has heard from all, directly or not. One message per direction and round.
 */
#include "coll/plan/plan_own.h"

static size_t plan_dissemination_rounds(const struct plan_part *p)
{
	return plan_log2(p->size);
}

static void plan_dissemination_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint64_t step = (uint64_t)1 << n;

	plan_send(r, (uint32_t)((p->rank + step) % p->size), plan_out(0), 0);
	plan_receive(r, (uint32_t)((p->rank + p->size - step) % p->size), plan_out(0), 0);
}

const struct plan_algorithm plan_dissemination = {"dissemination", plan_dissemination_rounds, NULL,
						  plan_dissemination_round_of};
