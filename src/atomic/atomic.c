/* SPDX-License-Identifier: BSD-2-Clause */
#include "atomic/atomic.h"
#include "atomic/atomic_kernels.h"
#include "atomic/atomic_types.h"

#define ENTRY(n, id, op, e)     [id] = atomic_##op##_##n,
#define INTEGER_ROW(type, n, w) [type] = {ATOMIC_INTEGER(ENTRY, n, w)},
#define REAL_ROW(type, n, w)    [type] = {ATOMIC_REAL(ENTRY, n, w)},
#define COMPLEX_ROW(type, n, w) [type] = {ATOMIC_COMPLEX(ENTRY, n, w)},

/* NULL where the type's class lacks the operator. */
static atomic_kernel *const kernels[ATOMIC_TYPES][ATOMIC_OPS] = {
	ATOMIC_INTEGERS(INTEGER_ROW) ATOMIC_REALS(REAL_ROW) ATOMIC_COMPLEXES(COMPLEX_ROW)};

#define SIZE(type, n, w) [type] = sizeof(n),

static const unsigned char sizes[ATOMIC_TYPES] = {ATOMIC_INTEGERS(SIZE) ATOMIC_REALS(SIZE)
							  ATOMIC_COMPLEXES(SIZE)};

#define BIT(op) (UINT32_C(1) << (op))
#define CHANGES                                                                                    \
	(BIT(FI_MIN) | BIT(FI_MAX) | BIT(FI_SUM) | BIT(FI_PROD) | BIT(FI_LOR) | BIT(FI_LAND) |     \
	 BIT(FI_BOR) | BIT(FI_BAND) | BIT(FI_LXOR) | BIT(FI_BXOR) | BIT(FI_ATOMIC_WRITE) |         \
	 BIT(FI_DIFF))

/* The operators of each form. BASE and FETCH share kernels: args->result decides. */
static const uint32_t forms[ATOMIC_FORMS] = {
	[ATOMIC_BASE] = CHANGES,
	[ATOMIC_FETCH] = CHANGES | BIT(FI_ATOMIC_READ),
	[ATOMIC_COMPARE] = BIT(FI_CSWAP) | BIT(FI_CSWAP_NE) | BIT(FI_CSWAP_LE) | BIT(FI_CSWAP_LT) |
			   BIT(FI_CSWAP_GE) | BIT(FI_CSWAP_GT) | BIT(FI_MSWAP),
};

atomic_kernel *atomic_find(enum atomic_form form, enum fi_op op, enum fi_datatype type)
{
	if ((unsigned int)form >= ATOMIC_FORMS || (unsigned int)op >= ATOMIC_OPS ||
	    (unsigned int)type >= ATOMIC_TYPES || !(forms[form] & BIT(op)))
		return NULL;
	return kernels[type][op];
}

size_t atomic_size_for(enum atomic_form form, enum fi_op op, enum fi_datatype type)
{
	return atomic_find(form, op, type) ? sizes[type] : 0;
}

size_t atomic_size(enum fi_datatype type)
{
	return (unsigned int)type < ATOMIC_TYPES ? sizes[type] : 0;
}
