/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Trees of any radix (2: binomial; size: all ranks are children of the root). Ranks are relative to
 * the root, which is 0. A rank's parent is the rank with its lowest nonzero digit, in the radix,
 * set to 0. So a rank and all ranks below it, its span, are consecutive.
 *
 * A broadcast along a chain or to all ranks at once is here, too.
 */
#include "coll/plan/plan_own.h"

struct plan_tree {
	uint32_t turned; /* this rank, relative to the root */
	uint32_t size, root;
	uint64_t radix, span; /* a power of radix; root: more than the last rank */
	uint32_t children;
};

/* A relative rank and the ranks below it. */
struct plan_span {
	uint32_t begin, len;
};

/* Returns how many children d * m after this rank exist, d from 1 to radix - 1. */
static uint32_t plan_tree_at_level(const struct plan_tree *t, uint64_t m)
{
	uint64_t fit = (t->size - 1 - t->turned) / m;

	return (uint32_t)(fit < t->radix - 1 ? fit : t->radix - 1);
}

/* part->tune: the radix, at least 2. */
static struct plan_tree plan_tree_of(const struct plan_part *p)
{
	struct plan_tree t = {.turned = plan_before(p, p->root),
			      .size = p->size,
			      .root = p->root,
			      .radix = p->tune,
			      .span = 1};

	for (; t.span < t.size && t.turned / t.span % t.radix == 0; t.span *= t.radix)
		t.children += plan_tree_at_level(&t, t.span);
	return t;
}

static struct plan_span plan_tree_span(const struct plan_tree *t, uint64_t begin, uint64_t len)
{
	if (len > t->size - begin)
		len = t->size - begin;
	return (struct plan_span){(uint32_t)begin, (uint32_t)len};
}

/* Returns the span of child i, in increasing order of spans. */
static struct plan_span plan_tree_child(const struct plan_tree *t, uint32_t i)
{
	uint64_t m = 1;

	for (uint32_t here; i >= (here = plan_tree_at_level(t, m)); m *= t->radix)
		i -= here;
	return plan_tree_span(t, t->turned + (i + 1) * m, m);
}

static uint32_t plan_tree_rank(const struct plan_tree *t, uint32_t turned)
{
	return (uint32_t)(((uint64_t)turned + t->root) % t->size);
}

/* Returns the parent's rank. Not for the root. */
static uint32_t plan_tree_parent(const struct plan_tree *t)
{
	return plan_tree_rank(t, (uint32_t)(t->turned - t->turned / t->span % t->radix * t->span));
}

/* Returns the rounds for `children` messages, `window` per round. */
static size_t plan_tree_windows(uint32_t children, uint32_t window)
{
	return ((size_t)children + window - 1) / window;
}

/*
 * ---- Whole vectors --------------------------------------------------------------------------------
 *
 * plan_tree_broadcast: of OUT. A rank sends what it received from its parent to all children, the
 *                      child with the largest span first.
 * plan_tree_reduce:    from each rank's IN to the root's OUT. Combines in the order of ranks that
 *                      starts at the root, so rank order needs root 0. Receives the vectors of up to
 *                      REDUCE_WINDOW children at once, each into a slot of the scratch. A rank that
 *                      is neither root nor leaf keeps its partial result in the first slot.
 */

static size_t plan_tree_broadcast_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return (t.turned != 0) + plan_tree_windows(t.children, PLAN_MESSAGES);
}

static void plan_tree_broadcast_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	uint32_t child;

	if (t.turned && n-- == 0) {
		plan_receive(r, plan_tree_parent(&t), plan_out(0), p->count);
		return;
	}
	child = (uint32_t)n * PLAN_MESSAGES;
	for (; child < t.children && r->messages < PLAN_MESSAGES; child++)
		plan_send(r, plan_tree_rank(&t, plan_tree_child(&t, t.children - 1 - child).begin),
			  plan_out(0), p->count);
}

const struct plan_algorithm plan_tree_broadcast = {"tree broadcast", plan_tree_broadcast_rounds,
						   NULL, plan_tree_broadcast_round};

enum { REDUCE_WINDOW = 7 };

static size_t plan_tree_reduce_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return plan_tree_windows(t.children, REDUCE_WINDOW) + (t.turned != 0);
}

static size_t plan_tree_reduce_scratch(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);
	size_t slots = t.children < REDUCE_WINDOW ? t.children : REDUCE_WINDOW;

	return (slots + (t.turned && t.children)) * p->count;
}

static void plan_tree_reduce_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	uint32_t child = (uint32_t)n * REDUCE_WINDOW;
	struct plan_place sum = t.turned ? plan_tmp(0) : plan_out(0);
	struct plan_place slot = plan_tmp(t.turned ? p->count : 0);

	if (child >= t.children) {
		plan_send(r, plan_tree_parent(&t), t.children ? sum : plan_in(0), p->count);
		return;
	}
	for (; child < t.children && r->messages < REDUCE_WINDOW; child++) {
		plan_receive(r, plan_tree_rank(&t, plan_tree_child(&t, child).begin), slot,
			     p->count);
		plan_reduce(r, sum, child ? sum : plan_in(0), slot, p->count);
		slot = plan_past(slot, p->count);
	}
}

const struct plan_algorithm plan_tree_reduce = {"tree reduce", plan_tree_reduce_rounds,
						plan_tree_reduce_scratch, plan_tree_reduce_round};

/*
 * ---- Pieces of a vector ---------------------------------------------------------------------------
 *
 * Up the tree each rank sends the pieces of its span, down the tree it receives them.
 *
 * plan_gather:  from each rank's IN (one piece) to the vector in the root's OUT. Inner ranks keep
 *               their span's pieces in the scratch, their own first. same: the root's own piece is
 *               in its place in OUT.
 * plan_collect: each rank has a whole vector in OUT with its piece in place; received pieces go to
 *               their places.
 * plan_scatter: from the root's IN to one piece at the start of each OUT. Inner ranks hold their
 *               span's pieces in the scratch, their own first.
 * plan_spread:  each rank has space for a whole vector in OUT; its piece ends in its place there.
 *               The root's vector is in OUT from the start.
 */

enum { PIECES_WINDOW = PLAN_MESSAGES - 1 }; /* a child may need two messages */

/* Transfer of the pieces of a span between a rank and its parent. */
struct plan_transfer {
	uint32_t peer;
	bool send;
	/* Place of the piece of rank `origin`; the next ranks follow, then wrap around */
	struct plan_place base;
	uint32_t origin;
};

/* Adds a message of the pieces [first, end). */
static void plan_tree_piece(const struct plan_part *p, const struct plan_transfer *transfer,
			    uint32_t first, uint32_t end, struct plan_round *r)
{
	struct plan_piece m = plan_pieces(p->count, p->size, first, end);
	size_t origin = plan_cut(p->count, p->size, transfer->origin);
	size_t at = m.at >= origin ? m.at - origin : p->count - origin + m.at;

	if (m.count)
		plan_message(r, &(struct plan_message){transfer->peer, transfer->send,
						       plan_past(transfer->base, at), m.count});
}

/* Adds one message, or two if the span wraps around the last rank. */
static void plan_tree_pieces(const struct plan_part *p, const struct plan_transfer *transfer,
			     struct plan_span span, struct plan_round *r)
{
	uint32_t first = (uint32_t)(((uint64_t)span.begin + p->root) % p->size);
	uint32_t before = p->size - first < span.len ? p->size - first : span.len;

	plan_tree_piece(p, transfer, first, first + before, r);
	plan_tree_piece(p, transfer, 0, span.len - before, r);
}

static size_t plan_tree_pieces_rounds(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);

	return plan_tree_windows(t.children, PIECES_WINDOW) + (t.turned != 0);
}

/* The pieces of the span, of ranks that are neither root nor leaf. */
static size_t plan_tree_pieces_scratch(const struct plan_part *p)
{
	struct plan_tree t = plan_tree_of(p);
	struct plan_span own = plan_tree_span(&t, t.turned, t.span);
	uint32_t before = p->size - p->rank < own.len ? p->size - p->rank : own.len;

	if (!t.turned || !t.children)
		return 0;
	return plan_pieces(p->count, p->size, p->rank, p->rank + before).count +
	       plan_cut(p->count, p->size, own.len - before);
}

/* Round n of the way down or up. `own`: the place of this rank's span. */
static void plan_tree_pass(const struct plan_part *p, size_t n, struct plan_transfer own, bool down,
			   struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	size_t with_parent = down ? 0 : plan_tree_windows(t.children, PIECES_WINDOW);
	uint32_t child, end;

	if (t.turned && n == with_parent) {
		own.peer = plan_tree_parent(&t);
		own.send = !down;
		plan_tree_pieces(p, &own, plan_tree_span(&t, t.turned, t.span), r);
		return;
	}
	child = (uint32_t)(n - (down && t.turned)) * PIECES_WINDOW;
	end = t.children - child < PIECES_WINDOW ? t.children : child + PIECES_WINDOW;
	own.send = down;
	for (; child < end; child++) {
		struct plan_span span = plan_tree_child(&t, down ? t.children - 1 - child : child);

		own.peer = plan_tree_rank(&t, span.begin);
		plan_tree_pieces(p, &own, span, r);
	}
}

/* Returns the place of the root's vector, or of a rank's span: the scratch, or a leaf's piece. */
static struct plan_transfer plan_tree_place(const struct plan_part *p, const struct plan_tree *t,
					    struct plan_place vector, struct plan_place piece)
{
	if (!t->turned)
		return (struct plan_transfer){.base = vector};
	return (struct plan_transfer){.base = t->children ? plan_tmp(0) : piece, .origin = p->rank};
}

static void plan_gather_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	struct plan_piece own = plan_piece(p, p->rank);

	plan_tree_pass(p, n, plan_tree_place(p, &t, plan_out(0), plan_in(0)), false, r);
	if (n == 0 && t.children && !(p->same && !t.turned))
		plan_copy(r, t.turned ? plan_tmp(0) : plan_out(own.at), plan_in(0), own.count);
}

static void plan_collect_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	plan_tree_pass(p, n, (struct plan_transfer){.base = plan_out(0)}, false, r);
}

static void plan_scatter_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	struct plan_tree t = plan_tree_of(p);
	struct plan_piece own = plan_piece(p, p->rank);

	plan_tree_pass(p, n, plan_tree_place(p, &t, plan_in(0), plan_out(0)), true, r);
	if (t.children && n == plan_tree_pieces_rounds(p) - 1)
		plan_copy(r, plan_out(0), t.turned ? plan_tmp(0) : plan_in(own.at), own.count);
}

static void plan_spread_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	plan_tree_pass(p, n, (struct plan_transfer){.base = plan_out(0)}, true, r);
}

const struct plan_algorithm plan_gather = {"gather", plan_tree_pieces_rounds,
					   plan_tree_pieces_scratch, plan_gather_round};
const struct plan_algorithm plan_collect = {"collect", plan_tree_pieces_rounds, NULL,
					    plan_collect_round};
const struct plan_algorithm plan_scatter = {"scatter", plan_tree_pieces_rounds,
					    plan_tree_pieces_scratch, plan_scatter_round};
const struct plan_algorithm plan_spread = {"spread", plan_tree_pieces_rounds, NULL,
					   plan_spread_round};

/*
 * ---- Broadcasts of OUT in chunks of `tune` elements -----------------------------------------------
 *
 * plan_chain: along a chain from the root. A rank receives a chunk from the rank before it and sends
 *             the previous chunk to the next rank. Each rank sends the vector at most once; the last
 *             rank has it after size - 2 + chunks rounds.
 * plan_fan:   from the root to all others at once. The next chunk follows when all have the one
 *             before. Members that share processors of one host copy each chunk while it is in a
 *             cache.
 */

/* Return the number of chunks in a vector, and the length of chunk n. */
static size_t plan_chunks(const struct plan_part *p)
{
	return p->count / p->tune + (p->count % p->tune != 0);
}

static size_t plan_chunk(const struct plan_part *p, size_t n)
{
	size_t left = p->count - n * p->tune;

	return left < p->tune ? left : p->tune;
}

static size_t plan_chain_rounds(const struct plan_part *p)
{
	uint32_t at = plan_before(p, p->root);

	return plan_chunks(p) + (at && at < p->size - 1);
}

static void plan_chain_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	uint32_t at = plan_before(p, p->root);

	if (at && n < plan_chunks(p))
		plan_receive(r, plan_before(p, 1), plan_out(n * p->tune), plan_chunk(p, n));
	if (at)
		n--; /* the chunk received in the round before; in round 0 none */
	if (at < p->size - 1 && n < plan_chunks(p))
		plan_send(r, plan_after(p, 1), plan_out(n * p->tune), plan_chunk(p, n));
}

static size_t plan_fan_windows(const struct plan_part *p)
{
	return p->rank == p->root ? plan_tree_windows(p->size - 1, PLAN_MESSAGES) : 1;
}

static size_t plan_fan_rounds(const struct plan_part *p)
{
	return plan_chunks(p) * plan_fan_windows(p);
}

static void plan_fan_round(const struct plan_part *p, size_t n, struct plan_round *r)
{
	size_t chunk = n / plan_fan_windows(p), at = chunk * p->tune, count = plan_chunk(p, chunk);
	uint32_t step = (uint32_t)(n % plan_fan_windows(p)) * PLAN_MESSAGES + 1;

	if (p->rank != p->root) {
		plan_receive(r, p->root, plan_out(at), count);
		return;
	}
	for (; step < p->size && r->messages < PLAN_MESSAGES; step++)
		plan_send(r, plan_after(p, step), plan_out(at), count);
}

const struct plan_algorithm plan_chain = {"chain", plan_chain_rounds, NULL, plan_chain_round};
const struct plan_algorithm plan_fan = {"fan", plan_fan_rounds, NULL, plan_fan_round};
