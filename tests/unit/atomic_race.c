/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that atomics of threads and processes on the same elements lose no update and show no torn
 * value.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "atomic_model.h"
#include "suite.h"

#define THREADS  8
#define ELEMENTS 3 /* in the shared array */
#define CYCLE    8 /* numbers 0 to 7 are exact in every type */

/* Offsets of the array: aligned, unaligned, aligned as double complex may be. */
static const size_t shifts[] = {0, 1, 8};
#define SHIFTS (int)(sizeof(shifts) / sizeof(shifts[0]))
#define CASES  (TYPES * SHIFTS)

static unsigned char room[ELEMENTS * LARGEST + 64] __attribute__((aligned(64)));
static unsigned char numbers[CYCLE][ELEMENTS * LARGEST]; /* [n]: an array of the number n */

static const struct type *t;
static unsigned char *array;
static pthread_barrier_t start;

/* Stores a number as an element of the type, in both parts of a complex one. */
static void put_number(void *to, int number)
{
	struct soft x = {.mant = (bits)number};

	for (int part = 0; part < parts(t); part++)
		store(t, to, part, t->class < REAL ? (bits)number : soft_pack(&t->real, x));
}

/* Prepares case `i`. Returns false if another case is the same. */
static bool set_up(int i, unsigned char *where)
{
	t = &types[i / SHIFTS];
	array = where + shifts[i % SHIFTS];
	if ((shifts[i % SHIFTS] == 8 && t->size <= 8) || !model_holds(t))
		return false;
	for (int k = 0; k < CYCLE; k++)
		for (size_t e = 0; e < ELEMENTS; e++)
			put_number(&numbers[k][e * t->size], k);
	memcpy(array, numbers[0], ELEMENTS * t->size);
	return true;
}

static void in_threads(void *(*work)(void *))
{
	pthread_t threads[THREADS];
	void *trouble = NULL;

	pthread_barrier_init(&start, NULL, THREADS);
	for (intptr_t i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		ck_assert_int_eq(pthread_join(threads[i], &trouble), 0);
		ck_assert_msg(!trouble, "%s: an element nobody wrote was read", t->name);
	}
	pthread_barrier_destroy(&start);
}

static void call(enum atomic_form form, enum fi_op op, const void *operand, const void *compare,
		 void *result)
{
	struct atomic_args a = {.target = array,
				.operand = operand,
				.compare = compare,
				.result = result,
				.count = ELEMENTS};

	atomic_find(form, op, (enum fi_datatype)(t - types))(&a);
}

static void check_array(const void *expected)
{
	for (size_t e = 0; e < ELEMENTS; e++)
		ck_assert_msg(
			alike(t, &array[e * t->size], (const char *)expected + e * t->size, false),
			"%s at %p: %llx, not %llx", t->name, (void *)&array[e * t->size],
			(unsigned long long)load(t, &array[e * t->size], 0),
			(unsigned long long)load(t, (const char *)expected + e * t->size, 0));
}

/* ---- Sums ------------------------------------------------------------------------------------ */

#define UPS 20000

/* Adds and subtracts 1 in turn, so that sums stay exact in every type: below 9 with 8 threads. */
static void *up_and_down(void *arg)
{
	unsigned char old[ELEMENTS * LARGEST];

	(void)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < UPS; i++) {
		call(ATOMIC_BASE, FI_SUM, numbers[1], NULL, NULL);
		call(ATOMIC_FETCH, FI_DIFF, numbers[1], NULL, old);
	}
	return NULL;
}

START_TEST(sums_and_differences_cancel)
{
	if (!set_up(_i, room))
		return;
	in_threads(up_and_down);
	check_array(numbers[0]);
}
END_TEST

#define TICKETS 8000 /* times THREADS: exact in the types of counts_far */

static unsigned char seen[ELEMENTS][THREADS * TICKETS];

static bool counts_far(void)
{
	return t->class < REAL ? t->size > 1 : t->real.fraction > 20;
}

static size_t as_integer(const void *element)
{
	struct soft x;

	if (t->class < REAL)
		return (size_t)load(t, element, 0);
	x = number(t, element, 0);
	return !x.mant ? 0 : (size_t)(x.exp < 0 ? x.mant >> -x.exp : x.mant << x.exp);
}

static void *draw_tickets(void *arg)
{
	unsigned char old[ELEMENTS * LARGEST];

	(void)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < TICKETS; i++) {
		call(ATOMIC_FETCH, FI_SUM, numbers[1], NULL, old);
		for (size_t e = 0; e < ELEMENTS; e++)
			__atomic_fetch_add(
				&seen[e][as_integer(&old[e * t->size]) % (THREADS * TICKETS)], 1,
				__ATOMIC_RELAXED);
	}
	return NULL;
}

START_TEST(every_sum_is_fetched_once)
{
	if (!set_up(_i, room) || !counts_far())
		return;
	in_threads(draw_tickets);
	for (size_t e = 0; e < ELEMENTS; e++) {
		ck_assert_uint_eq(as_integer(&array[e * t->size]), THREADS * TICKETS);
		for (int i = 0; i < THREADS * TICKETS; i++)
			if (seen[e][i] != 1)
				ck_abort_msg("%s: %d was seen %d times", t->name, i, seen[e][i]);
	}
}
END_TEST

/* ---- Compare and swap ------------------------------------------------------------------------ */

#define SWAPS 3000

static int number_of(const unsigned char *element)
{
	for (int k = 0; k < CYCLE; k++)
		if (alike(t, element, numbers[k], false))
			return k;
	return -1;
}

/* Replaces the number in each element by the next one, SWAPS times each. */
static void *swap_on(void *arg)
{
	unsigned char now[ELEMENTS * LARGEST], next[ELEMENTS * LARGEST], old[ELEMENTS * LARGEST];
	int left[ELEMENTS], more = ELEMENTS, k;

	(void)arg;
	for (int e = 0; e < ELEMENTS; e++)
		left[e] = SWAPS;
	pthread_barrier_wait(&start);
	call(ATOMIC_FETCH, FI_ATOMIC_READ, NULL, NULL, now);
	while (more > 0) {
		for (size_t e = 0; e < ELEMENTS; e++) {
			k = number_of(&now[e * t->size]);
			if (k < 0)
				return (void *)1;
			memcpy(&next[e * t->size], numbers[left[e] > 0 ? (k + 1) % CYCLE : k],
			       t->size);
		}
		call(ATOMIC_COMPARE, FI_CSWAP, next, now, old);
		for (size_t e = 0; e < ELEMENTS; e++)
			if (left[e] > 0 && alike(t, &old[e * t->size], &now[e * t->size], false))
				more -= --left[e] == 0;
		memcpy(now, old, sizeof(now));
	}
	return NULL;
}

START_TEST(swaps_alternate)
{
	if (!set_up(_i, room))
		return;
	in_threads(swap_on);
	check_array(numbers[THREADS * SWAPS % CYCLE]);
}
END_TEST

/* ---- Reading and writing --------------------------------------------------------------------- */

#define WRITES 30000

/* Half of the threads write elements of equal bytes, the others must read such elements. */
static void *write_or_read(void *arg)
{
	unsigned char pattern[ELEMENTS * LARGEST], old[ELEMENTS * LARGEST];
	bool writes = (intptr_t)arg % 2;

	pthread_barrier_wait(&start);
	for (int i = 0; i < WRITES; i++) {
		memset(pattern, (int)(intptr_t)arg * 16 + i % 16, sizeof(pattern));
		if (writes && i % 2)
			call(ATOMIC_BASE, FI_ATOMIC_WRITE, pattern, NULL, NULL);
		else
			call(ATOMIC_FETCH, writes ? FI_ATOMIC_WRITE : FI_ATOMIC_READ, pattern, NULL,
			     old);
		for (size_t e = 0; e < ELEMENTS; e++)
			if ((!writes || i % 2 == 0) &&
			    memcmp(&old[e * t->size], &old[e * t->size + 1], t->size - 1) != 0)
				return (void *)1;
	}
	return NULL;
}

START_TEST(elements_are_read_whole)
{
	if (!set_up(_i, room))
		return;
	in_threads(write_or_read);
}
END_TEST

/* ---- Processes ------------------------------------------------------------------------------- */

#define PROCESSES 3

static bool processor_has(const char *flag)
{
	FILE *f = fopen("/proc/cpuinfo", "r");
	char line[8192];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "flags", 5) && strstr(line, flag);
	if (f)
		fclose(f);
	return found;
}

static bool without_locks(void)
{
	return t->size <= 8 || (t->size == 16 && processor_has(" cx16 ") && processor_has(" avx "));
}

/* Aligned elements, in memory that processes share. */
START_TEST(processes_share_elements)
{
	unsigned char *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[PROCESSES];
	int status;

	ck_assert_ptr_ne(shared, MAP_FAILED);
	if (!set_up(_i * SHIFTS, shared) || !without_locks())
		return;
	for (int p = 0; p < PROCESSES; p++) {
		pids[p] = fork();
		if (pids[p] != 0)
			continue;
		for (int i = 0; i < UPS; i++) {
			call(ATOMIC_BASE, FI_SUM, numbers[1], NULL, NULL);
			call(ATOMIC_BASE, FI_DIFF, numbers[1], NULL, NULL);
		}
		_exit(0);
	}
	for (int p = 0; p < PROCESSES; p++) {
		ck_assert_int_eq(waitpid(pids[p], &status, 0), pids[p]);
		ck_assert_int_eq(status, 0);
	}
	check_array(numbers[0]);
	munmap(shared, 4096);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("atomic_race");
	TCase *all = tcase_create("all");

	tcase_set_timeout(all, 20);
	tcase_add_loop_test(all, sums_and_differences_cancel, 0, CASES);
	tcase_add_loop_test(all, every_sum_is_fetched_once, 0, CASES);
	tcase_add_loop_test(all, swaps_alternate, 0, CASES);
	tcase_add_loop_test(all, elements_are_read_whole, 0, CASES);
	tcase_add_loop_test(all, processes_share_elements, 0, TYPES);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
