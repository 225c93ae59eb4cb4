/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The types of elements. NAME is what lies in memory, at any alignment and whatever type the
 * application gives it; NAME_value is what is computed with; NAME_get and NAME_put lead from one to
 * the other; NAME_times multiplies.
 */
#ifndef WEFT_ATOMIC_ATOMIC_TYPES_H
#define WEFT_ATOMIC_ATOMIC_TYPES_H

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
	static inline value n##_times(value t, value v)                                            \
	{                                                                                          \
		return product;                                                                    \
	}

#define ATOMIC_NATIVE(n, type, product) ATOMIC_NUMBER(n, type, type, x, x, product)
#define ATOMIC_PAIR(n, type)                                                                       \
	ATOMIC_NATIVE(n, type,                                                                     \
		      __builtin_complex(__real__ t *__real__ v - __imag__ t * __imag__ v,          \
					__real__ t * __imag__ v + __imag__ t * __real__ v))
#define ATOMIC_SMALL(n, memory)                                                                    \
	ATOMIC_NUMBER(n, memory, float, small_get(x, small_##n), small_put(x, small_##n), t *v)

/* Words. Small integers are promoted to int, which must not overflow: 0u makes that unsigned. */
ATOMIC_NATIVE(u8, uint8_t, (0u + t) * v)
ATOMIC_NATIVE(u16, uint16_t, (0u + t) * v)
ATOMIC_NATIVE(u32, uint32_t, t *v)
ATOMIC_NATIVE(u64, uint64_t, t *v)
ATOMIC_NATIVE(u128, unsigned __int128, t *v)

/* A word that is only moved. */
typedef struct {
	u128 half[2];
} __attribute__((may_alias)) u256;

/* Only the order of these is looked at: words do the rest. */
ATOMIC_VALUE(i8, int8_t, int8_t, x)
ATOMIC_VALUE(i16, int16_t, int16_t, x)
ATOMIC_VALUE(i32, int32_t, int32_t, x)
ATOMIC_VALUE(i64, int64_t, int64_t, x)
ATOMIC_VALUE(i128, __int128, __int128, x)

ATOMIC_NATIVE(f32, float, t *v)
ATOMIC_NATIVE(f64, double, t *v)
ATOMIC_NATIVE(f80, long double, t *v)
ATOMIC_SMALL(f16, uint16_t)
ATOMIC_SMALL(bf16, uint16_t)
ATOMIC_SMALL(e4m3, uint8_t)
ATOMIC_SMALL(e5m2, uint8_t)

ATOMIC_PAIR(cf32, float _Complex)
ATOMIC_PAIR(cf64, double _Complex)
ATOMIC_PAIR(cf80, long double _Complex)

#endif
