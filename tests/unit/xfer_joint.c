/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what the engine makes of joint copies: which operations and messages begin one, what waits for
 * its end, and which memory a peer may name in an offer.
 */
#include "fake_far.h"

#define LONG   1000 /* joint_min */
#define RTS_ID 0x4711u

static int begins, ends;        /* results of `joint` and `joint_ended` */
static struct link_joint begun; /* the last one */
static struct link_help helped; /* the last call of `help` */
static unsigned int calls, helps, fetches, abandoned;

static int joint(struct link *link, const struct link_joint *copy)
{
	(void)link;
	calls++;
	begun = *copy;
	return begins;
}

static int joint_ended(struct link *link)
{
	(void)link;
	return ends;
}

static void joint_gone(struct link *link)
{
	(void)link;
	abandoned++;
}

static void help(struct link *link, const struct link_help *h)
{
	(void)link;
	helps++;
	helped = *h;
}

static ssize_t fetch(struct link *link, const struct iovec *local, size_t local_count,
		     const struct iovec *remote, size_t remote_count, uint64_t key)
{
	(void)link, (void)local, (void)local_count, (void)remote, (void)key;
	ck_assert_uint_eq(remote_count, 1);
	fetches++;
	return (ssize_t)remote[0].iov_len;
}

static struct link_local_ops ops;

static void setup(void)
{
	far_setup();
	ops = far_ops;
	ops.fetch = fetch;
	ops.joint = joint;
	ops.joint_ended = joint_ended;
	ops.joint_abandon = joint_gone;
	ops.help = help;
	fake.link.local = &ops;
	fake.link.joint_min = LONG;
	begins = 0;
	ends = -FI_EINPROGRESS;
	calls = helps = fetches = abandoned = 0;
}

START_TEST(long_accesses_begin_one)
{
	far_post_write(100, LONG - 1, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(calls, 0);
	far_post_write(100, LONG, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(calls, 1);
	ck_assert_ptr_eq(begun.local, buf + 100);
	ck_assert_uint_eq(begun.remote, 100);
	ck_assert_uint_eq(begun.key, FAR_KEY);
	ck_assert_uint_eq(begun.len, LONG);
	ck_assert(begun.write && begun.region);
	begins = 1; /* the peer counts accesses */
	far_post_read(5000, LONG, &buf[2]);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	ck_assert(!begun.write && begun.region);
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
	begins = -FI_EINPROGRESS;
	far_post_write(0, LONG, &buf[1]);
	far_post_write(5000, 8, &buf[2]);
	far_post_read(6000, LONG, &buf[3]);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(calls, 1);
	begins = 0;
	ends = 0;
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
	ck_assert_uint_eq(fake_last(0)->tag & 0xffff, 0);
	ck_assert_uint_gt(fake_last(0)->tag >> 16, 0); /* how long it took */
}

START_TEST(a_long_message_begins_one)
{
	post(2 * LONG);
	says_rts();
	ck_assert_uint_eq(calls, 1);
	ck_assert_ptr_eq(begun.local, buf);
	ck_assert_uint_eq(begun.remote, 0x5000);
	ck_assert_uint_eq(begun.len, 2 * LONG);
	ck_assert(!begun.write && !begun.region);
	expect_ats();
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	begins = -FI_EAGAIN;
	post(2 * LONG);
	says_rts();
	ck_assert_uint_eq(fetches, 1);
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
}
END_TEST

START_TEST(a_message_ends_with_it)
{
	begins = -FI_EINPROGRESS;
	post(2 * LONG);
	says_rts();
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	says_rts(); /* a second one of the peer: read alone, but reported behind the first */
	post_for(2 * LONG, &buf[2]);
	ck_assert_uint_eq(calls, 1);
	ck_assert_uint_eq(fetches, 1);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 9, 0, "short", 5);
	post_for(8, &buf[3]);
	fake_expect_nothing();
	ends = 0;
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	expect_ats();
	fake_expect(&buf[2], FI_TAGGED | FI_RECV);
	fake_expect(&buf[3], FI_TAGGED | FI_RECV);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
}
END_TEST

START_TEST(a_sleeper_looks_for_its_end)
{
	begins = -FI_EINPROGRESS;
	says_rts();
	worker_arm(fake.worker);
	ck_assert(fake.worker->opener.sleepers);
	post(2 * LONG);
	ck_assert(!fake.worker->opener.sleepers);
	ck_assert(worker_must_nap(fake.worker)); /* it naps instead of sleeping */
	ends = 0;
	fake_expect(&buf[1], FI_TAGGED | FI_RECV);
	ck_assert(!worker_must_nap(fake.worker));
}
END_TEST

START_TEST(a_failed_one_is_asked_for)
{
	begins = ends = -FI_EINPROGRESS;
	post(2 * LONG);
	says_rts();
	ends = -FI_EPERM;
	fake_expect_nothing();
	ck_assert_uint_eq((uint32_t)fake_last(0)->head,
			  WIRE_HEAD(WIRE_CTS, 0, 0, 0)); /* from its start */
}
END_TEST

START_TEST(what_is_behind_it_outlives_the_peer)
{
	begins = -FI_EINPROGRESS;
	post(2 * LONG);
	says_rts();
	post_for(8, &buf[2]);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 9, 0, "short", 5);
	peer_failed(fake.peer, FI_ECONNRESET);
	ck_assert_uint_eq(abandoned, 1);
	fake_expect_error(&buf[1], FI_ECONNRESET);
	fake_expect(&buf[2], FI_TAGGED | FI_RECV);
	ck_assert_uint_eq(pool_in_use(&fake.worker->rxreq_pool), 0);
	fake.closed = 0; /* fake_shut counts again */
}
END_TEST

START_TEST(forgotten_with_its_peer)
{
	begins = -FI_EINPROGRESS;
	far_post_write(0, LONG, &buf[1]);
	peer_failed(fake.peer, FI_ECONNRESET);
	ck_assert_uint_eq(abandoned, 1);
	fake_expect_error(&buf[1], FI_ECONNRESET);
	fake_expect_nothing();
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0; /* fake_shut counts again */
}
END_TEST

/* Says an offer of `len` bytes at `at`. Returns the memory that `help` was called for, or NULL. */
static void *say_joint(unsigned int flags, uint64_t at, uint64_t key, size_t len)
{
	struct wire_joint w = {.at = 0x7000, .len = len, .seq = 3, .chunk = 65536};
	unsigned int before = helps;

	fake_says(WIRE_HEAD(WIRE_JOINT, WIRE_DATA | flags, 0, 0), at, key, &w, sizeof(w));
	if (helps == before)
		return NULL;
	ck_assert_uint_eq(helped.copy.remote, 0x7000);
	ck_assert_uint_eq(helped.copy.len, len);
	ck_assert_uint_eq(helped.seq, 3);
	ck_assert_uint_eq(helped.chunk, 65536);
	ck_assert(helped.copy.write == !!(flags & WIRE_READ));
	return helped.copy.local;
}

START_TEST(its_key_says_what_a_peer_may_name)
{
	struct fid_mr *mr;
	uint64_t key;

	ck_assert_int_eq(fi_mr_reg(fake.domain, buf, 4000, FI_REMOTE_READ, 0, 77, 0, &mr, NULL), 0);
	key = fi_mr_key(mr);
	ck_assert_ptr_eq(say_joint(WIRE_REGION | WIRE_READ, 100, key, 3900), buf + 100);
	ck_assert_ptr_null(say_joint(WIRE_REGION | WIRE_READ, 100, key, 3901));
	ck_assert_ptr_null(say_joint(WIRE_REGION, 100, key, 3900));
	ck_assert_ptr_null(say_joint(WIRE_REGION | WIRE_READ, 100, key + 1, 3900));
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	ck_assert_ptr_null(say_joint(WIRE_REGION | WIRE_READ, 100, key, 3900));
	fake_says(WIRE_HEAD(WIRE_JOINT, WIRE_DATA, 0, 0), 0, 0, buf, 5);
	ck_assert_uint_eq(helps, 1);
}
END_TEST

START_TEST(a_peer_may_name_a_message_under_way)
{
	uint64_t at = (uintptr_t)buf;
	uint32_t id;

	ck_assert_ptr_null(say_joint(WIRE_READ, at, 0, 3000));
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 3000, NULL, fake.addr, 5, &buf[1]), 0);
	id = wire_id(fake_last(0)->head);
	ck_assert_ptr_eq(say_joint(WIRE_READ, at, 0, 3000), buf);
	ck_assert_ptr_eq(say_joint(WIRE_READ, at + 1000, 0, 2000), buf + 1000);
	ck_assert_ptr_null(say_joint(WIRE_READ, at + 1000, 0, 2001));
	ck_assert_ptr_null(say_joint(WIRE_READ, at - 1, 0, 10));
	ck_assert_ptr_null(say_joint(WIRE_READ, at, 0, SIZE_MAX));
	ck_assert_ptr_null(say_joint(0, at, 0, 3000)); /* the peer may not write to it */
	fake_says_ats(id, 0);
	fake_expect(&buf[1], FI_TAGGED | FI_SEND);
	ck_assert_ptr_null(say_joint(WIRE_READ, at, 0, 3000));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_joint");
	TCase *tcase = tcase_create("joint");

	tcase_add_checked_fixture(tcase, setup, far_teardown);
	tcase_add_test(tcase, long_accesses_begin_one);
	tcase_add_test(tcase, later_ones_wait_for_its_end);
	tcase_add_test(tcase, a_long_message_begins_one);
	tcase_add_test(tcase, a_message_ends_with_it);
	tcase_add_test(tcase, a_sleeper_looks_for_its_end);
	tcase_add_test(tcase, a_failed_one_is_asked_for);
	tcase_add_test(tcase, what_is_behind_it_outlives_the_peer);
	tcase_add_test(tcase, forgotten_with_its_peer);
	tcase_add_test(tcase, its_key_says_what_a_peer_may_name);
	tcase_add_test(tcase, a_peer_may_name_a_message_under_way);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
