/* SPDX-License-Identifier: BSD-2-Clause */
/* Edge values of arithmetic for each type of atomics. Needs eval.h. */
#ifndef API_EDGES_H
#define API_EDGES_H

#define EDGES     16
#define EDGES_MAX 256 /* for types of one byte: all values */

typedef unsigned char edge[EVAL_ELEMENT];

static inline void edges_integer(enum fi_datatype type, edge *out)
{
	size_t bits = 8 * eval_size(type);
	eval_word sign = (eval_word)1 << (bits - 1), half = (eval_word)1 << (bits / 2);
	eval_word fives = ~(eval_word)0 / 3;
	eval_word digits = (eval_word)UINT64_C(0xfedcba9876543210) * half + 0x6789abcd;
	eval_word values[EDGES] = {
		0,        1,        2,    3,        ~(eval_word)0, ~(eval_word)1, sign,   sign + 1,
		sign - 1, sign - 2, half, half - 1, fives,         fives << 1,    digits, 10};

	for (size_t i = 0; i < EDGES; i++)
		memcpy(out[i], &values[i], eval_size(type));
}

/*
 * All IEEE formats place sign, exponent and mantissa alike, so one table of bit patterns fits all.
 */
static inline void edges_float(size_t size, int exponent, int mantissa, edge *out)
{
	uint64_t sign = UINT64_C(1) << (exponent + mantissa), step = UINT64_C(1) << mantissa;
	uint64_t infinite = sign - step, one = ((UINT64_C(1) << (exponent - 1)) - 1) << mantissa;
	uint64_t values[EDGES] = {0, /* most values appear with both signs */
				  sign,
				  one,
				  one | sign,
				  one + 1,               /* 1 + epsilon */
				  one + step + step / 2, /* 3 */
				  1,                     /* the least denormal */
				  1 | sign,
				  step - 1, /* the largest denormal */
				  step,     /* the least normal */
				  infinite - 1,
				  (infinite - 1) | sign,
				  infinite,
				  infinite | sign,
				  sign - 1, /* NaN */
				  (sign - 2) | sign};

	for (size_t i = 0; i < EDGES; i++)
		memcpy(out[i], &values[i], size);
}

/* Fills the padding bytes of long doubles with other values, to show that padding is ignored. */
static inline void edges_long(edge *out)
{
	long double values[EDGES] = {0,
				     -0.0L,
				     1,
				     -1,
				     1 + LDBL_EPSILON,
				     3,
				     LDBL_TRUE_MIN,
				     -LDBL_TRUE_MIN,
				     LDBL_MIN - LDBL_TRUE_MIN,
				     LDBL_MIN,
				     LDBL_MAX,
				     -LDBL_MAX,
				     INFINITY,
				     -INFINITY,
				     NAN,
				     1e300L};

	for (size_t i = 0; i < EDGES; i++) {
		memset(out[i], (int)i + 0xd0, sizeof(long double));
		memcpy(out[i], &values[i], EVAL_LONG_BYTES);
	}
}

static inline void edges_real(enum fi_datatype type, edge *out)
{
	struct eval_format f;

	switch (type) {
	case FI_FLOAT:
		edges_float(4, 8, 23, out);
		break;
	case FI_DOUBLE:
		edges_float(8, 11, 52, out);
		break;
	case FI_LONG_DOUBLE:
		edges_long(out);
		break;
	default:
		f = eval_format(type);
		edges_float(eval_size(type), f.exponent, f.mantissa, out);
	}
}

/* Pairs each real part with a different imaginary part. The first four are the signed zeros. */
static inline void edges_complex(enum fi_datatype type, edge *out)
{
	size_t half = eval_size(eval_part(type));
	edge parts[EDGES] = {{0}};

	edges_real(eval_part(type), parts);
	for (size_t i = 0; i < EDGES; i++) {
		memcpy(out[i], parts[i < 4 ? i & 1 : i], half);
		memcpy(out[i] + half, parts[i < 4 ? i / 2 : (i * 5 + 3) % EDGES], half);
	}
}

/* Fills `out`. Returns the number of values. */
static inline size_t edges(enum fi_datatype type, edge out[EDGES_MAX])
{
	memset(out, 0, sizeof(edge) * EDGES_MAX);
	if (eval_size(type) == 1) {
		for (unsigned int i = 0; i < EDGES_MAX; i++)
			out[i][0] = (unsigned char)i;
		return EDGES_MAX;
	}
	if (eval_class(type) == EVAL_INTEGER)
		edges_integer(type, out);
	else if (eval_class(type) == EVAL_REAL)
		edges_real(type, out);
	else
		edges_complex(type, out);
	return EDGES;
}

#endif
