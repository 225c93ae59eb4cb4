/* SPDX-License-Identifier: BSD-2-Clause */
/* The atomic kernels of integers. */
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
