/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bruck's allgather. After round k a rank has the pieces of 2^(k+1) ranks, from itself on. In each
 * round a rank sends what it has to the rank that many before it. It takes ceil(log2 size) rounds.
 * Unlike in the original algorithm, pieces are always in their place in OUT, so no final rotation
 * is needed. Pieces that wrap around the last rank take two messages.
 *
 * A rank's own piece is in IN; same: in its place in OUT.
 */
#include "coll/plan/plan_own.h"

static size_t plan_bruck_allgather_rounds(const struct plan_part *p)
{
	return plan_log2(p->size);
}

/* Sends or receives `len` pieces from rank `first` on. */
static void plan_bruck_allgather_pieces(const struct plan_part *p, uint32_t first, uint32_t len,
					struct plan_message m, struct plan_round *r)
{
	uint32_t before = p->size - first < len ? p->size - first : len;
	size_t begin = plan_cut(p->count, p->size, first);

	m.count = plan_cut(p->count, p->size, first + before) - begin;
	m.place = plan_out(begin);
	if (m.count)
		plan_message(r, &m);
	m.count = plan_cut(p->count, p->size, len - before);
	m.place = plan_out(0);
	if (m.count)
		plan_message(r, &m);
}

static void plan_bruck_allgather_round_of(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint32_t step = (uint32_t)1 << n;
	uint32_t len = p->size - step < step ? p->size - step : step;
	uint32_t after = (uint32_t)(((uint64_t)p->rank + step) % p->size);
	uint32_t before = (uint32_t)(((uint64_t)p->rank + p->size - step) % p->size);
	size_t at = plan_cut(p->count, p->size, p->rank);
	size_t own = plan_cut(p->count, p->size, p->rank + 1) - at;

	if (n == 0 && !p->same) {
		if (own)
			plan_send(r, before, plan_in(0), own);
		plan_copy(r, plan_out(at), plan_in(0), own);
	} else {
		plan_bruck_allgather_pieces(p, p->rank, len,
					    (struct plan_message){.peer = before, .send = true}, r);
	}
	plan_bruck_allgather_pieces(p, after, len, (struct plan_message){.peer = after}, r);
}

const struct plan_algorithm plan_bruck_allgather = {"Bruck allgather", plan_bruck_allgather_rounds,
						    NULL, plan_bruck_allgather_round_of};
