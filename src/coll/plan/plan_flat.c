/* SPDX-License-Identifier: BSD-2-Clause */
/* Algorithms for any number of ranks, without a tree. */
#include "coll/plan/plan_own.h"

/* ---- A copy, and one message ------------------------------------------------------------------ */

static size_t plan_flat_one_round(const struct plan_part *p)
{
	(void)p;
	return 1;
}

/* Copies `count` elements from IN to OUT. */
static void plan_place_own_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	(void)n;
	plan_copy(r, plan_out(0), plan_in(0), p->count);
}

/* Sends `count` elements from rank 0's IN to the root's OUT. */
static size_t plan_hand_over_rounds(const struct plan_part *p)
{
	return p->root && (p->rank == 0 || p->rank == p->root);
}

static void plan_hand_over_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	(void)n;
	if (p->rank == 0)
		plan_send(r, p->root, plan_in(0), p->count);
	else
		plan_receive(r, 0, plan_out(0), p->count);
}

const struct plan_algorithm plan_place_own = {"copy", plan_flat_one_round, NULL,
					      plan_place_own_round};
const struct plan_algorithm plan_hand_over = {"hand over", plan_hand_over_rounds, NULL,
					      plan_hand_over_round};

/*
 * ---- Transposing ----------------------------------------------------------------------------------
 *
 * A local step: IN is a matrix of blocks, `size` rows of `tune` blocks; OUT becomes the transposed
 * matrix, `tune` rows of `size` blocks. `count` is the number of elements of the whole matrix.
 */

static size_t plan_transpose_lines(const struct plan_part *p)
{
	return p->size < p->tune ? p->size : p->tune;
}

static size_t plan_transpose_rounds(const struct plan_part *p)
{
	return (plan_transpose_lines(p) + PLAN_LOCALS - 1) / PLAN_LOCALS;
}

/* Copies row by row, or column by column if there are fewer columns. */
static void plan_transpose_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	size_t block = p->count / p->size / p->tune, line = n * PLAN_LOCALS;
	size_t row = p->tune * block, column = p->size * block; /* elements per row: IN, OUT */
	bool by_rows = p->size < p->tune;

	for (; line < plan_transpose_lines(p) && r->locals < PLAN_LOCALS; line++)
		plan_local(r,
			   &(struct plan_local){.what = PLAN_COPY,
						.dst = plan_out(line * (by_rows ? block : column)),
						.left = plan_in(line * (by_rows ? row : block)),
						.count = block,
						.blocks = by_rows ? p->tune : p->size,
						.dst_step = (ptrdiff_t)(by_rows ? column : block),
						.left_step = (ptrdiff_t)(by_rows ? block : row)});
}

const struct plan_algorithm plan_transpose = {"transpose", plan_transpose_rounds, NULL,
					      plan_transpose_round};

/*
 * ---- Allreduce in one round -----------------------------------------------------------------------
 *
 * With no elements a barrier. Each rank sends its vector to all others and combines all vectors
 * itself, in rank order. At most PLAN_MESSAGES / 2 + 1 ranks. From IN to OUT; same: they are the same
 * memory.
 *
 * This algorithm sends the most messages, but a rank waits only until all ranks have made the call.
 * A rank that shares its processor needs it just once per call: it finds the last call complete and
 * begins the next one.
 */

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
static void plan_direct_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_place sum = plan_direct_operand(p, 0), grown = plan_tmp(0);

	(void)n;
	for (uint32_t step = 1; step < p->size; step++)
		plan_send(r, plan_after(p, step), plan_in(0), p->count);
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

const struct plan_algorithm plan_direct = {"direct exchange", plan_flat_one_round,
					   plan_direct_scratch, plan_direct_round};

/*
 * ---- Rings ----------------------------------------------------------------------------------------
 *
 * In each of size - 1 rounds, a rank sends one piece to the next rank and receives one from the
 * previous rank. No algorithm sends less, and only neighbours communicate.
 *
 * plan_ring_reduce_scatter: from IN (whole vectors) to each rank's piece of the result, in place
 *                           in OUT; the rest of OUT is overwritten. Piece i starts at rank i + 1
 *                           and collects each rank's operand on its way. same: OUT is IN.
 * plan_ring_allgather:      each rank's piece to all, in its place in OUT. A rank's own piece is in
 *                           IN; same: in its place in OUT.
 */

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
	struct plan_piece pass = plan_piece(p, plan_before(p, n + 1));
	struct plan_piece take = plan_piece(p, plan_before(p, n + 2));
	struct plan_place sum = plan_out(take.at), came = p->same ? plan_tmp(0) : sum;

	plan_send_piece(r, plan_after(p, 1), n ? plan_out(pass.at) : plan_in(pass.at), pass.count);
	plan_receive_piece(r, plan_before(p, 1), came, take.count);
	plan_reduce(r, sum, came, plan_in(take.at), take.count);
}

static void plan_ring_allgather_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_piece pass = plan_piece(p, plan_before(p, n));
	struct plan_piece take = plan_piece(p, plan_before(p, n + 1));
	bool from_in = n == 0 && !p->same;

	plan_send_piece(r, plan_after(p, 1), from_in ? plan_in(0) : plan_out(pass.at), pass.count);
	if (from_in)
		plan_copy(r, plan_out(pass.at), plan_in(0), pass.count);
	plan_receive_piece(r, plan_before(p, 1), plan_out(take.at), take.count);
}

const struct plan_algorithm plan_ring_reduce_scatter = {
	"ring reduce-scatter", plan_ring_rounds, plan_ring_scratch, plan_ring_reduce_scatter_round};
const struct plan_algorithm plan_ring_allgather = {"ring allgather", plan_ring_rounds, NULL,
						   plan_ring_allgather_round};

/*
 * ---- Pairwise exchange ----------------------------------------------------------------------------
 *
 * Each rank sends size - 1 pieces directly to their destinations, a few at a time: those of the ranks
 * 1, 2, 3 ... after it, while it receives from those before it.
 *
 * plan_pairwise_alltoall:       piece i of IN goes to rank i, as piece `rank` of its OUT.
 * plan_pairwise_reduce_scatter: a rank combines the pieces for it at the start of OUT: first that
 *                               of the rank before it, then its own, then those of earlier ranks,
 *                               descending.
 *
 * IN and OUT do not overlap.
 */

enum { WINDOW = PLAN_MESSAGES / 2, SLOTS = 4 };

static size_t plan_pairwise_alltoall_rounds(const struct plan_part *p)
{
	return ((size_t)p->size - 1 + WINDOW - 1) / WINDOW;
}

static void plan_pairwise_alltoall_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_piece own = plan_piece(p, p->rank);
	size_t step = n * WINDOW + 1;

	for (; step < p->size && r->messages < PLAN_MESSAGES; step++) {
		uint32_t after = plan_after(p, step), before = plan_before(p, step);
		struct plan_piece to = plan_piece(p, after), from = plan_piece(p, before);

		plan_send_piece(r, after, plan_in(to.at), to.count);
		plan_receive_piece(r, before, plan_out(from.at), from.count);
	}
	if (n == 0)
		plan_copy(r, plan_out(own.at), plan_in(own.at), own.count);
}

static size_t plan_pairwise_reduce_scatter_rounds(const struct plan_part *p)
{
	return ((size_t)p->size - 1 + SLOTS - 1) / SLOTS;
}

/* The first received piece goes to OUT itself. */
static size_t plan_pairwise_reduce_scatter_scratch(const struct plan_part *p)
{
	size_t more = p->size - 2;

	return (more < SLOTS ? more : SLOTS) * plan_piece(p, p->rank).count;
}

static void plan_pairwise_reduce_scatter_round(const struct plan_part *p, size_t n,
					       struct plan_round *r)
{
	struct plan_piece own = plan_piece(p, p->rank);
	size_t first = n * SLOTS + 1;

	for (size_t step = first; step < p->size && step < first + SLOTS; step++) {
		struct plan_piece to = plan_piece(p, plan_after(p, step));
		struct plan_place slot = plan_tmp((step - first) * own.count);

		plan_send_piece(r, plan_after(p, step), plan_in(to.at), to.count);
		if (step == 1)
			slot = plan_out(0);
		else if (n == 0)
			slot.at -= own.count;
		plan_receive_piece(r, plan_before(p, step), slot, own.count);
		plan_reduce(r, plan_out(0), plan_out(0), step == 1 ? plan_in(own.at) : slot,
			    own.count);
	}
}

const struct plan_algorithm plan_pairwise_alltoall = {
	"pairwise alltoall", plan_pairwise_alltoall_rounds, NULL, plan_pairwise_alltoall_round};
const struct plan_algorithm plan_pairwise_reduce_scatter = {
	"pairwise reduce-scatter", plan_pairwise_reduce_scatter_rounds,
	plan_pairwise_reduce_scatter_scratch, plan_pairwise_reduce_scatter_round};
