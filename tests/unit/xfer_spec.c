/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves the protocol of speculative fragments, at the receiver and the sender. */
#include <unistd.h>

#include "fake_link.h"

#define TAG      0x77
#define FRAGMENT 8192u
#define SHORT    (3 * FRAGMENT + 5)         /* four fragments */
#define LONG     (WIRE_SPEC_MAX + FRAGMENT) /* more than the speculative bytes */
#define ASKED    (WIRE_SPEC_MAX / 2)        /* after this many bytes the receiver sends CTS */
#define RTS_ID   0x4711u                    /* the peer's request id */
#define PATIENCE 100000                     /* progress calls */

static unsigned char theirs[LONG], ours[LONG];
static struct link_memory_ops ops;
static int fetches, fetch_error;
static size_t fetched_at;

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
	fetched_at = (size_t)(at - theirs);
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
	fake.link.packet_max = FRAGMENT;
	fake.link.spec_max = 2 * FRAGMENT;
	fetches = fetch_error = 0;
	for (size_t i = 0; i < LONG; i++)
		theirs[i] = (unsigned char)(i * 7 + i / 256 * 3);
	memset(ours, 0, sizeof(ours));
}

/* Posts a receive of `len` bytes in two segments. */
static void post(size_t len)
{
	struct iovec iov[2] = {{ours, 100}, {ours + 100, len - 100}};
	struct fi_msg_tagged msg = {.msg_iov = iov,
				    .iov_count = 2,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = TAG,
				    .context = ours};

	ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, FI_COMPLETION), 0);
}

static void says_rts(size_t len)
{
	struct wire_rts rts = {.len = len, .count = 1, .segment[0] = {(uintptr_t)theirs, len, 0}};

	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED | WIRE_SPEC, 0, RTS_ID), TAG, 0, &rts,
		  offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
}

static size_t fragment_len(size_t at, size_t len)
{
	return len - at < FRAGMENT ? len - at : FRAGMENT;
}

static void says_fragment(size_t at, size_t len)
{
	fake_says(WIRE_HEAD(WIRE_FRAG, WIRE_SPEC, 0, RTS_ID), at, 0, theirs + at,
		  fragment_len(at, len));
}

static void expect_ats(unsigned int flags, int err)
{
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, flags, 0, RTS_ID));
	ck_assert_uint_eq(fake_last(0)->tag, (uint64_t)err);
}

static void expect_message(size_t len)
{
	const struct fi_cq_tagged_entry *entry = NULL;

	for (int i = 0; i < PATIENCE && !entry; i++)
		entry = fake_read();
	ck_assert_ptr_nonnull(entry);
	ck_assert_ptr_eq(entry->op_context, ours);
	ck_assert_uint_eq(entry->len, len);
	ck_assert_mem_eq(ours, theirs, len);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
}

/* ---- The receiver ---------------------------------------------------------------------------- */

START_TEST(taken_as_they_come)
{
	post(SHORT);
	says_rts(SHORT);
	ck_assert_uint_eq(fake.count, 0);
	for (size_t at = 0; at < SHORT; at += FRAGMENT)
		says_fragment(at, SHORT);
	ck_assert_uint_eq(fake.count, 1); /* no CTS yet */
	expect_ats(WIRE_SPEC, 0);
	expect_message(SHORT);
	ck_assert_int_eq(fetches, 0);
}
END_TEST

START_TEST(taken_after_a_long_pause)
{
	post(SHORT);
	usleep(1000);
	says_rts(SHORT);
	fake_expect_nothing();
	ck_assert_int_eq(fetches, 0);
	for (size_t at = 0; at < SHORT; at += FRAGMENT)
		says_fragment(at, SHORT);
	expect_ats(WIRE_SPEC, 0);
	expect_message(SHORT);
}
END_TEST

START_TEST(dropped_where_no_receive_is_posted)
{
	says_rts(SHORT);
	for (size_t at = 0; at < SHORT; at += FRAGMENT)
		says_fragment(at, SHORT);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	post(SHORT);
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fetched_at, 0);
	expect_ats(0, 0);
	expect_message(SHORT);
}
END_TEST

START_TEST(none_behind_a_gap)
{
	post(SHORT);
	says_rts(SHORT);
	says_fragment(0, SHORT);
	says_fragment(2 * FRAGMENT, SHORT);
	says_fragment(3 * FRAGMENT, SHORT);
	ck_assert_uint_eq(fake.count, 0);
	expect_message(SHORT);
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fetched_at, FRAGMENT);
	expect_ats(0, 0);
}
END_TEST

/* A receiver that makes progress rarely does not wait for fragments. */
START_TEST(the_rest_is_fetched)
{
	post(SHORT);
	says_rts(SHORT);
	says_fragment(0, SHORT);
	usleep(1000);
	fake_read();
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fetched_at, FRAGMENT);
	says_fragment(FRAGMENT, SHORT); /* too late */
	expect_ats(0, 0);
}
END_TEST

START_TEST(fetched_by_who_goes_to_sleep)
{
	post(SHORT);
	says_rts(SHORT);
	ck_assert(!worker_arm(fake.worker));
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fetched_at, 0);
	expect_message(SHORT);
}
END_TEST

START_TEST(asked_for_where_it_cannot_be_fetched)
{
	uint32_t id;

	fetch_error = -FI_EPERM;
	post(SHORT);
	says_rts(SHORT);
	says_fragment(0, SHORT);
	for (int i = 0; i < PATIENCE && !fake.count; i++)
		fake_expect_nothing();
	ck_assert_int_eq(fetches, 1);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_CTS, WIRE_SPEC, 0, RTS_ID));
	id = (uint32_t)fake_last(0)->tag;
	usleep(1000);
	fake_expect_nothing();
	ck_assert(worker_arm(fake.worker)); /* the fragment will wake us */
	ck_assert_int_eq(fetches, 1);
	says_fragment(FRAGMENT, SHORT); /* speculative, sent before our CTS arrived */
	for (size_t at = 2 * FRAGMENT; at < SHORT; at += FRAGMENT)
		fake_says(WIRE_HEAD(WIRE_FRAG, 0, 0, id), at, 0, theirs + at,
			  fragment_len(at, SHORT));
	ck_assert_uint_eq(fake.count, 2);
	expect_ats(WIRE_SPEC, 0);
	expect_message(SHORT);
}
END_TEST

START_TEST(asked_for_while_it_comes)
{
	post(LONG);
	says_rts(LONG);
	for (size_t at = 0; at < LONG; at += FRAGMENT) {
		ck_assert_uint_eq(fake.count, at >= ASKED);
		says_fragment(at, LONG);
	}
	ck_assert_uint_eq(fake.count, 2);
	ck_assert_uint_eq(fake_last(1)->head, WIRE_HEAD(WIRE_CTS, WIRE_SPEC, 0, RTS_ID));
	expect_ats(WIRE_SPEC, 0);
	expect_message(LONG);
}
END_TEST

START_TEST(nothing_is_left_of_a_peer_that_is_gone)
{
	post(SHORT);
	says_rts(SHORT);
	says_fragment(0, SHORT);
	peer_failed(fake.peer, FI_ECONNRESET);
	fake_expect_error(ours, FI_ECONNRESET);
	ck_assert(list_empty(&fake.worker->spec));
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
	ck_assert_int_eq(fetches, 0);
	fake.closed = 0; /* for fake_shut */
}
END_TEST

/* ---- The sender ------------------------------------------------------------------------------ */

static uint32_t send_long(void)
{
	unsigned int before = fake.count;

	ck_assert_int_eq(fi_tsend(fake.ep, theirs, LONG, NULL, fake.addr, TAG, theirs), 0);
	ck_assert_uint_eq(wire_op(fake.packets[before].head), WIRE_RTS);
	return wire_id(fake.packets[before].head);
}

static void expect_fragment(const struct fake_packet *p, uint64_t head, size_t at)
{
	ck_assert_uint_eq(p->head, head);
	ck_assert_uint_eq(p->tag, at);
	ck_assert_uint_eq(p->len, FRAGMENT);
	ck_assert_mem_eq(p->payload, theirs + at, FRAGMENT);
}

static void says_cts(uint32_t id, unsigned int flags)
{
	fake_says(WIRE_HEAD(WIRE_CTS, flags, 0, id), 5, 0, NULL, 0);
	fake_expect_nothing();
}

START_TEST(goes_on_behind_them)
{
	uint32_t id = send_long();

	ck_assert_uint_eq(fake.count, 3);
	ck_assert_uint_eq(wire_flags(fake_last(2)->head), WIRE_TAGGED | WIRE_SPEC);
	expect_fragment(fake_last(1), WIRE_HEAD(WIRE_FRAG, WIRE_SPEC, 0, id), 0);
	expect_fragment(fake_last(0), WIRE_HEAD(WIRE_FRAG, WIRE_SPEC, 0, id), FRAGMENT);
	says_cts(id, WIRE_SPEC);
	ck_assert_uint_eq(fake.count, 1 + LONG / FRAGMENT);
	expect_fragment(&fake.packets[3], WIRE_HEAD(WIRE_FRAG, 0, 0, 5), 2 * FRAGMENT);
	fake_says(WIRE_HEAD(WIRE_ATS, WIRE_SPEC, 0, id), 0, 0, NULL, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

/* CTS from offset 0: the receiver dropped the speculative fragments. */
START_TEST(begins_anew)
{
	uint32_t id = send_long();

	says_cts(id, 0);
	ck_assert_uint_eq(fake.count, 3 + LONG / FRAGMENT);
	expect_fragment(&fake.packets[3], WIRE_HEAD(WIRE_FRAG, 0, 0, 5), 0);
	fake_says_ats(id, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

START_TEST(what_was_asked_for_goes_first)
{
	uint32_t one, other;

	fake.room = 2;
	one = send_long(); /* the RTS and its first fragment */
	fake.room = 1;
	other = send_long();
	fake.room = 0;
	says_cts(other, WIRE_SPEC);
	fake.room = 1;
	fake_expect_nothing();
	expect_fragment(fake_last(0), WIRE_HEAD(WIRE_FRAG, 0, 0, 5), 0);
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	expect_fragment(fake_last(0), WIRE_HEAD(WIRE_FRAG, WIRE_SPEC, 0, one), FRAGMENT);
	fake_says_ats(one, 0);
	fake_says_ats(other, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

START_TEST(nobody_stays_awake_for_them)
{
	uint32_t id;

	fake.room = 2;
	id = send_long();
	ck_assert(worker_must_nap(fake.worker));
	worker_arm(fake.worker);
	ck_assert(!worker_must_nap(fake.worker));
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 2);
	says_cts(id, WIRE_SPEC);
	expect_fragment(&fake.packets[2], WIRE_HEAD(WIRE_FRAG, 0, 0, 5), FRAGMENT);
	fake_says_ats(id, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
}
END_TEST

/* Returns how many RTS in a row go without fragments after an ATS with these flags. */
static int without_after(unsigned int flags)
{
	uint32_t id = send_long();
	int count = 0;

	ck_assert_uint_eq(fake.packets[fake.count - 1].head & 0xff, WIRE_FRAG);
	fake_says(WIRE_HEAD(WIRE_ATS, flags, 0, id), 0, 0, NULL, 0);
	fake_expect(theirs, FI_TAGGED | FI_SEND);
	for (; fake.peer->tx.spec[SPEC_LONG].trial.skip; count++) {
		id = send_long();
		ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_RTS);
		ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_TAGGED);
		fake_says_ats(id, 0);
		fake_expect(theirs, FI_TAGGED | FI_SEND);
	}
	return count;
}

START_TEST(fewer_where_they_are_of_no_use)
{
	static const int want[] = {1, 3, 7, 15, 31, 63, 63};

	ck_assert_int_eq(without_after(WIRE_SPEC), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		ck_assert_int_eq(without_after(0), want[i]);
	ck_assert_int_eq(without_after(WIRE_SPEC), 0);
	ck_assert_int_eq(without_after(0), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_spec");
	TCase *in = tcase_create("receiver"), *out = tcase_create("sender");

	tcase_add_checked_fixture(in, open_both, fake_shut);
	tcase_add_test(in, taken_as_they_come);
	tcase_add_test(in, taken_after_a_long_pause);
	tcase_add_test(in, dropped_where_no_receive_is_posted);
	tcase_add_test(in, none_behind_a_gap);
	tcase_add_test(in, the_rest_is_fetched);
	tcase_add_test(in, fetched_by_who_goes_to_sleep);
	tcase_add_test(in, asked_for_where_it_cannot_be_fetched);
	tcase_add_test(in, asked_for_while_it_comes);
	tcase_add_test(in, nothing_is_left_of_a_peer_that_is_gone);
	tcase_add_checked_fixture(out, open_both, fake_shut);
	tcase_add_test(out, goes_on_behind_them);
	tcase_add_test(out, begins_anew);
	tcase_add_test(out, what_was_asked_for_goes_first);
	tcase_add_test(out, nobody_stays_awake_for_them);
	tcase_add_test(out, fewer_where_they_are_of_no_use);
	suite_add_tcase(suite, in);
	suite_add_tcase(suite, out);
	return suite_run(suite);
}
