/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Broadcast of OUT along a chain from the root, in chunks of `tune` elements. A rank receives a
 * chunk from the rank before it and sends the previous chunk to the next rank. Each rank sends the
 * vector at most once; the last rank has it after size - 2 + chunks rounds.
 */
#include "coll/plan/plan_own.h"

static uint32_t plan_chain_turned(const struct plan_part *p)
{
	return (uint32_t)(((uint64_t)p->rank + p->size - p->root) % p->size);
}

static size_t plan_chain_rounds(const struct plan_part *p)
{
	uint32_t at = plan_chain_turned(p);

	return plan_chunks(p) + (at && at < p->size - 1);
}

static void plan_chain_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint32_t at = plan_chain_turned(p);

	if (at && n < plan_chunks(p))
		plan_receive(r, (p->rank + p->size - 1) % p->size, plan_out(n * p->tune),
			     plan_chunk(p, n));
	if (at)
		n--; /* the chunk received in the round before; in round 0 none */
	if (at < p->size - 1 && n < plan_chunks(p))
		plan_send(r, (p->rank + 1) % p->size, plan_out(n * p->tune), plan_chunk(p, n));
}

const struct plan_algorithm plan_chain = {"chain", plan_chain_rounds, NULL, plan_chain_round_of};
