/* SPDX-License-Identifier: BSD-2-Clause */
/* The atomic kernels of numbers: integers; floating types, real and complex. */
#include "atomic/atomic_make.h"

#define EACH_u8   each_u8
#define EACH_i8   each_u8
#define EACH_u16  each_u16
#define EACH_i16  each_u16
#define EACH_u32  each_u32
#define EACH_i32  each_u32
#define EACH_u64  each_u64
#define EACH_i64  each_u64
#define EACH_u128 atomic_each_u128
#define EACH_i128 atomic_each_u128

#define WORD(w)                                                                                    \
	ATOMIC_MAKE_NUMBER(w)                                                                      \
	ATOMIC_MAKE_BITS(w)
#define INTEGER(type, n, w) ATOMIC_MAKE_ORDER(n)

WORD(u8)
WORD(u16)
WORD(u32)
WORD(u64)
WORD(u128)
ATOMIC_INTEGERS(INTEGER)

#define EACH_f32  each_u32
#define EACH_f64  each_u64
#define EACH_f80  atomic_each_u128
#define EACH_f16  atomic_each_u16
#define EACH_bf16 atomic_each_u16
#define EACH_e4m3 atomic_each_u8
#define EACH_e5m2 atomic_each_u8
#define EACH_cf32 each_u64
#define EACH_cf64 atomic_each_u128
#define EACH_cf80 atomic_each_u256

#define REAL(type, n, w)                                                                           \
	ATOMIC_MAKE_NUMBER(n)                                                                      \
	ATOMIC_MAKE_ORDER(n)
#define COMPLEX(type, n, w) ATOMIC_MAKE_NUMBER(n)

ATOMIC_REALS(REAL)
ATOMIC_COMPLEXES(COMPLEX)
