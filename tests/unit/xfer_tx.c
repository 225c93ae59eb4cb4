/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves the slow path of sending: backlog, fences, XOFF, long messages, cancelling. */
#include "fake_link.h"

#define FRAGMENT 256u /* bytes of a long message in one packet */

#define TAG 0x1234

static char buf[4 * FAKE_EAGER], held;

static ssize_t send_tagged(size_t len, uint64_t tag, void *context)
{
	return fi_tsend(fake.ep, buf, len, NULL, fake.addr, tag, context);
}

static ssize_t send_flags(size_t len, uint64_t flags, void *context)
{
	struct iovec iov = {buf, len};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = fake.addr, .context = context};

	return fi_sendmsg(fake.ep, &msg, flags | FI_COMPLETION);
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (char)(i * 7 + i / 256);
}

START_TEST(fast_road)
{
	const struct fake_packet *p;

	fill();
	ck_assert_int_eq(fi_tsenddata(fake.ep, buf, 100, NULL, 77, fake.addr, TAG, &buf[1]), 0);
	p = fake_last(0);
	ck_assert_uint_eq(p->head, WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, 0, 0));
	ck_assert_uint_eq(p->tag, TAG);
	ck_assert_uint_eq(p->data, 77);
	ck_assert_uint_eq(p->len, 100);
	ck_assert_mem_eq(p->payload, buf, 100);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_int_eq(fi_send(fake.ep, buf, 0, NULL, fake.addr, &buf[2]), 0);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_MSG, 0, 0, 0));
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), 0);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 3);
}
END_TEST

START_TEST(full_link_is_eagain)
{
	fake.room = 0;
	ck_assert_int_eq(send_tagged(8, TAG, NULL), -FI_EAGAIN);
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 8, fake.addr, TAG), -FI_EAGAIN);
	ck_assert_int_eq(send_tagged(sizeof(buf), TAG, NULL), -FI_EAGAIN);
	fake_expect_nothing();
	fake.room = FAKE_PLENTY;
	fake_expect_nothing(); /* refused sends complete nothing */
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_int_eq(send_tagged(8, TAG, NULL), 0);
	ck_assert_uint_eq(fake.count, 1);
}
END_TEST

/* Sends a message without end: what is fenced waits until `let_go`. Returns its number. */
static uint32_t hold_back(void)
{
	ck_assert_int_eq(send_flags(8, FI_DELIVERY_COMPLETE, &held), 0);
	return wire_id(fake_last(0)->head);
}

static void let_go(uint32_t id)
{
	fake_says_ats(id, 0);
	fake_expect(&held, FI_MSG | FI_SEND);
}

static ssize_t send_fenced(size_t len, void *context)
{
	return send_flags(len, FI_FENCE, context);
}

START_TEST(waits_for_a_fence_in_order)
{
	uint32_t id = hold_back();
	unsigned int i;

	for (i = 0; i < FAKE_TX_SIZE; i++)
		ck_assert_int_eq(send_fenced(i + 1, &buf[i]), 0);
	ck_assert_int_eq(send_fenced(8, NULL), -FI_EAGAIN); /* tx_attr->size limits the backlog */
	memset(buf, 0x55, sizeof(buf));
	fake_expect_nothing();
	fake.room = 3;
	let_go(id);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 1 + 3);
	ck_assert_int_eq(send_tagged(8, i, NULL), -FI_EAGAIN); /* no send overtakes the backlog */
	fake.room = FAKE_PLENTY;
	for (i = 0; i < FAKE_TX_SIZE; i++)
		fake_expect(&buf[i], FI_MSG | FI_SEND);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1 + FAKE_TX_SIZE);
	for (i = 0; i < FAKE_TX_SIZE; i++) {
		ck_assert_uint_eq(fake.packets[1 + i].len, i + 1);
		ck_assert_uint_eq(fake.packets[1 + i].payload[0], 0x55);
	}
	ck_assert_int_eq(send_tagged(8, i, NULL), 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* Nothing is queued for a connection: its process may not call the library again. */
START_TEST(nothing_is_kept_for_a_connection)
{
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 16, fake.addr, TAG), -FI_EAGAIN);
	ck_assert_int_eq(send_flags(16, FI_INJECT, &buf[1]), -FI_EAGAIN);
	ck_assert_int_eq(send_tagged(16, TAG, &buf[1]), -FI_EAGAIN);
	ck_assert_int_eq(send_tagged(sizeof(buf), TAG, &buf[1]), -FI_EAGAIN);
	ck_assert_int_eq(send_fenced(16, &buf[1]), -FI_EAGAIN);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	fake_connect();
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 16, fake.addr, TAG), 0);
	ck_assert_int_eq(send_flags(16, FI_INJECT, &buf[1]), 0);
	ck_assert_uint_eq(fake.count, 2);
	fake_expect(&buf[1], FI_MSG | FI_SEND);
}
END_TEST

/* The failure of a connect is reported by the next call. */
START_TEST(the_next_call_hears_of_a_failed_attempt)
{
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 16, fake.addr, TAG), -FI_EAGAIN);
	contact_failed(&fake.peer->conn, FI_EHOSTUNREACH);
	ck_assert_int_eq(send_tagged(16, TAG, &buf[1]), -FI_EHOSTUNREACH);
	fake_expect_nothing();
	/* Reported once: the next call connects again, to a peer that does not exist. */
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 16, fake.addr, TAG), -FI_ECONNREFUSED);
}
END_TEST

/* The peer connected, but died before the handshake ended: the next call connects anew, here to nobody. */
START_TEST(tries_again_after_one_who_came_in_vain)
{
	char in[8];

	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), -FI_EAGAIN);
	ck_assert_int_eq(fi_recv(fake.ep, in, 8, NULL, fake.addr, in), 0);
	peer_busy(fake.peer); /* as an attempt that waits does */
	contact_not_taken(&fake.peer->conn, FI_ECONNRESET);
	ck_assert(list_empty(&fake.worker->busy)); /* else a sleeper would wake every ms */
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), -FI_ECONNREFUSED);
	fake_expect_nothing();
}
END_TEST

START_TEST(long_message_is_announced)
{
	const struct fake_packet *p;
	struct wire_rts rts;

	ck_assert_int_eq(send_tagged(sizeof(buf), TAG, &buf[1]), 0);
	p = fake_last(0);
	ck_assert_uint_eq(wire_op(p->head), WIRE_RTS);
	ck_assert_uint_eq(wire_flags(p->head), WIRE_TAGGED);
	ck_assert_uint_eq(p->tag, TAG);
	ck_assert_uint_eq(p->len, offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
	memcpy(&rts, p->payload, p->len);
	ck_assert_uint_eq(rts.len, sizeof(buf));
	ck_assert_uint_eq(rts.count, 1);
	ck_assert_uint_eq(rts.segment[0].addr, (uintptr_t)buf);
	ck_assert_uint_eq(rts.segment[0].len, sizeof(buf));
	fake_expect_nothing();
	fake_says_ats(wire_id(p->head) ^ 1, 0); /* an unknown id */
	fake_expect_nothing();
	fake_says_ats(wire_id(p->head), 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	fake_says_ats(wire_id(p->head), 0); /* a second ATS finds no request */
	fake_expect_nothing();
	ck_assert_int_eq(send_tagged(sizeof(buf), TAG, &buf[2]), 0);
	fake_says_ats(wire_id(fake_last(0)->head), FI_ENOMEM);
	fake_expect_error(&buf[2], FI_ENOMEM);
}
END_TEST

/* Streamed after CTS, over a link that accepts two packets at a time. */
START_TEST(long_message_is_streamed)
{
	struct iovec iov[3] = {{buf, 300}, {buf + 300, 1}, {buf + 301, sizeof(buf) - 301}};
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = 3, .addr = fake.addr, .tag = TAG, .context = &buf[1]};
	unsigned char got[sizeof(buf)];
	size_t at = 0;
	uint32_t id;

	fill();
	ck_assert_int_eq(fi_tsendmsg(fake.ep, &msg, FI_COMPLETION), 0);
	id = wire_id(fake_last(0)->head);
	fake.room = 0;
	fake.link.packet_max = FRAGMENT;
	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, id), 4711, 0, NULL, 0);
	for (unsigned int i = 1; at < sizeof(buf); i++) {
		const struct fake_packet *p;

		if (fake.count == i) {
			fake.room = 2;
			fake_expect_nothing();
		}
		p = &fake.packets[i];
		ck_assert_uint_gt(fake.count, i);
		ck_assert_uint_eq(p->head, WIRE_HEAD(WIRE_FRAG, 0, 0, 4711));
		ck_assert_uint_eq(p->tag, at);
		ck_assert_uint_le(p->len, FRAGMENT);
		ck_assert_uint_gt(p->len, 0);
		memcpy(got + at, p->payload, p->len);
		at += p->len;
	}
	ck_assert_uint_eq(at, sizeof(buf));
	ck_assert_mem_eq(got, buf, sizeof(buf));
	fake.room = FAKE_PLENTY;
	fake_expect_nothing(); /* sent, but not yet acknowledged */
	fake_says_ats(id, 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

START_TEST(delivery_is_awaited)
{
	uint32_t first, second;

	ck_assert_int_eq(send_flags(8, FI_DELIVERY_COMPLETE, &buf[1]), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_ACK_DELIVER);
	first = wire_id(fake_last(0)->head);
	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, first), 1, 0, NULL,
		  0); /* the message was not announced by RTS */
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_int_eq(send_flags(8, FI_MATCH_COMPLETE, &buf[2]), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_ACK_MATCH);
	second = wire_id(fake_last(0)->head);
	ck_assert_int_eq(send_flags(8, 0, &buf[3]), 0);
	fake_expect(&buf[3], FI_MSG | FI_SEND);
	fake_expect_nothing();
	fake_says_ats(second, 0);
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	fake_says_ats(first, 0);
	fake_expect(&buf[1], FI_MSG | FI_SEND);
}
END_TEST

START_TEST(fence_waits)
{
	uint32_t id;

	ck_assert_int_eq(send_flags(8, FI_FENCE, &buf[1]),
			 0); /* the fence has nothing to wait for */
	fake_expect(&buf[1], FI_MSG | FI_SEND);
	ck_assert_int_eq(send_flags(8, FI_DELIVERY_COMPLETE, &buf[2]), 0);
	id = wire_id(fake_last(0)->head);
	ck_assert_int_eq(send_flags(9, FI_FENCE, &buf[3]), 0);
	ck_assert_uint_eq(fake.count, 2);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 2);
	fake_says_ats(id, 0);
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	fake_expect(&buf[3], FI_MSG | FI_SEND);
	ck_assert_uint_eq(fake.count, 3);
	ck_assert_uint_eq(fake_last(0)->len, 9);
}
END_TEST

START_TEST(nothing_passes_a_fence)
{
	uint32_t id;
	ssize_t ret;

	ck_assert_int_eq(send_flags(8, FI_DELIVERY_COMPLETE, &buf[1]), 0);
	id = wire_id(fake_last(0)->head);
	ck_assert_int_eq(send_flags(9, FI_FENCE, &buf[2]), 0);
	ret = send_flags(10, 0, &buf[3]);
	ck_assert(ret == 0 || ret == -FI_EAGAIN);
	ck_assert_int_eq(fi_tinject(fake.ep, buf, 11, fake.addr, TAG), -FI_EAGAIN);
	ck_assert_uint_eq(fake.count, 1);
	fake_says_ats(id, 0);
	fake_expect(&buf[1], FI_MSG | FI_SEND);
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	ck_assert_uint_eq(fake.packets[1].len, 9);
	if (ret == 0)
		ck_assert_uint_eq(fake.packets[2].len, 10);
}
END_TEST

/* The packets under XOFF: short messages whole, of longer ones the RTS, each with an answer to come. */
START_TEST(paused_messages_are_answered)
{
	static char longer[WIRE_PAUSED_MAX + 1];

	fake.link.eager_max = sizeof(longer);
	fake_says(WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0, 0, NULL, 0);
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_MSG);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_TAGGED | WIRE_ACK_MATCH);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_ACK_MATCH);
	ck_assert_int_eq(fi_send(fake.ep, longer, WIRE_PAUSED_MAX, NULL, fake.addr, &buf[2]), 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_MSG);
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	ck_assert_int_eq(fi_send(fake.ep, longer, sizeof(longer), NULL, fake.addr, &buf[3]), 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_RTS);
	fake_expect_nothing();
	fake_says_ats(wire_id(fake_last(0)->head), 0);
	fake_expect(&buf[3], FI_MSG | FI_SEND);
	for (unsigned int back = 1; back < 4; back++)
		fake_says_ats(wire_id(fake_last(back)->head), 0);
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	fake_says(WIRE_HEAD(WIRE_XON, 0, 0, 0), 0, 0, NULL, 0);
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_TAGGED);
}
END_TEST

START_TEST(paused_messages_are_bounded)
{
	fake_says(WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0, 0, NULL, 0);
	for (unsigned int i = 0; i < FAKE_TX_SIZE; i++)
		ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), 0);
	ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), -FI_EAGAIN);
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), -FI_EAGAIN);
	ck_assert_int_eq(send_tagged(sizeof(buf), TAG, &buf[1]), -FI_EAGAIN);
	fake_says_ats(wire_id(fake_last(3)->head), 0);
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_int_eq(fi_inject(fake.ep, buf, 8, fake.addr), -FI_EAGAIN);
	tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, 1), 0); /* others are not */
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_ATS);
}
END_TEST

/* What was reported before its answer came is reported once, even if the peer is lost. */
START_TEST(paused_messages_are_reported_once)
{
	fake_says(WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0, 0, NULL, 0);
	ck_assert_int_eq(send_tagged(8, TAG, &buf[1]), 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_int_eq(send_flags(8, FI_FENCE, &buf[2]), 0);
	fake_expect(&buf[2], FI_MSG | FI_SEND);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake_expect_nothing();
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->tx.unmatched_count, 0);
	fake.closed = 0;
}
END_TEST

START_TEST(answers_go_first_and_are_never_lost)
{
	fake.room = 0;
	for (uint32_t i = 0; i < 5; i++)
		tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, i), i);
	fake.room = 2;
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 2);
	tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, 5), 5);
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 6);
	for (uint32_t i = 0; i < 6; i++)
		ck_assert_uint_eq(wire_id(fake.packets[i].head), i);
}
END_TEST

START_TEST(cancel_what_waits)
{
	uint32_t id = hold_back();

	for (unsigned int i = 0; i < 4; i++)
		ck_assert_int_eq(send_fenced(i + 1, &buf[i]), 0);
	ck_assert_int_eq(fi_cancel(&fake.ep->fid, &buf[2]), 0);
	ck_assert_int_eq(fake_expect_error(&buf[2], FI_ECANCELED).flags & FI_SEND, FI_SEND);
	ck_assert_int_eq(fi_cancel(&fake.ep->fid, &buf[2]), 0);
	ck_assert_int_eq(send_fenced(5, &buf[4]), 0);
	let_go(id);
	for (unsigned int i = 0; i < 5; i++)
		if (i != 2)
			fake_expect(&buf[i], FI_MSG | FI_SEND);
	ck_assert_uint_eq(fake.count, 1 + 4);
	ck_assert_uint_eq(fake.packets[1 + 2].len, 4);
	ck_assert_int_eq(fi_cancel(&fake.ep->fid, &buf[0]), 0); /* already sent */
}
END_TEST

/* A cancelled send frees its place in the backlog, again and again. */
START_TEST(cancel_gives_the_room_back)
{
	uint32_t id = hold_back();

	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < FAKE_TX_SIZE; i++)
			ck_assert_int_eq(send_fenced(8, &buf[i]), 0);
		ck_assert_int_eq(send_fenced(8, NULL), -FI_EAGAIN);
		for (unsigned int i = 0; i < FAKE_TX_SIZE; i++) {
			ck_assert_int_eq(fi_cancel(&fake.ep->fid, &buf[i]), 0);
			fake_expect_error(&buf[i], FI_ECANCELED);
		}
	}
	let_go(id);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* Answers to requests that were not sent are ignored. */
START_TEST(answers_to_what_was_not_sent)
{
	uint32_t id = hold_back(), waiting;

	ck_assert_int_eq(send_fenced(8, &buf[0]), 0);
	ck_assert_int_eq(send_fenced(8, &buf[1]), 0);
	waiting = pool_id(tx_req_first(fake.peer, TXREQ_BACKLOG));
	fake_says_ats(waiting, 0);
	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, waiting), 1, 0, NULL, 0);
	fake_expect_nothing();
	let_go(id);
	fake_expect(&buf[0], FI_MSG | FI_SEND);
	fake_expect(&buf[1], FI_MSG | FI_SEND);
	ck_assert_uint_eq(fake.count, 3);
	ck_assert_uint_eq(wire_op(fake.packets[1].head), WIRE_MSG);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 0);
}
END_TEST

/* A sent request leaves the backlog while it awaits its answer. */
START_TEST(what_was_sent_leaves_the_backlog)
{
	uint32_t id = hold_back();

	ck_assert_int_eq(send_flags(8, FI_FENCE | FI_DELIVERY_COMPLETE, &buf[0]), 0);
	ck_assert_int_eq(send_flags(sizeof(buf), 0, &buf[1]), 0);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 2);
	let_go(id);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 3);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 0);
	fake_says_ats(wire_id(fake.packets[1].head), 0);
	fake_expect(&buf[0], FI_MSG | FI_SEND);
	fake_says_ats(wire_id(fake.packets[2].head), 0);
	fake_expect(&buf[1], FI_MSG | FI_SEND);
}
END_TEST

START_TEST(the_end_of_the_peer_ends_all)
{
	ck_assert_int_eq(send_tagged(sizeof(buf), 0, &buf[0]), 0);
	ck_assert_int_eq(send_flags(8, FI_DELIVERY_COMPLETE, &buf[1]), 0);
	ck_assert_int_eq(send_flags(8, FI_FENCE, &buf[2]), 0);
	fake.room = 0;
	tx_control(fake.peer, WIRE_HEAD(WIRE_ATS, 0, 0, 1), 0);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	for (unsigned int i = 0; i < 3; i++)
		fake_expect_error(&buf[i], FI_ECONNRESET);
	fake_expect_nothing();
	ck_assert_int_eq(fake.closed, 1);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->tx.backlog_count, 0);
	ck_assert(list_empty(&fake.worker->busy));
	fake.closed = 0; /* for fake_shut */
}
END_TEST

START_TEST(closing_cancels_what_waits)
{
	hold_back();
	ck_assert_int_eq(send_fenced(8, &buf[0]), 0);
	ck_assert_int_eq(send_fenced(8, &buf[1]), 0);
	ck_assert_int_eq(fi_close(&fake.ep->fid), 0);
	fake_expect_error(&held, FI_ECANCELED);
	fake_expect_error(&buf[0], FI_ECANCELED);
	fake_expect_error(&buf[1], FI_ECANCELED);
	fake_expect_nothing();
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0;
	ck_assert_int_eq(fi_endpoint(fake.domain, fake.info, &fake.ep, NULL), 0);
	fake.peer = &peer_nobody;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_tx");
	TCase *up = tcase_create("connected"), *down = tcase_create("connecting");

	tcase_add_checked_fixture(up, fake_open_connected, fake_shut);
	tcase_add_test(up, fast_road);
	tcase_add_test(up, full_link_is_eagain);
	tcase_add_test(up, long_message_is_announced);
	tcase_add_test(up, long_message_is_streamed);
	tcase_add_test(up, delivery_is_awaited);
	tcase_add_test(up, fence_waits);
	tcase_add_test(up, nothing_passes_a_fence);
	tcase_add_test(up, paused_messages_are_answered);
	tcase_add_test(up, paused_messages_are_bounded);
	tcase_add_test(up, paused_messages_are_reported_once);
	tcase_add_test(up, answers_go_first_and_are_never_lost);
	tcase_add_test(up, the_end_of_the_peer_ends_all);
	tcase_add_test(up, waits_for_a_fence_in_order);
	tcase_add_test(up, cancel_what_waits);
	tcase_add_test(up, cancel_gives_the_room_back);
	tcase_add_test(up, answers_to_what_was_not_sent);
	tcase_add_test(up, what_was_sent_leaves_the_backlog);
	tcase_add_test(up, closing_cancels_what_waits);
	tcase_add_checked_fixture(down, fake_open, fake_shut);
	tcase_add_test(down, nothing_is_kept_for_a_connection);
	tcase_add_test(down, the_next_call_hears_of_a_failed_attempt);
	tcase_add_test(down, tries_again_after_one_who_came_in_vain);
	suite_add_tcase(suite, up);
	suite_add_tcase(suite, down);
	return suite_run(suite);
}
