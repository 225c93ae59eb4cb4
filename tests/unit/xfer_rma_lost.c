/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a lost peer ends every one-sided operation exactly once, in any state, ours and the
 * peer's.
 */
#include "fake_rma.h"

#define KEY 5

static unsigned char buf[REGION];
static unsigned int posted; /* number of operations; their contexts are buf[0], buf[1] ... */

static void post_write(size_t len)
{
	ck_assert_int_eq(fi_write(fake.ep, buf, len, NULL, fake.addr, 0, KEY, &buf[posted++]), 0);
}

static void post_read(size_t len)
{
	ck_assert_int_eq(fi_read(fake.ep, buf, len, NULL, fake.addr, 0, KEY, &buf[posted++]), 0);
}

static void post_compare(void)
{
	ck_assert_int_eq(fi_compare_atomic(fake.ep, buf, 2, NULL, buf + 16, NULL, buf + 32, NULL,
					   fake.addr, 0, KEY, FI_UINT64, FI_CSWAP, &buf[posted++]),
			 0);
}

/* Posts an atomic on a tagged receive, with `flags` (FI_FENCE: after all earlier operations). */
static void post_matched(uint64_t flags)
{
	struct fi_ioc ioc = {buf, 1};
	struct fi_rma_ioc to = {.addr = 8, .count = 1, .key = KEY};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .addr = fake.addr,
				    .rma_iov = &to,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &buf[posted++]};

	ck_assert_int_eq(fi_atomicmsg(fake.ep, &msg, FI_TAGGED | FI_COMPLETION | flags), 0);
}

/* Checks that all posted operations end with `err`, in any order, and nothing else completes. */
static void expect_all_failed(int err)
{
	bool seen[32] = {false};
	unsigned int late = fake.count;

	for (unsigned int i = 0; i < posted; i++) {
		struct fi_cq_err_entry entry = {0};
		struct fi_cq_tagged_entry none;
		size_t n;

		ck_assert_int_eq(fi_cq_read(fake.cq, &none, 1), -FI_EAVAIL);
		ck_assert_int_eq(fi_cq_readerr(fake.cq, &entry, 0), 1);
		ck_assert_int_eq(entry.err, err);
		n = (size_t)((unsigned char *)entry.op_context - buf);
		ck_assert_uint_lt(n, posted);
		ck_assert(!seen[n]);
		seen[n] = true;
	}
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->rma.awaiting_count, 0);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 0);
	ck_assert(list_empty(&fake.worker->awaiting) && list_empty(&fake.worker->busy));
	ck_assert_uint_eq(fake.count, late);
}

static void lose(void)
{
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake.closed = 0; /* for fake_shut */
}

/* Connects the peer again: answers to old operations are ignored, and new operations work. */
static void expect_a_new_start(void)
{
	uint32_t old = fake.peer->rma.seq, seq;
	unsigned int sent = fake.count;

	fake_connect();
	for (uint32_t back = 0; back < 8; back++) {
		fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, old - back), 0, 0, buf, 8);
		fake_says(WIRE_HEAD(WIRE_FAILED, 0, 0, old - back), FI_EIO, 0, NULL, 0);
		fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, old - back), 0, 0, NULL, 0);
	}
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, sent);
	posted = 0;
	post_write(8);
	seq = wire_id(fake_last(0)->head);
	post_read(8);
	ck_assert_uint_eq(fake.count, sent + 2);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 1), 0, 0, buf, 8);
	fake_expect(&buf[0], FI_RMA | FI_WRITE);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}

START_TEST(without_answers)
{
	/* First, so that its error comes first: an injected operation has no context. */
	ck_assert_int_eq(fi_inject_write(fake.ep, buf, 8, fake.addr, 0, KEY), 0);
	post_read(1000);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake_last(0)->head) - 1), 0, 0, buf, 100);
	post_write(8);
	post_compare();
	post_matched(0);
	post_write(1000);
	lose();
	fake_expect_error(NULL, FI_ECONNRESET);
	expect_all_failed(FI_ECONNRESET);
	expect_a_new_start();
}
END_TEST

START_TEST(with_half_a_result)
{
	post_read(REGION);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake_last(0)->head)), 0, 0, buf, 1000);
	post_write(8); /* behind that operation */
	post_compare();
	post_matched(0);
	ck_assert_uint_eq(fake.count, 1);
	lose();
	expect_all_failed(FI_ECONNRESET);
	expect_a_new_start();
}
END_TEST

START_TEST(with_half_a_write)
{
	post_write(8);
	fake.room = 1;
	post_write(REGION);
	ck_assert_uint_eq(fake.count, 2);
	lose();
	fake.room = FAKE_PLENTY;
	expect_all_failed(FI_ECONNRESET);
	expect_a_new_start();
}
END_TEST

START_TEST(behind_a_fence)
{
	post_write(8);
	post_matched(FI_FENCE);
	post_write(REGION);
	post_read(8);
	post_compare();
	ck_assert_uint_eq(fake.count, 1);
	lose();
	expect_all_failed(FI_ECONNRESET);
	expect_a_new_start();
}
END_TEST

START_TEST(before_it_was_there)
{
	lose();
	fake_attempt(PEER_HANDSHAKE);
	ck_assert_int_eq(fi_write(fake.ep, buf, 8, NULL, fake.addr, 0, KEY, buf), -FI_EAGAIN);
	ck_assert_int_eq(fi_read(fake.ep, buf, REGION, NULL, fake.addr, 0, KEY, buf), -FI_EAGAIN);
	ck_assert_uint_eq(fake.count, 0);
	contact_failed(&fake.peer->conn, FI_ECONNREFUSED);
	ck_assert_int_eq(fi_write(fake.ep, buf, 8, NULL, fake.addr, 0, KEY, buf), -FI_ECONNREFUSED);
	expect_all_failed(0);
	expect_a_new_start();
}
END_TEST

/* The teardown closes the endpoint with all operations under way. */
START_TEST(nobody_waits_for_the_end)
{
	post_matched(0);
	post_compare();
	post_read(REGION);
	post_write(REGION);
	post_write(8);
	request_say(&(struct request){
		.op = WIRE_GET, .flags = WIRE_DATA, .key = KEY_READ, .want = REGION});
	request_say(&(struct request){
		.op = WIRE_PUT, .flags = WIRE_DATA, .seq = 2, .key = KEY_ALL, .len = 8});
}
END_TEST

/* ---- The peer's operations ---- */

static void ask(void)
{
	struct request r = {.op = WIRE_GET,
			    .flags = WIRE_DATA,
			    .seq = 1,
			    .key = KEY_READ,
			    .addr = 0,
			    .want = 8};

	request_say(&r);
	r.seq = 2;
	r.want = REGION;
	request_say(&r);
	request_say(&(struct request){
		.op = WIRE_PUT, .flags = WIRE_DATA, .seq = 3, .key = KEY_UNKNOWN, .len = 8});
	request_say(&(struct request){
		.op = WIRE_PUT, .flags = WIRE_DATA, .seq = 4, .key = KEY_ALL, .len = 8});
	request_say(&(struct request){.op = WIRE_AMO,
				      .flags = WIRE_DATA | WIRE_MATCH,
				      .seq = 5,
				      .key = 0x77,
				      .amo = {FI_SUM, FI_UINT64, ATOMIC_BASE, 0, 8},
				      .len = 8});
}

START_TEST(nobody_to_answer_to)
{
	fake.room = 0;
	ask();
	worker_progress(fake.worker);
	fake.room = 1; /* a part of the long answer is sent */
	worker_progress(fake.worker);
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes > 0, 1);
	ask();
	lose();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert(list_empty(&fake.worker->acks_pending) && list_empty(&fake.worker->busy));
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
	fake.count = 0;
	fake.room = FAKE_PLENTY;
	ask(); /* part of the answer is unsent */
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert(guards_whole());
}
END_TEST

static void setup(void)
{
	rma_setup();
	posted = 0;
}

int main(void)
{
	Suite *suite = suite_create("xfer_rma_lost");
	TCase *ours = tcase_create("ours"), *its = tcase_create("its");

	tcase_add_checked_fixture(ours, setup, rma_teardown);
	tcase_add_test(ours, without_answers);
	tcase_add_test(ours, with_half_a_result);
	tcase_add_test(ours, with_half_a_write);
	tcase_add_test(ours, behind_a_fence);
	tcase_add_test(ours, before_it_was_there);
	tcase_add_test(ours, nobody_waits_for_the_end);
	tcase_add_checked_fixture(its, setup, rma_teardown);
	tcase_add_test(its, nobody_to_answer_to);
	suite_add_tcase(suite, ours);
	suite_add_tcase(suite, its);
	return suite_run(suite);
}
