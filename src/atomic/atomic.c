/* SPDX-License-Identifier: BSD-2-Clause */
#include "atomic/atomic.h"
#include "atomic/atomic_rows.h"
#include "atomic/atomic_types.h"

#define ENTRY(n, id, op, e)     [id] = atomic_##op##_##n,
#define INTEGER_ROW(type, n, w) [type] = {ATOMIC_INTEGER(ENTRY, n, w)},
#define REAL_ROW(type, n, w)    [type] = {ATOMIC_REAL(ENTRY, n, w)},
#define COMPLEX_ROW(type, n, w) [type] = {ATOMIC_COMPLEX(ENTRY, n, w)},

/* NULL where the type's class lacks the operator. */
static atomic_kernel *const kernels[ATOMIC_TYPES][ATOMIC_OPS] = {
	ATOMIC_INTEGERS(INTEGER_ROW) ATOMIC_REALS(REAL_ROW) ATOMIC_COMPLEXES(COMPLEX_ROW)};

#define OP_BIT(n, id, op, e)     ATOMIC_BIT(id) |
#define INTEGER_TYPE(type, n, w) [type] = {ATOMIC_INTEGER(OP_BIT, n, w) 0, sizeof(n)},
#define REAL_TYPE(type, n, w)    [type] = {ATOMIC_REAL(OP_BIT, n, w) 0, sizeof(n)},
#define COMPLEX_TYPE(type, n, w) [type] = {ATOMIC_COMPLEX(OP_BIT, n, w) 0, sizeof(n)},

const struct atomic_type atomic_types[ATOMIC_NUMBERS] = {
	ATOMIC_INTEGERS(INTEGER_TYPE) ATOMIC_REALS(REAL_TYPE) ATOMIC_COMPLEXES(COMPLEX_TYPE)};

atomic_kernel *atomic_find(enum atomic_form form, enum fi_op op, enum fi_datatype type)
{
	return atomic_size_for(form, op, type) ? kernels[type][op] : NULL;
}
