/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings: in each of size - 1 rounds, a rank sends one piece to the next rank and receives one from
 * the previous rank. No algorithm sends less, and only neighbours communicate.
 *
 * plan_ring_reduce_scatter: from IN (whole vectors) to each rank's piece of the result, in place
 *                           in OUT; the rest of OUT is overwritten. Piece i starts at rank i + 1
 *                           and collects each rank's operand on its way. same: OUT is IN.
 * plan_ring_allgather:      each rank's piece to all, in its place in OUT. A rank's own piece is in
 *                           IN; same: in its place in OUT.
 */
#include "coll/plan/plan_own.h"

struct piece {
	size_t at, len;
};

/* Returns the piece of the rank `back` ranks before this one. */
static struct piece plan_ring_piece(const struct plan_part *p, size_t back)
{
	uint32_t i = (uint32_t)(((uint64_t)p->rank + p->size - back) % p->size);
	size_t at = plan_cut(p->count, p->size, i);

	return (struct piece){at, plan_cut(p->count, p->size, i + 1) - at};
}

static void plan_ring_pass(const struct plan_part *p, struct piece piece, struct plan_place from,
			   struct plan_round *r)
{
	if (piece.len)
		plan_send(r, (p->rank + 1) % p->size, from, piece.len);
}

static void plan_ring_take(const struct plan_part *p, struct piece piece, struct plan_place to,
			   struct plan_round *r)
{
	if (piece.len)
		plan_receive(r, (p->rank + p->size - 1) % p->size, to, piece.len);
}

static size_t plan_ring_rounds(const struct plan_part *p)
{
	return p->size - 1;
}

static size_t plan_ring_scratch(const struct plan_part *p)
{
	return p->same ? plan_cut(p->count, p->size, 1) : 0;
}

static void plan_ring_reduce_scatter_round(const struct plan_part *p, size_t n,
					   struct plan_round *r)
{
	struct piece to_pass = plan_ring_piece(p, n + 1), to_take = plan_ring_piece(p, n + 2);
	struct plan_place sum = plan_out(to_take.at), came = p->same ? plan_tmp(0) : sum;

	plan_ring_pass(p, to_pass, n ? plan_out(to_pass.at) : plan_in(to_pass.at), r);
	plan_ring_take(p, to_take, came, r);
	plan_reduce(r, sum, came, plan_in(to_take.at), to_take.len);
}

static void plan_ring_allgather_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct piece to_pass = plan_ring_piece(p, n), to_take = plan_ring_piece(p, n + 1);

	if (n == 0 && !p->same) {
		plan_ring_pass(p, to_pass, plan_in(0), r);
		plan_copy(r, plan_out(to_pass.at), plan_in(0), to_pass.len);
	} else {
		plan_ring_pass(p, to_pass, plan_out(to_pass.at), r);
	}
	plan_ring_take(p, to_take, plan_out(to_take.at), r);
}

const struct plan_algorithm plan_ring_reduce_scatter = {
	"ring reduce-scatter", plan_ring_rounds, plan_ring_scratch, plan_ring_reduce_scatter_round};
const struct plan_algorithm plan_ring_allgather = {"ring allgather", plan_ring_rounds, NULL,
						   plan_ring_allgather_round};
