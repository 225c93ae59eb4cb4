/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what the engine makes of copies that end after their call: which operations and messages begin one, what
 * waits for its end, and which memory of messages it names.
 */
#include "fake_far.h"
#include "xfer/events.h"

#define LONG   1000 /* bytes of a copy with which the peer may help */
#define RTS_ID 0x4711u

static int begins; /* result of the next copy that the peer may help with */
static struct {
	struct link_copy copy;
	struct iovec local;
	struct fi_rma_iov remote;
} begun; /* the last one */
static unsigned int calls, alone, aborted;
static bool under_way;

/* As a link that asks the peer for help, with one copy at a time. */
static int copy_both(struct link *link, const struct link_copy *c)
{
	if (c->look)
		return far_copy(link, c);
	ck_assert_uint_eq(c->local_count, 1);
	ck_assert_uint_eq(c->remote_count, 1);
	if (c->remote->len >= LONG && !c->at_once && !under_way) {
		calls++;
		begun.copy = *c;
		begun.local = *c->local;
		begun.remote = *c->remote;
		under_way = begins == LINK_UNDER_WAY;
		if (begins != -FI_EAGAIN)
			return begins;
	}
	alone++;
	return c->message ? LINK_DONE : far_copy(link, c);
}

static void abandon(struct link *link)
{
	(void)link;
	aborted++;
	under_way = false;
}

/* The copy under way ends. */
static void ends(int ret)
{
	ck_assert(under_way);
	under_way = false;
	rma_copied(&fake.worker->conn.opener, begun.copy.id, ret);
}

static struct link_memory_ops ops;

static void setup(void)
{
	far_setup();
	ops = far_ops;
	ops.copy = copy_both;
	ops.abort = abandon;
	fake.link.memory = &ops;
	begins = LINK_DONE;
	calls = alone = aborted = 0;
	under_way = false;
}

START_TEST(long_accesses_begin_one)
{
	far_post_write(100, LONG - 1, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(calls, 0);
	far_post_write(100, LONG, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(calls, 1);
	ck_assert_ptr_eq(begun.local.iov_base, buf + 100);
	ck_assert_uint_eq(begun.remote.addr, 100);
	ck_assert_uint_eq(begun.remote.key, FAR_KEY);
	ck_assert_uint_eq(begun.remote.len, LONG);
	ck_assert(begun.copy.write && !begun.copy.message);
	begins = LINK_COUNTED;
	far_post_read(5000, LONG, &buf[2]);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	ck_assert(!begun.copy.write && !begun.copy.message);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_NOTIFY, WIRE_LONG, 0, 0));
	begins = -FI_EFAULT;
	far_post_read(5000, LONG, &buf[3]);
	fake_expect_error(&buf[3], FI_EFAULT);
	begins = -FI_EAGAIN;
	there.said[0] = 0;
	far_post_read(5000, LONG, &buf[4]);
	fake_expect(&buf[4], FI_RMA | FI_READ);
	ck_assert_str_eq(there.said, "get@5000+1000 ");
	far_expect_none_left();
}
END_TEST

START_TEST(later_ones_wait_for_its_end)
{
	begins = LINK_UNDER_WAY;
	far_post_write(0, LONG, &buf[1]);
	far_post_write(5000, 8, &buf[2]);
	far_post_read(6000, LONG, &buf[3]);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(calls, 1);
	begins = LINK_DONE;
	ends(LINK_DONE);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_expect_nothing();
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_PUT);
	far_says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	fake_expect(&buf[3], FI_RMA | FI_READ);
	far_expect_none_left();
}
END_TEST

static void says_rts(void)
{
	struct wire_rts rts = {.len = 2 * LONG, .count = 1, .segment[0] = {0x5000, 2 * LONG, 0}};

	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED, 0, RTS_ID), 9, 0, &rts,
		  offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
}

static void post_for(size_t len, void *context)
{
	ck_assert_int_eq(fi_trecv(fake.ep, buf, len, NULL, FI_ADDR_UNSPEC, 9, 0, context), 0);
}

static void post(size_t len)
{
	post_for(len, &buf[1]);
}

static void expect_ats(void)
{
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_ATS, 0, 0, RTS_ID));
	ck_assert_uint_eq(fake_last(0)->tag, 0);
}

START_TEST(a_long_message_begins_one)
{
	post(2 * LONG);
	says_rts();
	ck_assert_uint_eq(calls, 1);
	ck_assert_ptr_eq(begun.local.iov_base, buf);
	ck_assert_uint_eq(begun.remote.addr, 0x5000);
	ck_assert_uint_eq(begun.remote.len, 2 * LONG);
	ck_assert(!begun.copy.write && begun.copy.message);
	expect_ats();
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	begins = -FI_EAGAIN;
	post(2 * LONG);
	says_rts();
	ck_assert_uint_eq(alone, 1);
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
}
END_TEST

START_TEST(a_message_ends_with_it)
{
	begins = LINK_UNDER_WAY;
	post(2 * LONG);
	says_rts();
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	says_rts(); /* later ones of the peer end before it */
	post_for(2 * LONG, &buf[2]);
	ck_assert_uint_eq(calls, 1);
	ck_assert_uint_eq(alone, 1);
	fake_expect(&buf[2], FI_TAGGED | FI_RECV);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 9, 0, "short", 5);
	post_for(8, &buf[3]);
	fake_expect(&buf[3], FI_TAGGED | FI_RECV);
	fake_expect_nothing();
	ends(LINK_TOGETHER);
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	expect_ats();
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
}
END_TEST

static bool is_quiet(const void *state)
{
	(void)state;
	return !under_way;
}

START_TEST(a_sleeper_looks_for_its_end)
{
	fake.worker->near.idle = is_quiet;
	begins = LINK_UNDER_WAY;
	says_rts();
	worker_arm(fake.worker);
	ck_assert(fake.worker->conn.opener.sleepers);
	post(2 * LONG);
	ck_assert(!fake.worker->conn.opener.sleepers);
	ck_assert(worker_must_nap(fake.worker)); /* it naps instead of sleeping */
	ends(LINK_TOGETHER);
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	ck_assert(!worker_must_nap(fake.worker));
}
END_TEST

START_TEST(a_failed_one_is_asked_for)
{
	begins = LINK_UNDER_WAY;
	post(2 * LONG);
	says_rts();
	ends(-FI_EPERM);
	fake_expect_nothing();
	ck_assert_uint_eq((uint32_t)fake_last(0)->head,
			  WIRE_HEAD(WIRE_CTS, 0, 0, 0)); /* from its start */
}
END_TEST

START_TEST(what_is_behind_it_outlives_the_peer)
{
	begins = LINK_UNDER_WAY;
	post(2 * LONG);
	says_rts();
	post_for(8, &buf[2]);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 9, 0, "short", 5);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	ck_assert_uint_eq(aborted, 1);
	fake_expect(&buf[2], FI_TAGGED | FI_RECV);
	fake_expect_error(&buf[1], FI_ECONNRESET);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
	fake.closed = 0; /* fake_shut counts again */
}
END_TEST

START_TEST(forgotten_with_its_peer)
{
	begins = LINK_UNDER_WAY;
	far_post_write(0, LONG, &buf[1]);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	ck_assert_uint_eq(aborted, 1);
	fake_expect_error(&buf[1], FI_ECONNRESET);
	fake_expect_nothing();
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0; /* fake_shut counts again */
}
END_TEST

static bool readable(uint64_t at, size_t len)
{
	return tx_readable(&fake.worker->conn.opener, pool_id(fake.peer), at, len);
}

START_TEST(a_message_is_offered_while_it_is_under_way)
{
	uint64_t at = (uintptr_t)buf;
	uint32_t id;

	ck_assert(!readable(at, 3000));
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 3000, NULL, fake.addr, 5, &buf[1]), 0);
	id = wire_id(fake_last(0)->head);
	ck_assert(readable(at, 3000));
	ck_assert(readable(at + 1000, 2000));
	ck_assert(!readable(at + 1000, 2001));
	ck_assert(!readable(at - 1, 10));
	ck_assert(!readable(at, SIZE_MAX));
	ck_assert(!tx_readable(&fake.worker->conn.opener, pool_id(fake.peer) + 1, at, 3000));
	fake_says_ats(id, 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert(!readable(at, 3000));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_copies");
	TCase *tcase = tcase_create("copies");

	tcase_add_checked_fixture(tcase, setup, far_teardown);
	tcase_add_test(tcase, long_accesses_begin_one);
	tcase_add_test(tcase, later_ones_wait_for_its_end);
	tcase_add_test(tcase, a_long_message_begins_one);
	tcase_add_test(tcase, a_message_ends_with_it);
	tcase_add_test(tcase, a_sleeper_looks_for_its_end);
	tcase_add_test(tcase, a_failed_one_is_asked_for);
	tcase_add_test(tcase, what_is_behind_it_outlives_the_peer);
	tcase_add_test(tcase, forgotten_with_its_peer);
	tcase_add_test(tcase, a_message_is_offered_while_it_is_under_way);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
