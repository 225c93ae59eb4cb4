/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Algorithms for a power of two of ranks. Of any other group the first ranks form pairs; one rank of
 * each pair passes its operand to the other and sits out. The remaining ranks, in order, are the
 * core. The upper rank of a pair stays, unless the lower one is the root.
 */
#include "coll/plan/plan_own.h"

#define PLAN_NO_ROOT UINT32_MAX

struct plan_fold {
	uint32_t core, pairs; /* ranks of the core; number of pairs */
	uint32_t root;        /* or PLAN_NO_ROOT */
	bool paired, out;     /* this rank is in a pair; this rank sits out */
	uint32_t other;       /* the pair's other rank */
	uint32_t id;          /* number in the core; sitting out: that of the other */
	unsigned int levels;  /* the core has 2^levels ranks */
};

static struct plan_fold plan_fold_of(const struct plan_part *p, uint32_t root)
{
	struct plan_fold f = {.core = (uint32_t)1 << (31 - __builtin_clz(p->size)), .root = root};

	f.pairs = p->size - f.core;
	f.levels = plan_log2(f.core);
	f.paired = p->rank < 2 * f.pairs;
	f.other = p->rank ^ 1;
	f.id = f.paired ? p->rank / 2 : p->rank - f.pairs;
	f.out = f.paired && (p->rank % 2 ? f.other == root : p->rank != root);
	return f;
}

/* Returns the lowest rank that core rank i represents. */
static uint32_t plan_fold_first(const struct plan_fold *f, uint32_t i)
{
	return i < f->pairs ? 2 * i : i + f->pairs;
}

static uint32_t plan_fold_rank(const struct plan_fold *f, uint32_t i)
{
	if (i >= f->pairs)
		return i + f->pairs;
	return 2 * i == f->root ? 2 * i : 2 * i + 1;
}

/* An operand to receive from a peer and combine with this rank's own. */
struct plan_operand {
	uint32_t peer;
	bool left; /* the peer precedes this rank: its operand is on the left */
	struct plan_place own, sum;
	struct plan_place room; /* where it may be received */
	size_t count;
};

/* Receives into `sum` if possible: `fresh` says that no operand is there. */
static void plan_fold_take(struct plan_round *r, const struct plan_operand *o, bool fresh)
{
	struct plan_place came = o->left && fresh ? o->sum : o->room;

	if (!o->count)
		return;
	plan_receive(r, o->peer, came, o->count);
	plan_reduce(r, o->sum, o->left ? came : o->own, o->left ? o->own : came, o->count);
}

/* Receives the peer's operand for a part of the vector and combines. */
static void plan_fold_combine(const struct plan_part *p, uint32_t peer, struct plan_piece part,
			      bool first, struct plan_round *r)
{
	plan_fold_take(r,
		       &(struct plan_operand){.peer = peer,
					      .left = peer < p->rank,
					      .own = first ? plan_in(part.at) : plan_out(part.at),
					      .sum = plan_out(part.at),
					      .room = plan_tmp(0),
					      .count = part.count},
		       first && !p->same);
}

/* Rounds of pairs, before and after `inside` rounds of the core. False: it is one of those. */
static bool plan_fold_pairs(const struct plan_part *p, const struct plan_fold *f, size_t n,
			    size_t inside, struct plan_round *r)
{
	if (f->out && n == 0)
		plan_send(r, f->other, plan_in(0), p->count);
	else if (f->out)
		plan_receive(r, f->other, plan_out(0), p->count);
	else if (f->paired && n == 0)
		plan_fold_combine(p, f->other, (struct plan_piece){0, p->count}, true, r);
	else if (n - f->paired >= inside)
		plan_send(r, f->other, plan_out(0), p->count);
	else
		return false;
	return true;
}

/*
 * ---- Allreduce by recursive doubling --------------------------------------------------------------
 *
 * In round k ranks 2^k apart exchange their vectors and both combine them, the lower rank's on the
 * left. log2(size) rounds; two more if size is no power of two. From IN to OUT; same: they are the
 * same memory. Combines in rank order.
 */

static size_t plan_fold_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 2 : f.levels + 2 * f.paired;
}

static size_t plan_doubling_scratch(const struct plan_part *p)
{
	return plan_fold_of(p, PLAN_NO_ROOT).out ? 0 : p->count;
}

static void plan_doubling_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	uint32_t peer;

	if (plan_fold_pairs(p, &f, n, f.levels, r))
		return;
	peer = plan_fold_rank(&f, f.id ^ (uint32_t)1 << (n - f.paired));
	plan_send(r, peer, n == 0 ? plan_in(0) : plan_out(0), p->count);
	plan_fold_combine(p, peer, (struct plan_piece){0, p->count}, n == 0, r);
}

const struct plan_algorithm plan_doubling = {"recursive doubling", plan_fold_rounds,
					     plan_doubling_scratch, plan_doubling_round};

/*
 * ---- Rabenseifner's reductions --------------------------------------------------------------------
 *
 * Of long vectors, cut into a piece per rank of the core. On the way down ranks 1, 2, 4 ... apart
 * split their common pieces, exchange halves and combine them, the lower rank's on the left, until
 * each rank has one piece of the result. On the way back the halves are joined. Combines in rank
 * order.
 *
 * plan_rabenseifner:        allreduce from IN to OUT; all ranks go both ways. 2 log2(size) rounds;
 *                           each rank sends 2 count (1 - 1/size) elements if size is a power of 2.
 * plan_rabenseifner_reduce: result in the root's OUT; on the way back only the rank nearer to the
 *                           root receives. Other ranks need space for the vector in OUT, too.
 *
 * same: IN and OUT are the same memory.
 */

/* The parts that this rank and its peer keep at a level. */
struct split {
	struct plan_piece own, others;
	uint32_t peer; /* a rank */
};

static struct split plan_rabenseifner_split(const struct plan_part *p, const struct plan_fold *f,
					    unsigned int level)
{
	uint32_t half = f->core >> (level + 1), begin = 0, own, others;
	bool upper = f->id >> level & 1;

	for (unsigned int i = 0; i < level; i++)
		begin += (f->id >> i & 1) * (f->core >> (i + 1));
	own = begin + upper * half;
	others = begin + !upper * half;
	return (struct split){plan_pieces(p->count, f->core, own, own + half),
			      plan_pieces(p->count, f->core, others, others + half),
			      plan_fold_rank(f, f->id ^ (uint32_t)1 << level)};
}

static size_t plan_rabenseifner_space(const struct plan_part *p, uint32_t root)
{
	struct plan_fold f = plan_fold_of(p, root);

	if (f.out)
		return 0;
	return f.paired ? p->count : plan_cut(p->count, f.core, f.core / 2);
}

/* Rounds in which the core's ranks come to one piece each. */
static void plan_rabenseifner_down(const struct plan_part *p, const struct plan_fold *f, size_t n,
				   struct plan_round *r)
{
	struct split s = plan_rabenseifner_split(p, f, (unsigned int)n - f->paired);
	size_t at = s.others.at;

	plan_send_piece(r, s.peer, n == 0 ? plan_in(at) : plan_out(at), s.others.count);
	plan_fold_combine(p, s.peer, s.own, n == 0, r);
}

static size_t plan_rabenseifner_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 2 : 2 * f.levels + 2 * f.paired;
}

static size_t plan_rabenseifner_scratch(const struct plan_part *p)
{
	return plan_rabenseifner_space(p, PLAN_NO_ROOT);
}

static void plan_rabenseifner_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	size_t there = f.levels + f.paired;
	struct split s;

	if (plan_fold_pairs(p, &f, n, 2 * (size_t)f.levels, r))
		return;
	if (n < there) {
		plan_rabenseifner_down(p, &f, n, r);
		return;
	}
	s = plan_rabenseifner_split(p, &f, (unsigned int)(there + f.levels - 1 - n));
	plan_send_piece(r, s.peer, plan_out(s.own.at), s.own.count);
	plan_receive_piece(r, s.peer, plan_out(s.others.at), s.others.count);
}

/* Returns the rounds of a rank on the way back: it stops where its id differs from the root's. */
static size_t plan_rabenseifner_back(const struct plan_part *p, const struct plan_fold *f)
{
	struct plan_part root = *p;
	uint32_t differ;

	root.rank = p->root;
	differ = f->id ^ plan_fold_of(&root, p->root).id;
	return differ ? f->levels - (31 - (unsigned int)__builtin_clz(differ)) : f->levels;
}

static size_t plan_rabenseifner_reduce_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, p->root);

	return f.out ? 1 : f.paired + f.levels + plan_rabenseifner_back(p, &f);
}

static size_t plan_rabenseifner_reduce_scratch(const struct plan_part *p)
{
	return plan_rabenseifner_space(p, p->root);
}

static void plan_rabenseifner_reduce_round(const struct plan_part *p, size_t n,
					   struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, p->root);
	size_t there = f.levels + f.paired;
	struct split s;

	if (plan_fold_pairs(p, &f, n, SIZE_MAX, r))
		return;
	if (n < there) {
		plan_rabenseifner_down(p, &f, n, r);
		return;
	}
	s = plan_rabenseifner_split(p, &f, (unsigned int)(there + f.levels - 1 - n));
	if (p->rank != p->root && n == plan_rabenseifner_reduce_rounds(p) - 1)
		plan_send_piece(r, s.peer, plan_out(s.own.at), s.own.count);
	else
		plan_receive_piece(r, s.peer, plan_out(s.others.at), s.others.count);
}

const struct plan_algorithm plan_rabenseifner = {"Rabenseifner", plan_rabenseifner_rounds,
						 plan_rabenseifner_scratch,
						 plan_rabenseifner_round};
const struct plan_algorithm plan_rabenseifner_reduce = {
	"Rabenseifner reduce", plan_rabenseifner_reduce_rounds, plan_rabenseifner_reduce_scratch,
	plan_rabenseifner_reduce_round};

/*
 * ---- Reduce-scatter by recursive halving ----------------------------------------------------------
 *
 * Ranks half the group apart exchange the half of the vector that the other's half of the group
 * needs, combine, and continue in their own half. A rank's piece ends at the start of OUT, which does
 * not overlap IN. log2(size) rounds; two more if size is no power of two. The lower rank's operand is
 * on the left, but the whole is not in rank order.
 *
 * Scratch: the partial result, then space for received operands.
 */

/* Returns the elements of the core ranks on the side of rank `id` at a level. */
static struct plan_piece plan_halving_side(const struct plan_part *p, const struct plan_fold *f,
					   uint32_t id, unsigned int level)
{
	uint32_t half = f->core >> (level + 1), begin = id & ~(half - 1);

	return plan_pieces(p->count, p->size, plan_fold_first(f, begin),
			   plan_fold_first(f, begin + half));
}

static size_t plan_halving_sum_size(const struct plan_part *p, const struct plan_fold *f)
{
	return f->paired ? p->count : plan_halving_side(p, f, f->id, 0).count;
}

static size_t plan_halving_scratch(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 0 : plan_halving_sum_size(p, &f) + plan_halving_side(p, &f, f.id, 0).count;
}

static struct plan_place plan_halving_sum_at(const struct plan_part *p, const struct plan_fold *f,
					     size_t at)
{
	return plan_tmp(at - (f->paired ? 0 : plan_halving_side(p, f, f->id, 0).at));
}

static void plan_halving_halve(const struct plan_part *p, const struct plan_fold *f,
			       unsigned int level, struct plan_round *r)
{
	uint32_t id = f->id ^ f->core >> (level + 1), peer = plan_fold_rank(f, id);
	struct plan_piece own = plan_halving_side(p, f, f->id, level);
	struct plan_piece others = plan_halving_side(p, f, id, level);
	struct plan_place sum = plan_halving_sum_at(p, f, own.at);
	bool first = !level && !f->paired, last = level + 1 == f->levels && !f->paired;

	plan_send_piece(r, peer, first ? plan_in(others.at) : plan_halving_sum_at(p, f, others.at),
			others.count);
	plan_fold_take(r,
		       &(struct plan_operand){.peer = peer,
					      .left = id < f->id,
					      .own = first ? plan_in(own.at) : sum,
					      .sum = last ? plan_out(0) : sum,
					      .room = plan_tmp(plan_halving_sum_size(p, f)),
					      .count = own.count},
		       first || last);
}

static void plan_halving_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	struct plan_piece own = plan_piece(p, p->rank);

	if (f.out && n == 0) {
		plan_send(r, f.other, plan_in(0), p->count);
	} else if (f.out) {
		plan_receive(r, f.other, plan_out(0), own.count);
	} else if (f.paired && n == 0) {
		plan_receive(r, f.other, plan_tmp(0), p->count);
		plan_reduce(r, plan_tmp(0), plan_tmp(0), plan_in(0), p->count);
	} else if (n - f.paired < f.levels) {
		plan_halving_halve(p, &f, (unsigned int)n - f.paired, r);
	} else {
		struct plan_piece others = plan_piece(p, f.other);

		plan_send(r, f.other, plan_halving_sum_at(p, &f, others.at), others.count);
		plan_copy(r, plan_out(0), plan_halving_sum_at(p, &f, own.at), own.count);
	}
}

const struct plan_algorithm plan_halving = {"recursive halving", plan_fold_rounds,
					    plan_halving_scratch, plan_halving_round};
