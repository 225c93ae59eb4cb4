/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that requests of a stream gather behind their sender for a short time, if their owner makes progress all the
 * time, and that nothing else waits: single requests, few, long ones, messages, what a dead peer has left, and what comes
 * before a sleep.
 */
#include "base/clock.h"
#include "shm_pair.h"

#define SHORT   8   /* payload bytes of a request that takes one slot */
#define LONG    520 /* of one that takes nine */
#define BURST   20  /* requests: a stream that ends before enough have gathered */
#define TRIES   300 /* bursts */
#define LOOK_NS 100 /* time that passes between two looks at the clock */
#define LATE    (UINT64_C(1000000000)) /* ns: far more than any request waits */

static uint64_t now; /* ns */

/* Replaces the C library's: how fast the test runs makes no difference. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	now += LOOK_NS;
	*ts = (struct timespec){(time_t)(now / 1000000000), (long)(now % 1000000000)};
	return 0;
}

static unsigned int posted, count; /* packets sent, and delivered in their order */
static bool failed;                /* a packet was not sent, or is another than expected */

static void delivered(uint32_t src, const struct packet *p)
{
	failed |= src != FIRST || p->tag != count;
	count++;
}

static void start(void)
{
	setup();
	arrived = delivered;
	posted = count = 0;
	failed = false;
}

static void finish(void)
{
	ck_assert(!failed);
	teardown();
}

/* Sends packets whose tags go on from the last one's. */
static void post(struct shm_link *s, unsigned int op, unsigned int packets, size_t len)
{
	static const unsigned char bytes[LONG];

	for (unsigned int end = posted + packets; posted != end; posted++)
		failed |= shm_send(&s->link, bytes, len, 7, WIRE_HEAD(op, WIRE_DATA, 0, posted),
				   posted) != 0;
}

/* One progress call delivers all packets: none waits. */
static void serve_at_once(void)
{
	failed |= !shm_transport.progress(own) || count != posted;
}

/* Makes progress until all packets have been delivered. Returns the calls that delivered none, but said that some had come. */
static unsigned int await_all(void)
{
	uint64_t end = clock_ns() + LATE;
	unsigned int vain = 0;

	while (count < posted && clock_ns() < end) {
		unsigned int before = count;

		failed |= !shm_transport.progress(own);
		vain += count == before;
	}
	failed |= count < posted || shm_transport.progress(own);
	return vain;
}

/* Sends bursts until some of one are left waiting by a progress call. */
static void leave_waiting(struct shm_link *s, unsigned int op)
{
	for (unsigned int i = 0; i < TRIES && count == posted; i++) {
		post(s, op, BURST, SHORT);
		shm_transport.progress(own);
	}
	failed |= count == posted;
}

static const unsigned int requests[] = {WIRE_PUT, WIRE_GET, WIRE_AMO};

START_TEST(single)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 0; i < 1000; i++) {
		post(s, requests[_i], 1, SHORT);
		serve_at_once();
	}
	leave(s);
}
END_TEST

/* Requests of a burst wait, and are served when no more have come for a while. */
START_TEST(burst)
{
	struct shm_link *s = join(0);
	unsigned int vain = 0;

	for (unsigned int i = 0; i < TRIES && !vain; i++) {
		leave_waiting(s, requests[_i]);
		vain = await_all();
	}
	ck_assert(vain);
	leave(s);
}
END_TEST

/* Requests that are few in number are none of a stream, however long. */
START_TEST(few)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 0; i < TRIES; i++) {
		post(s, requests[_i], 2, LONG);
		post(s, requests[_i], 3, SHORT);
		serve_at_once();
	}
	leave(s);
}
END_TEST

/* Behind a request of many slots nothing tells whether others have come: it does not wait. */
START_TEST(long_stream)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 0; i < TRIES; i++) {
		post(s, requests[_i], BURST, LONG);
		serve_at_once();
	}
	leave(s);
}
END_TEST

/* A burst that comes while the owner does other things is served by its next progress call. */
START_TEST(rare)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 0; i < TRIES; i++) {
		post(s, requests[_i], BURST, SHORT);
		now += 20000;
		serve_at_once();
	}
	leave(s);
}
END_TEST

/* Enough have come: those at a distance to the last one are served without a pause. */
START_TEST(stream)
{
	struct shm_link *s = join(0);

	post(s, requests[_i], 200, SHORT);
	for (unsigned int call = 1; call <= 2; call++) {
		ck_assert(shm_transport.progress(own));
		ck_assert_uint_eq(count, call * 64);
	}
	await_all();
	leave(s);
}
END_TEST

/* A sender that pauses after each burst: most of them are soon served without waiting. */
START_TEST(pauses)
{
	struct shm_link *s = join(0);
	unsigned int waited = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		post(s, WIRE_PUT, BURST, SHORT);
		waited += await_all() != 0;
	}
	ck_assert_uint_lt(waited, TRIES / 8);
	leave(s);
}
END_TEST

/* Single requests between the bursts do not make a pause look like the end of a long stream. */
START_TEST(singles_between_pauses)
{
	struct shm_link *s = join(0);
	unsigned int waited = 0;

	for (unsigned int i = 0; i < TRIES; i++) {
		for (unsigned int n = 0; n < 128; n++) {
			post(s, WIRE_PUT, 1, SHORT);
			await_all();
		}
		post(s, WIRE_PUT, BURST, SHORT);
		waited += await_all() != 0;
	}
	ck_assert_uint_lt(waited, TRIES / 8);
	leave(s);
}
END_TEST

/* A window whose sender has paused is served by few calls. */
START_TEST(window)
{
	struct shm_link *s = join(0);

	for (unsigned int i = 1; i <= 100; i++) {
		unsigned int calls = 0;

		post(s, WIRE_PUT, 192, SHORT);
		while (count < posted) {
			now += 5000;
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

	post(s, WIRE_MSG, BURST, SHORT);
	serve_at_once();
	leave(s);
}
END_TEST

/* A reader that is about to sleep makes one more progress call, after arming has failed. */
START_TEST(sleeper)
{
	struct shm_link *s = join(0);
	unsigned int before;

	leave_waiting(s, WIRE_PUT);
	before = count;
	ck_assert(!shm_transport.arm(own));
	ck_assert(shm_transport.progress(own));
	ck_assert_uint_gt(count, before);
	leave(s);
}
END_TEST

START_TEST(death)
{
	struct shm_link *s = join(0);

	leave_waiting(s, WIRE_PUT);
	shm_transport.reap(own, FIRST);
	ck_assert_uint_eq(count, posted);
	leave(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shm_gather");
	TCase *tests = tcase_create("all");

	tcase_add_checked_fixture(tests, start, finish);
	tcase_add_loop_test(tests, single, 0, 3);
	tcase_add_loop_test(tests, burst, 0, 3);
	tcase_add_loop_test(tests, few, 0, 3);
	tcase_add_loop_test(tests, long_stream, 0, 3);
	tcase_add_loop_test(tests, rare, 0, 3);
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
