/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/plan/plan_tree.h"

/* Returns how many children d * m after this rank exist, d from 1 to radix - 1. */
static uint32_t at_level(const struct plan_tree *t, uint64_t m)
{
	uint64_t fit = (t->size - 1 - t->turned) / m;

	return (uint32_t)(fit < t->radix - 1 ? fit : t->radix - 1);
}

struct plan_tree plan_tree_of(const struct plan_part *p)
{
	struct plan_tree t = {.turned =
				      (uint32_t)(((uint64_t)p->rank + p->size - p->root) % p->size),
			      .size = p->size,
			      .root = p->root,
			      .radix = p->tune,
			      .span = 1};

	for (; t.span < t.size && t.turned / t.span % t.radix == 0; t.span *= t.radix)
		t.children += at_level(&t, t.span);
	return t;
}

static struct plan_span span_at(const struct plan_tree *t, uint64_t begin, uint64_t len)
{
	if (len > t->size - begin)
		len = t->size - begin;
	return (struct plan_span){(uint32_t)begin, (uint32_t)len};
}

struct plan_span plan_tree_own(const struct plan_tree *t)
{
	return span_at(t, t->turned, t->span);
}

struct plan_span plan_tree_child(const struct plan_tree *t, uint32_t i)
{
	uint64_t m = 1;

	for (uint32_t here; i >= (here = at_level(t, m)); m *= t->radix)
		i -= here;
	return span_at(t, t->turned + (i + 1) * m, m);
}

size_t plan_tree_elements(const struct plan_part *p, struct plan_span span)
{
	uint32_t first = (uint32_t)(((uint64_t)span.begin + p->root) % p->size);
	uint32_t before = p->size - first < span.len ? p->size - first : span.len;

	return plan_cut(p->count, p->size, first + before) - plan_cut(p->count, p->size, first) +
	       plan_cut(p->count, p->size, span.len - before);
}

static void plan_tree_piece(const struct plan_part *p, const struct plan_pieces *pieces,
			    uint32_t first, uint32_t end, struct plan_round *r)
{
	size_t begin = plan_cut(p->count, p->size, first), at;
	size_t origin = plan_cut(p->count, p->size, pieces->origin);
	size_t len = plan_cut(p->count, p->size, end) - begin;

	if (!len)
		return;
	at = begin >= origin ? begin - origin : p->count - origin + begin;
	plan_message(r, &(struct plan_message){pieces->peer, pieces->send,
					       plan_past(pieces->base, at), len});
}

void plan_tree_pieces(const struct plan_part *p, const struct plan_pieces *pieces,
		      struct plan_span span, struct plan_round *r)
{
	uint32_t first = (uint32_t)(((uint64_t)span.begin + p->root) % p->size);
	uint32_t before = p->size - first < span.len ? p->size - first : span.len;

	plan_tree_piece(p, pieces, first, first + before, r);
	plan_tree_piece(p, pieces, 0, span.len - before, r);
}
