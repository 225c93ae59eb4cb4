/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reference results of atomics on real and complex numbers. Reals are computed as long double,
 * complex numbers as pairs. Small floats are decoded to long double; encoding searches the nearest
 * code. Needs api.h.
 */
#ifndef API_EVAL_FLOAT_H
#define API_EVAL_FLOAT_H

#include <complex.h>
#include <math.h>

#include "eval_type.h"

/* ---- Small floats ---------------------------------------------------------------------------- */

struct eval_format {
	int exponent, mantissa; /* bits, below the sign bit */
	bool infinite;          /* has infinities; otherwise all ones is the only NaN */
};

static inline struct eval_format eval_format(enum fi_datatype type)
{
	switch (type) {
	case FI_FLOAT16:
		return (struct eval_format){5, 10, true};
	case FI_BFLOAT16:
		return (struct eval_format){8, 7, true};
	case FI_FLOAT8_E5M2:
		return (struct eval_format){5, 2, true};
	case FI_FLOAT8_E4M3:
		return (struct eval_format){4, 3, false};
	default:
		eval_no();
	}
}

/* Returns the first unsigned code that is not a finite number. */
static inline unsigned int eval_top(struct eval_format f)
{
	unsigned int ones = (1u << (f.exponent + f.mantissa)) - 1;

	return f.infinite ? ones - (1u << f.mantissa) + 1 : ones;
}

/* Returns the value of an unsigned code, as if every code were a finite number. */
static inline long double eval_worth(struct eval_format f, unsigned int code)
{
	int bias = (1 << (f.exponent - 1)) - 1;
	int exponent = (int)(code >> f.mantissa);
	unsigned int mantissa = code & ((1u << f.mantissa) - 1);

	if (exponent)
		mantissa |= 1u << f.mantissa;
	else
		exponent = 1;
	return ldexpl(mantissa, exponent - bias - f.mantissa);
}

static inline long double eval_decode(struct eval_format f, unsigned int code)
{
	unsigned int sign = 1u << (f.exponent + f.mantissa), size = code & (sign - 1);
	long double x = eval_worth(f, size);

	if (size >= eval_top(f))
		x = f.infinite && size == eval_top(f) ? INFINITY : NAN;
	return code & sign ? -x : x;
}

/*
 * Returns the code nearest to `x`, the even one of two. Overflow gives infinity, or NaN without
 * infinities.
 */
static inline unsigned int eval_encode(struct eval_format f, long double x)
{
	unsigned int low = 0, high = eval_top(f), sign = 1u << (f.exponent + f.mantissa);
	long double size = fabsl(x), to_low, to_high;

	if (isnan(x))
		return sign - 1;
	if (!signbit(x))
		sign = 0;
	if (size >= eval_worth(f, high))
		return sign | high;
	while (high - low > 1) { /* low <= size < high */
		unsigned int middle = (low + high) / 2;

		if (eval_worth(f, middle) <= size)
			low = middle;
		else
			high = middle;
	}
	to_low = size - eval_worth(f, low);
	to_high = eval_worth(f, high) - size;
	if (to_high < to_low || (to_high == to_low && low & 1))
		low = high;
	return sign | low;
}

/* ---- Real numbers ---------------------------------------------------------------------------- */

static inline long double eval_get(enum fi_datatype type, const void *from)
{
	uint16_t code = 0;
	double d;
	float f;
	long double x;

	switch (type) {
	case FI_FLOAT:
		memcpy(&f, from, sizeof(f));
		return f;
	case FI_DOUBLE:
		memcpy(&d, from, sizeof(d));
		return d;
	case FI_LONG_DOUBLE:
		memcpy(&x, from, sizeof(x));
		return x;
	default:
		memcpy(&code, from, eval_size(type) == 1 ? 1 : 2);
		return eval_decode(eval_format(type), code);
	}
}

static inline void eval_put(enum fi_datatype type, void *to, long double x)
{
	double d = (double)x;
	float f = (float)x;
	uint16_t code;

	switch (type) {
	case FI_FLOAT:
		memcpy(to, &f, sizeof(f));
		break;
	case FI_DOUBLE:
		memcpy(to, &d, sizeof(d));
		break;
	case FI_LONG_DOUBLE:
		memcpy(to, &x, EVAL_LONG_BYTES);
		break;
	default:
		code = (uint16_t)eval_encode(eval_format(type), x);
		memcpy(to, &code, eval_size(type) == 1 ? 1 : 2);
	}
}

/*
 * Sum, difference or product. For all types but double, rounding from long double to the type gives
 * the same result as rounding once. Double is computed as double. Float results are rounded here,
 * because a complex product continues with them.
 */
static inline long double eval_arithmetic(enum fi_datatype type, enum fi_op op, long double t,
					  long double b)
{
	volatile double dt = (double)t, db = (double)b;
	long double x = op == FI_SUM ? t + b : op == FI_DIFF ? t - b : t * b;

	if (type == FI_DOUBLE)
		x = op == FI_SUM ? dt + db : op == FI_DIFF ? dt - db : dt * db;
	return type == FI_FLOAT ? (float)x : x;
}

static inline void eval_real(enum fi_datatype type, enum fi_op op, void *target, const void *buf)
{
	long double t = eval_get(type, target), b = eval_get(type, buf);
	bool tt = t != 0, bb = b != 0; /* a NaN is true */

	switch (op) {
	case FI_MIN:
	case FI_MAX:
		if (op == FI_MIN ? b < t : b > t)
			memcpy(target, buf, eval_size(type));
		break;
	case FI_LOR:
		eval_put(type, target, tt || bb);
		break;
	case FI_LAND:
		eval_put(type, target, tt && bb);
		break;
	case FI_LXOR:
		eval_put(type, target, (tt && !bb) || (!tt && bb));
		break;
	case FI_SUM:
	case FI_DIFF:
	case FI_PROD:
		eval_put(type, target, eval_arithmetic(type, op, t, b));
		break;
	default:
		eval_no();
	}
}

/* ---- Complex numbers ------------------------------------------------------------------------- */

struct eval_pair {
	long double re, im;
};

static inline struct eval_pair eval_get_pair(enum fi_datatype type, const void *from)
{
	enum fi_datatype part = eval_part(type);

	return (struct eval_pair){eval_get(part, from),
				  eval_get(part, (const char *)from + eval_size(part))};
}

static inline void eval_put_pair(enum fi_datatype type, void *to, long double re, long double im)
{
	enum fi_datatype part = eval_part(type);

	eval_put(part, to, re);
	eval_put(part, (char *)to + eval_size(part), im);
}

/* The C product of complex numbers. A complex number has the memory layout of its pair of parts. */
static inline struct eval_pair eval_language_product(enum fi_datatype part, struct eval_pair t,
						     struct eval_pair b)
{
	long double complex x, y;

	memcpy(&x, &t, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	if (part == FI_FLOAT)
		x = (float complex)x * (float complex)y;
	else if (part == FI_DOUBLE)
		x = (double complex)x * (double complex)y;
	else
		x *= y;
	return (struct eval_pair){creall(x), cimagl(x)};
}

/* The textbook product. With OTHER=1 a NaN result may be an infinity instead, as in C (Annex G). */
static inline struct eval_pair eval_product(enum fi_datatype type, struct eval_pair t,
					    struct eval_pair b)
{
	enum fi_datatype part = eval_part(type);
	long double rr = eval_arithmetic(part, FI_PROD, t.re, b.re);
	long double ii = eval_arithmetic(part, FI_PROD, t.im, b.im);
	long double ri = eval_arithmetic(part, FI_PROD, t.re, b.im);
	long double ir = eval_arithmetic(part, FI_PROD, t.im, b.re);
	struct eval_pair p = {eval_arithmetic(part, FI_DIFF, rr, ii),
			      eval_arithmetic(part, FI_SUM, ri, ir)};

	if (api_other() && isnan(p.re) && isnan(p.im))
		p = eval_language_product(part, t, b);
	return p;
}

static inline void eval_complex(enum fi_datatype type, enum fi_op op, void *target, const void *buf)
{
	struct eval_pair t = eval_get_pair(type, target), b = eval_get_pair(type, buf), p;
	bool tt = t.re != 0 || t.im != 0, bb = b.re != 0 || b.im != 0;
	enum fi_datatype part = eval_part(type);

	switch (op) {
	case FI_LOR:
		eval_put_pair(type, target, tt || bb, 0);
		break;
	case FI_LAND:
		eval_put_pair(type, target, tt && bb, 0);
		break;
	case FI_LXOR:
		eval_put_pair(type, target, (tt && !bb) || (!tt && bb), 0);
		break;
	case FI_SUM:
	case FI_DIFF:
		eval_put_pair(type, target, eval_arithmetic(part, op, t.re, b.re),
			      eval_arithmetic(part, op, t.im, b.im));
		break;
	case FI_PROD:
		p = eval_product(type, t, b);
		eval_put_pair(type, target, p.re, p.im);
		break;
	default:
		eval_no();
	}
}

#endif
