/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The element types. NAME is the type in memory, at any alignment, and may alias. NAME_value is the
 * type of computations; NAME_get and NAME_put convert; NAME_truth converts a bool; NAME_times
 * multiplies.
 */
#ifndef WEFT_ATOMIC_ATOMIC_TYPES_H
#define WEFT_ATOMIC_ATOMIC_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "atomic/atomic_small.h"

#define ATOMIC_VALUE(n, memory, value, get)                                                        \
	typedef memory n __attribute__((may_alias, aligned(1)));                                   \
	typedef value n##_value;                                                                   \
	static inline value n##_get(memory x)                                                      \
	{                                                                                          \
		return get;                                                                        \
	}

#define ATOMIC_NUMBER(n, memory, value, get, put, product)                                         \
	ATOMIC_VALUE(n, memory, value, get)                                                        \
	static inline memory n##_put(value x)                                                      \
	{                                                                                          \
		return put;                                                                        \
	}                                                                                          \
	static inline memory n##_truth(bool x)                                                     \
	{                                                                                          \
		return x ? n##_put(1) : n##_put(0);                                                \
	}                                                                                          \
	static inline value n##_times(value t, value v)                                            \
	{                                                                                          \
		return product;                                                                    \
	}

/* Words. Short words are promoted to int, whose product could overflow; 0u makes it unsigned. */
#define ATOMIC_WORD(n, type) ATOMIC_NUMBER(n, type, type, x, x, (0u + t) * v)

ATOMIC_WORD(u8, uint8_t)
ATOMIC_WORD(u16, uint16_t)
ATOMIC_WORD(u32, uint32_t)
ATOMIC_WORD(u64, uint64_t)
ATOMIC_WORD(u128, unsigned __int128)

/* This word is only moved. */
typedef struct {
	u128 half[2];
} __attribute__((may_alias)) u256;

/* Signed types are only compared; words do the rest. */
#define ATOMIC_SIGNED(n, type) ATOMIC_VALUE(n, type, type, x)

ATOMIC_SIGNED(i8, int8_t)
ATOMIC_SIGNED(i16, int16_t)
ATOMIC_SIGNED(i32, int32_t)
ATOMIC_SIGNED(i64, int64_t)
ATOMIC_SIGNED(i128, __int128)

#define ATOMIC_FLOAT(n, type) ATOMIC_NUMBER(n, type, type, x, x, (t) * (v))

ATOMIC_FLOAT(f32, float)
ATOMIC_FLOAT(f64, double)
ATOMIC_FLOAT(f80, long double)

#define ATOMIC_SMALL(n, type)                                                                      \
	ATOMIC_NUMBER(n, type, float, small_get(x, small_##n), small_put(x, small_##n), (t) * (v))

ATOMIC_SMALL(f16, uint16_t)
ATOMIC_SMALL(bf16, uint16_t)
ATOMIC_SMALL(e4m3, uint8_t)
ATOMIC_SMALL(e5m2, uint8_t)

/* Volatile: a compiler must not fuse product and sum, which rounds once on some machines only. */
#define ATOMIC_PAIR(n, type, half)                                                                 \
	static inline type n##_product(type t, type v)                                             \
	{                                                                                          \
		const volatile half ac = __real__(t) * __real__(v),                                \
				    bd = __imag__(t) * __imag__(v);                                \
		const volatile half ad = __real__(t) * __imag__(v),                                \
				    bc = __imag__(t) * __real__(v);                                \
                                                                                                   \
		return __builtin_complex((half)(ac - bd), (half)(ad + bc));                        \
	}                                                                                          \
	ATOMIC_NUMBER(n, type, type, x, x, n##_product(t, v))

ATOMIC_PAIR(cf32, float _Complex, float)
ATOMIC_PAIR(cf64, double _Complex, double)
ATOMIC_PAIR(cf80, long double _Complex, long double)

#endif
