/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairwise exchange: each rank sends size - 1 pieces directly to their destinations, a few at a
 * time: those of the ranks 1, 2, 3 ... after it, while it receives from those before it.
 *
 * plan_pairwise_alltoall:       piece i of IN goes to rank i, as piece `rank` of its OUT.
 * plan_pairwise_reduce_scatter: a rank combines the pieces for it at the start of OUT: first that
 *                               of the rank before it, then its own, then those of earlier ranks,
 *                               descending.
 *
 * IN and OUT do not overlap.
 */
#include "coll/plan/plan_own.h"

enum { WINDOW = PLAN_MESSAGES / 2, SLOTS = 4 };

struct piece {
	uint32_t rank;
	size_t at, count;
};

static struct piece plan_pairwise_piece(const struct plan_part *p, uint64_t rank)
{
	uint32_t i = (uint32_t)(rank % p->size);
	size_t at = plan_cut(p->count, p->size, i);

	return (struct piece){i, at, plan_cut(p->count, p->size, i + 1) - at};
}

static struct piece plan_pairwise_after(const struct plan_part *p, size_t step)
{
	return plan_pairwise_piece(p, (uint64_t)p->rank + step);
}

static struct piece plan_pairwise_before(const struct plan_part *p, size_t step)
{
	return plan_pairwise_piece(p, (uint64_t)p->rank + p->size - step);
}

static size_t alltoall_rounds(const struct plan_part *p)
{
	return ((size_t)p->size - 1 + WINDOW - 1) / WINDOW;
}

static void plan_pairwise_alltoall_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	size_t step = n * WINDOW + 1;

	for (; step < p->size && r->messages < PLAN_MESSAGES; step++) {
		struct piece to = plan_pairwise_after(p, step),
			     from = plan_pairwise_before(p, step);

		if (to.count)
			plan_send(r, to.rank, plan_in(to.at), to.count);
		if (from.count)
			plan_receive(r, from.rank, plan_out(from.at), from.count);
	}
	if (n == 0) {
		struct piece own = plan_pairwise_after(p, 0);

		plan_copy(r, plan_out(own.at), plan_in(own.at), own.count);
	}
}

static size_t plan_pairwise_reduce_rounds(const struct plan_part *p)
{
	return ((size_t)p->size - 1 + SLOTS - 1) / SLOTS;
}

/* The first received piece goes to OUT itself. */
static size_t plan_pairwise_reduce_scratch(const struct plan_part *p)
{
	size_t more = p->size - 2;

	return (more < SLOTS ? more : SLOTS) * plan_pairwise_after(p, 0).count;
}

static void plan_pairwise_reduce_scatter_round(const struct plan_part *p, size_t n,
					       struct plan_round *r)
{
	struct piece own = plan_pairwise_after(p, 0);
	size_t first = n * SLOTS + 1;

	for (size_t step = first; step < p->size && step < first + SLOTS; step++) {
		struct piece to = plan_pairwise_after(p, step);
		struct plan_place slot = plan_tmp((step - first) * own.count);

		if (to.count)
			plan_send(r, to.rank, plan_in(to.at), to.count);
		if (!own.count)
			continue;
		if (step == 1)
			slot = plan_out(0);
		else if (n == 0)
			slot.at -= own.count;
		plan_receive(r, plan_pairwise_before(p, step).rank, slot, own.count);
		plan_reduce(r, plan_out(0), plan_out(0), step == 1 ? plan_in(own.at) : slot,
			    own.count);
	}
}

const struct plan_algorithm plan_pairwise_alltoall = {"pairwise alltoall", alltoall_rounds, NULL,
						      plan_pairwise_alltoall_round};
const struct plan_algorithm plan_pairwise_reduce_scatter = {
	"pairwise reduce-scatter", plan_pairwise_reduce_rounds, plan_pairwise_reduce_scratch,
	plan_pairwise_reduce_scatter_round};
