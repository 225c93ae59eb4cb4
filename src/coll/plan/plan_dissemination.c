/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Barrier by dissemination: in round k every rank tells the one 2^k after it. After ceil(log2 size)
 * rounds each has heard, through others, of all. One message each way a round.
 */
#include "coll/plan/plan_own.h"

static size_t rounds(const struct plan_part *p)
{
	return plan_log2(p->size);
}

static void round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint64_t step = (uint64_t)1 << n;

	plan_send(r, (uint32_t)((p->rank + step) % p->size), plan_out(0), 0);
	plan_receive(r, (uint32_t)((p->rank + p->size - step) % p->size), plan_out(0), 0);
}

const struct plan_algorithm plan_dissemination = {"dissemination", rounds, NULL, round_of};
