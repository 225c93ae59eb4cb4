/* SPDX-License-Identifier: BSD-2-Clause */
/* The atomic kernels: atomic_sum_u32 and so on. Integer types share the kernels of their words. */
#ifndef WEFT_ATOMIC_ATOMIC_KERNELS_H
#define WEFT_ATOMIC_ATOMIC_KERNELS_H

#include "atomic/atomic.h"
#include "atomic/atomic_rows.h"

#define ATOMIC_DECLARED(n, id, op, e)       atomic_kernel atomic_##op##_##n;
#define ATOMIC_INTEGER_DECLARED(type, n, w) ATOMIC_INTEGER(ATOMIC_DECLARED, n, w)
#define ATOMIC_REAL_DECLARED(type, n, w)    ATOMIC_REAL(ATOMIC_DECLARED, n, w)
#define ATOMIC_COMPLEX_DECLARED(type, n, w) ATOMIC_COMPLEX(ATOMIC_DECLARED, n, w)

ATOMIC_INTEGERS(ATOMIC_INTEGER_DECLARED)
ATOMIC_REALS(ATOMIC_REAL_DECLARED)
ATOMIC_COMPLEXES(ATOMIC_COMPLEX_DECLARED)

#endif
