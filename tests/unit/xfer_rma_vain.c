/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a target that polls an empty queue does not yield its core while peers access its
 * memory.
 */
#include <sched.h>
#include <time.h>

#include "fake_rma.h"

static unsigned int yields;

/* A simulated clock: on a busy machine reads could seem too far apart. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static uint64_t now_ns = 1000000000;

	(void)clock;
	now_ns += 100;
	ts->tv_sec = (time_t)(now_ns / 1000000000);
	ts->tv_nsec = (long)(now_ns % 1000000000);
	return 0;
}

int sched_yield(void)
{
	yields++;
	return 0;
}

/* Reads an empty queue; before each 100th read comes the peer's request `r`, if not NULL. */
static void read_in_vain(const struct request *r)
{
	struct fi_cq_tagged_entry entry;

	yields = 0;
	for (int i = 0; i < 20 * WAIT_POLLS_ALONE; i++) {
		if (r && i % 100 == 0) {
			request_say(r);
			fake.count = 0; /* answers are not checked here */
		}
		ck_assert_int_eq(fi_cq_read(fake.cq, &entry, 1), -FI_EAGAIN);
	}
}

START_TEST(keeps_the_core_while_asked)
{
	const struct request requests[] = {
		{.op = WIRE_PUT, .flags = WIRE_DATA, .seq = 7, .key = KEY_ALL, .len = 8},
		{.op = WIRE_GET, .flags = WIRE_DATA, .seq = 7, .key = KEY_ALL, .want = 8},
		{.op = WIRE_AMO,
		 .flags = WIRE_DATA,
		 .seq = 7,
		 .key = KEY_ALL,
		 .len = 8,
		 .amo = {.op = FI_SUM, .type = FI_UINT64, .form = ATOMIC_FETCH, .len = 8}},
	};

	read_in_vain(NULL);
	ck_assert_uint_gt(yields, 10);
	read_in_vain(&requests[_i]);
	ck_assert_uint_le(yields, 1); /* from reads before the first request */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rma_vain");
	TCase *target = tcase_create("target");

	tcase_add_checked_fixture(target, rma_setup, rma_teardown);
	tcase_add_loop_test(target, keeps_the_core_while_asked, 0, 3);
	suite_add_tcase(suite, target);
	return suite_run(suite);
}
