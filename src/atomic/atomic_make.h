/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates atomic kernels from the rows: each kernel is a step and the loop EACH_name. */
#ifndef WEFT_ATOMIC_ATOMIC_MAKE_H
#define WEFT_ATOMIC_ATOMIC_MAKE_H

#include "atomic/atomic_each.h"
#include "atomic/atomic_rows.h"
#include "atomic/atomic_types.h"

/* The values in the expressions of the rows. */
#define ATOMIC_T(n) const n##_value t = n##_get(*(n *)target);
#define ATOMIC_V(n) const n##_value v = n##_get(*(const n *)operand);
#define ATOMIC_C(n) const n##_value c = n##_get(*(const n *)compare);

#define ATOMIC_KERNEL(n, op)                                                                       \
	void atomic_##op##_##n(const struct atomic_args *a)                                        \
	{                                                                                          \
		EACH_##n(a, op##_##n);                                                             \
	}

/* Always stores a new value. */
#define ATOMIC_STORED(n, op, values, new)                                                          \
	static inline bool op##_##n(void *target, const void *operand, const void *compare)        \
	{                                                                                          \
		values                                                                             \
                                                                                                   \
			(void) compare;                                                            \
		*(n *)target = new;                                                                \
		return true;                                                                       \
	}                                                                                          \
	ATOMIC_KERNEL(n, op)

/* Stores the operand, bit by bit, if a condition holds. */
#define ATOMIC_PICKED(n, op, values, e)                                                            \
	static inline bool op##_##n(void *target, const void *operand, const void *compare)        \
	{                                                                                          \
		values                                                                             \
                                                                                                   \
			(void) compare;                                                            \
		if (e)                                                                             \
			*(n *)target = *(const n *)operand;                                        \
		return e;                                                                          \
	}                                                                                          \
	ATOMIC_KERNEL(n, op)

/* Values for the parameter X of the rows. */
#define ATOMIC_COMPUTED(n, id, op, e) ATOMIC_STORED(n, op, ATOMIC_T(n) ATOMIC_V(n), n##_put(e))
#define ATOMIC_TRUTH(n, id, op, e)    ATOMIC_STORED(n, op, ATOMIC_T(n) ATOMIC_V(n), n##_truth(e))
#define ATOMIC_MERGED(n, id, op, e)                                                                \
	ATOMIC_STORED(n, op, ATOMIC_T(n) ATOMIC_V(n) ATOMIC_C(n), n##_put(e))
#define ATOMIC_CHOSEN(n, id, op, e)  ATOMIC_PICKED(n, op, ATOMIC_T(n) ATOMIC_V(n), e)
#define ATOMIC_SWAPPED(n, id, op, e) ATOMIC_PICKED(n, op, ATOMIC_T(n) ATOMIC_C(n), e)

/* Kernels for all types, for types with an order, for words. */
#define ATOMIC_MAKE_NUMBER(n)                                                                      \
	ATOMIC_ARITHMETIC(ATOMIC_COMPUTED, n)                                                      \
	ATOMIC_LOGICAL(ATOMIC_TRUTH, n)                                                            \
	ATOMIC_EQUALITY(ATOMIC_SWAPPED, n)
#define ATOMIC_MAKE_ORDER(n)                                                                       \
	ATOMIC_EXTREMES(ATOMIC_CHOSEN, n)                                                          \
	ATOMIC_ORDER(ATOMIC_SWAPPED, n)
#define ATOMIC_MAKE_BITS(n)                                                                        \
	ATOMIC_BITWISE(ATOMIC_COMPUTED, n)                                                         \
	ATOMIC_MASKED(ATOMIC_MERGED, n)

#endif
