/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which ranges are found again, which are replaced, and which are evicted. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/ranges.h"

#define MANY  40    /* ranges in the random test */
#define STEPS 20000 /* steps of it */
#define SPAN  200   /* bytes of its address space */

static struct ranges r;
static const char me, other;

static void open_ranges(size_t bytes, size_t count)
{
	ck_assert(ranges_init(&r, bytes, count));
}

/* Enters a range that is in use. Returns NULL if refused. */
static struct range *make(uintptr_t from, uintptr_t to, unsigned int rights)
{
	struct range *range = calloc(1, sizeof(*range));

	*range = (struct range){.owner = &me, .from = from, .to = to, .rights = rights};
	if (!ranges_enter(&r, range)) {
		free(range);
		return NULL;
	}
	range->ready = true;
	return range;
}

/* Enters a range and releases it: cached, not in use. */
static struct range *leave(uintptr_t from, uintptr_t to, unsigned int rights)
{
	struct range *range = make(from, to, rights);

	ck_assert_ptr_nonnull(range);
	ranges_put(&r, range);
	return range;
}

static bool found(uintptr_t from, uintptr_t to, unsigned int rights)
{
	struct range *range = ranges_find(&r, &me, from, to, rights);

	if (range)
		ranges_put(&r, range);
	return range;
}

/* Frees the evicted ranges. Returns their number. */
static int outs(void)
{
	struct range *range;
	int n = 0;

	for (; (range = ranges_next_out(&r, &me)); n++)
		free(range);
	return n;
}

static void close_ranges(void)
{
	ranges_drop_owner(&r, &me);
	outs();
	ck_assert_uint_eq(r.count, 0);
	ck_assert_uint_eq(r.bytes, 0);
	ranges_fini(&r);
}

START_TEST(what_lies_inside_is_found)
{
	open_ranges(SIZE_MAX, 10);
	leave(100, 200, 1);
	ck_assert(found(100, 200, 1));
	ck_assert(found(100, 200, 0));
	ck_assert(found(150, 151, 1));
	ck_assert(!found(99, 200, 1));
	ck_assert(!found(100, 201, 1));
	ck_assert(!found(200, 201, 1));
	ck_assert(!found(100, 200, 3));
	ck_assert_ptr_null(ranges_find(&r, &other, 100, 200, 1));
	close_ranges();
}
END_TEST

START_TEST(a_long_one_is_found_behind_short_ones)
{
	open_ranges(SIZE_MAX, 10);
	leave(0, 1000, 0);
	for (uintptr_t at = 10; at < 50; at += 10)
		leave(at, at + 5, 1);
	ck_assert(found(45, 900, 0));
	ck_assert(!found(45, 900, 1));
	ck_assert(found(40, 45, 1));
	close_ranges();
}
END_TEST

START_TEST(one_in_the_making_is_not_found)
{
	struct range *range;

	open_ranges(SIZE_MAX, 10);
	range = make(100, 200, 1);
	range->ready = false;
	ck_assert(!found(100, 200, 1));
	range->ready = true;
	ck_assert(found(100, 200, 1));
	ranges_put(&r, range);
	close_ranges();
}
END_TEST

START_TEST(the_least_recently_used_makes_way)
{
	open_ranges(SIZE_MAX, 3);
	leave(100, 110, 0);
	leave(200, 210, 0);
	leave(300, 310, 0);
	ck_assert(found(100, 110, 0));
	leave(400, 410, 0);
	ck_assert(!found(200, 210, 0));
	ck_assert(found(100, 110, 0));
	ck_assert(found(300, 310, 0));
	ck_assert_int_eq(outs(), 1);
	close_ranges();
}
END_TEST

START_TEST(bytes_are_bounded)
{
	open_ranges(100, 10);
	ck_assert_ptr_null(make(0, 101, 0));
	leave(0, 60, 0);
	leave(1000, 1040, 0);
	ck_assert_int_eq(outs(), 0);
	leave(2000, 2001, 0);
	ck_assert_int_eq(outs(), 1);
	ck_assert(!found(0, 60, 0));
	leave(3000, 3100, 0);
	ck_assert_int_eq(outs(), 2);
	close_ranges();
}
END_TEST

START_TEST(what_is_in_use_stays)
{
	struct range *a, *b;

	open_ranges(SIZE_MAX, 2);
	a = make(100, 110, 0);
	b = make(200, 210, 0);
	ck_assert_ptr_null(make(300, 310, 0));
	ck_assert(found(100, 110, 0));
	ranges_drop_idle(&r);
	ck_assert_int_eq(outs(), 0);
	ranges_put(&r, b);
	ranges_drop_idle(&r);
	ck_assert_int_eq(outs(), 1);
	ranges_put(&r, a);
	close_ranges();
}
END_TEST

START_TEST(dropped_in_use_goes_with_its_last_user)
{
	struct range *a;

	open_ranges(SIZE_MAX, 10);
	a = make(100, 200, 0);
	ck_assert_ptr_eq(ranges_find(&r, &me, 100, 200, 0), a);
	ranges_drop(&r, 199, 300);
	ck_assert(!found(100, 200, 0));
	ck_assert_int_eq(outs(), 0);
	ranges_put(&r, a);
	ck_assert_int_eq(outs(), 0);
	ranges_put(&r, a);
	ck_assert_int_eq(outs(), 1);
	close_ranges();
}
END_TEST

START_TEST(a_better_one_takes_the_place)
{
	open_ranges(SIZE_MAX, 10);
	leave(100, 200, 1);
	leave(100, 200, 2); /* merged: has both rights */
	ck_assert_int_eq(outs(), 1);
	ck_assert(found(100, 200, 3));
	leave(50, 300, 1); /* not merged: the other range has a right more */
	ck_assert_int_eq(outs(), 0);
	leave(50, 300, 2);
	ck_assert_int_eq(outs(), 2);
	close_ranges();
}
END_TEST

/* The reference: a search through all ranges. */
static struct range *all[MANY];

static bool naive_find(uintptr_t from, uintptr_t to, unsigned int rights)
{
	for (int i = 0; i < MANY; i++)
		if (all[i] && all[i]->listed && all[i]->from <= from && all[i]->to >= to &&
		    !(rights & ~all[i]->rights))
			return true;
	return false;
}

static bool naive_touch(uintptr_t from, uintptr_t to)
{
	for (int i = 0; i < MANY; i++)
		if (all[i] && all[i]->listed && all[i]->from < to && all[i]->to > from)
			return true;
	return false;
}

static void forget_outs(void)
{
	struct range *range;

	while ((range = ranges_next_out(&r, &me))) {
		ck_assert(!range->listed && !range->users);
		for (int i = 0; i < MANY; i++)
			if (all[i] == range)
				all[i] = NULL;
		free(range);
	}
}

static void check_sums(void)
{
	size_t count = 0, bytes = 0;

	for (int i = 0; i < MANY; i++)
		if (all[i] && all[i]->listed) {
			count++;
			bytes += all[i]->to - all[i]->from;
		}
	ck_assert_uint_eq(r.count, count);
	ck_assert_uint_eq(r.bytes, bytes);
	ck_assert_uint_le(count, MANY / 2);
	ck_assert_uint_le(bytes, 1000);
}

/* A random step. */
static void step(void)
{
	uintptr_t from = (uintptr_t)(random() % SPAN), to = from + 1 + (uintptr_t)(random() % 50);
	unsigned int rights = (unsigned int)random() % 4;
	struct range **slot = &all[random() % MANY];

	ck_assert_int_eq(found(from, to, rights), naive_find(from, to, rights));
	ck_assert_int_eq(ranges_touch(&r, from, to), naive_touch(from, to));
	switch (random() % 4) {
	case 0:
		ranges_drop(&r, from, to);
		ck_assert(!naive_touch(from, to));
		break;
	case 1:
		if (*slot && (*slot)->users)
			ranges_put(&r, *slot);
		break;
	default:
		if (!*slot)
			*slot = make(from, to, rights);
		break;
	}
	forget_outs();
	check_sums();
}

START_TEST(a_random_walk_agrees)
{
	srandom(1);
	open_ranges(1000, MANY / 2);
	for (int i = 0; i < STEPS; i++)
		step();
	for (int i = 0; i < MANY; i++)
		if (all[i] && all[i]->users)
			ranges_put(&r, all[i]);
	close_ranges();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_ranges");
	TCase *tc = tcase_create("ranges");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, what_lies_inside_is_found);
	tcase_add_test(tc, a_long_one_is_found_behind_short_ones);
	tcase_add_test(tc, one_in_the_making_is_not_found);
	tcase_add_test(tc, the_least_recently_used_makes_way);
	tcase_add_test(tc, bytes_are_bounded);
	tcase_add_test(tc, what_is_in_use_stays);
	tcase_add_test(tc, dropped_in_use_goes_with_its_last_user);
	tcase_add_test(tc, a_better_one_takes_the_place);
	tcase_add_test(tc, a_random_walk_agrees);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
