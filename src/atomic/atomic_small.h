/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floating types smaller than float, computed with as floats.
 *
 * A result is rounded twice, to float's 24 bits and to the p <= 11 of the small format, and comes
 * out as if rounded once:
 *   Products have at most 2p <= 22 bits, so float holds them. Only bfloat16, with the exponents
 *   of float, can lose bits below 2^-149; that would show in a product of two 8-bit numbers that
 *   is 65535, and there is none.
 *   Sums that float cannot hold have one operand less than 2^(p-24) <= 2^-13 of the other. They lie
 *   so close to the larger, which the small format holds, that both roundings keep them on its
 *   side of the middle to the next number, which is 2^-(p+1) of it away at least. Sums that are
 *   subnormal in the small format float holds.
 *
 * Nothing branches and nothing depends on how the processor treats subnormal floats, bfloat16's
 * own subnormals aside, which are floats' too.
 */
#ifndef WEFT_ATOMIC_ATOMIC_SMALL_H
#define WEFT_ATOMIC_ATOMIC_SMALL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Sign, exponent and fraction follow from the highest bit down, as in a float. */
struct small {
	uint32_t sign;    /* that bit */
	uint32_t special; /* from here on infinity and NaN */
	uint32_t top;     /* what is too large becomes */
	uint32_t nan;     /* what NaN becomes */
	uint32_t normal;  /* below are subnormals; 0 where they are a float's: no case apart */
	float least;      /* the value of 1: the distance between subnormals */
	int up;           /* bits its sign is away from a float's */
	int cut;          /* bits of a float's fraction that it lacks */
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

/* What to add to the exponent of the small format, at its place in a float. */
static inline uint32_t small_rebias(struct small f)
{
	return (uint32_t)(127 - f.bias) << 23;
}

/* yes ? a : b, without the branch that would keep compilers from using vectors. */
static inline uint32_t small_select(bool yes, uint32_t a, uint32_t b)
{
	return b ^ ((a ^ b) & -(uint32_t)yes);
}

/* Exact. */
static inline float small_get(uint32_t x, struct small f)
{
	uint32_t size = x & (f.sign - 1), wide = size << f.cut;
	uint32_t subnormal = small_bits((float)(int32_t)size * f.least);

	wide = small_select(size >= f.special, wide | SMALL_INFINITY, wide + small_rebias(f));
	wide = small_select(size < f.normal, subnormal, wide);
	return small_float(wide | (x & f.sign) << f.up);
}

/* Rounds to nearest, ties to even. */
static inline uint32_t small_put(float x, struct small f)
{
	uint32_t bits = small_bits(x), size = bits & ~(UINT32_C(1) << 31);
	uint32_t half = (UINT32_C(1) << (f.cut - 1)) - 1 + (size >> f.cut & 1);
	uint32_t small = (size - small_rebias(f) + half) >> f.cut;
	/* Floats of this size lie `least` apart: the sum rounds as a subnormal does. */
	float comb = f.least * 0x1p23f;
	uint32_t subnormal = small_bits(small_float(size) + comb) - small_bits(comb);
	bool is_subnormal = f.normal && size < small_rebias(f) + (UINT32_C(1) << 23);

	small = small_select(small > f.top, f.top, small);
	small = small_select(size > SMALL_INFINITY, f.nan, small);
	small = small_select(is_subnormal, subnormal, small);
	return small | (bits >> f.up & f.sign);
}

#endif
