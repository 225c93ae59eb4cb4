/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of any radix (2: binomial; size: the root has all others as its children). Ranks are turned
 * so that the root is 0; a rank's parent has the lowest digit that is not 0, to the radix, cleared.
 * So a rank and all below it, its span, follow one another.
 */
#ifndef WEFT_COLL_PLAN_TREE_H
#define WEFT_COLL_PLAN_TREE_H

#include "coll/plan/plan_own.h"

struct plan_tree {
	uint32_t turned; /* this rank, the root being 0 */
	uint32_t size, root;
	uint64_t radix, span; /* a power of radix; past the last rank at the root */
	uint32_t children;
};

struct plan_tree plan_tree_of(const struct plan_part *p); /* tune: the radix, at least 2 */

/* A turned rank and those below it, as many as there are. */
struct plan_span {
	uint32_t begin, len;
};

struct plan_span plan_tree_own(const struct plan_tree *t);

/* Child i by rising span. */
struct plan_span plan_tree_child(const struct plan_tree *t, uint32_t i);

static inline uint32_t plan_tree_rank(const struct plan_tree *t, uint32_t turned)
{
	return (uint32_t)(((uint64_t)turned + t->root) % t->size);
}

/* The parent's rank; not for the root. */
static inline uint32_t plan_tree_parent(const struct plan_tree *t)
{
	return plan_tree_rank(t, (uint32_t)(t->turned - t->turned / t->span % t->radix * t->span));
}

/* Rounds for `children` messages, that many at a time. */
static inline size_t plan_tree_windows(uint32_t children, uint32_t window)
{
	return ((size_t)children + window - 1) / window;
}

/* Elements of the pieces of a span. */
size_t plan_tree_elements(const struct plan_part *p, struct plan_span span);

/* The pieces of a span on their way between a rank and its parent. */
struct plan_pieces {
	uint32_t peer;
	bool send;
	struct plan_place
		base; /* where the piece of rank `origin` lies; others follow, round the end */
	uint32_t origin;
};

/* In one message, or in two where the span goes round the last rank. */
void plan_tree_pieces(const struct plan_part *p, const struct plan_pieces *pieces,
		      struct plan_span span, struct plan_round *r);

#endif
