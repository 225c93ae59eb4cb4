/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a waiter polls for a bounded time after the last part of a long message, then sleeps.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "core/wait.h"
#include "suite.h"

#define SPIN_US 1000

/* A simulated clock: other load on the machine has no effect. */
static uint64_t now_ns = 1000000000;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int sched_yield(void)
{
	now_ns += 500;
	return 0;
}

/* A simulated sleep, which nothing ends early. */
int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	(void)fds;
	(void)count;
	now_ns += (uint64_t)timeout * 1000000;
	return 0;
}

static uint64_t begin, length;    /* begin and length of the wait, us */
static uint64_t polled;           /* us from `begin` to the last check without a sleep after it */
static unsigned int before_sleep; /* checks with a sleep after them */
static uint64_t until;            /* a part comes at each check before this time (us) of the wait */
static uint64_t taking_ns;        /* time to read a part, ns */

static bool is_over(struct wait_for *what, bool arm)
{
	uint64_t now = clock_us() - begin;

	now_ns += 100;
	if (now < until) {
		what->parts++;
		now_ns += taking_ns;
	}
	if (arm)
		before_sleep++;
	else
		polled = now;
	return now >= length;
}

static void wait_for_us(struct waiter *w, uint64_t us)
{
	/* `nap`: sleeps are short and repeated. */
	struct wait_for what = {.ready = is_over, .nap = 1};

	before_sleep = 0;
	length = us;
	begin = clock_us();
	ck_assert_int_eq(wait_until(w, &what, wait_end(-1)), 0);
}

START_TEST(as_long_as_parts_come)
{
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	until = 20 * SPIN_US;
	wait_for_us(&w, until);
	ck_assert_uint_eq(before_sleep, 0);
	wait_for_us(&w, 2 * until);
	ck_assert_uint_gt(before_sleep, 0);
	ck_assert_uint_ge(polled, until + SPIN_US - 2);
	ck_assert_uint_le(polled, until + SPIN_US + 2);
	taking_ns = 2000 * SPIN_US;
	wait_for_us(&w, until + 8 * SPIN_US / 10);
	ck_assert_uint_eq(before_sleep, 0);
	until = 0;
	wait_for_us(&w, 20 * SPIN_US);
	ck_assert_uint_gt(before_sleep, 0);
	ck_assert_uint_le(polled, SPIN_US + 2);
	wait_fini(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait_parts");
	TCase *tcase = tcase_create("parts");

	setenv("FI_WEFT_SPIN_US", "1000", 1);
	tcase_set_timeout(tcase, 20);
	tcase_add_test(tcase, as_long_as_parts_come);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
