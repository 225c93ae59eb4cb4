/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The element types. NAME is the type in memory, at any alignment, and may alias. NAME_value is the type of
 * computations; NAME_get and NAME_put convert; NAME_truth converts a bool; NAME_times multiplies.
 */
#ifndef WEFT_ATOMIC_ATOMIC_TYPES_H
#define WEFT_ATOMIC_ATOMIC_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/*
 * Floating types smaller than float, computed in float.
 *
 * A result is rounded twice, to float's 24 bits and to the p <= 11 bits of the small format, but
 * equals one that is rounded once:
 *   Products have at most 2p <= 22 bits, so float holds them exactly. Only bfloat16, with float's
 *   exponents, can lose bits below 2^-149. That would matter only for a product of two 8-bit
 *   numbers that is 65535; there is none.
 *   A sum that float cannot hold has one operand smaller than 2^(p-24) <= 2^-13 of the other. The
 *   larger operand is a number of the small format, and the next middle between two such numbers is
 *   at least 2^-(p+1) of it away, so both roundings stay on one side of the middle. Float holds
 *   sums that are subnormal in the small format.
 *
 * The code does not branch. Its results do not depend on how the processor treats subnormal floats,
 * except for bfloat16's subnormals, which are also subnormal floats.
 */

/* A small format: sign, exponent and fraction, from the highest bit down, as in a float. */
struct small {
	uint32_t sign;    /* the sign bit */
	uint32_t special; /* smallest bit pattern of infinity and NaN */
	uint32_t top;     /* result of an overflow */
	uint32_t nan;     /* result for a NaN */
	uint32_t normal;  /* smaller patterns are subnormal; 0: as in a float, no special case */
	float least;      /* distance between subnormals: the value of pattern 1 */
	int up;           /* bits from its sign bit up to a float's */
	int cut;          /* bits of a float's fraction that the format lacks */
	int bias;         /* of the exponent */
};

/* clang-format off */
static const struct small small_f16 = {
	.sign = 0x8000, .special = 0x7c00, .top = 0x7c00, .nan = 0x7e00,
	.normal = 1 << 10, .least = 0x1p-24f, .up = 16, .cut = 13, .bias = 15,
};
static const struct small small_bf16 = {
	.sign = 0x8000, .special = 0x7f80, .top = 0x7f80, .nan = 0x7fc0,
	.normal = 0, .up = 16, .cut = 16, .bias = 127,
};
static const struct small small_e4m3 = {
	.sign = 0x80, .special = 0x7f, .top = 0x7f, .nan = 0x7f,
	.normal = 1 << 3, .least = 0x1p-9f, .up = 24, .cut = 20, .bias = 7,
};
static const struct small small_e5m2 = {
	.sign = 0x80, .special = 0x7c, .top = 0x7c, .nan = 0x7e,
	.normal = 1 << 2, .least = 0x1p-16f, .up = 24, .cut = 21, .bias = 15,
};
/* clang-format on */

#define SMALL_INFINITY 0x7f800000u /* of a float */

static inline uint32_t small_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static inline float small_float(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* Returns the number to add to the small format's exponent, shifted to a float's exponent. */
static inline uint32_t small_rebias(struct small f)
{
	return (uint32_t)(127 - f.bias) << 23;
}

/* yes ? a : b, without a branch, which would prevent vectorization. */
static inline uint32_t small_select(bool yes, uint32_t a, uint32_t b)
{
	return b ^ ((a ^ b) & -(uint32_t)yes);
}

/* Converts to float, exactly. */
static inline float small_get(uint32_t x, struct small f)
{
	uint32_t size = x & (f.sign - 1), wide = size << f.cut;
	uint32_t subnormal = small_bits((float)(int32_t)size * f.least);

	wide = small_select(size >= f.special, wide | SMALL_INFINITY, wide + small_rebias(f));
	wide = small_select(size < f.normal, subnormal, wide);
	return small_float(wide | (x & f.sign) << f.up);
}

/* Converts from float, rounding to nearest, ties to even. */
static inline uint32_t small_put(float x, struct small f)
{
	uint32_t bits = small_bits(x), size = bits & ~(UINT32_C(1) << 31);
	uint32_t half = (UINT32_C(1) << (f.cut - 1)) - 1 + (size >> f.cut & 1);
	uint32_t small = (size - small_rebias(f) + half) >> f.cut;
	/* Floats of this size are `least` apart, so the sum rounds to a multiple of `least`. */
	float comb = f.least * 0x1p23f;
	uint32_t subnormal = small_bits(small_float(size) + comb) - small_bits(comb);
	bool is_subnormal = f.normal && size < small_rebias(f) + (UINT32_C(1) << 23);

	small = small_select(small > f.top, f.top, small);
	small = small_select(size > SMALL_INFINITY, f.nan, small);
	small = small_select(is_subnormal, subnormal, small);
	return small | (bits >> f.up & f.sign);
}

/* ---- All types ---- */

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
