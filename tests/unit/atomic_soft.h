/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Floating-point arithmetic with integers alone, the reference for the atomic kernels. Works for
 * any format with at most 64 bits of significand. Sums and products are exact and rounded once, to
 * nearest, ties to even.
 */
#ifndef UNIT_ATOMIC_SOFT_H
#define UNIT_ATOMIC_SOFT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned __int128 bits;

/* Layout of a real number in memory. */
struct format {
	int size;     /* bytes in memory */
	int used;     /* bytes of `size` without padding */
	int fraction; /* bits of the significand below its leading bit */
	int exponent; /* bits */
	bool leading; /* the leading bit is stored too */
	bool finite;  /* no infinities, a single NaN */
};

enum kind { FINITE, INFINITE, NOT_A_NUMBER };

/* `mant` (may be 0) * 2^`exp` if FINITE; the other kinds use neither. */
struct soft {
	enum kind kind;
	bool minus;
	int exp;
	bits mant;
};

static inline int soft_bias(const struct format *f)
{
	return (1 << (f->exponent - 1)) - 1;
}

/* Returns the exponent of the last bit of subnormal numbers. */
static inline int soft_least(const struct format *f)
{
	return 1 - soft_bias(f) - f->fraction;
}

static inline bits soft_load(const struct format *f, const void *from)
{
	bits raw = 0;

	memcpy(&raw, from, (size_t)f->used);
	return raw;
}

static inline struct soft soft_unpack(const struct format *f, bits raw)
{
	int top = (1 << f->exponent) - 1, exponent;
	bits fraction = raw & (((bits)1 << f->fraction) - 1);
	struct soft x = {0};

	raw >>= f->fraction + f->leading;
	exponent = (int)(raw & (bits)top);
	x.minus = raw >> f->exponent & 1;
	if (exponent == top && !f->finite) {
		x.kind = fraction ? NOT_A_NUMBER : INFINITE;
	} else if (exponent == top && fraction + 1 == (bits)1 << f->fraction) {
		x.kind = NOT_A_NUMBER;
	} else {
		x.mant = fraction | (exponent ? (bits)1 << f->fraction : 0);
		x.exp = soft_least(f) + (exponent ? exponent - 1 : 0);
	}
	return x;
}

static inline bits soft_assemble(const struct format *f, bool minus, int exponent, bits fraction)
{
	bits raw = (bits)minus << f->exponent | (bits)exponent;

	raw = raw << f->leading | (f->leading && exponent > 0);
	return raw << f->fraction | fraction;
}

static inline bits soft_nan(const struct format *f)
{
	return soft_assemble(f, false, (1 << f->exponent) - 1,
			     f->finite ? ((bits)1 << f->fraction) - 1
				       : (bits)1 << (f->fraction - 1));
}

static inline bits soft_infinity(const struct format *f, bool minus)
{
	return f->finite ? soft_nan(f) : soft_assemble(f, minus, (1 << f->exponent) - 1, 0);
}

static inline int soft_length(bits x)
{
	uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;

	return high ? 128 - __builtin_clzll(high) : low ? 64 - __builtin_clzll(low) : 0;
}

/* Returns x / 2^n, rounded to nearest, ties to even. */
static inline bits soft_shift(bits x, int n)
{
	bits rest, half;

	if (n <= 0)
		return x << -n;
	if (n > 128)
		return 0;
	half = (bits)1 << (n - 1);
	rest = x & (half | (half - 1));
	x = n == 128 ? 0 : x >> n;
	return x + (rest > half || (rest == half && (x & 1)));
}

static inline bits soft_pack(const struct format *f, struct soft x)
{
	bits one = (bits)1 << f->fraction, mant;
	int exp, exponent;

	if (x.kind == NOT_A_NUMBER)
		return soft_nan(f);
	if (x.kind == INFINITE)
		return soft_infinity(f, x.minus);
	if (!x.mant)
		return soft_assemble(f, x.minus, 0, 0);
	exp = x.exp + soft_length(x.mant) - (f->fraction + 1);
	if (exp < soft_least(f))
		exp = soft_least(f);
	mant = soft_shift(x.mant, exp - x.exp);
	if (mant == one << 1) {
		mant = one;
		exp++;
	}
	exponent = mant < one ? 0 : exp - soft_least(f) + 1;
	mant &= one - 1;
	if (exponent >= (1 << f->exponent) - !f->finite ||
	    soft_unpack(f, soft_assemble(f, false, exponent, mant)).kind != FINITE)
		return soft_infinity(f, x.minus);
	return soft_assemble(f, x.minus, exponent, mant);
}

static inline struct soft soft_negative(struct soft x)
{
	x.minus = !x.minus;
	return x;
}

static inline struct soft soft_product(struct soft a, struct soft b)
{
	struct soft x = {.minus = a.minus != b.minus};

	if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER)
		x.kind = NOT_A_NUMBER;
	else if (a.kind == INFINITE)
		x.kind = b.kind == FINITE && !b.mant ? NOT_A_NUMBER : INFINITE;
	else if (b.kind == INFINITE)
		x.kind = !a.mant ? NOT_A_NUMBER : INFINITE;
	x.mant = a.mant * b.mant;
	x.exp = a.exp + b.exp;
	return x;
}

/* Adds finite numbers other than zero; `a` has the larger exponent. */
static inline struct soft soft_finite_sum(struct soft a, struct soft b)
{
	int apart = a.exp - b.exp, up = apart < 62 ? apart : 62, down = apart - up;
	bits low = b.mant, high = a.mant << up;
	struct soft x = {.minus = a.minus, .exp = a.exp - up};

	if (down > 0) /* sticky: the last bit stands for all bits shifted out */
		low = (down < 128 ? low >> down : 0) |
		      (down >= 128 || low & (((bits)1 << down) - 1) ? 1 : 0);
	if (a.minus == b.minus) {
		x.mant = high + low;
	} else if (high >= low) {
		x.mant = high - low;
	} else {
		x.mant = low - high;
		x.minus = b.minus;
	}
	if (!x.mant)
		x.minus = false;
	return x;
}

static inline struct soft soft_sum(struct soft a, struct soft b)
{
	struct soft nan = {.kind = NOT_A_NUMBER};

	if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER)
		return nan;
	if (a.kind == INFINITE)
		return b.kind == INFINITE && a.minus != b.minus ? nan : a;
	if (b.kind == INFINITE)
		return b;
	if (!a.mant && !b.mant) {
		a.minus = a.minus && b.minus;
		return a;
	}
	if (!a.mant || !b.mant)
		return a.mant ? a : b;
	return a.exp >= b.exp ? soft_finite_sum(a, b) : soft_finite_sum(b, a);
}

enum order { BELOW, EQUAL, ABOVE, UNORDERED };

static inline bool soft_is_zero(struct soft x)
{
	return x.kind == FINITE && !x.mant;
}

static inline enum order soft_compare(struct soft a, struct soft b)
{
	struct soft d;

	if (a.kind == NOT_A_NUMBER || b.kind == NOT_A_NUMBER)
		return UNORDERED;
	if (a.kind == INFINITE && b.kind == INFINITE && a.minus == b.minus)
		return EQUAL;
	d = soft_sum(a, soft_negative(b));
	return soft_is_zero(d) ? EQUAL : d.minus ? BELOW : ABOVE;
}

#endif
