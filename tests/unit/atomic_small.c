/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves arithmetic of 8 and 16 bit floating-point types: every number, and known results. */
#include "atomic_model.h"
#include "suite.h"

#define ALL16 65536

static const struct {
	enum fi_datatype type;
	enum fi_op op;
	uint16_t target, operand, expected;
} known[] = {
	{FI_FLOAT16, FI_SUM, 0x3c00, 0x4000, 0x4200},  /* 1 + 2 = 3 */
	{FI_FLOAT16, FI_SUM, 0x7bff, 0x4c00, 0x7c00},  /* 65504 + 16: a tie, to infinity */
	{FI_FLOAT16, FI_SUM, 0x7bff, 0x4bff, 0x7bff},  /* a little less: stays finite */
	{FI_FLOAT16, FI_SUM, 0x3c00, 0x1000, 0x3c00},  /* 1 + 2^-11: ties to even, down */
	{FI_FLOAT16, FI_SUM, 0x3c01, 0x1000, 0x3c02},  /* ties to even, up */
	{FI_FLOAT16, FI_PROD, 0x0001, 0x3800, 0x0000}, /* half the least number */
	{FI_FLOAT16, FI_PROD, 0x0003, 0x3800, 0x0002}, /* half of three times the least number */
	{FI_FLOAT16, FI_PROD, 0x8001, 0x3801,
	 0x8001}, /* a little more than half the least number */
	{FI_FLOAT16, FI_PROD, 0x0400, 0x3bff, 0x0400}, /* up to the least normal number */
	{FI_FLOAT16, FI_PROD, 0x5c00, 0x5c00, 0x7c00}, /* 256 * 256 */
	{FI_FLOAT16, FI_DIFF, 0x3c00, 0x3c00, 0x0000},
	{FI_FLOAT16, FI_LAND, 0x8000, 0x3c00, 0x0000}, /* -0 is false */
	{FI_FLOAT16, FI_LOR, 0x7e00, 0x0000, 0x3c00},  /* NaN is true */
	{FI_BFLOAT16, FI_SUM, 0x3f80, 0x4000, 0x4040}, /* 1 + 2 = 3 */
	{FI_BFLOAT16, FI_SUM, 0x3f80, 0x3b80, 0x3f80}, /* 1 + 2^-8 */
	{FI_BFLOAT16, FI_SUM, 0x3f81, 0x3b80, 0x3f82},
	{FI_BFLOAT16, FI_SUM, 0x7f7f, 0x7f7f, 0x7f80},  /* infinity */
	{FI_BFLOAT16, FI_PROD, 0x0001, 0x4000, 0x0002}, /* subnormal numbers */
	{FI_BFLOAT16, FI_PROD, 0x0003, 0x3f00, 0x0002},
	{FI_BFLOAT16, FI_LXOR, 0x0000, 0x4120, 0x3f80},
	{FI_FLOAT8_E4M3, FI_SUM, 0x38, 0x40, 0x44},  /* 1 + 2 = 3 */
	{FI_FLOAT8_E4M3, FI_SUM, 0x7e, 0x58, 0x7e},  /* 448 + 16: a tie, down to 448 */
	{FI_FLOAT8_E4M3, FI_SUM, 0x7e, 0x59, 0x7f},  /* 448 + 18: NaN */
	{FI_FLOAT8_E4M3, FI_SUM, 0x78, 0x78, 0x7f},  /* 256 + 256 */
	{FI_FLOAT8_E4M3, FI_PROD, 0x01, 0x30, 0x00}, /* half the least number, 2^-9 */
	{FI_FLOAT8_E4M3, FI_PROD, 0x03, 0x30, 0x02},
	{FI_FLOAT8_E4M3, FI_PROD, 0x08, 0x37, 0x08}, /* 2^-6 * 15/16 */
	{FI_FLOAT8_E4M3, FI_MAX, 0x7c, 0x7e, 0x7e},  /* 384, 448: finite in this format */
	{FI_FLOAT8_E5M2, FI_SUM, 0x3c, 0x40, 0x42},  /* 1 + 2 = 3 */
	{FI_FLOAT8_E5M2, FI_SUM, 0x7b, 0x6b, 0x7b},  /* 57344 + 3584 */
	{FI_FLOAT8_E5M2, FI_SUM, 0x7b, 0x6c, 0x7c},  /* 57344 + 4096: a tie, to infinity */
	{FI_FLOAT8_E5M2, FI_PROD, 0x01, 0x38, 0x00},
	{FI_FLOAT8_E5M2, FI_PROD, 0x03, 0x38, 0x02},
	{FI_FLOAT8_E5M2, FI_LAND, 0x7c, 0x7d, 0x3c},
};

START_TEST(known_results)
{
	uint16_t operand = known[_i].operand, target = known[_i].target, old = 0;
	struct atomic_args a = {.target = &target, .operand = &operand, .result = &old, .count = 1};

	atomic_find(ATOMIC_FETCH, known[_i].op, known[_i].type)(&a);
	ck_assert_uint_eq(target, known[_i].expected);
	ck_assert_uint_eq(old, known[_i].target);
	target = known[_i].target;
	plain_find(known[_i].op, known[_i].type)(&target, &operand, 1);
	ck_assert_uint_eq(target, known[_i].expected);
}
END_TEST

static unsigned char all[2 * ALL16], other[2 * ALL16], third[2 * ALL16], expected[2 * ALL16];
static unsigned char got[2 * ALL16], old[2 * ALL16];
static bool any_nan[ALL16];

static void check_all(const struct type *t, enum fi_op op, const unsigned char *array)
{
	for (size_t i = 0; i < ALL16; i++)
		if (!alike(t, &array[i * t->size], &expected[i * t->size], any_nan[i]))
			ck_abort_msg("%s operator %d: %x and %x gave %x, not %x", t->name, op,
				     (unsigned int)load(t, &all[i * t->size], 0),
				     (unsigned int)load(t, &other[i * t->size], 0),
				     (unsigned int)load(t, &array[i * t->size], 0),
				     (unsigned int)load(t, &expected[i * t->size], 0));
}

/*
 * Checks that the operator turns all[i] into expected[i], with other[i] as operand or compare
 * value.
 */
static void check_op(const struct type *t, enum fi_op op)
{
	enum fi_datatype type = (enum fi_datatype)(t - types);
	bool compares = model_has(t, ATOMIC_COMPARE, op);
	struct atomic_args a = {
		.target = got,
		.operand = compares ? third : other,
		.compare = compares ? other : NULL,
		.result = old,
		.count = ALL16,
	};

	for (size_t i = 0; i < ALL16 * t->size; i += t->size)
		any_nan[i / t->size] = model(t, op, &all[i], (const unsigned char *)a.operand + i,
					     &other[i], &expected[i]);
	memcpy(got, all, sizeof(got));
	atomic_find(compares ? ATOMIC_COMPARE : ATOMIC_FETCH, op, type)(&a);
	check_all(t, op, got);
	ck_assert_mem_eq(old, all, ALL16 * t->size);
	if (!model_has(t, ATOMIC_BASE, op))
		return;
	memcpy(got, all, sizeof(got));
	plain_find(op, type)(got, other, ALL16);
	check_all(t, op, got);
}

static const enum fi_datatype sixteen[] = {FI_FLOAT16, FI_BFLOAT16};
static const enum fi_datatype eight[] = {FI_FLOAT8_E4M3, FI_FLOAT8_E5M2};

/*
 * Every number (of both signs) with operands that are hard to round (of one sign), and with random
 * ones.
 */
START_TEST(sixteen_bits)
{
	const struct type *t = &types[sixteen[_i]];
	uint16_t values[VALUES];
	int n = model_values(t, values);

	for (uint32_t i = 0; i < ALL16; i++)
		memcpy(&all[2 * i], &(uint16_t){(uint16_t)i}, 2);
	for (int k = 0; k < n + 8; k += 2) {
		for (uint32_t i = 0; i < ALL16; i++)
			memcpy(&other[2 * i],
			       &(uint16_t){k < n ? values[k] : (uint16_t)arbitrary()}, 2);
		check_op(t, FI_SUM);
		check_op(t, FI_DIFF);
		check_op(t, FI_PROD);
	}
}
END_TEST

/* Every number with every number. */
START_TEST(eight_bits)
{
	const struct type *t = &types[eight[_i]];

	for (uint32_t i = 0; i < ALL16; i++) {
		all[i] = (unsigned char)i;
		other[i] = (unsigned char)(i >> 8);
		third[i] = (unsigned char)arbitrary();
	}
	for (int op = 0; op < OPS; op++)
		if (t->cells[op] != '-')
			check_op(t, op);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("atomic_small");
	TCase *tcase = tcase_create("all");

	tcase_set_timeout(tcase, 15);
	tcase_add_loop_test(tcase, known_results, 0, sizeof(known) / sizeof(known[0]));
	tcase_add_loop_test(tcase, sixteen_bits, 0, 2);
	tcase_add_loop_test(tcase, eight_bits, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
