/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how messages match receives: order, tags, senders, lengths, XOFF; and that bad packets are
 * dropped.
 */
#include "fake_link.h"

#define MANY 100

static char in[4][4 * FAKE_EAGER];
static char out[4 * FAKE_EAGER];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (char)(i * 11 + i / 256);
	memset(in, 0, sizeof(in));
}

static void post(unsigned int n, size_t len, uint64_t tag, uint64_t ignore)
{
	ck_assert_int_eq(fi_trecv(fake.ep, in[n], len, NULL, FI_ADDR_UNSPEC, tag, ignore, in[n]),
			 0);
}

/* Delivers a message: `len` bytes of `out` from `at` on. */
static void message(uint64_t tag, size_t at, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), tag, 0, out + at, len);
}

static struct fi_cq_tagged_entry got(void)
{
	const struct fi_cq_tagged_entry *entry = fake_read();

	ck_assert_ptr_nonnull(entry);
	return *entry;
}

static void expect_received(unsigned int n, uint64_t tag, size_t at, size_t len)
{
	struct fi_cq_tagged_entry entry = got();

	ck_assert_ptr_eq(entry.op_context, in[n]);
	ck_assert_uint_eq(entry.flags, FI_TAGGED | FI_RECV);
	ck_assert_uint_eq(entry.tag, tag);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_mem_eq(in[n], out + at, len);
}

START_TEST(receive_waits_for_message)
{
	char zero = 0;

	post(0, sizeof(in[0]), 5, 0);
	fake_expect_nothing();
	message(5, 3, 40);
	expect_received(0, 5, 3, 40);
	ck_assert_mem_eq(&in[0][40], &zero, 1);
	message(6, 0, 0); /* no receive is left for tags 6 and 5 */
	message(5, 0, 0);
	fake_expect_nothing();
}
END_TEST

START_TEST(oldest_receive_that_fits)
{
	post(0, 64, 7, 0);
	post(1, 64, 5, 0);
	post(2, 64, 0, UINT64_MAX);
	post(3, 64, 5, 0);
	message(5, 1, 9);
	message(5, 2, 9);
	message(5, 3, 9);
	expect_received(1, 5, 1, 9);
	expect_received(2, 5, 2, 9);
	expect_received(3, 5, 3, 9);
	message(7, 4, 9);
	expect_received(0, 7, 4, 9);
}
END_TEST

START_TEST(ignored_bits)
{
	post(0, 64, 0x1200, 0xff);
	message(0x1300, 0, 1);
	message(0x12ab, 1, 1);
	expect_received(0, 0x12ab, 1, 1);
	post(1, 64, 0x0300, 0xf000);
	expect_received(1, 0x1300, 0, 1);
}
END_TEST

START_TEST(unexpected_keep_their_order)
{
	for (unsigned int i = 0; i < MANY; i++)
		message(i % 3, i, 8);
	fake_expect_nothing();
	for (unsigned int tag = 0; tag < 3; tag++)
		for (unsigned int i = tag; i < MANY; i += 3) {
			post(0, 64, tag, 0);
			expect_received(0, tag, i, 8);
		}
	post(0, 64, 0, UINT64_MAX);
	fake_expect_nothing();
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
}
END_TEST

START_TEST(messages_and_tagged_are_apart)
{
	post(0, 64, 0, UINT64_MAX);
	fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, out, 4);
	fake_expect_nothing();
	ck_assert_int_eq(fi_recv(fake.ep, in[1], 64, NULL, FI_ADDR_UNSPEC, in[1]), 0);
	fake_expect(in[1], FI_MSG | FI_RECV);
	ck_assert_int_eq(fi_recv(fake.ep, in[1], 64, NULL, FI_ADDR_UNSPEC, in[1]), 0);
	message(1, 0, 4);
	fake_expect(in[0], FI_TAGGED | FI_RECV);
	fake_expect_nothing();
}
END_TEST

START_TEST(only_from_whom_it_names)
{
	fi_addr_t other;

	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://other", 1, &other, 0, NULL), 1);
	ck_assert_int_eq(fi_trecv(fake.ep, in[0], 64, NULL, other, 5, 0, in[0]), 0);
	ck_assert_int_eq(fi_trecv(fake.ep, in[1], 64, NULL, fake.addr, 5, 0, in[1]), 0);
	message(5, 0, 4);
	expect_received(1, 5, 0, 4);
	message(5, 1, 4);
	fake_expect_nothing();
	ck_assert_int_eq(fi_trecv(fake.ep, in[2], 64, NULL, other, 5, 0, in[2]), 0);
	fake_expect_nothing();
	ck_assert_int_eq(fi_trecv(fake.ep, in[3], 64, NULL, fake.addr, 5, 0, in[3]), 0);
	expect_received(3, 5, 1, 4);
}
END_TEST

START_TEST(says_who_sent_it)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = 4711;

	post(0, 64, 5, 0);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, 0, 0), 5, 0xdada, out, 4);
	ck_assert_int_eq(fi_cq_readfrom(fake.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(src, fake.addr);
	ck_assert_uint_eq(entry.flags, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, 0xdada);
}
END_TEST

START_TEST(too_long_is_cut)
{
	struct fi_cq_err_entry error;
	char before = 'x';

	in[0][10] = before;
	post(0, 10, 5, 0);
	message(5, 2, 25);
	error = fake_expect_error(in[0], FI_ETRUNC);
	ck_assert_uint_eq(error.olen, 15);
	ck_assert_uint_eq(error.len, 10);
	ck_assert_uint_eq(error.tag, 5);
	ck_assert_mem_eq(in[0], out + 2, 10);
	ck_assert_int_eq(in[0][10], before);
	message(6, 2, 25); /* the same as an unexpected message */
	post(1, 10, 6, 0);
	error = fake_expect_error(in[1], FI_ETRUNC);
	ck_assert_uint_eq(error.olen, 15);
	ck_assert_mem_eq(in[1], out + 2, 10);
	ck_assert_int_eq(in[1][10], 0);
}
END_TEST

START_TEST(segments_are_filled_in_order)
{
	struct iovec iov[4] = {{in[0], 5}, {in[1], 0}, {in[2], 1}, {in[3], 100}};
	struct fi_msg_tagged msg = {
		.msg_iov = iov, .iov_count = 4, .addr = FI_ADDR_UNSPEC, .tag = 5};

	ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, FI_COMPLETION), 0);
	message(5, 0, 50);
	ck_assert_uint_eq(got().len, 50);
	ck_assert_mem_eq(in[0], out, 5);
	ck_assert_int_eq(in[0][5], 0);
	ck_assert_int_eq(in[2][0], out[5]);
	ck_assert_int_eq(in[2][1], 0);
	ck_assert_mem_eq(in[3], out + 6, 44);
	ck_assert_int_eq(in[3][44], 0);
}
END_TEST

START_TEST(answers_when_it_is_matched)
{
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_ACK_MATCH, 0, 33), 5, 0, out, 4);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_ACK_DELIVER, 0, 34), 5, 0, out, 4);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	post(0, 64, 5, 0);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, 33));
	ck_assert_uint_eq(fake_last(0)->tag, 0);
	post(1, 64, 5, 0);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, 34));
}
END_TEST

START_TEST(a_cancelled_receive_matches_nothing)
{
	post(0, 64, 5, 0);
	post(1, 64, 5, 0);
	ck_assert_int_eq(fi_cancel(&fake.ep->fid, in[0]), 0);
	fake_expect_error(in[0], FI_ECANCELED);
	message(5, 0, 4);
	expect_received(1, 5, 0, 4);
	ck_assert_int_eq(fi_cancel(&fake.ep->fid, in[1]), 0);
}
END_TEST

START_TEST(senders_pause_and_go_on)
{
	struct rx *rx = ep_of(fake.ep)->rx;
	unsigned int kept = 0;

	rx->unexpected_max = 2000;
	while (fake.count == 0) {
		ck_assert_uint_lt(kept, 20);
		message(5, kept++, 200);
	}
	ck_assert_uint_gt(kept, 2000 / 400);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_XOFF);
	message(5, kept++, 200); /* a message sent before XOFF arrived is still kept */
	ck_assert_uint_eq(fake.count, 1);
	for (unsigned int i = 0; i < kept; i++) {
		post(0, 256, 5, 0);
		expect_received(0, 5, i, 200);
		if (fake.count == 2)
			ck_assert_uint_le(rx->unexpected_bytes, 1000);
		else
			ck_assert_uint_gt(rx->unexpected_bytes, 1000);
	}
	ck_assert_uint_eq(fake.count, 2);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_XON);
}
END_TEST

static void announce(uint64_t tag, uint32_t id, uint64_t len)
{
	struct wire_rts o = {.len = len, .count = 1, .segment = {{0x1000, len}}};

	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED, 0, id), tag, 0, &o,
		  offsetof(struct wire_rts, segment) + sizeof(o.segment[0]));
}

static void fragment(uint32_t to, size_t at, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_FRAG, 0, 0, to), at, 0, out + at, len);
}

/* Receives a long message by CTS and fragments: the peer's memory cannot be read from here. */
static void pull_into(unsigned int n, size_t room, size_t len, bool unexpected)
{
	size_t at = 0;
	uint32_t to;

	if (unexpected)
		announce(5, 900 + n, len);
	post(n, room, 5, 0);
	if (!unexpected)
		announce(5, 900 + n, len);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_CTS, 0, 0, 900 + n));
	to = (uint32_t)fake_last(0)->tag;
	fake_expect_nothing();
	fragment(to ^ 1, 0, 10);      /* for an unknown request */
	fragment(to, 10, 10);         /* out of order */
	fragment(to, 0, sizeof(out)); /* longer than the RTS said */
	while (at < len) {
		size_t step = len - at < 200 ? len - at : 200;

		fake_expect_nothing();
		fragment(to, at, step);
		at += step;
	}
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, 900 + n));
	ck_assert_uint_eq(fake_last(0)->tag, 0);
	fragment(to, 0, 10); /* the message has ended */
}

START_TEST(long_message_is_pulled)
{
	pull_into(0, sizeof(in[0]), 1000, false);
	expect_received(0, 5, 0, 1000);
	pull_into(1, 1000, 1000, true);
	expect_received(1, 5, 0, 1000);
	ck_assert_int_eq(in[1][1000], 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
}
END_TEST

START_TEST(long_message_is_cut)
{
	struct fi_cq_err_entry error;

	pull_into(0, 300, 1000, false);
	error = fake_expect_error(in[0], FI_ETRUNC);
	ck_assert_uint_eq(error.len, 300);
	ck_assert_uint_eq(error.olen, 700);
	ck_assert_mem_eq(in[0], out, 300);
	ck_assert_int_eq(in[0][300], 0);
}
END_TEST

START_TEST(rts_that_contradict_themselves)
{
	struct wire_rts o = {.len = 100, .count = 1, .segment = {{0x1000, 100}}};
	size_t len = offsetof(struct wire_rts, segment) + sizeof(o.segment[0]);
	uint64_t head = WIRE_HEAD(WIRE_RTS, WIRE_TAGGED, 0, 12);

	post(0, 64, 5, 0);
	for (int i = 0; i < 6; i++) {
		o = (struct wire_rts){.len = 100, .count = 1, .segment = {{0x1000, 100}}};
		switch (i) {
		case 0:
			o.len = 101;
			break;
		case 1:
			o.count = 2;
			break;
		case 2:
			o.count = UINT64_MAX;
			break;
		case 3:
			o.count = WIRE_IOV_MAX + 1;
			break;
		case 4:
			o.segment[0].len = UINT64_MAX;
			break;
		}
		fake_says(head, 5, 0, &o, i == 5 ? 8 : len);
		ck_assert_uint_eq(fake.count, i + 1);
		ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, 12));
		ck_assert_uint_ne(fake_last(0)->tag, 0);
	}
	fake_expect_nothing();
	message(5, 0, 4); /* the receive is still posted */
	expect_received(0, 5, 0, 4);
}
END_TEST

START_TEST(packets_without_sense)
{
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), .tag = 5};

	post(0, 64, 5, 0);
	for (unsigned int op = WIRE_FAILED + 1; op <= 0xff; op++)
		fake_says(WIRE_HEAD(op, WIRE_TAGGED, 0, 0), 5, 0, out, 4);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, WORKER_RX_MAX, 0), 5, 0, out, 4);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, WIRE_RX_GROUP - 1, 0), 5, 0, out, 4);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 1, 0), 5, 0, out, 4);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, WIRE_RX_GROUP, 0), 5, 0, out,
		  4); /* a group message without a group id */
	rx_deliver(&fake.worker->conn.opener, pool_id(fake.peer) ^ 1, &p);
	rx_deliver(&fake.worker->conn.opener, UINT32_MAX, &p);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0), 5, 0, out, 4);
	ck_assert_uint_eq(wire_op(fake_last(0)->head),
			  WIRE_GROUP); /* answered: we are in no such group */
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_ACK_DELIVER, 1, 8), 5, 0, out, 4);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, 8));
	ck_assert_uint_ne(fake_last(0)->tag, 0); /* an error: no receive will come */
	message(5, 0, 4);
	expect_received(0, 5, 0, 4);
}
END_TEST

START_TEST(what_a_lost_peer_had_sent)
{
	uint32_t to;

	post(0, sizeof(in[0]), 5, 0);
	announce(5, 1, 1000); /* under way */
	to = (uint32_t)fake_last(0)->tag;
	fragment(to, 0, 200);
	announce(6, 2, 1000); /* RTS without CTS yet */
	message(7, 0, 100);   /* whole */
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake_expect_error(in[0], FI_ECONNRESET);
	post(1, 256, 6, 0);
	fake_expect_nothing();
	post(2, 256, 7, 0);
	expect_received(2, 7, 0, 100);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
	fake.closed = 0; /* for fake_shut */
}
END_TEST

START_TEST(a_receive_from_a_lost_peer_alone_fails)
{
	ck_assert_int_eq(fi_trecv(fake.ep, in[0], 64, NULL, fake.addr, 5, 0, in[0]), 0);
	post(1, 64, 5, 0);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake_expect_error(in[0], FI_ECONNRESET);
	fake_expect_nothing();
	fake.closed = 0;
}
END_TEST

/* Posting more receives than there are ids fails with -FI_EAGAIN until a receive ends. */
START_TEST(receives_beyond_room)
{
	struct pool *pool = &fake.worker->rx[0]->recv_pool;
	uint32_t count;

	while (pool_in_use(pool) < POOL_CHUNK)
		post(0, 8, pool_in_use(pool), 0);
	count = pool->count;
	ck_assert_ptr_null(pool->free);
	pool->count = POOL_INDEX_MASK; /* as if all other objects were in use */
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fi_trecv(fake.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL),
				 -FI_EAGAIN);
	ck_assert_int_eq(fi_recv(fake.ep, in[1], 8, NULL, FI_ADDR_UNSPEC, NULL), -FI_EAGAIN);
	pool->count = count;
	message(7, 0, 8);
	expect_received(0, 7, 0, 8);
	pool->count = POOL_INDEX_MASK;
	post(1, 8, 7, 0);
	pool->count = count;
	message(7, 8, 8);
	expect_received(1, 7, 8, 8);
}
END_TEST

static void setup(void)
{
	fake_open_connected();
	fill();
}

int main(void)
{
	Suite *suite = suite_create("xfer_rx_match");
	TCase *tags = tcase_create("matching"), *lengths = tcase_create("lengths"),
	      *wrong = tcase_create("faults");

	tcase_add_checked_fixture(tags, setup, fake_shut);
	tcase_add_test(tags, receive_waits_for_message);
	tcase_add_test(tags, oldest_receive_that_fits);
	tcase_add_test(tags, ignored_bits);
	tcase_add_test(tags, unexpected_keep_their_order);
	tcase_add_test(tags, messages_and_tagged_are_apart);
	tcase_add_test(tags, only_from_whom_it_names);
	tcase_add_test(tags, says_who_sent_it);
	tcase_add_test(tags, answers_when_it_is_matched);
	tcase_add_test(tags, a_cancelled_receive_matches_nothing);
	tcase_add_test(tags, receives_beyond_room);
	tcase_add_checked_fixture(lengths, setup, fake_shut);
	tcase_add_test(lengths, too_long_is_cut);
	tcase_add_test(lengths, segments_are_filled_in_order);
	tcase_add_test(lengths, senders_pause_and_go_on);
	tcase_add_test(lengths, long_message_is_pulled);
	tcase_add_test(lengths, long_message_is_cut);
	tcase_add_checked_fixture(wrong, setup, fake_shut);
	tcase_add_test(wrong, rts_that_contradict_themselves);
	tcase_add_test(wrong, packets_without_sense);
	tcase_add_test(wrong, what_a_lost_peer_had_sent);
	tcase_add_test(wrong, a_receive_from_a_lost_peer_alone_fails);
	suite_add_tcase(suite, tags);
	suite_add_tcase(suite, lengths);
	suite_add_tcase(suite, wrong);
	return suite_run(suite);
}
