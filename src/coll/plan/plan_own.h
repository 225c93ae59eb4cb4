/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For src/coll/plan: algorithms, how they write rounds, and how plans are built of them.
 *
 * An algorithm runs among ranks 0 to part->size - 1; plan_round translates these ranks and the algorithm's spaces.
 * `count` is the length of a whole vector; algorithms that need pieces cut it into one piece per rank (plan_cut). A
 * collective of `count` elements per member is one of a vector of size * count elements, whose pieces have `count`
 * elements each. Algorithms on pieces send no empty messages; others do if count is 0.
 */
#ifndef WEFT_COLL_PLAN_OWN_H
#define WEFT_COLL_PLAN_OWN_H

#include <assert.h>

#include "coll/plan/plan.h"

struct plan_algorithm {
	const char *name;
	size_t (*rounds)(const struct plan_part *p); /* number of rounds of this rank */
	size_t (*scratch)(
		const struct plan_part *p); /* scratch elements of this rank; NULL: none */
	void (*round)(const struct plan_part *p, size_t n, struct plan_round *r);
};

/* Returns the first element of piece i of n. The first pieces are longer by one. */
static inline size_t plan_cut(size_t count, uint32_t n, uint32_t i)
{
	size_t rest = count % n;

	return count / n * i + (i < rest ? i : rest);
}

/* Elements of a vector. */
struct plan_piece {
	size_t at, count;
};

/* Returns the pieces [first, end) of n. */
static inline struct plan_piece plan_pieces(size_t count, uint32_t n, uint32_t first, uint32_t end)
{
	size_t at = plan_cut(count, n, first);

	return (struct plan_piece){at, plan_cut(count, n, end) - at};
}

/* Returns the piece of a rank. */
static inline struct plan_piece plan_piece(const struct plan_part *p, uint32_t rank)
{
	return plan_pieces(p->count, p->size, rank, rank + 1);
}

/* Return the rank that is `step` ranks after this one, or before it: at most size. */
static inline uint32_t plan_after(const struct plan_part *p, uint64_t step)
{
	return (uint32_t)((p->rank + step) % p->size);
}

static inline uint32_t plan_before(const struct plan_part *p, uint64_t step)
{
	return (uint32_t)(((uint64_t)p->rank + p->size - step) % p->size);
}

static inline struct plan_place plan_in(size_t at)
{
	return (struct plan_place){PLAN_IN, at};
}

static inline struct plan_place plan_out(size_t at)
{
	return (struct plan_place){PLAN_OUT, at};
}

static inline struct plan_place plan_tmp(size_t at)
{
	return (struct plan_place){PLAN_TMP, at};
}

static inline struct plan_place plan_past(struct plan_place place, size_t elements)
{
	return (struct plan_place){place.space, place.at + elements};
}

static inline void plan_message(struct plan_round *r, const struct plan_message *m)
{
	assert(r->messages < PLAN_MESSAGES);
	r->message[r->messages++] = *m;
}

static inline void plan_send(struct plan_round *r, uint32_t to, struct plan_place at, size_t count)
{
	plan_message(r, &(struct plan_message){to, true, at, count});
}

static inline void plan_receive(struct plan_round *r, uint32_t from, struct plan_place at,
				size_t count)
{
	plan_message(r, &(struct plan_message){from, false, at, count});
}

/* The same, but nothing if the piece is empty. */
static inline void plan_send_piece(struct plan_round *r, uint32_t to, struct plan_place at,
				   size_t count)
{
	if (count)
		plan_send(r, to, at, count);
}

static inline void plan_receive_piece(struct plan_round *r, uint32_t from, struct plan_place at,
				      size_t count)
{
	if (count)
		plan_receive(r, from, at, count);
}

static inline void plan_local(struct plan_round *r, const struct plan_local *l)
{
	assert(r->locals < PLAN_LOCALS);
	if (l->count && l->blocks)
		r->local[r->locals++] = *l;
}

static inline void plan_copy(struct plan_round *r, struct plan_place dst, struct plan_place src,
			     size_t count)
{
	plan_local(
		r,
		&(struct plan_local){
			.what = PLAN_COPY, .dst = dst, .left = src, .count = count, .blocks = 1});
}

/* Adds dst = left OP right. */
static inline void plan_reduce(struct plan_round *r, struct plan_place dst, struct plan_place left,
			       struct plan_place right, size_t count)
{
	plan_local(r, &(struct plan_local){.what = PLAN_REDUCE,
					   .dst = dst,
					   .left = left,
					   .right = right,
					   .count = count,
					   .blocks = 1});
}

/* Returns the least k with 2^k >= n. */
static inline unsigned int plan_log2(uint32_t n)
{
	return n <= 1 ? 0 : 32 - (unsigned int)__builtin_clz(n - 1);
}

extern const struct plan_algorithm plan_place_own, plan_hand_over, plan_transpose;
extern const struct plan_algorithm plan_dissemination, plan_direct;
extern const struct plan_algorithm plan_tree_broadcast, plan_tree_reduce, plan_chain, plan_fan;
extern const struct plan_algorithm plan_scatter, plan_spread, plan_gather, plan_collect;
extern const struct plan_algorithm plan_bruck_allgather, plan_ring_allgather;
extern const struct plan_algorithm plan_doubling, plan_ring_reduce_scatter;
extern const struct plan_algorithm plan_rabenseifner, plan_rabenseifner_reduce;
extern const struct plan_algorithm plan_halving, plan_pairwise_reduce_scatter;
extern const struct plan_algorithm plan_bruck_alltoall, plan_pairwise_alltoall;

/* ---- Building plans from phases --------------------------------------------------------------- */

/* A collective among some of the members, to add to a plan. */
struct plan_build {
	struct plan *plan;
	struct plan_shape shape; /* from the view of these members */
	struct plan_place in, out;
	enum plan_among among;
	bool near;   /* all members are on one host */
	size_t tune; /* from the row of the table */
};

/*
 * Adds an algorithm for `count` elements, from b->in to b->out. Adds nothing if this member has no
 * rounds. `same`: see struct plan_part.
 */
void plan_add(const struct plan_build *b, const struct plan_algorithm *algorithm, size_t count,
	      bool same);

/* Makes the phases, all that the plan has, run for each chunk of the vector. */
void plan_by_chunks(struct plan *plan, size_t chunk, size_t vector);

/* Reserves elements of the scratch; phases added later do not use them. */
struct plan_place plan_keep(struct plan *plan, size_t count);

/* Returns the bytes of the call's `count`; SIZE_MAX if that is too many for a size_t. */
static inline size_t plan_bytes(const struct plan_shape *s)
{
	size_t bytes;

	return __builtin_mul_overflow(s->count, s->width, &bytes) ? SIZE_MAX : bytes;
}

/* Returns the elements of the vector that the algorithms of a collective are about. */
size_t plan_vector(const struct plan_shape *s);

/* Adds the collective by the algorithms of the table; ignores which members share hosts. */
void choose_flat(const struct plan_build *b);

/* Adds the collective in levels: inside hosts and between hosts. False: no better than flat. */
bool plan_levels(const struct plan_build *b);

#endif
