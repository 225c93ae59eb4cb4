/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that the lock excludes threads, that long waits use little processor time, that a crowd on
 * one core leaves that to the holder, and that no thread starves.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "suite.h"

#define THREADS     8
#define ROUNDS      20000
#define HELD_US     100000
#define CROWD       64
#define TAKES       100
#define CROWD_TAKES 20000
#define LONGEST_US  1000000 /* limit of a wait: many time slices of all other threads */

static struct lock lock;
static unsigned long count; /* under the lock */
static bool inside;         /* under the lock */
static int waiting;         /* atomic */
static int stop;            /* atomic */

/* Before each test: without fork they share the process. */
static void begin(void)
{
	lock_init(&lock);
	count = 0;
	waiting = stop = 0;
}

static uint64_t us_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void one_round(unsigned int i)
{
	ck_assert(!inside);
	inside = true;
	count++;
	if (i % 1000 == 0)
		usleep(10); /* sometimes longer than a waiter spins */
	inside = false;
}

static void *work(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < ROUNDS; i++) {
		lock_take(&lock);
		one_round(i);
		lock_give(&lock);
	}
	return NULL;
}

START_TEST(keeps_apart)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, work, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(count, (unsigned long)THREADS * ROUNDS);
	ck_assert(lock_try(&lock));
	lock_give(&lock);
}
END_TEST

/* Waits for the lock. *arg: the processor time (us) of the wait. */
static void *wait_for_it(void *arg)
{
	uint64_t before = us_of(CLOCK_THREAD_CPUTIME_ID);

	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELEASE);
	lock_take(&lock);
	lock_give(&lock);
	*(uint64_t *)arg = us_of(CLOCK_THREAD_CPUTIME_ID) - before;
	return NULL;
}

START_TEST(waits_asleep)
{
	pthread_t thread[THREADS];
	uint64_t used[THREADS];

	lock_take(&lock);
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_for_it, &used[i]), 0);
	while (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) < THREADS)
		usleep(100);
	usleep(HELD_US);
	ck_assert_int_gt(__atomic_load_n(&lock.sleeps, __ATOMIC_RELAXED), 0);
	lock_give(&lock);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_uint_lt(used[i], HELD_US / 4);
	}
}
END_TEST

/* A release hands the lock to who asked for it: nobody else can take it meanwhile. */
START_TEST(is_handed_over)
{
	static const unsigned int asked[] = {LOCK_WANTED, LOCK_STARVING};

	for (int i = 0; i < 2; i++) {
		lock_init(&lock);
		lock_take(&lock);
		lock.state |= asked[i];
		lock_give(&lock);
		ck_assert(!lock_try(&lock));
		ck_assert_uint_eq(lock.state, LOCK_HELD | LOCK_HANDED(asked[i]));
	}
	/* The first to have asked without sleeping leaves what was handed to a sleeper. */
	lock.state = LOCK_HELD | LOCK_HANDED(LOCK_WANTED) | LOCK_STARVING;
	lock_take(&lock);
	ck_assert_uint_eq(lock.state, LOCK_HELD | LOCK_STARVING);
}
END_TEST

static void *hold_until_stop(void *arg)
{
	(void)arg;
	lock_take(&lock);
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		usleep(100);
	lock_give(&lock);
	return NULL;
}

/* Who has slept in vain goes on asking, awake or asleep: the lock is not free once it is released. */
START_TEST(sleeper_is_handed_it)
{
	pthread_t thread;

	lock_take(&lock);
	ck_assert_int_eq(pthread_create(&thread, NULL, hold_until_stop, NULL), 0);
	while (!(__atomic_load_n(&lock.state, __ATOMIC_RELAXED) & LOCK_STARVING))
		usleep(100);
	lock_give(&lock);
	ck_assert(!lock_try(&lock));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	ck_assert(lock_try(&lock));
}
END_TEST

/* What was handed to a waiter that is gone, and had not slept, falls to one that sleeps: with none awake, nobody else comes. */
START_TEST(sleeper_takes_what_is_left)
{
	pthread_t thread;

	lock_take(&lock);
	stop = 1;
	ck_assert_int_eq(pthread_create(&thread, NULL, hold_until_stop, NULL), 0);
	while (!(__atomic_load_n(&lock.state, __ATOMIC_RELAXED) & LOCK_STARVING))
		usleep(100);
	__atomic_store_n(&lock.state, LOCK_HELD | LOCK_HANDED(LOCK_WANTED) | LOCK_STARVING,
			 __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	ck_assert(lock_try(&lock));
}
END_TEST

static void pause_for(int steps)
{
	for (int i = 0; i < steps; i++)
		cpu_relax();
}

static void *take_in_a_crowd(void *arg)
{
	bool last;

	(void)arg;
	do {
		lock_take(&lock);
		pause_for(50);
		if (++count % 100 == 0)
			sched_yield(); /* the holder loses the core */
		last = count >= CROWD_TAKES;
		lock_give(&lock);
		pause_for(100);
	} while (!last);
	return NULL;
}

/* Makes threads that are started from now on share one core. Returns in *before what this thread may use. */
static void share_one_core(cpu_set_t *before)
{
	cpu_set_t one;
	size_t core = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof *before, before), 0);
	while (!CPU_ISSET(core, before))
		core++;
	CPU_ZERO(&one);
	CPU_SET(core, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

/*
 * Waiters that wake after the limit of their sleep, and find the lock held, must not keep its holder off the core: each take
 * would cost a round of all of them.
 */
START_TEST(leaves_the_core_to_the_holder)
{
	pthread_t thread[CROWD];
	cpu_set_t before;
	int sleeps;

	share_one_core(&before);
	lock_take(&lock);
	for (int i = 0; i < CROWD; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_in_a_crowd, NULL), 0);
	usleep(HELD_US); /* all of them wait */
	sleeps = __atomic_load_n(&lock.sleeps, __ATOMIC_RELAXED);
	lock_give(&lock);
	for (int i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
	ck_assert_int_lt(lock.sleeps - sleeps, CROWD_TAKES);
}
END_TEST

/* Takes the lock again as soon as it is released, like a thread that polls an empty queue. */
static void *take_again_and_again(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		lock_take(&lock);
		pause_for(50);
		lock_give(&lock);
	}
	return NULL;
}

/* The competing threads outnumber the processors and never block elsewhere. */
START_TEST(starves_nobody)
{
	pthread_t thread[THREADS];
	uint64_t longest = 0;

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, take_again_and_again, NULL), 0);
	for (int i = 0; i < TAKES; i++) {
		uint64_t before = us_of(CLOCK_MONOTONIC), us;

		lock_take(&lock);
		us = us_of(CLOCK_MONOTONIC) - before;
		lock_give(&lock);
		longest = us > longest ? us : longest;
		usleep(100);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_lt(longest, LONGEST_US);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_lock");
	TCase *tc = tcase_create("lock");

	tcase_add_checked_fixture(tc, begin, NULL);
	tcase_add_test(tc, keeps_apart);
	tcase_add_test(tc, waits_asleep);
	tcase_add_test(tc, is_handed_over);
	tcase_add_test(tc, sleeper_is_handed_it);
	tcase_add_test(tc, sleeper_takes_what_is_left);
	tcase_add_test(tc, leaves_the_core_to_the_holder);
	tcase_add_test(tc, starves_nobody);
	tcase_set_timeout(tc, 20);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
