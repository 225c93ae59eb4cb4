/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that reads of an idle worker's queue are left out, and that nothing waits for them: link/cursor.h. */
#include "ring_says.h"

#include "core/cq.h"
#include "xfer/rma/rma_target.h"

#define POLL_CALLS 64u /* reads between two polls of the sockets */

static char buf[8];

/* A message comes to the worker's ring. */
static void arrive(uint64_t tag)
{
	ring_says(0, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), tag, 0, buf, sizeof(buf));
}

START_TEST(rest_until_the_sockets_are_polled)
{
	uint32_t before;

	become_idle();
	while (fake.worker->conn.driven.idle.calls)
		fake_expect_nothing();
	before = ring_of_worker()->progress_calls;
	for (unsigned int i = 0; i < 10 * POLL_CALLS; i++)
		fake_expect_nothing();
	ck_assert_uint_eq(ring_of_worker()->progress_calls - before, 10);
}
END_TEST

START_TEST(message_comes_with_the_next_read)
{
	for (uint64_t tag = 1; tag < 3 * POLL_CALLS; tag++) {
		ck_assert_int_eq(fi_trecv(fake.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, tag, 0,
					  &buf[tag % 8]),
				 0);
		fake_expect_nothing();
		arrive(tag);
		fake_expect(&buf[tag % 8], FI_TAGGED | FI_RECV);
	}
}
END_TEST

START_TEST(recalled_packet_is_skipped)
{
	struct shm *shm = ring_of_worker();
	uint64_t head;

	become_idle();
	head = shm_head(shm);
	*ring_claim_at(&shm->ring, head) = claim_word(ring_lap(&shm->ring, head), 1, 1);
	__atomic_store_n(&ring_slot_at(&shm->ring, head)->token,
			 shm->ring.secret + head + RING_RECALLING, __ATOMIC_RELEASE);
	fake_expect_nothing();
	ck_assert_uint_eq(shm_head(shm), head);
	__atomic_store_n(&ring_slot_at(&shm->ring, head)->token,
			 shm->ring.secret + head + RING_CANCELLED, __ATOMIC_RELEASE);
	fake_expect_nothing();
	ck_assert_uint_eq(shm_head(shm), head + 1);
}
END_TEST

START_TEST(queued_packet_goes_with_the_next_read)
{
	become_idle();
	fake.room = 0;
	tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, 3), 0);
	ck_assert_uint_eq(fake.count, 0);
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
}
END_TEST

START_TEST(request_is_acknowledged_by_the_read_that_finds_it)
{
	struct rma_request r = {.peer = fake.peer, .seq = 5};

	become_idle();
	rma_done(&r);
	arrive(7); /* by the ring's own progress; nothing else is due */
	fake_expect_nothing();
	ck_assert_uint_gt(fake.worker->conn.driven.idle.calls, 0);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_DONE, 0, 0, 5));
}
END_TEST

START_TEST(armed_worker_polls_its_sockets)
{
	become_idle();
	worker_arm(fake.worker);
	fake_expect_nothing();
	ck_assert(!fake.worker->conn.opener.armed);
	ck_assert_uint_eq(fake.worker->conn.driven.idle.calls,
			  0); /* a sleeper has to be woken by what comes */
}
END_TEST

/* A sleeper that a message has woken gets it without a poll of the sockets, which is the next call's. */
START_TEST(message_before_the_sockets)
{
	become_idle();
	ck_assert_int_eq(fi_trecv(fake.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0, buf), 0);
	worker_arm(fake.worker);
	arrive(1);
	fake_expect(buf, FI_TAGGED | FI_RECV);
	ck_assert(fake.worker->conn.opener.armed);
	ck_assert(!fake.worker->conn.opener.sleepers); /* it was told to arm again */
	fake_expect_nothing();
	ck_assert(!fake.worker->conn.opener.armed);
}
END_TEST

/* An event queue wants what the sockets have, whatever else comes in that call. */
START_TEST(event_queue_gets_the_sockets)
{
	become_idle();
	ck_assert_int_eq(fi_trecv(fake.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 1, 0, buf), 0);
	worker_arm(fake.worker);
	arrive(1);
	cm_progress(fake.worker);
	ck_assert(!fake.worker->conn.opener.armed);
	fake_expect(buf, FI_TAGGED | FI_RECV);
}
END_TEST

/* Whatever grants calls between two reads, every 64th drives the domain's other workers. */
START_TEST(other_workers_are_driven)
{
	struct fi_cq_attr attr = {.wait_obj = FI_WAIT_NONE};
	struct fid_cq *cq;
	struct fid_ep *ep;
	uint32_t before;

	ck_assert_int_eq(fi_cq_open(fake.domain, &attr, &cq, NULL), 0);
	ck_assert_int_eq(fi_endpoint(fake.domain, fake.info, &ep, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &fake.av->fid, 0), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	for (unsigned int granted = 0; granted < 2; granted++) {
		become_idle();
		before = ring_of(ep_of(ep)->worker)->progress_calls;
		for (unsigned int i = 0; i <= POLL_CALLS; i++) {
			for (unsigned int calls = 0; calls < granted; calls++)
				worker_progress(fake.worker);
			fake_expect_nothing();
		}
		ck_assert_uint_ne(ring_of(ep_of(ep)->worker)->progress_calls, before);
	}
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&cq->fid), 0);
}
END_TEST

START_TEST(handshake_makes_polls_frequent)
{
	become_idle();
	ck_assert_uint_ge(fake.worker->conn.driven.idle.calls, 8);
	contact_connected(&fake.peer->conn);
	ck_assert_uint_eq(fake.worker->conn.driven.idle.calls, 0);
	fake.worker->conn.handshakes++;
	fake_expect_nothing();
	ck_assert_uint_lt(fake.worker->conn.driven.idle.calls, 8);
	fake.worker->conn.handshakes--;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_worker");
	TCase *tcase = tcase_create("idle");

	tcase_add_checked_fixture(tcase, fake_open_connected, fake_shut);
	tcase_add_test(tcase, rest_until_the_sockets_are_polled);
	tcase_add_test(tcase, message_comes_with_the_next_read);
	tcase_add_test(tcase, recalled_packet_is_skipped);
	tcase_add_test(tcase, queued_packet_goes_with_the_next_read);
	tcase_add_test(tcase, request_is_acknowledged_by_the_read_that_finds_it);
	tcase_add_test(tcase, armed_worker_polls_its_sockets);
	tcase_add_test(tcase, message_before_the_sockets);
	tcase_add_test(tcase, event_queue_gets_the_sockets);
	tcase_add_test(tcase, handshake_makes_polls_frequent);
	tcase_add_test(tcase, other_workers_are_driven);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
