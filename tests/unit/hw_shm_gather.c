/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that requests of a stream gather behind their sender for a short time, and that nothing else waits: single
 * requests, messages, what a dead peer has left, and what comes before a sleep.
 */
#include "shm_pair.h"
#include "base/clock.h"

#define STEP  8  /* requests that the first call serves */
#define BURST 20 /* requests: a stream that ends before enough have gathered */
#define LATE                                                                                       \
	(UINT64_C(                                                                                 \
		1000000000)) /* ns: far more than any request waits, however slow the machine is */

static unsigned int count; /* packets delivered */

static void delivered(uint32_t src, const struct packet *p)
{
	ck_assert_uint_eq(src, FIRST);
	ck_assert_uint_eq(p->tag, count);
	count++;
}

static void start(void)
{
	setup();
	arrived = delivered;
	count = 0;
}

/* Sends packets whose tags go on from the last one's. */
static void post(struct shm_link *s, unsigned int op, unsigned int packets)
{
	static unsigned int tag;
	uint64_t word = 1;

	if (!count)
		tag = 0;
	for (unsigned int end = tag + packets; tag != end; tag++)
		ck_assert_int_eq(shm_send(&s->link, &word, sizeof(word), 7,
					  WIRE_HEAD(op, WIRE_DATA, 0, tag), tag),
				 0);
}

/*
 * Makes progress until so many packets have been delivered. Returns the calls that delivered none. No assertion is made
 * meanwhile: these make system calls, which take longer than a request waits.
 */
static unsigned int await(unsigned int packets)
{
	uint64_t end = clock_ns() + LATE;
	unsigned int vain = 0;

	while (count < packets && clock_ns() < end)
		vain += !shm_transport.progress(own);
	ck_assert_uint_eq(count, packets);
	return vain;
}

static const unsigned int requests[] = {WIRE_PUT, WIRE_GET, WIRE_AMO};

START_TEST(single)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 1; i <= 1000; i++) {
		post(s, requests[_i], 1);
		ck_assert(shm_transport.progress(own));
		ck_assert_uint_eq(count, i);
	}
	leave(s);
}
END_TEST

/*
 * The first requests of a burst are served at once, the others when no more have come for a while. Where the test itself
 * is stopped for so long, it tries again.
 */
START_TEST(burst)
{
	struct shm_link *s = join(0);
	unsigned int first = 0, vain = 0;

	for (unsigned int i = 1; i <= 300 && !vain; i++) {
		post(s, requests[_i], BURST);
		shm_transport.progress(own);
		if (i == 1)
			first = count;
		vain = await(i * BURST);
	}
	ck_assert_uint_eq(first, STEP);
	ck_assert_uint_gt(vain, 0);
	leave(s);
}
END_TEST

/* Enough have come: those at a distance to the last one are served without a pause. */
START_TEST(stream)
{
	struct shm_link *s = join(0);

	post(s, requests[_i], 200);
	for (unsigned int call = 1; call <= 2; call++) {
		ck_assert(shm_transport.progress(own));
		ck_assert_uint_eq(count, call * 64);
	}
	await(200);
	leave(s);
}
END_TEST

/* A sender that pauses after each burst: most of them are soon served without waiting. */
START_TEST(pauses)
{
	struct shm_link *s = join(0);
	unsigned int waited = 0;

	for (unsigned int i = 1; i <= 300; i++) {
		post(s, WIRE_PUT, BURST);
		waited += await(i * BURST) != 0;
	}
	ck_assert_uint_gt(waited, 0);
	ck_assert_uint_lt(waited, 300 / 8);
	leave(s);
}
END_TEST

/* Single requests between the bursts do not make a pause look like the end of a long stream. */
START_TEST(singles_between_pauses)
{
	struct shm_link *s = join(0);
	unsigned int waited = 0, all = 0;

	for (unsigned int i = 1; i <= 300; i++) {
		for (unsigned int n = 0; n < 128; n++) {
			post(s, WIRE_PUT, 1);
			await(++all);
		}
		post(s, WIRE_PUT, BURST);
		waited += await(all += BURST) != 0;
	}
	ck_assert_uint_lt(waited, 300 / 8);
	leave(s);
}
END_TEST

/* A window whose sender has paused is served by few calls. */
START_TEST(window)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 1; i <= 100; i++) {
		unsigned int calls = 0;

		post(s, WIRE_PUT, 192);
		while (count < i * 192) {
			usleep(5);
			shm_transport.progress(own);
			calls++;
		}
		ck_assert_uint_le(calls, 5);
	}
	leave(s);
}
END_TEST

START_TEST(messages)
{
	struct shm_link *s = join(0);

	post(s, WIRE_MSG, BURST);
	ck_assert(shm_transport.progress(own));
	ck_assert_uint_eq(count, BURST);
	leave(s);
}
END_TEST

/* A reader that is about to sleep makes one more progress call, after arming has failed. */
START_TEST(sleeper)
{
	struct shm_link *s = join(0);

	post(s, WIRE_PUT, BURST);
	ck_assert(shm_transport.progress(own));
	ck_assert_uint_eq(count, STEP);
	ck_assert(!shm_transport.arm(own));
	ck_assert(shm_transport.progress(own));
	ck_assert_uint_gt(count, STEP);
	leave(s);
}
END_TEST

START_TEST(death)
{
	struct shm_link *s = join(0);

	post(s, WIRE_PUT, BURST);
	ck_assert(shm_transport.progress(own));
	ck_assert_uint_eq(count, STEP);
	shm_transport.reap(own, FIRST);
	ck_assert_uint_eq(count, BURST);
	leave(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shm_gather");
	TCase *tests = tcase_create("all");

	tcase_add_checked_fixture(tests, start, teardown);
	tcase_add_loop_test(tests, single, 0, 3);
	tcase_add_loop_test(tests, burst, 0, 3);
	tcase_add_loop_test(tests, stream, 0, 3);
	tcase_add_test(tests, pauses);
	tcase_add_test(tests, singles_between_pauses);
	tcase_add_test(tests, window);
	tcase_add_test(tests, messages);
	tcase_add_test(tests, sleeper);
	tcase_add_test(tests, death);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}
