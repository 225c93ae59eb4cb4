/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves what the layer "perf" counts and reports. */
#include "hook/layers.h"

#include <linux/perf_event.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "hook_log.h"
#include "suite.h"

/* ---- The report ------------------------------------------------------------------------------- */

static void report(void)
{
	lines[0] = '\0';
	perf_report();
}

/* A call that took `ns`, and returned `result`. */
static void made(enum call_id id, int64_t result, size_t bytes, uint64_t ns)
{
	const struct shape shapes[] = {{"ep", SHOW_POINTER, 0}, {"result", SHOW_STATUS, 0}};
	const uint64_t values[] = {1, (uint64_t)result};
	const struct call call = {id, {1000, 0}, {1000 + ns, 0}, bytes, 2, shapes, values};

	perf_call(&call);
}

static void setup(void)
{
	keep_lines_of("ofi_hook_perf");
	report();
}

/* Returns how often the report's line of a call has `count` of what `word` names; -1: no line. */
static long long figure(const char *call, const char *word)
{
	const char *line = strstr(lines, call), *end;
	long long value = -1, n;
	char name[32];
	int len;

	if (!line)
		return -1;
	end = strchr(line, '\n');
	for (line += strlen(call); line < end && sscanf(line, " %lld %31s%n", &n, name, &len) == 2;
	     line += len)
		if (strcmp(name, word) == 0)
			value = n;
	return value;
}

START_TEST(counts)
{
	made(CALL_fi_tsend, 0, 64, 100);
	made(CALL_fi_tsend, 0, 36, 300);
	made(CALL_fi_tsend, -FI_EAGAIN, 0, 200);
	made(CALL_fi_tsend, -FI_EINVAL, 0, 400);
	made(CALL_fi_cq_read, 1, 0, 50);
	report();
	ck_assert_int_eq(figure("fi_tsend ", "calls"), 4);
	ck_assert_int_eq(figure("fi_tsend ", "again"), 1);
	ck_assert_int_eq(figure("fi_tsend ", "failed"), 1);
	ck_assert_int_eq(figure("fi_tsend ", "bytes"), 100);
	ck_assert_int_eq(figure("fi_tsend ", "ns"), 250);
	ck_assert_int_eq(figure("fi_cq_read ", "calls"), 1);
	ck_assert_int_eq(figure("fi_cq_read ", "ns"), 50);
}
END_TEST

START_TEST(leaves_out)
{
	made(CALL_fi_bind, 0, 0, 100);
	made(CALL_fi_close, 0, 0, 100);
	report();
	ck_assert_str_eq(lines, "");
}
END_TEST

START_TEST(begins_again)
{
	made(CALL_fi_write, 0, 8, 10);
	report();
	ck_assert_int_eq(figure("fi_write ", "bytes"), 8);
	made(CALL_fi_write, 0, 5, 10);
	report();
	ck_assert_int_eq(figure("fi_write ", "calls"), 1);
	ck_assert_int_eq(figure("fi_write ", "bytes"), 5);
}
END_TEST

/* ---- Events ----------------------------------------------------------------------------------- */

/* Makes the thread's clock go on. */
static void work(void)
{
	for (volatile int i = 0; i < 3000000; i++)
		;
}

static void *of_thread(void *first)
{
	*(uint64_t *)first = perf_events();
	work();
	return NULL;
}

START_TEST(of_each_thread)
{
	uint64_t before, after, other;
	pthread_t thread;

	/* The clock of a thread, in ns: every kernel has it. */
	if (perf_event_start(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK)) {
		ck_assert_uint_eq(perf_events(), 0);
		return;
	}
	before = perf_events();
	work();
	after = perf_events();
	ck_assert_uint_gt(after, before + 100000);
	ck_assert_int_eq(pthread_create(&thread, NULL, of_thread, &other), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_lt(other, after);
}
END_TEST

START_TEST(refused)
{
	ck_assert_int_lt(perf_event_start(0xffff, 0), 0);
	ck_assert_uint_eq(perf_events(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_perf");
	TCase *tcase = tcase_create("report"), *events = tcase_create("events");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, counts);
	tcase_add_test(tcase, leaves_out);
	tcase_add_test(tcase, begins_again);
	suite_add_tcase(suite, tcase);
	tcase_add_test(events, refused);
	tcase_add_test(events, of_each_thread);
	suite_add_tcase(suite, events);
	return suite_run(suite);
}
