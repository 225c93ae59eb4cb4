/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves the limits of what one side makes the other keep, over any link: our reads wait while too
 * many results are due, and a peer that reads no answers, or ignores WIRE_XOFF, is disconnected.
 */
#include <malloc.h>

#include "fake_rma.h"

#define BYTES  (3u << 20) /* bytes of a read or message */
#define WINDOW 6          /* reads up to the one that exceeds WIRE_RESULTS_MAX */
#define SLACK  (8u << 20) /* bytes of heap */

static unsigned char bytes[BYTES];

static void setup(void)
{
	rma_setup();
	fake.link.packet_max = 2 * BYTES;
}

/* The peer has been disconnected. */
static void teardown(void)
{
	fake.closed = 0;
	rma_teardown();
}

static void post_read(void *context)
{
	ck_assert_int_eq(fi_read(fake.ep, bytes, BYTES, NULL, fake.addr, 0, KEY_ALL, context), 0);
}

START_TEST(results_have_a_window)
{
	unsigned char small[8] = {0};

	for (unsigned int i = 0; i <= WINDOW; i++)
		post_read(&bytes[i]);
	ck_assert_uint_eq(fake.count, WINDOW);
	/* Operations behind a waiting read wait too. */
	ck_assert_int_eq(
		fi_write(fake.ep, small, 8, NULL, fake.addr, 0, KEY_ALL, &bytes[WINDOW + 1]), 0);
	ck_assert_uint_eq(fake.count, WINDOW);
	for (unsigned int i = 0; i <= WINDOW; i++) {
		fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, i + 1), 0, 0, bytes, BYTES);
		fake_expect(&bytes[i], FI_RMA | FI_READ);
		worker_progress(fake.worker);
		ck_assert_uint_eq(fake.count, WINDOW + 1 + (i > 0));
	}
	ck_assert_uint_eq(wire_op(fake.packets[WINDOW].head), WIRE_GET);
	ck_assert_uint_eq(wire_op(fake.packets[WINDOW + 1].head), WIRE_PUT);
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, WINDOW + 2), 0, 0, NULL, 0);
	fake_expect(&bytes[WINDOW + 1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fake.peer->rma.results, 0);
}
END_TEST

/*
 * Delivers the request, at most `most` times, until the connection ends. Returns the heap's peak
 * growth.
 */
static size_t go_on(const struct request *r, unsigned int most)
{
	static struct raw raw;
	size_t before = mallinfo2().uordblks + mallinfo2().hblkhd, peak = before;

	fake.room = 0;
	request_write(&raw, r);
	for (unsigned int i = 0; fake.peer->conn.state == PEER_CONNECTED && i < most; i++) {
		size_t now;

		fake_says(raw.p.head, raw.p.tag, raw.p.data, raw.payload, raw.p.len);
		if (i % 64)
			continue;
		now = mallinfo2().uordblks + mallinfo2().hblkhd;
		if (now > peak)
			peak = now;
		worker_progress(fake.worker);
	}
	ck_assert_int_eq(fake.peer->conn.state, PEER_IDLE);
	ck_assert_int_eq(fake.closed, 1);
	ck_assert(fake.link.failed);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	return peak - before;
}

START_TEST(short_answers)
{
	struct request get = {
		.op = WIRE_GET, .flags = WIRE_DATA, .key = KEY_READ, .want = FAKE_PACKET};

	ck_assert_uint_lt(go_on(&get, 100000), WIRE_ANSWERS_MAX + SLACK);
	/* After the line with the values. */
	ck_assert_ptr_nonnull(strstr(logged.text, "exceeded a limit of ours"));
}
END_TEST

START_TEST(long_answers)
{
	struct request get = {.op = WIRE_GET, .flags = WIRE_DATA, .key = KEY_READ, .want = REGION};

	fake.link.packet_max = FAKE_PACKET;
	ck_assert_uint_lt(go_on(&get, 1000000), WIRE_ANSWERS_MAX + SLACK);
}
END_TEST

/* Each request is refused with a short answer; the heap's overhead is a quarter. */
START_TEST(refusals)
{
	struct request put = {.op = WIRE_PUT, .flags = WIRE_DATA, .key = KEY_LOCAL};

	log_redirect(NULL);
	ck_assert_uint_lt(go_on(&put, 10000000), 2 * WIRE_ANSWERS_MAX + SLACK);
}
END_TEST

static void say_message(void)
{
	fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, bytes, BYTES);
	worker_progress(fake.worker);
}

START_TEST(messages_when_paused)
{
	struct rx *rx = fake.worker->rx[0];
	size_t held = 0;

	while (!fake.peer->rx.xoff_sent)
		say_message();
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_XOFF);
	for (; fake.peer->conn.state == PEER_CONNECTED; held += BYTES) {
		ck_assert_uint_le(held, WIRE_KEPT_MAX);
		say_message();
	}
	ck_assert_uint_gt(held, WIRE_KEPT_MAX - BYTES);
	ck_assert_int_eq(fake.closed, 1);
	/* No message of this peer is kept. */
	ck_assert_uint_eq(rx->unexpected_bytes, 0);
	ck_assert_ptr_nonnull(strstr(logged.text, fi_strerror(FI_EPROTO)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_limits");
	TCase *good = tcase_create("good"), *bad = tcase_create("bad");

	tcase_add_checked_fixture(good, setup, rma_teardown);
	tcase_add_test(good, results_have_a_window);
	tcase_add_checked_fixture(bad, setup, teardown);
	tcase_add_test(bad, short_answers);
	tcase_add_test(bad, long_answers);
	tcase_add_test(bad, refusals);
	tcase_add_test(bad, messages_when_paused);
	tcase_set_timeout(bad, 30);
	suite_add_tcase(suite, good);
	suite_add_tcase(suite, bad);
	return suite_run(suite);
}
