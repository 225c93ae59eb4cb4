/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that a sender learns which copy is cheaper: through the cache or around it. */
#include "hw/shm/shm_copy.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { PERCENT = 50, LEN = 16384 };

static struct shm_copier copier;

/* Times of both ways to copy SHM_COPY_LONG bytes. */
struct times {
	uint64_t through, around;
};

/* Simulates `count` copies that take these times. Returns how many went around the cache. */
static unsigned int copies(unsigned int count, struct times t)
{
	unsigned int around = 0;

	for (unsigned int i = 0; i < count; i++) {
		bool way = shm_copy_around(&copier);

		around += way;
		if (shm_copy_timed(&copier))
			shm_copy_took(&copier, way,
				      (way ? t.around : t.through) * LEN / SHM_COPY_LONG, LEN);
		copier.count++;
	}
	return around;
}

static void setup(void)
{
	copier = (struct shm_copier){.percent = PERCENT};
}

static const struct times near = {200, 180}, far = {900, 300};

START_TEST(through_while_near)
{
	copies(64, near);
	ck_assert_uint_le(copies(4096, near), 4096 / 32 + 8);
}
END_TEST

START_TEST(around_when_far)
{
	copies(64, far);
	ck_assert_uint_ge(copies(4096, far), 4096 - 4096 / 32 - 8);
}
END_TEST

/* The choice follows a change: both ways are tried again and again. */
START_TEST(follows)
{
	for (int i = 0; i < 3; i++) {
		copies(2048, near);
		ck_assert_uint_le(copies(1024, near), 1024 / 32 + 8);
		copies(2048, far);
		ck_assert_uint_ge(copies(1024, far), 1024 - 1024 / 32 - 8);
	}
}
END_TEST

/* One very long time, as of a descheduled process, does not change the choice. */
START_TEST(interrupted)
{
	struct times once = {10 * 1000 * 1000, 10 * 1000 * 1000};

	copies(2048, near);
	while (!shm_copy_timed(&copier))
		copies(1, near);
	copies(1, once);
	ck_assert_uint_le(copies(4096, near), 4096 / 32 + 8);
}
END_TEST

/* Around has to take less than PERCENT of the time to be chosen. */
START_TEST(not_for_little)
{
	copies(4096, (struct times){400, 220});
	ck_assert_uint_le(copies(4096, (struct times){400, 220}), 4096 / 32 + 8);
}
END_TEST

START_TEST(copies_all)
{
	unsigned char *from = malloc(3 * LEN), *to = malloc(3 * LEN);

	ck_assert(from && to);
	for (size_t i = 0; i < 3 * LEN; i++)
		from[i] = (unsigned char)(i * 13 + (i >> 8));
	for (size_t n = 0; n < 2000; n++) {
		size_t len = n * 37 % (2 * LEN), at = n % 80, src = n * 11 % 100;

		memset(to, 0, 3 * LEN);
		shm_copy(&copier, to + at, from + src, len);
		ck_assert_int_eq(memcmp(to + at, from + src, len), 0);
		ck_assert_uint_eq(to[at + len], 0);
	}
	/* Where there is one way only, nothing is measured. */
	ck_assert_int_eq(copier.cost[0] != 0, COPY_AROUND);
	ck_assert_int_eq(copier.cost[1] != 0, COPY_AROUND);
	free(from);
	free(to);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_shm_copy");
	TCase *tcase = tcase_create("copy");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, through_while_near);
	tcase_add_test(tcase, around_when_far);
	tcase_add_test(tcase, follows);
	tcase_add_test(tcase, interrupted);
	tcase_add_test(tcase, not_for_little);
	tcase_add_test(tcase, copies_all);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
