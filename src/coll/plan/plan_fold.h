/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reduces the group to a power of two for algorithms that need one. The first ranks form pairs; one
 * rank of each pair passes its operand to the other and sits out. The remaining ranks, in order,
 * are the core. The upper rank of a pair stays, unless the lower one is the root.
 */
#ifndef WEFT_COLL_PLAN_FOLD_H
#define WEFT_COLL_PLAN_FOLD_H

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

static inline struct plan_fold plan_fold_of(const struct plan_part *p, uint32_t root)
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
static inline uint32_t plan_fold_first(const struct plan_fold *f, uint32_t i)
{
	return i < f->pairs ? 2 * i : i + f->pairs;
}

static inline uint32_t plan_fold_rank(const struct plan_fold *f, uint32_t i)
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
static inline void plan_take(struct plan_round *r, const struct plan_operand *o, bool fresh)
{
	struct plan_place came = o->left && fresh ? o->sum : o->room;

	if (!o->count)
		return;
	plan_receive(r, o->peer, came, o->count);
	plan_reduce(r, o->sum, o->left ? came : o->own, o->left ? o->own : came, o->count);
}

#endif
