/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which operators are valid for which types, and the sizes of types. */
#include <limits.h>
#include <stdio.h>

#include "atomic_model.h"
#include "suite.h"

/* Counted by hand: ten integer types, seven real ones, three complex ones. */
#define BASE    (10 * 12 + 7 * 9 + 3 * 7)
#define FETCH   (10 * 13 + 7 * 10 + 3 * 8)
#define COMPARE (10 * 7 + 7 * 6 + 3 * 2)

START_TEST(cells_are_the_expected)
{
	static const int expected[ATOMIC_FORMS] = {
		[ATOMIC_BASE] = BASE, [ATOMIC_FETCH] = FETCH, [ATOMIC_COMPARE] = COMPARE};
	int count[ATOMIC_FORMS] = {0};

	for (int form = 0; form < ATOMIC_FORMS; form++) {
		for (int op = 0; op < OPS; op++) {
			for (int type = 0; type < TYPES; type++) {
				bool found = atomic_find(form, op, type) != NULL;

				ck_assert_msg(found == model_has(&types[type], form, op),
					      "form %d operator %d type %s: %s", form, op,
					      types[type].name, found ? "there" : "missing");
				ck_assert_uint_eq(atomic_size_for(form, op, type),
						  found ? types[type].size : 0);
				count[form] += found;
			}
		}
		ck_assert_int_eq(count[form], expected[form]);
	}
	printf("base %d, fetch %d, compare %d cells\n", count[ATOMIC_BASE], count[ATOMIC_FETCH],
	       count[ATOMIC_COMPARE]);
}
END_TEST

START_TEST(plain_cells_are_those_of_base)
{
	for (int op = 0; op < OPS; op++)
		for (int type = 0; type < TYPES; type++)
			ck_assert_msg((plain_find(op, type) != NULL) ==
					      model_has(&types[type], ATOMIC_BASE, op),
				      "operator %d type %s", op, types[type].name);
}
END_TEST

static const int strange[] = {-1, 20, 21, 255, FI_VOID, 257, 1 << 20, INT_MAX, INT_MIN};

START_TEST(strange_numbers_find_nothing)
{
	const int s = strange[_i];

	for (int i = 0; i < 20; i++) {
		ck_assert_ptr_null(atomic_find(ATOMIC_BASE, s, i));
		ck_assert_ptr_null(atomic_find(ATOMIC_FETCH, i, s));
		ck_assert_ptr_null(atomic_find(s, i, i));
		ck_assert_ptr_null(plain_find(s, i));
		ck_assert_ptr_null(plain_find(i, s));
	}
	ck_assert_ptr_null(atomic_find(ATOMIC_FORMS, FI_SUM, FI_INT8));
	ck_assert_uint_eq(atomic_size(s), 0);
}
END_TEST

START_TEST(sizes)
{
	for (int type = 0; type < TYPES; type++)
		ck_assert_uint_eq(atomic_size(type), types[type].size);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("atomic_cells");
	TCase *all = tcase_create("all");

	tcase_add_test(all, cells_are_the_expected);
	tcase_add_test(all, plain_cells_are_those_of_base);
	tcase_add_loop_test(all, strange_numbers_find_nothing, 0,
			    sizeof(strange) / sizeof(strange[0]));
	tcase_add_test(all, sizes);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
