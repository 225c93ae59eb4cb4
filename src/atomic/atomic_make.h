/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes atomic kernels from the rows: each is a step, and the loop EACH_name that runs it.
 */
#ifndef WEFT_ATOMIC_ATOMIC_MAKE_H
#define WEFT_ATOMIC_ATOMIC_MAKE_H

#include "atomic/atomic_each.h"
#include "atomic/atomic_kernels.h"
#include "atomic/atomic_types.h"

#define ATOMIC_KERNEL(n, op, step)                                                                 \
	void atomic_##op##_##n(const struct atomic_args *a)                                        \
	{                                                                                          \
		EACH_##n(a, step);                                                                 \
	}

/* The expression of t and v is the new value. */
#define ATOMIC_COMPUTED(n, id, op, e)                                                              \
	static inline bool op##_##n(void *tp, const void *vp, const void *cp)                      \
	{                                                                                          \
		const n##_value t = n##_get(*(n *)tp), v = n##_get(*(const n *)vp);                \
                                                                                                   \
		(void)cp;                                                                          \
		*(n *)tp = n##_put(e);                                                             \
		return true;                                                                       \
	}                                                                                          \
	ATOMIC_KERNEL(n, op, op##_##n)

/* The same of t, v and c. */
#define ATOMIC_MERGED(n, id, op, e)                                                                \
	static inline bool op##_##n(void *tp, const void *vp, const void *cp)                      \
	{                                                                                          \
		const n##_value t = n##_get(*(n *)tp), v = n##_get(*(const n *)vp),                \
				c = n##_get(*(const n *)cp);                                       \
                                                                                                   \
		*(n *)tp = n##_put(e);                                                             \
		return true;                                                                       \
	}                                                                                          \
	ATOMIC_KERNEL(n, op, op##_##n)

/* The operand, bit by bit, is the new value if the expression of t and v holds. */
#define ATOMIC_CHOSEN(n, id, op, e)                                                                \
	static inline bool op##_##n(void *tp, const void *vp, const void *cp)                      \
	{                                                                                          \
		const n##_value t = n##_get(*(n *)tp), v = n##_get(*(const n *)vp);                \
                                                                                                   \
		(void)cp;                                                                          \
		if (e)                                                                             \
			*(n *)tp = *(const n *)vp;                                                 \
		return e;                                                                          \
	}                                                                                          \
	ATOMIC_KERNEL(n, op, op##_##n)

/* The same if that of t and c holds. */
#define ATOMIC_SWAPPED(n, id, op, e)                                                               \
	static inline bool op##_##n(void *tp, const void *vp, const void *cp)                      \
	{                                                                                          \
		const n##_value t = n##_get(*(n *)tp), c = n##_get(*(const n *)cp);                \
                                                                                                   \
		if (e)                                                                             \
			*(n *)tp = *(const n *)vp;                                                 \
		return e;                                                                          \
	}                                                                                          \
	ATOMIC_KERNEL(n, op, op##_##n)

/* What the classes have, beside what is done to their words. */
#define ATOMIC_ORDERED_KERNELS(n)                                                                  \
	ATOMIC_EXTREMES(ATOMIC_CHOSEN, n)                                                          \
	ATOMIC_ORDER(ATOMIC_SWAPPED, n)
#define ATOMIC_NUMBER_KERNELS(n)                                                                   \
	ATOMIC_ARITHMETIC(ATOMIC_COMPUTED, n)                                                      \
	ATOMIC_EQUALITY(ATOMIC_SWAPPED, n)
#define ATOMIC_BIT_KERNELS(n)                                                                      \
	ATOMIC_BITWISE(ATOMIC_COMPUTED, n)                                                         \
	ATOMIC_MASKED(ATOMIC_MERGED, n)

#endif
