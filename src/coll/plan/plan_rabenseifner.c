/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rabenseifner's reductions of long vectors, cut into a piece per rank of the core. On the way down
 * ranks 1, 2, 4 ... apart split their common pieces, exchange halves and combine them, the lower
 * rank's on the left, until each rank has one piece of the result. On the way back the halves are
 * joined. Combines in rank order.
 *
 * plan_rabenseifner:        allreduce from IN to OUT; all ranks go both ways. 2 log2(size) rounds;
 *                           each rank sends 2 count (1 - 1/size) elements if size is a power of 2.
 * plan_rabenseifner_reduce: result in the root's OUT; on the way back only the rank nearer to the
 *                           root receives. Other ranks need space for the vector in OUT, too.
 *
 * same: IN and OUT are the same memory.
 */
#include "coll/plan/plan_fold.h"

/* The elements of the core's pieces [begin, begin + len). */
struct part {
	size_t at, count;
};

static struct part plan_rabenseifner_part(const struct plan_part *p, const struct plan_fold *f,
					  uint32_t begin, uint32_t len)
{
	size_t at = plan_cut(p->count, f->core, begin);

	return (struct part){at, plan_cut(p->count, f->core, begin + len) - at};
}

/* The parts that this rank and its peer keep at a level. */
struct split {
	struct part own, others;
	uint32_t peer; /* a rank */
};

static struct split plan_rabenseifner_split(const struct plan_part *p, const struct plan_fold *f,
					    unsigned int level)
{
	uint32_t half = f->core >> (level + 1), begin = 0;
	bool upper = f->id >> level & 1;

	for (unsigned int i = 0; i < level; i++)
		begin += (f->id >> i & 1) * (f->core >> (i + 1));
	return (struct split){plan_rabenseifner_part(p, f, begin + upper * half, half),
			      plan_rabenseifner_part(p, f, begin + !upper * half, half),
			      plan_fold_rank(f, f->id ^ (uint32_t)1 << level)};
}

static size_t scratch_for(const struct plan_part *p, uint32_t root)
{
	struct plan_fold f = plan_fold_of(p, root);

	if (f.out)
		return 0;
	return f.paired ? p->count : plan_cut(p->count, f.core, f.core / 2);
}

/* Receives the peer's operand for a part of the vector and combines. */
static void plan_rabenseifner_combine(const struct plan_part *p, uint32_t peer, struct part part,
				      bool first, struct plan_round *r)
{
	plan_take(r,
		  &(struct plan_operand){.peer = peer,
					 .left = peer < p->rank,
					 .own = first ? plan_in(part.at) : plan_out(part.at),
					 .sum = plan_out(part.at),
					 .room = plan_tmp(0),
					 .count = part.count},
		  first && !p->same);
}

static void send_part(uint32_t peer, struct part part, bool first, struct plan_round *r)
{
	if (part.count)
		plan_send(r, peer, first ? plan_in(part.at) : plan_out(part.at), part.count);
}

static void receive_part(uint32_t peer, struct part part, struct plan_round *r)
{
	if (part.count)
		plan_receive(r, peer, plan_out(part.at), part.count);
}

/* Round n of ranks that do not sit out, until each has one piece: 0 <= n < paired + levels. */
static void plan_rabenseifner_down(const struct plan_part *p, const struct plan_fold *f, size_t n,
				   struct plan_round *r)
{
	bool first = n == 0;
	struct split s;

	if (f->paired && first) {
		plan_rabenseifner_combine(p, f->other, (struct part){0, p->count}, true, r);
		return;
	}
	s = plan_rabenseifner_split(p, f, (unsigned int)n - f->paired);
	send_part(s.peer, s.others, first, r);
	plan_rabenseifner_combine(p, s.peer, s.own, first, r);
}

static size_t all_rounds(const struct plan_part *p)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);

	return f.out ? 2 : 2 * f.levels + 2 * f.paired;
}

static size_t all_scratch(const struct plan_part *p)
{
	return scratch_for(p, PLAN_NO_ROOT);
}

static void all_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, PLAN_NO_ROOT);
	size_t there = f.levels + f.paired;

	if (f.out && n == 0) {
		plan_send(r, f.other, plan_in(0), p->count);
	} else if (f.out) {
		plan_receive(r, f.other, plan_out(0), p->count);
	} else if (n < there) {
		plan_rabenseifner_down(p, &f, n, r);
	} else if (n < there + f.levels) {
		struct split s =
			plan_rabenseifner_split(p, &f, (unsigned int)(there + f.levels - 1 - n));

		send_part(s.peer, s.own, false, r);
		receive_part(s.peer, s.others, r);
	} else {
		plan_send(r, f.other, plan_out(0), p->count);
	}
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
	return scratch_for(p, p->root);
}

static void reduce_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_fold f = plan_fold_of(p, p->root);
	size_t there = f.levels + f.paired;
	struct split s;

	if (f.out) {
		plan_send(r, f.other, plan_in(0), p->count);
		return;
	}
	if (n < there) {
		plan_rabenseifner_down(p, &f, n, r);
		return;
	}
	s = plan_rabenseifner_split(p, &f, (unsigned int)(there + f.levels - 1 - n));
	if (p->rank != p->root && n == plan_rabenseifner_reduce_rounds(p) - 1)
		send_part(s.peer, s.own, false, r);
	else
		receive_part(s.peer, s.others, r);
}

const struct plan_algorithm plan_rabenseifner = {"Rabenseifner", all_rounds, all_scratch,
						 all_round};
const struct plan_algorithm plan_rabenseifner_reduce = {
	"Rabenseifner reduce", plan_rabenseifner_reduce_rounds, plan_rabenseifner_reduce_scratch,
	reduce_round};
