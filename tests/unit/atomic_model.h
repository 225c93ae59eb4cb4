/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference model of atomics, from fi_atomic(3) and the comment of atomic.h: the types, the valid
 * operators of each, values to try, and the result for one element, computed with integers.
 */
#ifndef UNIT_ATOMIC_MODEL_H
#define UNIT_ATOMIC_MODEL_H

#include <check.h>
#include <float.h>
#include <stdlib.h>

#include "atomic/atomic.h"
#include "atomic_soft.h"

#define TYPES   20
#define OPS     20
#define LARGEST 32  /* bytes of an element */
#define VALUES  128 /* at most, of a type */

enum class { SIGNED, UNSIGNED, REAL, COMPLEX };

/*
 * `cells` has a letter for each operator in the order of enum fi_op (MIN MAX SUM PROD LOR LAND BOR
 * BAND LXOR BXOR READ WRITE, CSWAP and its NE LE LT GE GT, MSWAP, DIFF). The letter names the valid
 * forms: b base and fetch, f fetch alone, c compare, - none.
 */
struct type {
	const char *name, *cells;
	size_t size;
	enum class class;
	struct format real; /* of a number, or of each half of a complex number */
};

static const struct type types[TYPES] = {
	[FI_INT8] = {"int8", "bbbbbbbbbbfbcccccccb", 1, SIGNED, {0}},
	[FI_UINT8] = {"uint8", "bbbbbbbbbbfbcccccccb", 1, UNSIGNED, {0}},
	[FI_INT16] = {"int16", "bbbbbbbbbbfbcccccccb", 2, SIGNED, {0}},
	[FI_UINT16] = {"uint16", "bbbbbbbbbbfbcccccccb", 2, UNSIGNED, {0}},
	[FI_INT32] = {"int32", "bbbbbbbbbbfbcccccccb", 4, SIGNED, {0}},
	[FI_UINT32] = {"uint32", "bbbbbbbbbbfbcccccccb", 4, UNSIGNED, {0}},
	[FI_INT64] = {"int64", "bbbbbbbbbbfbcccccccb", 8, SIGNED, {0}},
	[FI_UINT64] = {"uint64", "bbbbbbbbbbfbcccccccb", 8, UNSIGNED, {0}},
	[FI_INT128] = {"int128", "bbbbbbbbbbfbcccccccb", 16, SIGNED, {0}},
	[FI_UINT128] = {"uint128", "bbbbbbbbbbfbcccccccb", 16, UNSIGNED, {0}},
	[FI_FLOAT] = {"float", "bbbbbb--b-fbcccccc-b", 4, REAL, {4, 4, 23, 8, false, false}},
	[FI_DOUBLE] = {"double", "bbbbbb--b-fbcccccc-b", 8, REAL, {8, 8, 52, 11, false, false}},
	[FI_LONG_DOUBLE] =
		{"long double", "bbbbbb--b-fbcccccc-b", 16, REAL, {16, 10, 63, 15, true, false}},
	[FI_FLOAT16] = {"float16", "bbbbbb--b-fbcccccc-b", 2, REAL, {2, 2, 10, 5, false, false}},
	[FI_BFLOAT16] = {"bfloat16", "bbbbbb--b-fbcccccc-b", 2, REAL, {2, 2, 7, 8, false, false}},
	[FI_FLOAT8_E4M3] =
		{"float8 e4m3", "bbbbbb--b-fbcccccc-b", 1, REAL, {1, 1, 3, 4, false, true}},
	[FI_FLOAT8_E5M2] =
		{"float8 e5m2", "bbbbbb--b-fbcccccc-b", 1, REAL, {1, 1, 2, 5, false, false}},
	[FI_FLOAT_COMPLEX] =
		{"float complex", "--bbbb--b-fbcc-----b", 8, COMPLEX, {4, 4, 23, 8, false, false}},
	[FI_DOUBLE_COMPLEX] = {"double complex",
			       "--bbbb--b-fbcc-----b",
			       16,
			       COMPLEX,
			       {8, 8, 52, 11, false, false}},
	[FI_LONG_DOUBLE_COMPLEX] = {"long double complex",
				    "--bbbb--b-fbcc-----b",
				    32,
				    COMPLEX,
				    {16, 10, 63, 15, true, false}},
};

/* Returns whether the operator is valid for the type in this form. */
static inline bool model_has(const struct type *t, enum atomic_form form, enum fi_op op)
{
	static const char *const letters[] = {
		[ATOMIC_BASE] = "b", [ATOMIC_FETCH] = "bf", [ATOMIC_COMPARE] = "c"};

	return t->cells[op] != '-' && strchr(letters[form], t->cells[op]);
}

/*
 * Returns false for a long double that is not the x87's, as on Arm, or does not compute like it, as
 * under valgrind: skip the type.
 */
static inline bool model_holds(const struct type *t)
{
	volatile long double one = 1, next = one + LDBL_EPSILON;

	return t->real.used != 10 || (LDBL_MANT_DIG == 64 && next != one);
}

/* ---- Values as bits: an integer's, or those of one part of a floating-point number ----------- */

static inline int parts(const struct type *t)
{
	return t->class == COMPLEX ? 2 : 1;
}

static inline bits load(const struct type *t, const void *from, int part)
{
	bits raw = 0;

	if (t->class == REAL || t->class == COMPLEX)
		return soft_load(&t->real, (const char *)from + part * t->real.size);
	memcpy(&raw, from, t->size);
	return raw;
}

/* Stores a part's bits; padding becomes 0. */
static inline void store(const struct type *t, void *to, int part, bits raw)
{
	size_t size = parts(t) == 2 ? t->size / 2 : t->size;

	memcpy((char *)to + (size_t)part * size, &raw, size);
}

static inline struct soft number(const struct type *t, const void *from, int part)
{
	return soft_unpack(&t->real, load(t, from, part));
}

/* Compares two elements without padding. `any_nan`: any two NaNs are alike. */
static inline bool alike(const struct type *t, const void *a, const void *b, bool any_nan)
{
	for (int i = 0; i < parts(t); i++) {
		if (load(t, a, i) == load(t, b, i))
			continue;
		if (!any_nan || t->class == SIGNED || t->class == UNSIGNED ||
		    number(t, a, i).kind != NOT_A_NUMBER || number(t, b, i).kind != NOT_A_NUMBER)
			return false;
	}
	return true;
}

/* ---- The operators --------------------------------------------------------------------------- */

static inline bits sign_bit(const struct type *t)
{
	return (bits)1 << (8 * t->size - 1);
}

static inline enum order model_order(const struct type *t, const void *a, const void *b)
{
	bits flip = t->class == SIGNED ? sign_bit(t) : 0, x, y;

	if (t->class == REAL)
		return soft_compare(number(t, a, 0), number(t, b, 0));
	if (t->class == COMPLEX)
		return soft_compare(number(t, a, 0), number(t, b, 0)) == EQUAL &&
				       soft_compare(number(t, a, 1), number(t, b, 1)) == EQUAL
			       ? EQUAL
			       : UNORDERED;
	x = load(t, a, 0) ^ flip;
	y = load(t, b, 0) ^ flip;
	return x < y ? BELOW : x > y ? ABOVE : EQUAL;
}

static inline bool model_truth(const struct type *t, const void *a)
{
	for (int i = 0; i < parts(t); i++)
		if (t->class < REAL ? load(t, a, i) != 0 : !soft_is_zero(number(t, a, i)))
			return true;
	return false;
}

static inline bits model_integer(enum fi_op op, bits t, bits v, bits c)
{
	switch (op) {
	case FI_SUM:
		return t + v;
	case FI_DIFF:
		return t - v;
	case FI_PROD:
		return t * v;
	case FI_BOR:
		return t | v;
	case FI_BAND:
		return t & v;
	case FI_BXOR:
		return t ^ v;
	case FI_MSWAP:
		return (v & c) | (t & ~c);
	default:
		abort();
	}
}

static inline struct soft rounded(const struct format *f, struct soft x)
{
	return soft_unpack(f, soft_pack(f, x));
}

/* Returns the real (0) or imaginary (1) part of (a + bi)(c + di). */
static inline struct soft model_complex_product(const struct type *t, const void *x, const void *y,
						int part)
{
	struct soft a = number(t, x, 0), b = number(t, x, 1);
	struct soft c = number(t, y, 0), d = number(t, y, 1);

	if (part == 0)
		return soft_sum(rounded(&t->real, soft_product(a, c)),
				soft_negative(rounded(&t->real, soft_product(b, d))));
	return soft_sum(rounded(&t->real, soft_product(a, d)),
			rounded(&t->real, soft_product(b, c)));
}

static inline struct soft model_float(const struct type *t, enum fi_op op, const void *x,
				      const void *y, int part)
{
	struct soft a = number(t, x, part), b = number(t, y, part);

	switch (op) {
	case FI_SUM:
		return soft_sum(a, b);
	case FI_DIFF:
		return soft_sum(a, soft_negative(b));
	case FI_PROD:
		return t->class == COMPLEX ? model_complex_product(t, x, y, part)
					   : soft_product(a, b);
	default:
		abort();
	}
}

/* Returns whether `op` copies one of its inputs unchanged; *takes: the operand, else the target. */
static inline bool model_copies(const struct type *t, enum fi_op op, const void *target,
				const void *operand, const void *compare, bool *takes)
{
	bool swaps = op >= FI_CSWAP && op <= FI_CSWAP_GT;
	enum order o = swaps          ? model_order(t, compare, target)
		       : op <= FI_MAX ? model_order(t, operand, target)
				      : UNORDERED;

	*takes = op == FI_ATOMIC_WRITE || (op == FI_CSWAP_NE && o != EQUAL) ||
		 (o == EQUAL && (op == FI_CSWAP || op == FI_CSWAP_LE || op == FI_CSWAP_GE)) ||
		 (o == BELOW && (op == FI_MIN || op == FI_CSWAP_LE || op == FI_CSWAP_LT)) ||
		 (o == ABOVE && (op == FI_MAX || op == FI_CSWAP_GE || op == FI_CSWAP_GT));
	return swaps || op <= FI_MAX || op == FI_ATOMIC_READ || op == FI_ATOMIC_WRITE;
}

/*
 * Computes the new element. Returns true if any NaN is a right result for a NaN. `compare` is NULL
 * for operators without it.
 */
static inline bool model(const struct type *t, enum fi_op op, const void *target,
			 const void *operand, const void *compare, void *new)
{
	bool takes, yes;

	if (model_copies(t, op, target, operand, compare, &takes)) {
		memmove(new, takes ? operand : target, t->size);
		return false;
	}
	if (op == FI_LOR || op == FI_LAND || op == FI_LXOR) {
		int count = model_truth(t, target) + model_truth(t, operand);

		yes = op == FI_LOR ? count > 0 : op == FI_LAND ? count == 2 : count == 1;
		memset(new, 0, t->size);
		if (t->class < REAL)
			store(t, new, 0, yes);
		else if (yes)
			store(t, new, 0, soft_assemble(&t->real, false, soft_bias(&t->real), 0));
		return false;
	}
	for (int i = 0; i < parts(t); i++) {
		if (t->class < REAL)
			store(t, new, i,
			      model_integer(op, load(t, target, i), load(t, operand, i),
					    compare ? load(t, compare, i) : 0));
		else
			store(t, new, i,
			      soft_pack(&t->real, model_float(t, op, target, operand, i)));
	}
	return true;
}

/* ---- Values worth trying --------------------------------------------------------------------- */

/* Pseudo-random numbers, the same in every run. */
static inline uint64_t arbitrary(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return state >> 32 ^ state << 32;
}

static inline int integer_values(const struct type *t, bits *out)
{
	const bits top = sign_bit(t), half = (bits)1 << (4 * t->size);
	const bits edges[] = {
		0,           1,        2,           3,           top,
		top - 1,     top + 1,  0 - (bits)1, 0 - (bits)2, half,
		half - 1,    half + 1, top | half,  half >> 1,   half / 2 - 1,
		top / 3 * 2,
	};
	int n = sizeof(edges) / sizeof(edges[0]);

	memcpy(out, edges, sizeof(edges));
	for (int i = 0; i < 16; i++)
		out[n++] = (bits)arbitrary() << 64 | arbitrary();
	return n;
}

/*
 * Both signs of: zero; the least and greatest subnormal and normal numbers; numbers near one and
 * two; numbers of half, or one, unit in the last place of others; infinity; NaNs. Then random
 * numbers.
 */
static inline int real_values(const struct format *f, bits *out)
{
	const int top = (1 << f->exponent) - 1, bias = soft_bias(f), p = f->fraction;
	const bits all = ((bits)1 << p) - 1, half = (bits)1 << (p - 1);
	const struct {
		int exponent;
		bits fraction;
	} edges[] = {
		{0, 0},
		{0, 1},
		{0, all},
		{1, 0},
		{1, 1},
		{bias, 0},
		{bias, 1},
		{bias, all},
		{bias - 1, 0},
		{bias - 1, all},
		{bias + 1, 0},
		{bias + 1, half},
		{bias - p, 0},
		{bias - p - 1, 0},
		{bias - p - 1, 1},
		{bias - p - 2, all},
		{bias + p, 1},
		{bias + p + 1, 1},
		{top - 1, all},
		{top - 1, 0},
		{top - 2 - p, 0},
		{top - 3 - p, all},
		{top, 0},
		{top, half},
		{top, all},
		{top, 1},
		{top, all - 1},
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		for (int minus = 0; minus < 2 && edges[i].exponent >= 0; minus++)
			out[n++] = soft_assemble(f, minus, edges[i].exponent, edges[i].fraction);
	for (int i = 0; i < 12; i++)
		out[n++] =
			soft_assemble(f, i & 1, bias - p + (int)(arbitrary() % (2u * (unsigned)p)),
				      arbitrary() & all);
	return n;
}

/* Writes the values to try for the type to `out`, in a row. Returns their number. */
static inline int model_values(const struct type *t, void *out)
{
	bits raw[VALUES];
	int n = t->class < REAL ? integer_values(t, raw) : real_values(&t->real, raw);

	for (int i = 0; i < n; i++)
		for (int part = 0; part < parts(t); part++)
			store(t, (char *)out + (size_t)i * t->size, part,
			      raw[part ? (i * 7 + 3) % n : i]);
	return n;
}

#endif
