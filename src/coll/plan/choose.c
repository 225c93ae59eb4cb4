/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of algorithms: the first row for the collective whose conditions all hold is used.
 * Conditions depend only on values that are equal on all members.
 */
#include "coll/plan/plan_build.h"

#define KIB (size_t)1024
#define ANY SIZE_MAX

enum {
	NEAR = 1,           /* all members on one host */
	OVERSUBSCRIBED = 2, /* and more members than processors */
	TWOS = 4,           /* size is a power of two */
	ORDERED = 8,        /* the algorithm combines in rank order */
	SHARES = 16,        /* members on one host share memory */
};

typedef void make_phases(const struct plan_build *b);

struct row {
	enum fi_collective_op kind;
	/*
	 * NEAR, OVERSUBSCRIBED, TWOS, SHARES: must hold; ORDERED: the row is also valid for ordered
	 * operators
	 */
	unsigned int only;
	uint32_t most_size;
	/*
	 * Upper limit (bytes): of the vector if the call's `count` is the whole vector's, else of a
	 * piece
	 */
	size_t most;
	size_t piece; /* lower limit (bytes): of the vector divided by size */
	make_phases *make;
	size_t tune; /* radix of a tree (0: size), or bytes of a chunk */
};

static size_t choose_part_of(const struct plan_build *b)
{
	return b->shape.count;
}

static size_t all_of(const struct plan_build *b)
{
	return b->shape.count * b->shape.size;
}

static bool choose_same(const struct plan_build *b)
{
	return b->shape.overlap == PLAN_SAME;
}

static void choose_dissemination(const struct plan_build *b)
{
	plan_add(b, &plan_dissemination, 0, false);
}

static void barrier_direct(const struct plan_build *b)
{
	plan_add(b, &plan_direct, 0, false);
}

/* A member that waits gives its processor to another one: here each but the root waits once. */
static void barrier_tree(const struct plan_build *b)
{
	plan_add(b, &plan_tree_reduce, 0, false);
	plan_add(b, &plan_tree_broadcast, 0, false);
}

static void broadcast_tree(const struct plan_build *b)
{
	plan_add(b, &plan_tree_broadcast, choose_part_of(b), false);
}

/* Returns the build with `tune` converted from bytes to elements of a chunk. */
static struct plan_build by_chunks(const struct plan_build *b)
{
	struct plan_build chunks = *b;

	chunks.tune = b->tune > b->shape.width ? b->tune / b->shape.width : 1;
	return chunks;
}

static void broadcast_chain(const struct plan_build *b)
{
	struct plan_build chunks = by_chunks(b);

	plan_add(&chunks, &plan_chain, choose_part_of(b), false);
}

static void broadcast_fan(const struct plan_build *b)
{
	struct plan_build chunks = by_chunks(b);

	plan_add(&chunks, &plan_fan, choose_part_of(b), false);
}

/* Scatter of pieces down a binomial tree, then a ring allgather (van de Geijn). */
static void broadcast_pieces(const struct plan_build *b)
{
	plan_add(b, &plan_spread, choose_part_of(b), false);
	plan_add(b, &plan_ring_allgather, choose_part_of(b), true);
}

static void allreduce_doubling(const struct plan_build *b)
{
	plan_add(b, &plan_doubling, choose_part_of(b), choose_same(b));
}

static void allreduce_direct(const struct plan_build *b)
{
	plan_add(b, &plan_direct, choose_part_of(b), choose_same(b));
}

static void allreduce_tree(const struct plan_build *b)
{
	plan_add(b, &plan_tree_reduce, choose_part_of(b), choose_same(b));
	plan_add(b, &plan_tree_broadcast, choose_part_of(b), true);
}

static void allreduce_rabenseifner(const struct plan_build *b)
{
	plan_add(b, &plan_rabenseifner, choose_part_of(b), choose_same(b));
}

static void allreduce_ring(const struct plan_build *b)
{
	plan_add(b, &plan_ring_reduce_scatter, choose_part_of(b), choose_same(b));
	plan_add(b, &plan_ring_allgather, choose_part_of(b), true);
}

/* For rank order the tree's root must be rank 0, which then sends the result to the root. */
static void reduce_tree(const struct plan_build *b)
{
	struct plan_build first = *b, then = *b;

	if (!b->shape.ordered || !b->shape.root) {
		plan_add(b, &plan_tree_reduce, choose_part_of(b), choose_same(b));
		return;
	}
	first.shape.root = 0;
	if (b->shape.rank == 0)
		first.out = then.in = plan_keep(b->plan, choose_part_of(b));
	plan_add(&first, &plan_tree_reduce, choose_part_of(b), false);
	plan_add(&then, &plan_hand_over, choose_part_of(b), false);
}

/* These reductions need space for a vector; only the root has it in OUT. */
static struct plan_build with_scratch(const struct plan_build *b)
{
	struct plan_build room = *b;

	if (b->shape.rank != b->shape.root)
		room.out = plan_keep(b->plan, choose_part_of(b));
	return room;
}

static void reduce_rabenseifner(const struct plan_build *b)
{
	struct plan_build room = with_scratch(b);

	plan_add(&room, &plan_rabenseifner_reduce, choose_part_of(b), choose_same(b));
}

static void reduce_ring(const struct plan_build *b)
{
	struct plan_build room = with_scratch(b);

	plan_add(&room, &plan_ring_reduce_scatter, choose_part_of(b), choose_same(b));
	plan_add(&room, &plan_collect, choose_part_of(b), true);
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
	own.out = plan_past(b->out, b->shape.rank * choose_part_of(b));
	if (!choose_alike(&own.in, &own.out))
		plan_add(&own, &plan_place_own, choose_part_of(b), false);
	return true;
}

static void allgather_bruck(const struct plan_build *b)
{
	plan_add(b, &plan_bruck_allgather, all_of(b), choose_placed(b));
}

static void allgather_ring(const struct plan_build *b)
{
	plan_add(b, &plan_ring_allgather, all_of(b), choose_placed(b));
}

static void gather_tree(const struct plan_build *b)
{
	plan_add(b, &plan_gather, all_of(b), choose_placed(b));
}

static void scatter_tree(const struct plan_build *b)
{
	plan_add(b, &plan_scatter, all_of(b), false);
}

static void reduce_scatter_halving(const struct plan_build *b)
{
	plan_add(b, &plan_halving, all_of(b), false);
}

static void reduce_scatter_pairwise(const struct plan_build *b)
{
	plan_add(b, &plan_pairwise_reduce_scatter, all_of(b), false);
}

/* Reduces to rank 0 in rank order, then scatters. */
static void reduce_scatter_ordered(const struct plan_build *b)
{
	struct plan_build reduce = *b, scatter = *b;

	reduce.shape.kind = FI_REDUCE;
	reduce.shape.count = all_of(b);
	reduce.shape.root = scatter.shape.root = 0;
	scatter.shape.kind = FI_SCATTER;
	if (b->shape.rank == 0)
		reduce.out = scatter.in = plan_keep(b->plan, all_of(b));
	choose_flat(&reduce);
	choose_flat(&scatter);
}

static void alltoall_bruck(const struct plan_build *b)
{
	plan_add(b, &plan_bruck_alltoall, all_of(b), false);
}

static void alltoall_pairwise(const struct plan_build *b)
{
	plan_add(b, &plan_pairwise_alltoall, all_of(b), false);
}

static const struct row table[] = {
	{FI_BARRIER, OVERSUBSCRIBED, 4, ANY, 0, barrier_direct, 0},
	{FI_BARRIER, OVERSUBSCRIBED, UINT32_MAX, ANY, 0, barrier_tree, 8},
	{FI_BARRIER, 0, UINT32_MAX, ANY, 0, choose_dissemination, 0},

	/*
	 * Radix 8 makes two levels up to 64 members; on one host a copy costs more than a message.
	 */
	{FI_BROADCAST, NEAR, UINT32_MAX, 16 * KIB, 0, broadcast_tree, 8},
	{FI_BROADCAST, OVERSUBSCRIBED | SHARES, UINT32_MAX, ANY, 0, broadcast_fan, 256 * KIB},
	{FI_BROADCAST, OVERSUBSCRIBED, UINT32_MAX, 256 * KIB, 0, broadcast_tree, 8},
	{FI_BROADCAST, NEAR, UINT32_MAX, ANY, 0, broadcast_tree, 4},
	{FI_BROADCAST, 0, UINT32_MAX, 4 * KIB, 0, broadcast_tree, 4},
	{FI_BROADCAST, 0, 3, ANY, 0, broadcast_tree, 2},
	{FI_BROADCAST, 0, UINT32_MAX, 64 * KIB, 0, broadcast_tree, 2},
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 512 * KIB, broadcast_chain, 128 * KIB},
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 8 * KIB, broadcast_pieces, 2},
	{FI_BROADCAST, 0, UINT32_MAX, ANY, 0, broadcast_tree, 2},

	{FI_ALLREDUCE, ORDERED | OVERSUBSCRIBED, 4, 1 * KIB, 0, allreduce_direct, 0},
	{FI_ALLREDUCE, ORDERED | OVERSUBSCRIBED, UINT32_MAX, 8 * KIB, 0, allreduce_tree, 8},
	{FI_ALLREDUCE, ORDERED, UINT32_MAX, 8 * KIB, 0, allreduce_doubling, 0},
	{FI_ALLREDUCE, OVERSUBSCRIBED, UINT32_MAX, ANY, 64 * KIB, allreduce_ring, 0},
	/* Two: to combine twice costs less than a second message. */
	{FI_ALLREDUCE, ORDERED, 2, 256 * KIB, 0, allreduce_doubling, 0},
	{FI_ALLREDUCE, ORDERED | TWOS, UINT32_MAX, ANY, 0, allreduce_rabenseifner, 0},
	{FI_ALLREDUCE, 0, UINT32_MAX, ANY, 8 * KIB, allreduce_ring, 0},
	{FI_ALLREDUCE, ORDERED, UINT32_MAX, ANY, 0, allreduce_rabenseifner, 0},

	{FI_REDUCE, ORDERED, 2, ANY, 0, reduce_tree, 2},
	{FI_REDUCE, ORDERED | NEAR, UINT32_MAX, 8 * KIB, 0, reduce_tree, 4},
	{FI_REDUCE, ORDERED, UINT32_MAX, 8 * KIB, 0, reduce_tree, 2},
	{FI_REDUCE, ORDERED | TWOS, UINT32_MAX, ANY, 0, reduce_rabenseifner, 0},
	{FI_REDUCE, 0, UINT32_MAX, ANY, 8 * KIB, reduce_ring, 2},
	{FI_REDUCE, ORDERED, UINT32_MAX, ANY, 0, reduce_rabenseifner, 0},

	{FI_ALLGATHER, 0, 2, ANY, 0, allgather_bruck, 0},
	{FI_ALLGATHER, 0, UINT32_MAX, 8 * KIB, 0, allgather_bruck, 0},
	{FI_ALLGATHER, 0, UINT32_MAX, ANY, 0, allgather_ring, 0},

	{FI_REDUCE_SCATTER, 0, 2, ANY, 0, reduce_scatter_pairwise, 0},
	{FI_REDUCE_SCATTER, 0, UINT32_MAX, 4 * KIB, 0, reduce_scatter_halving, 0},
	{FI_REDUCE_SCATTER, 0, UINT32_MAX, ANY, 0, reduce_scatter_pairwise, 0},
	{FI_REDUCE_SCATTER, ORDERED, UINT32_MAX, ANY, 0, reduce_scatter_ordered, 0},

	/* Few members: all messages at once. */
	{FI_ALLTOALL, 0, 9, ANY, 0, alltoall_pairwise, 0},
	{FI_ALLTOALL, 0, UINT32_MAX, 256, 0, alltoall_bruck, 0},
	{FI_ALLTOALL, 0, UINT32_MAX, ANY, 0, alltoall_pairwise, 0},

	{FI_GATHER, NEAR, 16, ANY, 0, gather_tree, 0},
	{FI_GATHER, 0, UINT32_MAX, 4 * KIB, 0, gather_tree, 2},
	{FI_GATHER, 0, UINT32_MAX, ANY, 0, gather_tree, 0},

	{FI_SCATTER, NEAR, 16, ANY, 0, scatter_tree, 0},
	{FI_SCATTER, 0, UINT32_MAX, 4 * KIB, 0, scatter_tree, 2},
	{FI_SCATTER, 0, UINT32_MAX, ANY, 0, scatter_tree, 0},
};

/* Are all members on one host that has fewer processors? */
static bool is_oversubscribed(const struct plan_build *b)
{
	return b->near && b->shape.cpus && b->shape.size > b->shape.cpus;
}

static bool choose_holds(const struct row *row, const struct plan_build *b)
{
	const struct plan_shape *s = &b->shape;
	size_t bytes;

	if (__builtin_mul_overflow(s->count, s->width, &bytes))
		bytes = SIZE_MAX;
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
		plan_add(b, &plan_place_own, choose_part_of(b), false);
}

void choose_flat(const struct plan_build *b)
{
	const struct row *row = table;
	struct plan_build chosen = *b;

	if (b->shape.size == 1) {
		choose_alone(b);
		return;
	}
	while (!choose_holds(row, b))
		row++;
	chosen.tune = row->tune ? row->tune : b->shape.size;
	row->make(&chosen);
}
