/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how a long message comes: read by its receiver, or asked for and streamed. */
#include "fake_link.h"

#define TAG      0x77
#define FRAGMENT 8192u
#define LEN      (3 * FRAGMENT + 5) /* four fragments */
#define RTS_ID   0x4711u            /* the peer's request id */

static unsigned char theirs[LEN], ours[LEN];
static struct link_memory_ops ops;
static int fetches, fetch_error;

static size_t bytes(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += iov[i].iov_len;
	return len;
}

static int fetch(struct link *link, const struct link_copy *c)
{
	const unsigned char *at = (const unsigned char *)(uintptr_t)c->remote[0].addr;

	ck_assert_ptr_eq(link, &fake.link);
	ck_assert(c->message && !c->write);
	ck_assert_uint_eq(c->remote_count, 1);
	ck_assert_uint_eq(bytes(c->local, c->local_count), c->remote[0].len);
	fetches++;
	if (fetch_error)
		return fetch_error;
	for (size_t i = 0; i < c->local_count; i++) {
		memcpy(c->local[i].iov_base, at, c->local[i].iov_len);
		at += c->local[i].iov_len;
	}
	return LINK_DONE;
}

static void open_both(void)
{
	fake_open_connected();
	ops = link_no_memory;
	ops.copy = fetch;
	fake.link.memory = &ops;
	fake.link.local = true;
	fake.link.packet_max = FRAGMENT;
	fetches = fetch_error = 0;
	for (size_t i = 0; i < LEN; i++)
		theirs[i] = (unsigned char)(i * 7 + i / 256 * 3);
	memset(ours, 0, sizeof(ours));
}

/* Posts a receive in two segments. */
static void post(void)
{
	struct iovec iov[2] = {{ours, 100}, {ours + 100, LEN - 100}};
	struct fi_msg_tagged msg = {.msg_iov = iov,
				    .iov_count = 2,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = TAG,
				    .context = ours};

	ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, FI_COMPLETION), 0);
}

static void says_rts(void)
{
	struct wire_rts rts = {.len = LEN, .count = 1, .segment[0] = {(uintptr_t)theirs, LEN, 0}};

	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED, 0, RTS_ID), TAG, 0, &rts,
		  offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
}

static size_t fragment_len(size_t at)
{
	return LEN - at < FRAGMENT ? LEN - at : FRAGMENT;
}

static void says_fragment(uint32_t id, size_t at)
{
	fake_says(WIRE_HEAD(WIRE_FRAG, 0, 0, id), at, 0, theirs + at, fragment_len(at));
}

static void expect_message(void)
{
	const struct fi_cq_tagged_entry *entry = fake_read();

	ck_assert_ptr_nonnull(entry);
	ck_assert_ptr_eq(entry->op_context, ours);
	ck_assert_uint_eq(entry->len, LEN);
	ck_assert_mem_eq(ours, theirs, LEN);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, RTS_ID));
	ck_assert_uint_eq(fake_last(0)->tag, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
}

/* ---- The receiver ---------------------------------------------------------------------------- */

START_TEST(read_where_it_matches)
{
	post();
	says_rts();
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fake.count, 1);
	expect_message();
}
END_TEST

START_TEST(read_when_its_receive_comes)
{
	says_rts();
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	post();
	ck_assert_int_eq(fetches, 1);
	expect_message();
}
END_TEST

/* Returns the id by which the receiver asks for the message. */
static uint32_t asked(void)
{
	fetch_error = -FI_EPERM;
	post();
	says_rts();
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_CTS, 0, 0, RTS_ID));
	return (uint32_t)fake_last(0)->tag;
}

START_TEST(asked_for_where_it_cannot_be_read)
{
	uint32_t id = asked();

	for (size_t at = 0; at < LEN; at += FRAGMENT)
		says_fragment(id, at);
	ck_assert_uint_eq(fake.count, 2);
	expect_message();
}
END_TEST

START_TEST(no_fragment_behind_a_gap)
{
	uint32_t id = asked();

	says_fragment(id, 0);
	says_fragment(id, 2 * FRAGMENT);
	says_fragment(id, 3 * FRAGMENT);
	fake_expect_nothing();
	for (size_t at = FRAGMENT; at < LEN; at += FRAGMENT)
		says_fragment(id, at);
	expect_message();
}
END_TEST

START_TEST(nothing_is_left_of_a_peer_that_is_gone)
{
	says_fragment(asked(), 0);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake_expect_error(ours, FI_ECONNRESET);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
	fake.closed = 0; /* for fake_shut */
}
END_TEST

/* ---- The sender ------------------------------------------------------------------------------ */

static uint32_t send_long(void)
{
	unsigned int before = fake.count;

	ck_assert_int_eq(fi_tsend(fake.ep, theirs, LEN, NULL, fake.addr, TAG, theirs), 0);
	ck_assert_uint_eq(fake.count, before + 1);
	ck_assert_uint_eq(fake_last(0)->head,
			  WIRE_HEAD(WIRE_RTS, WIRE_TAGGED, 0, wire_id(fake_last(0)->head)));
	return wire_id(fake_last(0)->head);
}

static void says_cts(uint32_t id)
{
	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, id), 5, 0, NULL, 0);
	fake_expect_nothing();
}

START_TEST(streamed_when_asked_for)
{
	uint32_t id = send_long();
	const struct fake_packet *p = &fake.packets[1];

	says_cts(id);
	for (size_t at = 0; at < LEN; at += FRAGMENT, p++) {
		ck_assert_uint_eq(p->head, WIRE_HEAD(WIRE_FRAG, 0, 0, 5));
		ck_assert_uint_eq(p->tag, at);
		ck_assert_uint_eq(p->len, fragment_len(at));
		ck_assert_mem_eq(p->payload, theirs + at, p->len);
	}
	ck_assert_ptr_eq(p, &fake.packets[fake.count]);
	says_cts(id); /* a second one says nothing */
	ck_assert_ptr_eq(p, &fake.packets[fake.count]);
	fake_says_ats(id, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

/* Who has a part to send does not sleep. */
START_TEST(streamed_as_there_is_space)
{
	uint32_t id = send_long();

	ck_assert(!worker_must_nap(fake.worker));
	fake.room = 1;
	says_cts(id);
	ck_assert_uint_eq(fake.count, 2);
	ck_assert(worker_must_nap(fake.worker));
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	ck_assert_uint_eq(fake_last(0)->tag, 3 * FRAGMENT);
	ck_assert(!worker_must_nap(fake.worker));
	fake_says_ats(id, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rndv");
	TCase *in = tcase_create("receiver"), *out = tcase_create("sender");

	tcase_add_checked_fixture(in, open_both, fake_shut);
	tcase_add_test(in, read_where_it_matches);
	tcase_add_test(in, read_when_its_receive_comes);
	tcase_add_test(in, asked_for_where_it_cannot_be_read);
	tcase_add_test(in, no_fragment_behind_a_gap);
	tcase_add_test(in, nothing_is_left_of_a_peer_that_is_gone);
	tcase_add_checked_fixture(out, open_both, fake_shut);
	tcase_add_test(out, streamed_when_asked_for);
	tcase_add_test(out, streamed_as_there_is_space);
	suite_add_tcase(suite, in);
	suite_add_tcase(suite, out);
	return suite_run(suite);
}
