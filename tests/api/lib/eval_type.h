/* SPDX-License-Identifier: BSD-2-Clause */
/* The types of atomics: their kinds and sizes. Needs api.h. */
#ifndef API_EVAL_TYPE_H
#define API_EVAL_TYPE_H

#include <float.h>

enum eval_class { EVAL_INTEGER, EVAL_REAL, EVAL_COMPLEX };

#define EVAL_LONG_BYTES (LDBL_MANT_DIG == 64 ? 10 : sizeof(long double)) /* without padding */
#define EVAL_ELEMENT    32 /* maximum bytes of an element */

static inline enum eval_class eval_class(enum fi_datatype type)
{
	switch (type) {
	case FI_FLOAT_COMPLEX:
	case FI_DOUBLE_COMPLEX:
	case FI_LONG_DOUBLE_COMPLEX:
		return EVAL_COMPLEX;
	case FI_FLOAT:
	case FI_DOUBLE:
	case FI_LONG_DOUBLE:
	case FI_FLOAT16:
	case FI_BFLOAT16:
	case FI_FLOAT8_E4M3:
	case FI_FLOAT8_E5M2:
		return EVAL_REAL;
	default:
		return EVAL_INTEGER;
	}
}

static inline size_t eval_size(enum fi_datatype type)
{
	switch (type) {
	case FI_INT8:
	case FI_UINT8:
	case FI_FLOAT8_E4M3:
	case FI_FLOAT8_E5M2:
		return 1;
	case FI_INT16:
	case FI_UINT16:
	case FI_FLOAT16:
	case FI_BFLOAT16:
		return 2;
	case FI_INT32:
	case FI_UINT32:
	case FI_FLOAT:
		return 4;
	case FI_INT128:
	case FI_UINT128:
		return 16;
	case FI_LONG_DOUBLE:
		return sizeof(long double);
	case FI_LONG_DOUBLE_COMPLEX:
		return 2 * sizeof(long double);
	case FI_DOUBLE_COMPLEX:
		return 2 * sizeof(double);
	default:
		return 8;
	}
}

/* Returns the type of the two parts of a complex number. */
static inline enum fi_datatype eval_part(enum fi_datatype type)
{
	return type == FI_FLOAT_COMPLEX    ? FI_FLOAT
	       : type == FI_DOUBLE_COMPLEX ? FI_DOUBLE
					   : FI_LONG_DOUBLE;
}

static inline bool eval_signed(enum fi_datatype type)
{
	return type == FI_INT8 || type == FI_INT16 || type == FI_INT32 || type == FI_INT64 ||
	       type == FI_INT128;
}

static inline __attribute__((noreturn)) void eval_no(void)
{
	api_fail("the evaluator knows no such operation");
}

#endif
