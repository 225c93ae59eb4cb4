/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference implementation of atomics for one element, written from fi_atomic(3). Integers are 128
 * bits wide, modulo the width of their type; floats are in eval_float.h. Needs api.h.
 */
#ifndef API_EVAL_H
#define API_EVAL_H

#include "eval_float.h"

/* ---- Integers -------------------------------------------------------------------------------- */

typedef unsigned __int128 eval_word;

/* Little endian. Sign-extends signed types, zero-extends the others. */
static inline eval_word eval_load(enum fi_datatype type, const void *from)
{
	int unused = 128 - 8 * (int)eval_size(type);
	eval_word w = 0;

	memcpy(&w, from, eval_size(type));
	if (eval_signed(type))
		w = (eval_word)((__int128)(w << unused) >> unused);
	return w;
}

static inline int eval_order(enum fi_datatype type, eval_word a, eval_word b)
{
	if (eval_signed(type))
		return ((__int128)a > (__int128)b) - ((__int128)a < (__int128)b);
	return (a > b) - (a < b);
}

static inline eval_word eval_integer(enum fi_datatype type, enum fi_op op, eval_word t, eval_word b)
{
	switch (op) {
	case FI_MIN:
		return eval_order(type, b, t) < 0 ? b : t;
	case FI_MAX:
		return eval_order(type, b, t) > 0 ? b : t;
	case FI_SUM:
		return t + b;
	case FI_DIFF:
		return t - b;
	case FI_PROD:
		return t * b;
	case FI_LOR:
		return t || b;
	case FI_LAND:
		return t && b;
	case FI_LXOR:
		return (t && !b) || (!t && b);
	case FI_BOR:
		return t | b;
	case FI_BAND:
		return t & b;
	case FI_BXOR:
		return t ^ b;
	default:
		eval_no();
	}
}

/* ---- Everything ------------------------------------------------------------------------------ */

/* Returns whether `compare` OP `target` holds. With a NaN only "not equal" does. */
static inline bool eval_holds(enum fi_datatype type, enum fi_op op, const void *compare,
			      const void *target)
{
	bool less = false, equal = false, greater = false;

	if (eval_class(type) == EVAL_INTEGER) {
		int order = eval_order(type, eval_load(type, compare), eval_load(type, target));

		less = order < 0;
		equal = order == 0;
		greater = order > 0;
	} else if (eval_class(type) == EVAL_REAL) {
		long double c = eval_get(type, compare), t = eval_get(type, target);

		less = c < t;
		equal = c == t;
		greater = c > t;
	} else {
		struct eval_pair c = eval_get_pair(type, compare), t = eval_get_pair(type, target);

		equal = c.re == t.re && c.im == t.im;
	}
	return op == FI_CSWAP      ? equal
	       : op == FI_CSWAP_NE ? !equal
	       : op == FI_CSWAP_LE ? less || equal
	       : op == FI_CSWAP_LT ? less
	       : op == FI_CSWAP_GE ? greater || equal
				   : greater;
}

/* Masked swaps exist for integers only, so they work byte by byte. */
static inline void eval_mask(size_t size, unsigned char *target, const unsigned char *buf,
			     const unsigned char *compare)
{
	for (size_t i = 0; i < size; i++)
		target[i] = (unsigned char)((buf[i] & compare[i]) | (target[i] & ~compare[i]));
}

/* Applies `op` to one element. Only operations of the compare family read `compare`. */
static inline void eval(enum fi_datatype type, enum fi_op op, void *target, const void *buf,
			const void *compare)
{
	size_t size = eval_size(type);
	eval_word w;

	if (op == FI_ATOMIC_READ)
		return;
	if (op == FI_MSWAP) {
		eval_mask(size, target, buf, compare);
	} else if (op == FI_ATOMIC_WRITE || (op >= FI_CSWAP && op <= FI_CSWAP_GT)) {
		if (op == FI_ATOMIC_WRITE || eval_holds(type, op, compare, target))
			memcpy(target, buf, size);
	} else if (eval_class(type) == EVAL_INTEGER) {
		w = eval_integer(type, op, eval_load(type, target), eval_load(type, buf));
		memcpy(target, &w, size);
	} else if (eval_class(type) == EVAL_REAL) {
		eval_real(type, op, target, buf);
	} else {
		eval_complex(type, op, target, buf);
	}
}

/* Returns whether two reals have the same bits, or are both NaN with any payload. */
static inline bool eval_same_real(enum fi_datatype type, const void *a, const void *b)
{
	size_t bytes = type == FI_LONG_DOUBLE ? EVAL_LONG_BYTES : eval_size(type);

	return !memcmp(a, b, bytes) || (isnan(eval_get(type, a)) && isnan(eval_get(type, b)));
}

static inline bool eval_same(enum fi_datatype type, const void *a, const void *b)
{
	enum fi_datatype part = eval_part(type);
	size_t half = eval_size(part);

	switch (eval_class(type)) {
	case EVAL_INTEGER:
		return !memcmp(a, b, eval_size(type));
	case EVAL_REAL:
		return eval_same_real(type, a, b);
	default:
		return eval_same_real(part, a, b) &&
		       eval_same_real(part, (const char *)a + half, (const char *)b + half);
	}
}

#endif
