/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how deferred work runs without credits, and when the peer answers late, with errors, or
 * not at all.
 */
#include <rdma/fi_trigger.h>

#include "fake_link.h"

#define JOBS 8

static struct fid_cntr *start, *done;
static uint64_t words[JOBS];
static struct iovec iovs[JOBS];
static struct fi_op_tagged ops[JOBS];
static struct fi_deferred_work works[JOBS];

static struct fid_cntr *open_cntr(void)
{
	struct fid_cntr *cntr;

	ck_assert_int_eq(fi_cntr_open(fake.domain, NULL, &cntr, NULL), 0);
	return cntr;
}

static void setup(void)
{
	fake_open_connected();
	start = open_cntr();
	done = open_cntr();
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&start->fid), 0);
	ck_assert_int_eq(fi_close(&done->fid), 0);
	fake_shut();
}

static int queue(struct fi_deferred_work *work)
{
	return fi_control(&fake.domain->fid, FI_QUEUE_WORK, work);
}

/* Queues job `n`: a tagged message with tag `n`. */
static void queue_tagged(unsigned int n, enum fi_op_type type, uint64_t threshold, uint64_t flags)
{
	iovs[n] = (struct iovec){&words[n], sizeof(words[n])};
	ops[n] = (struct fi_op_tagged){
		.ep = fake.ep,
		.msg = {.msg_iov = &iovs[n],
			.iov_count = 1,
			.addr = type == FI_OP_TSEND ? fake.addr : FI_ADDR_UNSPEC,
			.tag = n,
			.context = &works[n]},
		.flags = flags};
	works[n] = (struct fi_deferred_work){.threshold = threshold,
					     .triggering_cntr = start,
					     .completion_cntr = done,
					     .op_type = type,
					     .op.tagged = &ops[n]};
	ck_assert_int_eq(queue(&works[n]), 0);
}

static void counts(struct fid_cntr *cntr, uint64_t value, uint64_t error)
{
	ck_assert_uint_eq(fi_cntr_read(cntr), value);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), error);
}

/* Checks the tags of all packets sent so far. */
static void sent(const unsigned int *tags, unsigned int count)
{
	ck_assert_uint_eq(fake.count, count);
	for (unsigned int n = 0; n < count; n++)
		ck_assert_uint_eq(fake.packets[n].tag, tags[n]);
}

/* Due work stays due and in order, even if the counter is set back. */
START_TEST(order_without_room)
{
	static const unsigned int order[] = {3, 1, 0, 2, 5, 4};

	queue_tagged(0, FI_OP_TSEND, 3, 0);
	queue_tagged(1, FI_OP_TSEND, 2, 0);
	queue_tagged(2, FI_OP_TSEND, 4, 0);
	queue_tagged(3, FI_OP_TSEND, 1, 0);
	queue_tagged(4, FI_OP_TSEND, 5, 0);
	fake.room = 1;
	fi_cntr_add(start, 4);
	counts(done, 1, 0);
	sent(order, 1);
	fi_cntr_set(start, 0);
	queue_tagged(5, FI_OP_TSEND, 0, 0); /* due at once, but behind earlier due work */
	counts(done, 1, 0);
	fake.room = 2;
	counts(done, 3, 0);
	sent(order, 3);
	fake.room = FAKE_PLENTY;
	counts(done, 5, 0);
	sent(order, 5);
	fi_cntr_add(start, 4); /* the counter was set back to 0 */
	counts(done, 5, 0);
	fi_cntr_add(start, 1);
	counts(done, 6, 0);
	sent(order, 6);
	ck_assert(!domain_due(fake.worker->conn.driven.dom));
	ck_assert(!domain_defers(fake.worker->conn.driven.dom));
}
END_TEST

/* A counter whose work lacks credits does not stop the work of other counters. */
START_TEST(no_room_for_one_counter)
{
	struct fid_cntr *other = open_cntr(), *third = open_cntr();
	struct fi_op_cntr op = {third, 5};
	struct fi_deferred_work work = {.threshold = 1,
					.triggering_cntr = other,
					.op_type = FI_OP_CNTR_ADD,
					.op.cntr = &op};

	queue_tagged(0, FI_OP_TSEND, 1, 0);
	ck_assert_int_eq(queue(&work), 0);
	fake.room = 0;
	fi_cntr_add(start, 1);
	counts(done, 0, 0);
	fi_cntr_add(other, 1);
	counts(third, 5, 0);
	ck_assert(domain_due(fake.worker->conn.driven.dom));
	ck_assert_int_eq(fi_close(&start->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert_int_eq(fi_close(&third->fid), 0);
	fake.room = FAKE_PLENTY;
	counts(done, 1, 0);
}
END_TEST

/*
 * Of the work behind one that has no room for its endpoint, what needs none begins: a receive does, a further message to
 * that endpoint and a change of a counter do not.
 */
START_TEST(no_room_for_one_endpoint)
{
	static const unsigned int order[] = {0, 1};
	struct fid_cntr *third = open_cntr();
	struct fi_op_cntr op = {third, 5};
	struct fi_deferred_work work = {.threshold = 1,
					.triggering_cntr = start,
					.op_type = FI_OP_CNTR_ADD,
					.op.cntr = &op};

	queue_tagged(0, FI_OP_TSEND, 1, 0);
	queue_tagged(1, FI_OP_TSEND, 1, 0);
	queue_tagged(2, FI_OP_TRECV, 1, 0);
	ck_assert_int_eq(queue(&work), 0);
	fake.room = 0;
	fi_cntr_add(start, 1);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 2, 0, "eight by", 8);
	counts(done, 1, 0);
	counts(third, 0, 0);
	fake.room = FAKE_PLENTY;
	counts(done, 3, 0);
	counts(third, 5, 0);
	sent(order, 2);
	ck_assert_int_eq(fi_close(&third->fid), 0);
}
END_TEST

/* Due work without credits can be cancelled and does not start afterwards. */
START_TEST(taken_back_when_due)
{
	static const unsigned int order[] = {1};

	for (unsigned int n = 0; n < 3; n++)
		queue_tagged(n, FI_OP_TSEND, 1, 0);
	fake.room = 0;
	fi_cntr_add(start, 1);
	ck_assert_int_eq(fi_control(&fake.domain->fid, FI_CANCEL_WORK, &works[0]), 0);
	ck_assert_int_eq(fi_control(&fake.domain->fid, FI_CANCEL_WORK, &works[2]), 0);
	fake.room = FAKE_PLENTY;
	counts(done, 1, 0);
	sent(order, 1);
	fake.room = 0;
	queue_tagged(0, FI_OP_TSEND, 1, 0);
	ck_assert_int_eq(fi_control(&fake.domain->fid, FI_FLUSH_WORK, NULL), 0);
	fake.room = FAKE_PLENTY;
	counts(done, 1, 0);
	/* No work is left, so the counter can be closed. */
	ck_assert_int_eq(fi_close(&start->fid), 0);
	start = open_cntr();
}
END_TEST

/*
 * Work with delivery complete ends by the receiver's ATS; an error in ATS is an error of the work.
 */
START_TEST(answers)
{
	for (unsigned int n = 0; n < 3; n++)
		queue_tagged(n, FI_OP_TSEND, 1, FI_DELIVERY_COMPLETE | (n ? FI_COMPLETION : 0));
	fi_cntr_add(start, 1);
	ck_assert_uint_eq(fake.count, 3);
	counts(done, 0, 0);
	fake_says_ats(wire_id(fake.packets[0].head), FI_EIO);
	counts(done, 0, 1);
	fake_expect_nothing();
	fake_says_ats(wire_id(fake.packets[1].head), 0);
	counts(done, 1, 1);
	fake_expect(&works[1], FI_TAGGED | FI_SEND);
	fake_says_ats(wire_id(fake.packets[1].head), 0); /* a duplicate is ignored */
	counts(done, 1, 1);
	fake_says_ats(wire_id(fake.packets[2].head), FI_ETRUNC);
	counts(done, 1, 2);
	fake_expect_error(&works[2], FI_ETRUNC);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* The peer dies, or the endpoint is closed: each work under way ends once, with an error. */
START_TEST(nobody_answers)
{
	queue_tagged(0, FI_OP_TSEND, 1, FI_DELIVERY_COMPLETE);
	queue_tagged(1, FI_OP_TSEND, 1, FI_DELIVERY_COMPLETE);
	queue_tagged(2, FI_OP_TSEND, 2, 0);
	fi_cntr_add(start, 1);
	counts(done, 0, 0);
	if (_i) {
		ck_assert_int_eq(fi_close(&fake.ep->fid), 0);
		counts(done, 0, 3);
		ck_assert_int_eq(fi_endpoint(fake.domain, fake.info, &fake.ep, NULL), 0);
		fake.peer = &peer_nobody;
		fake.closed = 0;
	} else {
		contact_failed(&fake.peer->conn, FI_ECONNRESET);
		counts(done, 0, 2);
		ck_assert_int_eq(fi_control(&fake.domain->fid, FI_FLUSH_WORK, NULL), 0);
		fake.closed = 0;
	}
}
END_TEST

/* fi_cancel does not find deferred work. */
START_TEST(not_to_be_cancelled_by_context)
{
	queue_tagged(0, FI_OP_TSEND, 2, 0);
	queue_tagged(1, FI_OP_TRECV, 1, 0);
	fi_cntr_add(start, 1);
	fi_cancel(&fake.ep->fid, &works[0]);
	fi_cancel(&fake.ep->fid, &works[1]);
	fake_expect_nothing();
	counts(done, 0, 0);
	fi_cntr_add(start, 1);
	counts(done, 1, 0);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 1, 0, "eight by", 8);
	counts(done, 2, 0);
}
END_TEST

/* Deferred receives match unexpected and new messages; a message that is too long is an error. */
START_TEST(receives)
{
	static const char text[] = "sixteen letters.";

	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 0, 0, text, 8);
	for (unsigned int n = 0; n < 4; n++)
		queue_tagged(n, FI_OP_TRECV, 1, n >= 2 ? FI_COMPLETION : 0);
	counts(done, 0, 0);
	fi_cntr_add(start, 1);
	counts(done, 1, 0);
	ck_assert_mem_eq(&words[0], text, 8);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 1, 0, text, 16);
	counts(done, 1, 1);
	fake_expect_nothing();
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 2, 0, text, 8);
	counts(done, 2, 1);
	fake_expect(&works[2], FI_TAGGED | FI_RECV);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 3, 0, text, 16);
	counts(done, 2, 2);
	ck_assert_uint_eq(fake_expect_error(&works[3], FI_ETRUNC).olen, 8);
}
END_TEST

/* A counter caches its least threshold, so that counting without due work is cheap. */
START_TEST(counters_at_rest)
{
	struct cntr *c = cntr_of(start);

	ck_assert_uint_eq(c->threshold, UINT64_MAX);
	queue_tagged(0, FI_OP_TSEND, 7, 0);
	queue_tagged(1, FI_OP_TSEND, 5, 0);
	ck_assert_uint_eq(c->threshold, 5);
	fi_cntr_add(start, 4);
	cntr_fail(c);
	ck_assert(domain_due(c->dom)); /* the next progress call runs it */
	ck_assert_uint_eq(fake.count, 0);
	counts(done, 1, 0);
	ck_assert_uint_eq(c->threshold, 7);
	cntr_done(c, 1);
	ck_assert(!domain_due(c->dom));
	cntr_done(c, 1);
	ck_assert(domain_due(c->dom));
	counts(done, 2, 0);
	ck_assert_uint_eq(c->threshold, UINT64_MAX);
	/* A counter near its maximum: without work nothing is due. */
	fi_cntr_set(start, UINT64_MAX - 1);
	fi_cntr_adderr(start, 1);
	cntr_done(c, 1);
	counts(done, 2, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_defer");
	TCase *tcase = tcase_create("connected");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, order_without_room);
	tcase_add_test(tcase, no_room_for_one_counter);
	tcase_add_test(tcase, no_room_for_one_endpoint);
	tcase_add_test(tcase, taken_back_when_due);
	tcase_add_test(tcase, answers);
	tcase_add_loop_test(tcase, nobody_answers, 0, 2);
	tcase_add_test(tcase, not_to_be_cancelled_by_context);
	tcase_add_test(tcase, receives);
	tcase_add_test(tcase, counters_at_rest);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
