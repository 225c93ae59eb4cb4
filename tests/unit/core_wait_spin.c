/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how long a waiter spins before it yields its core, alone and oversubscribed. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/wait.h"
#include "suite.h"

#define SLICE_US 5    /* time slice of others after a yield */
#define LONG_US  2000 /* time slice of a thread that computes */

static bool wanted;               /* other threads want the core */
static bool hogged;               /* the next yield takes LONG_US */
static unsigned int looks, kept;  /* all checks; checks before the first yield */
static unsigned int before_sleep; /* checks with a sleep after them */
static unsigned int parts;        /* atomic: parts of a long message that have come */
static unsigned int at;           /* number of the check that finds something */

int sched_yield(void)
{
	uint64_t end = clock_us() + (hogged ? LONG_US : SLICE_US);

	if (!kept)
		kept = looks;
	while ((wanted || hogged) && clock_us() < end)
		;
	hogged = false;
	return 0;
}

static bool has_come(struct wait_for *what, bool arm)
{
	before_sleep += arm;
	what->parts = __atomic_load_n(&parts, __ATOMIC_RELAXED);
	return ++looks >= at;
}

/*
 * Waits for an event that check number `look` finds. Returns the number of checks before a yield.
 */
static unsigned int wait_for_look(struct waiter *w, unsigned int look)
{
	/* `nap`: a sleep is short, in case others take the core for long. */
	struct wait_for what = {.ready = has_come, .nap = 1};

	looks = kept = 0;
	at = look;
	ck_assert_int_eq(wait_until(w, &what, wait_end(-1)), 0);
	ck_assert_uint_eq(looks, look);
	return kept ? kept : looks;
}

/* Opens a waiter that has learned that its core is oversubscribed, and has just got the core. */
static void open_crowded(struct waiter *w)
{
	ck_assert_int_eq(wait_init(w, FI_WAIT_FD, NULL), 0);
	wanted = true;
	ck_assert_uint_lt(wait_for_look(w, 30), 30);
}

START_TEST(alone_it_looks_a_little)
{
	struct waiter w;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	ck_assert_uint_eq(wait_for_look(&w, 10), 10);
	ck_assert_uint_lt(wait_for_look(&w, 100), 100);
	wait_fini(&w);
}
END_TEST

/* After its first check a waiter yields: threads on the same core have to run to send. */
START_TEST(who_has_had_it_lets_it_go)
{
	struct waiter w;

	open_crowded(&w);
	ck_assert_uint_eq(wait_for_look(&w, 1), 1);
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(wait_for_look(&w, 2), 1);
		ck_assert_uint_eq(wait_for_look(&w, 1), 1);
	}
	wait_fini(&w);
}
END_TEST

/* Once in a time slice a waiter spins: messages from other cores may be on their way. */
START_TEST(who_was_given_it_keeps_it)
{
	struct waiter w;

	open_crowded(&w);
	for (int i = 0; i < 100; i++) {
		ck_assert_uint_eq(wait_for_look(&w, 30), 30);
		ck_assert_uint_eq(wait_for_look(&w, 2), 1);
	}
	wait_fini(&w);
}
END_TEST

/* A waiter that spun in vain seldom tries again, but does from time to time. */
START_TEST(who_kept_it_in_vain_does_not_again)
{
	unsigned int tries = 0;
	struct waiter w;

	open_crowded(&w);
	for (int i = 0; i < 20; i++)
		wait_for_look(&w, 70);
	for (int i = 0; i < 640; i++)
		tries += wait_for_look(&w, 70) > 1;
	ck_assert_uint_gt(tries, 0);
	ck_assert_uint_lt(tries, 640 / 16);
	for (int i = 0; i < 640; i++)
		if (wait_for_look(&w, 30) == 30)
			ck_assert_uint_eq(wait_for_look(&w, 2), 1);
	ck_assert_uint_eq(wait_for_look(&w, 30), 30);
	wait_fini(&w);
}
END_TEST

static int waiting;   /* atomic */
static bool in_parts; /* the thread that wakes the waiter brings a part */

static void *wake(void *waiter)
{
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE)) {
		usleep(2000);
		if (in_parts)
			__atomic_add_fetch(&parts, 1, __ATOMIC_RELAXED);
		wait_signal(waiter);
	}
	return NULL;
}

/* Returns how many of 1000 checks have a sleep after them. */
static unsigned int sleeps_of_woken(bool brings_parts)
{
	struct wait_for what = {.ready = has_come, .nap = 1};
	struct waiter w;
	pthread_t thread;

	ck_assert_int_eq(wait_init(&w, FI_WAIT_FD, NULL), 0);
	waiting = 1;
	in_parts = brings_parts;
	looks = before_sleep = 0;
	at = 1000;
	hogged = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, wake, &w), 0);
	ck_assert_int_eq(wait_until(&w, &what, wait_end(-1)), 0);
	__atomic_store_n(&waiting, 0, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	wait_fini(&w);
	return before_sleep;
}

/* A waiter woken by a part of a message polls again. */
START_TEST(woken_by_a_part_it_polls_again)
{
	ck_assert_uint_ge(sleeps_of_woken(true), 1);
	ck_assert_uint_lt(sleeps_of_woken(true),
			  100); /* others may have the core for long, often */
}
END_TEST

START_TEST(woken_by_what_is_none_it_sleeps_again)
{
	ck_assert_uint_gt(sleeps_of_woken(false), 300);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_wait_spin");
	TCase *tcase = tcase_create("spin");

	setenv("FI_WEFT_SPIN_US", "10000000", 1);
	tcase_set_timeout(tcase, 20); /* others may take the core for long, often */
	tcase_add_test(tcase, alone_it_looks_a_little);
	tcase_add_test(tcase, who_has_had_it_lets_it_go);
	tcase_add_test(tcase, who_was_given_it_keeps_it);
	tcase_add_test(tcase, who_kept_it_in_vain_does_not_again);
	tcase_add_test(tcase, woken_by_a_part_it_polls_again);
	tcase_add_test(tcase, woken_by_what_is_none_it_sleeps_again);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
