/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows that src/atomic is generated from: types by class, operators by kind, and the operators of each class. */
#ifndef WEFT_ATOMIC_ATOMIC_ROWS_H
#define WEFT_ATOMIC_ATOMIC_ROWS_H

#include "atomic/atomic.h"

/*
 * X(type, name, word). The word is the unsigned integer of the same size. Words are moved and
 * exchanged; integers are also computed as words, so that overflow wraps.
 */
#define ATOMIC_INTEGERS(X)                                                                         \
	X(FI_INT8, i8, u8)                                                                         \
	X(FI_UINT8, u8, u8)                                                                        \
	X(FI_INT16, i16, u16)                                                                      \
	X(FI_UINT16, u16, u16)                                                                     \
	X(FI_INT32, i32, u32)                                                                      \
	X(FI_UINT32, u32, u32)                                                                     \
	X(FI_INT64, i64, u64)                                                                      \
	X(FI_UINT64, u64, u64)                                                                     \
	X(FI_INT128, i128, u128)                                                                   \
	X(FI_UINT128, u128, u128)
#define ATOMIC_REALS(X)                                                                            \
	X(FI_FLOAT, f32, u32)                                                                      \
	X(FI_DOUBLE, f64, u64)                                                                     \
	X(FI_LONG_DOUBLE, f80, u128)                                                               \
	X(FI_FLOAT16, f16, u16)                                                                    \
	X(FI_BFLOAT16, bf16, u16)                                                                  \
	X(FI_FLOAT8_E4M3, e4m3, u8)                                                                \
	X(FI_FLOAT8_E5M2, e5m2, u8)
#define ATOMIC_COMPLEXES(X)                                                                        \
	X(FI_FLOAT_COMPLEX, cf32, u64)                                                             \
	X(FI_DOUBLE_COMPLEX, cf64, u128)                                                           \
	X(FI_LONG_DOUBLE_COMPLEX, cf80, u256)

/* X(name, op, short name, expression of target t, operand v and comparison value c). */

/* The expression is the new value. */
#define ATOMIC_ARITHMETIC(X, n)                                                                    \
	X(n, FI_SUM, sum, t + v)                                                                   \
	X(n, FI_DIFF, diff, t - v)                                                                 \
	X(n, FI_PROD, prod, n##_times(t, v))
#define ATOMIC_BITWISE(X, n)                                                                       \
	X(n, FI_BOR, bor, (t) | (v))                                                               \
	X(n, FI_BAND, band, (t) & (v))                                                             \
	X(n, FI_BXOR, bxor, (t) ^ (v))
#define ATOMIC_MASKED(X, n) X(n, FI_MSWAP, mswap, (v & c) | (t & ~c))

/* The expression is a truth value; the new value is 1 or 0. */
#define ATOMIC_LOGICAL(X, n)                                                                       \
	X(n, FI_LOR, lor, t != 0 || v != 0)                                                        \
	X(n, FI_LAND, land, t != 0 && v != 0)                                                      \
	X(n, FI_LXOR, lxor, (t != 0) != (v != 0))

/* If the expression is true, the operand is the new value. */
#define ATOMIC_EXTREMES(X, n)                                                                      \
	X(n, FI_MIN, min, v < t)                                                                   \
	X(n, FI_MAX, max, v > t)
#define ATOMIC_EQUALITY(X, n)                                                                      \
	X(n, FI_CSWAP, cswap, c == t)                                                              \
	X(n, FI_CSWAP_NE, cswap_ne, c != t)
#define ATOMIC_ORDER(X, n)                                                                         \
	X(n, FI_CSWAP_LE, cswap_le, c <= t)                                                        \
	X(n, FI_CSWAP_LT, cswap_lt, c < t)                                                         \
	X(n, FI_CSWAP_GE, cswap_ge, c >= t)                                                        \
	X(n, FI_CSWAP_GT, cswap_gt, c > t)

/* Valid for any word. */
#define ATOMIC_COPIES(X, n)                                                                        \
	X(n, FI_ATOMIC_READ, read, t)                                                              \
	X(n, FI_ATOMIC_WRITE, write, v)

/* The operators of each class; some work on the type, some on its word. */
#define ATOMIC_INTEGER(X, n, w)                                                                    \
	ATOMIC_COPIES(X, w)                                                                        \
	ATOMIC_ARITHMETIC(X, w)                                                                    \
	ATOMIC_LOGICAL(X, w)                                                                       \
	ATOMIC_BITWISE(X, w)                                                                       \
	ATOMIC_MASKED(X, w)                                                                        \
	ATOMIC_EQUALITY(X, w)                                                                      \
	ATOMIC_EXTREMES(X, n)                                                                      \
	ATOMIC_ORDER(X, n)
#define ATOMIC_REAL(X, n, w)                                                                       \
	ATOMIC_COMPLEX(X, n, w)                                                                    \
	ATOMIC_EXTREMES(X, n)                                                                      \
	ATOMIC_ORDER(X, n)
#define ATOMIC_COMPLEX(X, n, w)                                                                    \
	ATOMIC_COPIES(X, w)                                                                        \
	ATOMIC_ARITHMETIC(X, n)                                                                    \
	ATOMIC_LOGICAL(X, n)                                                                       \
	ATOMIC_EQUALITY(X, n)

/* The atomic kernels: atomic_sum_u32 and so on. Integer types share the kernels of their words. */
#define ATOMIC_DECLARED(n, id, op, e)       atomic_kernel atomic_##op##_##n;
#define ATOMIC_INTEGER_DECLARED(type, n, w) ATOMIC_INTEGER(ATOMIC_DECLARED, n, w)
#define ATOMIC_REAL_DECLARED(type, n, w)    ATOMIC_REAL(ATOMIC_DECLARED, n, w)
#define ATOMIC_COMPLEX_DECLARED(type, n, w) ATOMIC_COMPLEX(ATOMIC_DECLARED, n, w)

ATOMIC_INTEGERS(ATOMIC_INTEGER_DECLARED)
ATOMIC_REALS(ATOMIC_REAL_DECLARED)
ATOMIC_COMPLEXES(ATOMIC_COMPLEX_DECLARED)

#endif
