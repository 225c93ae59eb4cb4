/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the operators of atomics and collectives do to memory: a kernel for every operator and type
 * that make sense together (fi_atomic(3)). There are two flavours.
 *
 * Atomic kernels change an element in one step as far as other atomic kernels on the same element
 * (same address, same size) can see. An element aligned to its size is exchanged without a lock
 * when it has 1, 2, 4 or 8 bytes, or 16 on a processor that can: these hold between processes too,
 * and against the application's own atomic instructions. All other elements (misaligned; 32 bytes)
 * are changed under locks that only this process knows.
 *
 * Plain kernels combine two arrays nobody else touches, as fast as the compiler can.
 *
 * Both give the same values:
 *
 *   integers    wrap around; FI_PROD of int8 100 and 3 is 44.
 *   FI_MIN      takes the operand if operand < target, FI_MAX if operand > target, so a NaN on
 *               either side, and a zero of the other sign, leave the target as it is.
 *   FI_L*       any value other than zero, NaN included, is true; they give 1 or 0 of the type.
 *   FI_CSWAP*   compare values, compare on the left: FI_CSWAP_LE takes the operand if
 *               compare <= target. -0 equals +0; NaN equals nothing, so FI_CSWAP_NE takes it.
 *   FI_DIFF     target - operand.
 *   complex     FI_PROD by the textbook: (a+bi)(c+di) = (ac-bd) + (ad+bc)i, each step rounded.
 *               Infinities are not repaired as C's annex G would.
 *   small       float16, bfloat16 and both float8: computed in float, rounded once to nearest, ties
 *               to even. Too large a result is an infinity; float8 e4m3 has none and gives NaN (the
 *               non-saturating mode of OCP OFP8): 464 still rounds to 448, more is NaN.
 *
 * Operands that are chosen rather than computed with (FI_MIN, FI_MAX, FI_ATOMIC_WRITE, FI_CSWAP*)
 * keep their bits, NaN payloads included. Rounding is that of the calling thread, by default to
 * nearest.
 */
#ifndef WEFT_ATOMIC_ATOMIC_H
#define WEFT_ATOMIC_ATOMIC_H

#include <rdma/fi_domain.h>
#include <stddef.h>

enum atomic_form {
	ATOMIC_BASE,    /* changes the target: fi_atomic */
	ATOMIC_FETCH,   /* and returns what was there: fi_fetch_atomic */
	ATOMIC_COMPARE, /* changes it upon a comparison and returns what was there */
	ATOMIC_FORMS
};

/*
 * Four arrays of count elements, each at any alignment. operand, compare and result may be one
 * another; none may overlap the target.
 */
struct atomic_args {
	void *target;
	const void *operand; /* not looked at by FI_ATOMIC_READ */
	const void *compare; /* looked at by ATOMIC_COMPARE only */
	void *result; /* what was there before, bit by bit; NULL with ATOMIC_BASE, only then */
	size_t count;
};

/*
 * Works through the elements in order, each a step of its own. An element a comparison leaves as it
 * is and one FI_ATOMIC_READ reads are not written to: they may lie in read-only memory.
 */
typedef void atomic_kernel(const struct atomic_args *a);

/* NULL if op makes no sense in that form or on that type; any numbers may be asked about. */
atomic_kernel *atomic_find(enum atomic_form form, enum fi_op op, enum fi_datatype type);

/* target = target OP operand. Both are aligned as the type asks and do not overlap. */
typedef void plain_kernel(void *target, const void *operand, size_t count);

/* Of the operators of ATOMIC_BASE; FI_ATOMIC_WRITE copies. NULL as atomic_find. */
plain_kernel *plain_find(enum fi_op op, enum fi_datatype type);

/* Bytes of an element in memory, padding included; 0 if there is no such type. */
size_t atomic_size(enum fi_datatype type);

#endif
