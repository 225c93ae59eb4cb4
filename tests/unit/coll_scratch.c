/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that the longest scratch is kept for the next operation, within limits. */
#include "coll/scratch.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(longest_is_kept)
{
	struct scratch spare = {NULL, 0}, a, b;
	void *kept;

	ck_assert_int_eq(scratch_take(&a, &spare, 1000), 0);
	ck_assert_int_eq(scratch_take(&b, &spare, 5000), 0);
	memset(a.memory, 1, a.len);
	memset(b.memory, 2, b.len);
	ck_assert_ptr_ne(a.memory, b.memory);
	kept = b.memory;
	scratch_give(&a, &spare);
	scratch_give(&b, &spare);
	ck_assert_ptr_null(a.memory);
	ck_assert_ptr_null(b.memory);
	ck_assert_ptr_eq(spare.memory, kept);
	ck_assert_int_eq(scratch_take(&a, &spare, 4000), 0);
	ck_assert_ptr_eq(a.memory, kept);
	ck_assert_uint_eq(a.len, 5000);
	ck_assert_ptr_null(spare.memory);
	/* A longer one is new, and the kept one stays for others. */
	scratch_give(&a, &spare);
	ck_assert_int_eq(scratch_take(&b, &spare, 6000), 0);
	ck_assert_ptr_ne(b.memory, kept);
	ck_assert_ptr_eq(spare.memory, kept);
	memset(b.memory, 3, b.len);
	free(spare.memory);
	free(b.memory);
}
END_TEST

START_TEST(too_long_to_keep)
{
	struct scratch spare = {NULL, 0}, a;

	for (size_t more = 0; more < 2; more++) {
		ck_assert_int_eq(scratch_take(&a, &spare, SCRATCH_KEPT_MAX + more), 0);
		scratch_give(&a, &spare);
		ck_assert_uint_eq(spare.len, more ? 0 : SCRATCH_KEPT_MAX);
		free(spare.memory);
		spare = (struct scratch){NULL, 0};
	}
}
END_TEST

START_TEST(no_memory)
{
	struct scratch spare = {NULL, 0}, a;

	ck_assert_int_ne(scratch_take(&a, &spare, SIZE_MAX / 2), 0);
	ck_assert_ptr_null(a.memory);
	ck_assert_uint_eq(a.len, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_scratch");
	TCase *tcase = tcase_create("scratch");

	tcase_add_test(tcase, longest_is_kept);
	tcase_add_test(tcase, too_long_to_keep);
	tcase_add_test(tcase, no_memory);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
