/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how an initiator treats answers: in order, out of order, duplicate, unexpected. */
#include "fake_rma.h"

#define THERE 0x1000 /* address in the peer's region */
#define KEY   5

static unsigned char buf[FAKE_TX_SIZE][64];

/* Posts a write. Returns its sequence number, one more than the last request's. */
static uint32_t post_write(unsigned int n, size_t len)
{
	ck_assert_int_eq(fi_write(fake.ep, buf[n], len, NULL, fake.addr, THERE, KEY, buf[n]), 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_PUT);
	return wire_id(fake_last(0)->head);
}

static uint32_t post_read(unsigned int n, size_t len)
{
	ck_assert_int_eq(fi_read(fake.ep, buf[n], len, NULL, fake.addr, THERE, KEY, buf[n]), 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_GET);
	return wire_id(fake_last(0)->head);
}

static uint32_t post_fetch(unsigned int n)
{
	ck_assert_int_eq(fi_fetch_atomic(fake.ep, buf[n], 1, NULL, buf[n] + 32, NULL, fake.addr,
					 THERE, KEY, FI_UINT64, FI_SUM, buf[n]),
			 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_AMO);
	return wire_id(fake_last(0)->head);
}

/* Posts an atomic on a tagged receive. Returns its id, which is not a sequence number. */
static uint32_t post_matched(unsigned int n)
{
	struct fi_ioc ioc = {buf[n], 1}, result = {buf[n] + 32, 1};
	struct fi_rma_ioc to = {.addr = 8, .count = 1, .key = KEY};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .addr = fake.addr,
				    .rma_iov = &to,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = buf[n]};

	ck_assert_int_eq(
		fi_fetch_atomicmsg(fake.ep, &msg, &result, NULL, 1, FI_TAGGED | FI_COMPLETION), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_MATCH | WIRE_DATA);
	return wire_id(fake_last(0)->head);
}

static void says_done(uint32_t seq)
{
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, seq), 0, 0, NULL, 0);
}

static void says_result(uint32_t seq, uint64_t at, const void *bytes, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq), at, 0, bytes, len);
}

static void says_failed(uint32_t seq, uint64_t what)
{
	fake_says(WIRE_HEAD(WIRE_FAILED, 0, 0, seq), what, 0, NULL, 0);
}

static void expect_none_left(void)
{
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->rma.awaiting_count, 0);
}

static const char bytes[64] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* ---- Valid answers ---- */

START_TEST(one_answer_for_many)
{
	uint32_t first = post_write(0, 8);

	for (unsigned int n = 1; n < 5; n++)
		ck_assert_uint_eq(post_write(n, n), first + n);
	fake_expect_nothing();
	says_done(first + 2);
	for (unsigned int n = 0; n < 3; n++)
		fake_expect(buf[n], FI_RMA | FI_WRITE);
	fake_expect_nothing();
	says_done(first + 4);
	fake_expect(buf[3], FI_RMA | FI_WRITE);
	fake_expect(buf[4], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

START_TEST(an_answer_ends_what_was_before)
{
	post_write(0, 8);
	post_write(1, 8);
	says_result(post_read(2, 20), 0, bytes, 20);
	fake_expect(buf[0], FI_RMA | FI_WRITE);
	fake_expect(buf[1], FI_RMA | FI_WRITE);
	fake_expect(buf[2], FI_RMA | FI_READ);
	ck_assert_mem_eq(buf[2], bytes, 20);
	ck_assert_uint_eq(buf[2][20], 0);
	post_write(3, 8);
	says_failed(post_write(4, 8), FI_EACCES | FI_ENOKEY << 16);
	fake_expect(buf[3], FI_RMA | FI_WRITE);
	ck_assert_int_eq(fake_expect_error(buf[4], FI_EACCES).prov_errno, FI_ENOKEY);
	expect_none_left();
}
END_TEST

START_TEST(numbers_wrap)
{
	fake.peer->rma.seq = UINT32_MAX - 3;
	for (unsigned int n = 0; n < 8; n++)
		ck_assert_uint_eq(post_write(n, 8), (uint32_t)(UINT32_MAX - 2 + n));
	says_done(UINT32_MAX - 3); /* an old number */
	fake_expect_nothing();
	says_done(UINT32_MAX);
	for (unsigned int n = 0; n < 3; n++)
		fake_expect(buf[n], FI_RMA | FI_WRITE);
	fake_expect_nothing();
	says_done(UINT32_MAX); /* the last old number */
	fake_expect_nothing();
	says_failed(2, FI_EACCES);
	for (unsigned int n = 3; n < 5; n++)
		fake_expect(buf[n], FI_RMA | FI_WRITE);
	fake_expect_error(buf[5], FI_EACCES);
	says_done(4);
	fake_expect(buf[6], FI_RMA | FI_WRITE);
	fake_expect(buf[7], FI_RMA | FI_WRITE);
	expect_none_left();
}
END_TEST

/* Results in fragments that cross the borders of the segments. */
START_TEST(results_in_fragments)
{
	struct iovec iov[4] = {{buf[0], 5}, {buf[1], 0}, {buf[2], 1}, {buf[3], 40}};
	uint32_t seq;

	ck_assert_int_eq(fi_readv(fake.ep, iov, NULL, 4, fake.addr, THERE, KEY, buf), 0);
	seq = wire_id(fake_last(0)->head);
	says_result(seq, 0, bytes, 3);
	says_result(seq, 3, bytes + 3, 10);
	says_result(seq, 13, NULL, 0);
	fake_expect_nothing();
	says_result(seq, 13, bytes + 13, 33);
	fake_expect(buf, FI_RMA | FI_READ);
	ck_assert_mem_eq(buf[0], bytes, 5);
	ck_assert_int_eq(buf[0][5] | buf[1][0] | buf[2][1] | buf[3][40], 0);
	ck_assert_int_eq(buf[2][0], bytes[5]);
	ck_assert_mem_eq(buf[3], bytes + 6, 40);
	expect_none_left();
}
END_TEST

/* ---- Invalid answers ---- */

START_TEST(numbers_nobody_gave)
{
	uint32_t first = post_write(0, 8);

	for (uint32_t back = 1; back < 5; back++) {
		says_done(first - back);
		says_result(first - back, 0, bytes, 8);
		says_failed(first - back, FI_EACCES);
	}
	for (uint32_t ahead = 1; ahead != 0; ahead *= 2) {
		logged.count = 0;
		says_done(first + ahead);
		says_result(first + ahead, 0, bytes, 8);
		says_failed(first + ahead, FI_EACCES);
		ck_assert_uint_eq(logged.count, 3);
	}
	fake_expect_nothing();
	says_done(first);
	fake_expect(buf[0], FI_RMA | FI_WRITE);
	for (uint32_t ahead = 1; ahead < 5; ahead++) {
		says_done(first + ahead);
		says_result(first + ahead, 0, bytes, 8);
		says_failed(first + ahead, FI_EACCES);
	}
	expect_none_left();
	/* An answer that came too early does not count later. */
	ck_assert_uint_eq(post_read(1, 8), first + 1);
	fake_expect_nothing();
	says_result(first + 1, 0, bytes, 8);
	fake_expect(buf[1], FI_RMA | FI_READ);
	expect_none_left();
}
END_TEST

START_TEST(done_without_its_result)
{
	uint32_t read = post_read(0, 8), fetch = post_fetch(1), last = post_write(2, 8);

	says_result(read, 0, bytes, 7);
	says_done(last);
	fake_expect_error(buf[0], FI_EPROTO);
	fake_expect_error(buf[1], FI_EPROTO);
	fake_expect(buf[2], FI_RMA | FI_WRITE);
	says_result(read, 7, bytes + 7, 1); /* the rest, after the read has ended */
	says_result(fetch, 0, bytes, 8);
	expect_none_left();
	ck_assert_int_eq(buf[0][7] | buf[1][32], 0);
}
END_TEST

START_TEST(results_without_sense)
{
	static unsigned char large[FAKE_PACKET];
	uint32_t seq = post_write(0, 8);

	says_result(seq, 0, large, 8);
	says_result(seq, 0, NULL, 0);
	fake_expect_nothing(); /* a write has no result */
	says_done(seq);
	fake_expect(buf[0], FI_RMA | FI_WRITE);
	seq = post_read(1, 16);
	memset(large, 0xaa, sizeof(large));
	logged.count = 0;
	says_result(seq, 1, large, 8);
	says_result(seq, UINT64_MAX, large, 8);
	says_result(seq, 16, large, 1);
	says_result(seq, 0, large, 17);
	says_result(seq, 0, large, sizeof(large));
	ck_assert_uint_eq(logged.count, 5);
	says_result(seq, 0, bytes, 10);
	says_result(seq, 0, large, 6);  /* a duplicate */
	says_result(seq, 10, large, 7); /* one byte too many */
	fake_expect_nothing();
	says_result(seq, 10, bytes + 10, 6);
	fake_expect(buf[1], FI_RMA | FI_READ);
	ck_assert_mem_eq(buf[1], bytes, 16);
	ck_assert_int_eq(buf[1][16], 0);
	says_result(seq, 0, large, 16);
	ck_assert_mem_eq(buf[1], bytes, 16);
	expect_none_left();
}
END_TEST

START_TEST(failures_without_sense)
{
	static const struct {
		uint64_t said;
		int err, reason;
	} cases[] = {
		{0, FI_EIO, 0},          {1ull << 16, FI_EIO, 1},   {UINT64_MAX, 0xffff, 0xffff},
		{1ull << 32, FI_EIO, 0}, {FI_EINVAL, FI_EINVAL, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fi_cq_err_entry error;

		says_failed(post_write(0, 8), cases[i].said);
		error = fake_expect_error(buf[0], cases[i].err);
		ck_assert_int_eq(error.prov_errno, cases[i].reason);
		ck_assert_ptr_nonnull(fi_strerror(error.err));
		expect_none_left();
	}
}
END_TEST

/* ATS names a request by id; a one-sided operation has an id too, but ATS does not end it. */
START_TEST(answers_of_another_kind)
{
	struct txreq *req;
	uint32_t seq = post_read(0, 8);

	req = LIST_ENTRY(fake.peer->txreqs[TXREQ_RMA].next, struct txreq, link);
	fake_says_ats(pool_id(req), 0);
	fake_says_ats(pool_id(req), FI_EIO);
	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, pool_id(req)), 1, 0, NULL, 0);
	fake_says(WIRE_HEAD(WIRE_FRAG, 0, 0, pool_id(req)), 0, 0, bytes, 8);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	says_result(seq, 0, bytes, 8);
	fake_expect(buf[0], FI_RMA | FI_READ);
	expect_none_left();
}
END_TEST

START_TEST(answers_to_matched)
{
	static const size_t wrong[] = {0, 7, 9, 64};
	uint32_t id;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		id = post_matched(0);
		says_done(id);
		says_result(id, 0, bytes, 8);
		says_failed(id, FI_EACCES);
		fake_expect_nothing();
		fake_says(WIRE_HEAD(WIRE_ATS, 0, 0, id), 0, 0, bytes, wrong[i]);
		fake_expect_error(buf[0], FI_EPROTO);
		ck_assert_int_eq(buf[0][32], 0);
		expect_none_left();
	}
	id = post_matched(0);
	fake_says(WIRE_HEAD(WIRE_ATS, 0, 0, id), FI_ECANCELED, 0, bytes, 8);
	fake_expect_error(buf[0], FI_ECANCELED);
	id = post_matched(0);
	fake_says(WIRE_HEAD(WIRE_ATS, 0, 0, id), 0, 0, bytes, 8);
	fake_expect(buf[0], FI_TAGGED | FI_ATOMIC | FI_READ);
	ck_assert_mem_eq(buf[0] + 32, bytes, 8);
	expect_none_left();
}
END_TEST

/* Results for a closed endpoint are not written: its memory may be gone. */
START_TEST(endpoint_closed_meanwhile)
{
	struct ep *ep = ep_of(fake.ep);
	uint32_t seq = post_read(0, 8), id = post_matched(2);

	ck_assert_uint_eq(post_fetch(1), seq + 1);
	tx_forget(fake.worker, ep, NULL);
	fake_expect_error(buf[0], FI_ECANCELED);
	fake_expect_error(buf[1], FI_ECANCELED);
	fake_expect_error(buf[2], FI_ECANCELED);
	says_result(seq, 0, bytes, 8);
	says_result(seq + 1, 0, bytes, 8);
	fake_says(WIRE_HEAD(WIRE_ATS, 0, 0, id), 0, 0, bytes, 8);
	ck_assert_int_eq(buf[0][0] | buf[1][32] | buf[2][32], 0);
	expect_none_left();
}
END_TEST

static void setup(void)
{
	rma_setup();
	memset(buf, 0, sizeof(buf));
}

int main(void)
{
	Suite *suite = suite_create("xfer_rma_answer");
	TCase *right = tcase_create("right"), *wrong = tcase_create("wrong");

	tcase_add_checked_fixture(right, setup, rma_teardown);
	tcase_add_test(right, one_answer_for_many);
	tcase_add_test(right, an_answer_ends_what_was_before);
	tcase_add_test(right, numbers_wrap);
	tcase_add_test(right, results_in_fragments);
	tcase_add_checked_fixture(wrong, setup, rma_teardown);
	tcase_add_test(wrong, numbers_nobody_gave);
	tcase_add_test(wrong, done_without_its_result);
	tcase_add_test(wrong, results_without_sense);
	tcase_add_test(wrong, failures_without_sense);
	tcase_add_test(wrong, answers_of_another_kind);
	tcase_add_test(wrong, answers_to_matched);
	tcase_add_test(wrong, endpoint_closed_meanwhile);
	suite_add_tcase(suite, right);
	suite_add_tcase(suite, wrong);
	return suite_run(suite);
}
