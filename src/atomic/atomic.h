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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ATOMIC_TYPES (FI_FLOAT8_E5M2 + 1)
#define ATOMIC_OPS   (FI_DIFF + 1)

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

struct atomic_type {
	uint32_t ops;  /* 1 << FI_SUM ...: the operators that the type has in any form */
	uint32_t size; /* of an element in memory, bytes, padding included */
};
#define ATOMIC_NUMBERS 32u /* more than there are types or operators */
extern const struct atomic_type atomic_types[ATOMIC_NUMBERS];

#define ATOMIC_BIT(op) (UINT32_C(1) << (op))
/* Operators of ATOMIC_BASE. */
#define ATOMIC_CHANGES                                                                             \
	(ATOMIC_BIT(FI_MIN) | ATOMIC_BIT(FI_MAX) | ATOMIC_BIT(FI_SUM) | ATOMIC_BIT(FI_PROD) |      \
	 ATOMIC_BIT(FI_LOR) | ATOMIC_BIT(FI_LAND) | ATOMIC_BIT(FI_BOR) | ATOMIC_BIT(FI_BAND) |     \
	 ATOMIC_BIT(FI_LXOR) | ATOMIC_BIT(FI_BXOR) | ATOMIC_BIT(FI_ATOMIC_WRITE) |                 \
	 ATOMIC_BIT(FI_DIFF))

/* Returns the bits of the form's operators. */
static inline uint32_t atomic_ops_of(enum atomic_form form)
{
	switch (form) {
	case ATOMIC_BASE:
		return ATOMIC_CHANGES;
	case ATOMIC_FETCH:
		return ATOMIC_CHANGES | ATOMIC_BIT(FI_ATOMIC_READ);
	case ATOMIC_COMPARE:
		return ATOMIC_BIT(FI_CSWAP) | ATOMIC_BIT(FI_CSWAP_NE) | ATOMIC_BIT(FI_CSWAP_LE) |
		       ATOMIC_BIT(FI_CSWAP_LT) | ATOMIC_BIT(FI_CSWAP_GE) | ATOMIC_BIT(FI_CSWAP_GT) |
		       ATOMIC_BIT(FI_MSWAP);
	default:
		return 0;
	}
}

/* Returns the bytes of an element in memory, padding included; 0: no such type. */
static inline size_t atomic_size(enum fi_datatype type)
{
	return (unsigned int)type < ATOMIC_NUMBERS ? atomic_types[type].size : 0;
}

/* The same, but 0 if atomic_find finds no kernel. */
static inline size_t atomic_size_for(enum atomic_form form, enum fi_op op, enum fi_datatype type)
{
	bool known = ((unsigned int)type | (unsigned int)op) < ATOMIC_NUMBERS;

	if (known && atomic_types[type].ops & atomic_ops_of(form) & ATOMIC_BIT(op))
		return atomic_types[type].size;
	return 0;
}

#endif
