/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which blocks are kept for the next use, and that a block is long enough. */
#include "base/pool.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

static struct spare spare;

static void teardown(void)
{
	spare_fini(&spare);
	for (int i = 0; i < SPARE_BLOCKS; i++)
		ck_assert_ptr_null(spare.block[i]);
}

static void *used(size_t len)
{
	void *memory = spare_get(&spare, len);

	ck_assert_ptr_nonnull(memory);
	return memset(memory, 1, len);
}

static unsigned int kept(const void *memory)
{
	unsigned int count = 0;

	for (int i = 0; i < SPARE_BLOCKS; i++)
		count += spare.block[i] == memory;
	return count;
}

/* The shortest block that is long enough. */
START_TEST(fits)
{
	void *shorter = used(100000), *longer = used(200000), *other;

	spare_put(&spare, longer);
	spare_put(&spare, shorter);
	ck_assert(kept(shorter) && kept(longer));
	ck_assert_ptr_eq(used(90000), shorter);
	ck_assert_ptr_eq(used(90000), longer);
	other = used(90000);
	ck_assert(other != shorter && other != longer);
	spare_put(&spare, shorter);
	ck_assert_ptr_eq(used(100000), shorter);
	spare_put(&spare, shorter);
	free(longer);
	longer = used(300000);
	ck_assert(kept(shorter));
	free(other);
	free(longer);
}
END_TEST

/* A place is the longer block's. */
START_TEST(longest_stay)
{
	void *blocks[SPARE_BLOCKS + 1];

	for (size_t i = 0; i <= SPARE_BLOCKS; i++)
		blocks[i] = used((i + 1) * 100000);
	for (size_t i = 0; i <= SPARE_BLOCKS; i++)
		spare_put(&spare, blocks[i]);
	ck_assert(!kept(blocks[0]));
	for (size_t i = 1; i <= SPARE_BLOCKS; i++)
		ck_assert_uint_eq(kept(blocks[i]), 1);
	spare_put(&spare, malloc(100000));
	for (size_t i = 1; i <= SPARE_BLOCKS; i++)
		ck_assert_uint_eq(kept(blocks[i]), 1);
}
END_TEST

START_TEST(limits)
{
	void *memory = used(SPARE_MIN / 2);

	spare_put(&spare, memory);
	ck_assert(!kept(memory));
	memory = used(SPARE_MAX + 1);
	spare_put(&spare, memory);
	ck_assert(!kept(memory));
	memory = used(SPARE_MIN);
	spare_put(&spare, memory);
	ck_assert(kept(memory));
	/* Short ones take no long block. */
	memory = used(SPARE_MIN - 1);
	ck_assert_uint_eq(kept(NULL), SPARE_BLOCKS - 1);
	free(memory);
	spare_put(&spare, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_spare");
	TCase *tcase = tcase_create("spare");

	tcase_add_checked_fixture(tcase, NULL, teardown);
	tcase_add_test(tcase, fits);
	tcase_add_test(tcase, longest_stay);
	tcase_add_test(tcase, limits);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
