/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernels of atomics and collectives: one for each valid pair of operator and type (fi_atomic(3)),
 * in two kinds.
 *
 * Atomic kernels change an element in one step, as seen by other atomic kernels on the same element
 * (same address and size). An aligned element of 1, 2, 4 or 8 bytes, or of 16 if the processor
 * supports it, is changed without a lock. Such changes are atomic also between processes and
 * against the application's own atomic instructions. All other elements (misaligned, or 32 bytes
 * long) are changed under locks of this process.
 *
 * Plain kernels combine two arrays that nothing else accesses, as fast as the compiler can.
 *
 * Both kinds compute the same values:
 *
 *   integers    wrap around; FI_PROD of int8 100 and 3 is 44.
 *   FI_MIN      takes the operand if operand < target, FI_MAX if operand > target. So a NaN on
 *               either side, and a zero of the other sign, leave the target as it is.
 *   FI_L*       any value other than zero, NaN included, is true; the result is 1 or 0.
 *   FI_CSWAP*   compare values, compare on the left: FI_CSWAP_LE takes the operand if
 *               compare <= target. -0 equals +0; NaN equals nothing, so FI_CSWAP_NE takes it.
 *   FI_DIFF     target - operand.
 *   complex     FI_PROD is (a+bi)(c+di) = (ac-bd) + (ad+bc)i, each step rounded. Infinities are
 *               not corrected as in C's annex G.
 *   small       float16, bfloat16 and both float8: computed in float, rounded once to nearest, ties
 *               to even. Too large a result is an infinity; float8 e4m3 has none and gives NaN (the
 *               non-saturating mode of OCP OFP8): 464 still rounds to 448, more is NaN.
 *
 * Operators that select an operand (FI_MIN, FI_MAX, FI_ATOMIC_WRITE, FI_CSWAP*) keep all its bits,
 * NaN payloads included. Rounding is that of the calling thread, by default to nearest.
 */
#ifndef WEFT_ATOMIC_ATOMIC_H
#define WEFT_ATOMIC_ATOMIC_H

#include <rdma/fi_domain.h>
#include <stddef.h>

enum atomic_form {
	ATOMIC_BASE,    /* changes the target: fi_atomic */
	ATOMIC_FETCH,   /* the same, and returns the old value: fi_fetch_atomic */
	ATOMIC_COMPARE, /* changes the target if a comparison holds; returns the old value */
	ATOMIC_FORMS
};

/*
 * Arrays of `count` elements, at any alignment. operand, compare and result may be the same array;
 * none may overlap the target.
 */
struct atomic_args {
	void *target;
	const void *operand; /* unused by FI_ATOMIC_READ */
	const void *compare; /* used by ATOMIC_COMPARE only */
	void *result; /* receives the old values, bit by bit; NULL for ATOMIC_BASE, and only then */
	size_t count;
};

/*
 * Processes the elements in order, each atomically. Does not write elements that a comparison
 * leaves unchanged or that FI_ATOMIC_READ reads: the target may be read-only memory then.
 */
typedef void atomic_kernel(const struct atomic_args *a);

/* Returns NULL if `op` is invalid for the form or type. Accepts any numbers. */
atomic_kernel *atomic_find(enum atomic_form form, enum fi_op op, enum fi_datatype type);

/* target = target OP operand. Both arrays have the type's alignment and do not overlap. */
typedef void plain_kernel(void *target, const void *operand, size_t count);

/* For the operators of ATOMIC_BASE; FI_ATOMIC_WRITE copies. Returns NULL as atomic_find does. */
plain_kernel *plain_find(enum fi_op op, enum fi_datatype type);

/* Returns the bytes of an element in memory, padding included; 0: no such type. */
size_t atomic_size(enum fi_datatype type);
/* The same, but 0 if atomic_find finds no kernel. */
size_t atomic_size_for(enum atomic_form form, enum fi_op op, enum fi_datatype type);

#endif
