/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference results of collectives. Each member can compute the input of all others: element `i` of
 * member `m` is a function of `i` and `m`. Needs api.h, lib/eval.h.
 */
#ifndef API_GROUP_MODEL_H
#define API_GROUP_MODEL_H

struct model {
	enum fi_collective_op kind;
	enum fi_datatype type;
	enum fi_op op;
	size_t count;
	int size, root;
	unsigned int seed;
};

static inline bool model_reduces(enum fi_collective_op kind)
{
	return kind == FI_ALLREDUCE || kind == FI_REDUCE || kind == FI_REDUCE_SCATTER;
}

static inline bool model_rooted(enum fi_collective_op kind)
{
	return kind == FI_BROADCAST || kind == FI_REDUCE || kind == FI_SCATTER || kind == FI_GATHER;
}

/* Returns the number of elements in the input buffer of member `rank`. */
static inline size_t model_in(const struct model *m, int rank)
{
	switch (m->kind) {
	case FI_BARRIER:
		return 0;
	case FI_BROADCAST:
		return rank == m->root ? m->count : 0;
	case FI_ALLTOALL:
	case FI_REDUCE_SCATTER:
		return m->count * (size_t)m->size;
	case FI_SCATTER:
		return rank == m->root ? m->count * (size_t)m->size : 0;
	default:
		return m->count;
	}
}

static inline size_t model_out(const struct model *m, int rank)
{
	switch (m->kind) {
	case FI_BARRIER:
		return 0;
	case FI_ALLTOALL:
	case FI_ALLGATHER:
		return m->count * (size_t)m->size;
	case FI_GATHER:
		return rank == m->root ? m->count * (size_t)m->size : 0;
	case FI_REDUCE:
		return rank == m->root ? m->count : 0;
	default:
		return m->count;
	}
}

static inline uint64_t model_random(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/*
 * Returns a number whose reductions are exact in any order. Floats of one byte represent few
 * integers, so their numbers are limited further.
 */
static inline long double model_number(const struct model *m, int rank, uint64_t r)
{
	static const long double few[] = {1, 1, 1, -1, 2, 0, -1, 1};
	bool tiny = m->type == FI_FLOAT8_E4M3 || m->type == FI_FLOAT8_E5M2;

	if (!tiny || !model_reduces(m->kind))
		return few[r % API_COUNT(few)];
	if (m->op == FI_SUM && rank >= 7)
		return 0;
	return r % 3 ? 1 : -1;
}

/* Writes input element `i` of member `rank`. Integers are random. */
static inline void model_bring(const struct model *m, int rank, size_t i, void *to)
{
	uint64_t r = model_random(m->seed * UINT64_C(1000003) + (uint64_t)rank * 7919 + i * 31 + 1);
	enum fi_datatype part = eval_part(m->type);
	size_t half = eval_size(part);
	uint64_t words[4] = {r, model_random(r), 0, 0};

	memset(to, 0, eval_size(m->type));
	switch (eval_class(m->type)) {
	case EVAL_INTEGER:
		memcpy(to, words, eval_size(m->type));
		break;
	case EVAL_REAL:
		eval_put(m->type, to, model_number(m, rank, r));
		break;
	default:
		eval_put(part, to, model_number(m, rank, r));
		eval_put(part, (char *)to + half, r / 8 % 3 ? 0 : 1);
	}
}

/* Combines the input elements `i` of all members, in the order of ranks. */
static inline void model_combine(const struct model *m, size_t i, void *to)
{
	unsigned char next[EVAL_ELEMENT];

	model_bring(m, 0, i, to);
	for (int rank = 1; rank < m->size; rank++) {
		model_bring(m, rank, i, next);
		eval(m->type, m->op, to, next, next); /* `compare` is not read */
	}
}

/* Compares as numbers: the sign of a zero may depend on the order of a reduction. */
static inline bool model_same(const struct model *m, const void *a, const void *b)
{
	enum fi_datatype part = eval_part(m->type);
	size_t half = eval_size(part);

	if (eval_same(m->type, a, b))
		return true;
	if (!model_reduces(m->kind) || eval_class(m->type) == EVAL_INTEGER)
		return false;
	if (eval_class(m->type) == EVAL_REAL)
		return eval_get(m->type, a) == eval_get(m->type, b);
	return eval_get(part, a) == eval_get(part, b) &&
	       eval_get(part, (const char *)a + half) == eval_get(part, (const char *)b + half);
}

/* Writes result element `i` of member `rank`. */
static inline void model_result(const struct model *m, int rank, size_t i, void *to)
{
	size_t at = m->count ? i % m->count : 0;
	int block = m->count ? (int)(i / m->count) : 0;

	switch (m->kind) {
	case FI_BROADCAST:
		model_bring(m, m->root, i, to);
		break;
	case FI_ALLTOALL:
		model_bring(m, block, (size_t)rank * m->count + at, to);
		break;
	case FI_ALLGATHER:
	case FI_GATHER:
		model_bring(m, block, at, to);
		break;
	case FI_SCATTER:
		model_bring(m, m->root, (size_t)rank * m->count + i, to);
		break;
	case FI_REDUCE_SCATTER:
		model_combine(m, (size_t)rank * m->count + i, to);
		break;
	default:
		model_combine(m, i, to);
	}
}

#endif
