/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves when reads of an empty queue, without a wait, yield the core to other threads. */
#include <sched.h>
#include <time.h>

#include "core/wait.h"
#include "suite.h"

#define POLL_NS  100   /* a read that finds nothing */
#define WORK_NS  20000 /* the application's work between two reads */
#define SLICE_NS 5000  /* a yield while other threads want the core */
#define YIELD_NS 500   /* a yield while no thread wants the core */

/* A simulated clock: other load on the machine has no effect. */
static uint64_t now_ns = 1000000000;
static bool wanted;
static unsigned int yields;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int sched_yield(void)
{
	yields++;
	now_ns += wanted ? SLICE_NS : YIELD_NS;
	return 0;
}

/* Returns the number of empty reads, `ns` apart, until a yield; at most `most`. */
static unsigned int polls(struct waiter *w, unsigned int ns, unsigned int most)
{
	static unsigned int rounds;
	unsigned int count = 0, before = yields;

	while (yields == before && count < most) {
		now_ns += ns;
		count++;
		if (wait_polled(w, ++rounds))
			wait_give_way(w, rounds, 0);
	}
	return count;
}

static unsigned int vain_polls(struct waiter *w)
{
	return polls(w, POLL_NS, 10 * WAIT_POLLS_ALONE);
}

START_TEST(often_where_others_want_the_core)
{
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_NONE, NULL), 0);
	/* The first round only records that nothing has come: no yield. */
	ck_assert_uint_eq(vain_polls(&w), 2 * WAIT_POLLS_ALONE);
	ck_assert_uint_eq(vain_polls(&w), WAIT_POLLS_ALONE);
	wanted = true;
	ck_assert_uint_eq(vain_polls(&w), WAIT_POLLS_ALONE);
	ck_assert_uint_eq(vain_polls(&w), WAIT_POLLS_OVERSUBSCRIBED);
	wanted = false;
	ck_assert_uint_eq(vain_polls(&w), WAIT_POLLS_OVERSUBSCRIBED);
	ck_assert_uint_eq(vain_polls(&w), WAIT_POLLS_ALONE);
	wait_fini(&w);
}
END_TEST

START_TEST(never_between_other_work)
{
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_NONE, NULL), 0);
	wanted = true;
	ck_assert_uint_eq(polls(&w, WORK_NS, 10 * WAIT_POLLS_ALONE), 10 * WAIT_POLLS_ALONE);
	ck_assert_uint_eq(yields, 0);
	wait_fini(&w);
}
END_TEST

START_TEST(never_where_something_comes)
{
	unsigned int rounds = 0;
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_NONE, NULL), 0);
	for (uint64_t seen = 1; seen < 100; seen++) {
		rounds += WAIT_POLLS_ALONE;
		now_ns += (uint64_t)POLL_NS * WAIT_POLLS_ALONE;
		ck_assert(wait_polled(&w, rounds));
		wait_give_way(&w, rounds, seen);
		ck_assert(!wait_polled(&w, rounds));
	}
	ck_assert_uint_eq(yields, 0);
	wait_fini(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait_polls");
	TCase *tcase = tcase_create("polls");

	tcase_add_test(tcase, often_where_others_want_the_core);
	tcase_add_test(tcase, never_between_other_work);
	tcase_add_test(tcase, never_where_something_comes);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
