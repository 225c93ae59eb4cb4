/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_WEFT_OPERATION_TIMEOUT ends connections whose operations stand still, and no others. */
#include "fake_link.h"
#include "base/reason.h"
#include "conn/conn.h"
#include "xfer/msg/tx.h"

#define CHECKS 40 /* more than an operation has */

static char big[4 * FAKE_EAGER];

static void setup(void)
{
	setenv("FI_WEFT_OPERATION_TIMEOUT", "400", 1);
	fake_open_connected();
}

/* Checks again and again; the oldest operation makes progress by `bytes` between checks. */
static bool is_given_up(struct txreq *oldest, size_t bytes)
{
	uint64_t now = fake.worker->next_stuck;

	for (int i = 0; i < CHECKS && fake.peer->conn.end != END_STUCK; i++, now += 1000) {
		oldest->got += bytes;
		worker_stuck_check(fake.worker, now);
	}
	return fake.peer->conn.end == END_STUCK;
}

/* An operation that awaits the peer, and one behind it that is not sent. */
static struct txreq *post_both(void)
{
	struct iovec iov = {big, 8};
	const struct fi_msg fenced = {.msg_iov = &iov, .iov_count = 1, .addr = fake.addr};
	struct txreq *oldest;

	ck_assert_int_eq(fi_send(fake.ep, big, sizeof(big), NULL, fake.addr, big), 0);
	ck_assert_int_eq(fi_sendmsg(fake.ep, &fenced, FI_FENCE), 0);
	ck_assert_ptr_nonnull(tx_req_first(fake.peer, TXREQ_BACKLOG));
	oldest = tx_req_first(fake.peer, TXREQ_ACK);
	ck_assert_ptr_nonnull(oldest);
	return oldest;
}

START_TEST(nothing_moves)
{
	ck_assert(is_given_up(post_both(), 0));
}
END_TEST

START_TEST(one_waits_for_another_that_moves)
{
	struct txreq *oldest = post_both();

	ck_assert(!is_given_up(oldest, 1));
	ck_assert(is_given_up(oldest, 0));
}
END_TEST

/* Once nothing is ahead of it, the one that has waited has all its time. */
START_TEST(the_time_begins_after_the_wait)
{
	struct txreq *oldest = post_both();

	ck_assert(!is_given_up(oldest, 1));
	list_remove(&oldest->link);
	worker_stuck_check(fake.worker, fake.worker->next_stuck);
	ck_assert(fake.peer->conn.end != END_STUCK);
	list_push(&fake.peer->txreqs[TXREQ_ACK], &oldest->link);
}
END_TEST

/* What a peer has sent whole is not lost because it is stopped now. */
START_TEST(its_messages_stay)
{
	uint64_t word = 4711, in = 0;
	struct fi_cq_err_entry entry;

	fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, &word, sizeof(word));
	ck_assert(is_given_up(post_both(), 0));
	conn_expel(&fake.peer->conn);
	entry = fake_expect_error(big, FI_ETIMEDOUT);
	ck_assert_int_eq(entry.prov_errno, REASON_STUCK);
	fake_expect_error(NULL, FI_ETIMEDOUT);
	fake.closed = 0;
	ck_assert_int_eq(fi_recv(fake.ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, &in), 0);
	fake_expect(&in, FI_RECV | FI_MSG);
	ck_assert_uint_eq(in, word);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_worker_stuck");
	TCase *tcase = tcase_create("stuck");

	tcase_add_checked_fixture(tcase, setup, fake_shut);
	tcase_add_test(tcase, nothing_moves);
	tcase_add_test(tcase, one_waits_for_another_that_moves);
	tcase_add_test(tcase, the_time_begins_after_the_wait);
	tcase_add_test(tcase, its_messages_stay);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
