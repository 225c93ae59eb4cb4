/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what happens when a peer's packet cannot be kept for lack of memory: the receive of a message ends with the error,
 * later packets are not received, earlier unexpected messages stay, and the connection ends with an error on both sides.
 */
#include "fake_link.h"
#include "starve.h"

#define BYTES  (3u << 20) /* more than the memory left */
#define PLENTY 20000      /* completions; the queue's next growth exceeds the memory left */
#define MSG    WIRE_HEAD(WIRE_MSG, 0, 0, 0)

static unsigned char bytes[BYTES];

static void setup(void)
{
	starve_prepare();
	fake_open_connected();
}

static void teardown(void)
{
	fake.closed = 0; /* the peer has been disconnected */
	fake_shut();
}

static void expect_disconnected(void)
{
	starve_end();
	worker_progress(fake.worker);
	ck_assert_int_eq(fake.peer->conn.state, PEER_IDLE);
	ck_assert_int_eq(fake.closed, 1);
	ck_assert(fake.link.failed);
}

START_TEST(unexpected_message)
{
	unsigned char in[8] = {0}, directed[8];

	fake_says(MSG, 0, 0, "early", 5);
	ck_assert_int_eq(fi_recv(fake.ep, directed, 8, NULL, fake.addr, directed),
			 0); /* discards the message */
	fake_expect(directed, FI_MSG | FI_RECV);
	fake_says(MSG, 0, 0, "kept", 4);
	starve_begin();
	fake_says(MSG, 0, 0, bytes, BYTES);
	fake_says(MSG, 0, 0, "behind", 6);
	expect_disconnected();
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	fake_expect(in, FI_MSG | FI_RECV);
	ck_assert_mem_eq(in, "kept", 4);
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	fake_expect_error(in, FI_ENOMEM);
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	fake_expect_nothing();
}
END_TEST

/* There is no memory to collect a packet in. `_i`: a receive waits for it. */
START_TEST(collected)
{
	const struct packet p = {.head = MSG, .len = BYTES};
	unsigned char in[8];

	if (_i)
		ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	starve_begin();
	ck_assert_ptr_null(rx_payload_new(&fake.worker->conn.opener, pool_id(fake.peer), &p));
	expect_disconnected();
	if (!_i)
		ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	fake_expect_error(in, FI_ENOMEM);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.peer->rx.account.begun, 0);
}
END_TEST

/* A receive directed to this peer ends with the error. */
START_TEST(posted_receive)
{
	unsigned char in[8];

	starve_begin();
	fake_says(MSG, 0, 0, bytes, BYTES);
	starve_end();
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, fake.addr, in), 0);
	fake_says(MSG, 0, 0, "behind", 6);
	fake_expect_error(in, FI_ENOMEM);
	expect_disconnected();
}
END_TEST

/* A message that could be placed directly is behind the lost one, so is not received. */
START_TEST(message_with_a_place)
{
	const struct packet p = {.head = MSG, .len = 6};
	unsigned char in[8];

	starve_begin();
	fake_says(MSG, 0, 0, bytes, BYTES);
	starve_end();
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	fake_expect_error(in, FI_ENOMEM);
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, FI_ADDR_UNSPEC, in), 0);
	ck_assert_uint_eq(rxreq_placement_begin(&fake.worker->conn.opener, pool_id(fake.peer), &p),
			  0);
	expect_disconnected();
	fake_expect_nothing();
}
END_TEST

/* Over shared memory messages may come before the peer's hello. */
START_TEST(before_it_is_known_to_be_connected)
{
	unsigned char in[8];

	fake.peer->conn.real = NULL;
	fake_attempt(PEER_HANDSHAKE);
	fake.peer->conn.attempt->deadline = fake.peer->conn.attempt->again_ms = UINT64_MAX;
	starve_begin();
	fake_says(MSG, 0, 0, bytes, BYTES);
	starve_end();
	worker_progress(fake.worker);
	fake_connect();
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, fake.addr, in), 0);
	fake_says(MSG, 0, 0, "behind", 6);
	expect_disconnected();
	fake_expect_error(in, FI_ENOMEM);
	fake_expect_nothing();
}
END_TEST

START_TEST(answer)
{
	fake.room = 0;
	tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, 1), 0); /* queued; the next one too */
	starve_begin();
	tx_control_data(fake.peer, &(struct packet){.head = WIRE_HEAD(WIRE_RESULT, 0, 0, 1),
						    .payload = bytes,
						    .len = BYTES});
	expect_disconnected();
}
END_TEST

/* Earlier completions can be read; then every read returns FI_EOVERRUN. */
START_TEST(completions)
{
	struct cq *cq = cq_of(fake.cq);
	uint32_t kept;

	for (unsigned int i = 0; i < PLENTY; i++)
		cq_push_done(cq, bytes, FI_MSG | FI_RECV);
	starve_begin();
	while (!cq->is_overrun)
		cq_push_done(cq, bytes, FI_MSG | FI_RECV);
	expect_disconnected();
	cq_push_done(cq, bytes, FI_MSG | FI_RECV); /* lost */
	kept = cq->tail - cq->head - 1;
	ck_assert_uint_ge(kept, PLENTY);
	for (uint32_t i = 0; i < kept; i++)
		fake_expect(bytes, FI_MSG | FI_RECV);
	for (int i = 0; i < 3; i++) {
		fake_expect_error(NULL, FI_EOVERRUN);
		cq_push_done(cq, bytes, FI_MSG | FI_RECV);
	}
}
END_TEST

int main(void)
{
	TCase *starved = tcase_create("starved");

	tcase_add_checked_fixture(starved, setup, teardown);
	tcase_add_test(starved, unexpected_message);
	tcase_add_loop_test(starved, collected, 0, 2);
	tcase_add_test(starved, posted_receive);
	tcase_add_test(starved, message_with_a_place);
	tcase_add_test(starved, before_it_is_known_to_be_connected);
	tcase_add_test(starved, answer);
	tcase_add_test(starved, completions);
	return starve_run("xfer_starved", starved);
}
