/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of any radix (2: binomial; size: all ranks are children of the root). Ranks are relative to
 * the root, which is 0. A rank's parent is the rank with its lowest nonzero digit, in the radix,
 * set to 0. So a rank and all ranks below it, its span, are consecutive.
 */
#ifndef WEFT_COLL_PLAN_TREE_H
#define WEFT_COLL_PLAN_TREE_H

#include "coll/plan/plan_own.h"

struct plan_tree {
	uint32_t turned; /* this rank, relative to the root */
	uint32_t size, root;
	uint64_t radix, span; /* a power of radix; root: more than the last rank */
	uint32_t children;
};

struct plan_tree plan_tree_of(const struct plan_part *p); /* part->tune: the radix, at least 2 */

/* A relative rank and the ranks below it. */
struct plan_span {
	uint32_t begin, len;
};

struct plan_span plan_tree_own(const struct plan_tree *t);

/* Returns the span of child i, in increasing order of spans. */
struct plan_span plan_tree_child(const struct plan_tree *t, uint32_t i);

static inline uint32_t plan_tree_rank(const struct plan_tree *t, uint32_t turned)
{
	return (uint32_t)(((uint64_t)turned + t->root) % t->size);
}

/* Returns the parent's rank. Not for the root. */
static inline uint32_t plan_tree_parent(const struct plan_tree *t)
{
	return plan_tree_rank(t, (uint32_t)(t->turned - t->turned / t->span % t->radix * t->span));
}

/* Returns the rounds for `children` messages, `window` per round. */
static inline size_t plan_tree_windows(uint32_t children, uint32_t window)
{
	return ((size_t)children + window - 1) / window;
}

/* Returns the elements of the pieces of a span. */
size_t plan_tree_elements(const struct plan_part *p, struct plan_span span);

/* Transfer of the pieces of a span between a rank and its parent. */
struct plan_pieces {
	uint32_t peer;
	bool send;
	/* Place of the piece of rank `origin`; the next ranks follow, then wrap around */
	struct plan_place base;
	uint32_t origin;
};

/* Adds one message, or two if the span wraps around the last rank. */
void plan_tree_pieces(const struct plan_part *p, const struct plan_pieces *pieces,
		      struct plan_span span, struct plan_round *r);

#endif
