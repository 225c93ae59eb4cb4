/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef WEFT_ATOMIC_ATOMIC_SMALL_H
#define WEFT_ATOMIC_ATOMIC_SMALL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

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

static const struct small small_f16 = {
	.sign = 0x8000,
	.special = 0x7c00,
	.top = 0x7c00,
	.nan = 0x7e00,
	.normal = 1 << 10,
	.least = 0x1p-24f,
	.up = 16,
	.cut = 13,
	.bias = 15,
};

static const struct small small_bf16 = {
	.sign = 0x8000,
	.special = 0x7f80,
	.top = 0x7f80,
	.nan = 0x7fc0,
	.normal = 0,
	.up = 16,
	.cut = 16,
	.bias = 127,
};

static const struct small small_e4m3 = {
	.sign = 0x80,
	.special = 0x7f,
	.top = 0x7f,
	.nan = 0x7f,
	.normal = 1 << 3,
	.least = 0x1p-9f,
	.up = 24,
	.cut = 20,
	.bias = 7,
};

static const struct small small_e5m2 = {
	.sign = 0x80,
	.special = 0x7c,
	.top = 0x7c,
	.nan = 0x7e,
	.normal = 1 << 2,
	.least = 0x1p-16f,
	.up = 24,
	.cut = 21,
	.bias = 15,
};

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

#endif
