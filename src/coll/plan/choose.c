/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of algorithms: the first row for the collective whose conditions all hold is used.
 * Conditions depend only on values that are equal on all members.
 */
#include "coll/plan/plan_own.h"

#define KIB (size_t)1024
#define ANY SIZE_MAX

enum {
	NEAR = 1,           /* all members on one host */
	OVERSUBSCRIBED = 2, /* and more members than processors */
	TWOS = 4,           /* size is a power of two */
	ORDERED = 8,        /* the algorithm combines in rank order */
	SHARES = 16,        /* members on one host share memory */
};

struct row {
	enum fi_collective_op kind;
	/* NEAR, OVERSUBSCRIBED, TWOS, SHARES: must hold; ORDERED: the row is also valid for ordered operators */
	unsigned int only;
	uint32_t most_size;
	/* Upper limit (bytes): of the vector if the call's `count` is the whole vector's, else of a piece */
	size_t most;
	size_t piece; /* lower limit (bytes): of the vector divided by size */
	size_t tune;  /* radix of a tree (0: size), or bytes of a chunk */
	/* The second has its input where the first has put it, in OUT; NULL: there is none. */
	const struct plan_algorithm *first, *second;
};

static bool choose_same(const struct plan_build *b)
{
	return b->shape.overlap == PLAN_SAME;
}

static bool choose_alike(const struct plan_place *a, const struct plan_place *b)
{
	return a->space == b->space && a->at == b->at;
}

/* In place: moves the member's piece to its place first. Returns whether it is there. */
static bool choose_placed(const struct plan_build *b)
{
	struct plan_build own = *b;

	if (b->shape.overlap == PLAN_APART)
		return false;
	own.out = plan_past(b->out, b->shape.rank * b->shape.count);
	if (!choose_alike(&own.in, &own.out))
		plan_add(&own, &plan_place_own, b->shape.count, false);
	return true;
}

/* Is the input where the first algorithm has its result? */
static bool choose_in_place(const struct plan_build *b)
{
	switch (b->shape.kind) {
	case FI_ALLREDUCE:
	case FI_REDUCE:
		return choose_same(b);
	case FI_ALLGATHER:
	case FI_GATHER:
		return choose_placed(b);
	default:
		return false;
	}
}

/* For rank order the tree's root must be rank 0, which then sends the result to the root. */
static void reduce_in_order(const struct plan_build *b)
{
	struct plan_build first = *b, then = *b;

	first.shape.root = 0;
	if (b->shape.rank == 0)
		first.out = then.in = plan_keep(b->plan, b->shape.count);
	plan_add(&first, &plan_tree_reduce, b->shape.count, false);
	plan_add(&then, &plan_hand_over, b->shape.count, false);
}

/* Reduces to rank 0 in rank order, then scatters. */
static void reduce_scatter_in_order(const struct plan_build *b)
{
	struct plan_build reduce = *b, scatter = *b;

	reduce.shape.kind = FI_REDUCE;
	reduce.shape.count = plan_vector(&b->shape);
	reduce.shape.root = scatter.shape.root = 0;
	scatter.shape.kind = FI_SCATTER;
	if (b->shape.rank == 0)
		reduce.out = scatter.in = plan_keep(b->plan, plan_vector(&b->shape));
	choose_flat(&reduce);
	choose_flat(&scatter);
}

static const struct row table[] = {
	{FI_BARRIER, OVERSUBSCRIBED, 4, ANY, 0, 0, &plan_direct, NULL},
	/* A member that waits gives its processor to another one: here each but the root waits once. */
	{FI_BARRIER, OVERSUBSCRIBED, UINT32_MAX, ANY, 0, 8, &plan_tree_reduce,
	 &plan_tree_broadcast},
	{FI_BARRIER, 0, UINT32_MAX, ANY, 0, 0, &plan_dissemination, NULL},

	/* Radix 8 makes two levels up to 64 members; on one host a copy costs more than a message. */
	{FI_BROADCAST, NEAR, UINT32_MAX, 16 * KIB, 0, 8, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, OVERSUBSCRIBED | SHARES, UINT32_MAX, ANY, 0, 256 * KIB, &plan_fan, NULL},
	{FI_BROADCAST, OVERSUBSCRIBED, UINT32_MAX, 256 * KIB, 0, 8, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, NEAR, UINT32_MAX, ANY, 0, 4, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, 0, UINT32_MAX, 4 * KIB, 0, 4, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, 0, 3, ANY, 0, 2, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, 0, UINT32_MAX, 64 * KIB, 0, 2, &plan_tree_broadcast, NULL},
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 512 * KIB, 128 * KIB, &plan_chain, NULL},
	/* Scatter of pieces down a binomial tree, then a ring allgather (van de Geijn). */
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 8 * KIB, 2, &plan_spread, &plan_ring_allgather},
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 0, 2, &plan_tree_broadcast, NULL},

	{FI_ALLREDUCE, ORDERED | OVERSUBSCRIBED, 4, 1 * KIB, 0, 0, &plan_direct, NULL},
	{FI_ALLREDUCE, ORDERED | OVERSUBSCRIBED, UINT32_MAX, 8 * KIB, 0, 8, &plan_tree_reduce,
	 &plan_tree_broadcast},
	{FI_ALLREDUCE, ORDERED, UINT32_MAX, 8 * KIB, 0, 0, &plan_doubling, NULL},
	{FI_ALLREDUCE, OVERSUBSCRIBED, UINT32_MAX, ANY, 64 * KIB, 0, &plan_ring_reduce_scatter,
	 &plan_ring_allgather},
	/* Two: to combine twice costs less than a second message. */
	{FI_ALLREDUCE, ORDERED, 2, 256 * KIB, 0, 0, &plan_doubling, NULL},
	{FI_ALLREDUCE, ORDERED | TWOS, UINT32_MAX, ANY, 0, 0, &plan_rabenseifner, NULL},
	{FI_ALLREDUCE, 0, UINT32_MAX, ANY, 8 * KIB, 0, &plan_ring_reduce_scatter,
	 &plan_ring_allgather},
	{FI_ALLREDUCE, ORDERED, UINT32_MAX, ANY, 0, 0, &plan_rabenseifner, NULL},

	{FI_REDUCE, ORDERED, 2, ANY, 0, 2, &plan_tree_reduce, NULL},
	{FI_REDUCE, ORDERED | NEAR, UINT32_MAX, 8 * KIB, 0, 4, &plan_tree_reduce, NULL},
	{FI_REDUCE, ORDERED, UINT32_MAX, 8 * KIB, 0, 2, &plan_tree_reduce, NULL},
	{FI_REDUCE, ORDERED | TWOS, UINT32_MAX, ANY, 0, 0, &plan_rabenseifner_reduce, NULL},
	{FI_REDUCE, 0, UINT32_MAX, ANY, 8 * KIB, 2, &plan_ring_reduce_scatter, &plan_collect},
	{FI_REDUCE, ORDERED, UINT32_MAX, ANY, 0, 0, &plan_rabenseifner_reduce, NULL},

	{FI_ALLGATHER, 0, 2, ANY, 0, 0, &plan_bruck_allgather, NULL},
	{FI_ALLGATHER, 0, UINT32_MAX, 8 * KIB, 0, 0, &plan_bruck_allgather, NULL},
	{FI_ALLGATHER, 0, UINT32_MAX, ANY, 0, 0, &plan_ring_allgather, NULL},

	{FI_REDUCE_SCATTER, 0, 2, ANY, 0, 0, &plan_pairwise_reduce_scatter, NULL},
	{FI_REDUCE_SCATTER, 0, UINT32_MAX, 4 * KIB, 0, 0, &plan_halving, NULL},
	{FI_REDUCE_SCATTER, 0, UINT32_MAX, ANY, 0, 0, &plan_pairwise_reduce_scatter, NULL},

	/* Few members: all messages at once. */
	{FI_ALLTOALL, 0, 9, ANY, 0, 0, &plan_pairwise_alltoall, NULL},
	{FI_ALLTOALL, 0, UINT32_MAX, 256, 0, 0, &plan_bruck_alltoall, NULL},
	{FI_ALLTOALL, 0, UINT32_MAX, ANY, 0, 0, &plan_pairwise_alltoall, NULL},

	{FI_GATHER, NEAR, 16, ANY, 0, 0, &plan_gather, NULL},
	{FI_GATHER, 0, UINT32_MAX, 4 * KIB, 0, 2, &plan_gather, NULL},
	{FI_GATHER, 0, UINT32_MAX, ANY, 0, 0, &plan_gather, NULL},

	{FI_SCATTER, NEAR, 16, ANY, 0, 0, &plan_scatter, NULL},
	{FI_SCATTER, 0, UINT32_MAX, 4 * KIB, 0, 2, &plan_scatter, NULL},
	{FI_SCATTER, 0, UINT32_MAX, ANY, 0, 0, &plan_scatter, NULL},
};

/* Are all members on one host that has fewer processors? */
static bool is_oversubscribed(const struct plan_build *b)
{
	return b->near && b->shape.cpus && b->shape.size > b->shape.cpus;
}

static bool choose_holds(const struct row *row, const struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	size_t bytes = plan_bytes(s);

	return row->kind == s->kind && s->size <= row->most_size && bytes <= row->most &&
	       bytes / s->size >= row->piece && (b->near || !(row->only & NEAR)) &&
	       (is_oversubscribed(b) || !(row->only & OVERSUBSCRIBED)) &&
	       (s->shares || !(row->only & SHARES)) &&
	       (!(s->size & (s->size - 1)) || !(row->only & TWOS)) &&
	       (!s->ordered || !plan_reduces(s->kind) || row->only & ORDERED);
}

/* The collective of a single member. */
static void choose_alone(const struct plan_build *b)
{
	if (b->shape.kind != FI_BARRIER && b->shape.kind != FI_BROADCAST && !choose_same(b) &&
	    !choose_alike(&b->in, &b->out))
		plan_add(b, &plan_place_own, b->shape.count, false);
}

/* Adds the algorithms of a row. */
static void choose_row(const struct plan_build *b, const struct row *row)
{
	struct plan_build how = *b;
	size_t vector = plan_vector(&b->shape);

	how.tune = row->tune ? row->tune : b->shape.size;
	if (row->first == &plan_chain || row->first == &plan_fan) /* of chunks: in elements */
		how.tune = row->tune > b->shape.width ? row->tune / b->shape.width : 1;
	/* These reduce whole vectors where only the root has space for one. */
	if (b->shape.kind == FI_REDUCE && row->first != &plan_tree_reduce &&
	    b->shape.rank != b->shape.root)
		how.out = plan_keep(b->plan, vector);
	if (b->shape.kind == FI_REDUCE && row->first == &plan_tree_reduce && b->shape.ordered &&
	    b->shape.root) {
		reduce_in_order(&how);
		return;
	}
	plan_add(&how, row->first, vector, choose_in_place(&how));
	if (row->second)
		plan_add(&how, row->second, vector, true);
}

void choose_flat(const struct plan_build *b)
{
	const struct row *row = table;

	if (b->shape.size == 1) {
		choose_alone(b);
		return;
	}
	if (b->shape.kind == FI_REDUCE_SCATTER && b->shape.ordered) {
		reduce_scatter_in_order(b);
		return;
	}
	while (!choose_holds(row, b))
		row++;
	choose_row(b, row);
}
