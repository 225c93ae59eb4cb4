/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how one-sided operations wait: for link credits, in fragments, behind fences, under XOFF.
 */
#include "fake_rma.h"

#define THERE 0x1000 /* address in the peer's region */
#define KEY   5

static unsigned char buf[REGION];

static void fill(void)
{
	for (size_t i = 0; i < sizeof(buf); i++)
		buf[i] = (unsigned char)(i * 5 + i / 256);
}

static ssize_t post_write(size_t len, void *context)
{
	return fi_write(fake.ep, buf, len, NULL, fake.addr, 0, KEY_ALL, context);
}

static ssize_t post_read(size_t len, void *context)
{
	return fi_read(fake.ep, buf, len, NULL, fake.addr, 0, KEY_ALL, context);
}

static void says_done(uint32_t seq)
{
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, seq), 0, 0, NULL, 0);
}

/* Delivers sent packets `from` to `to` back to ourselves: requests, then their answers. */
static void come_back(unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		struct fake_packet p = fake.packets[i];

		fake_says(p.head, p.tag, p.data, p.payload, p.len);
	}
}

/* ---- Answers ---- */

START_TEST(acknowledged_together)
{
	struct request put = {.op = WIRE_PUT, .flags = WIRE_DATA, .key = KEY_ALL, .len = 8};

	for (put.seq = 20; put.seq < 30; put.seq++)
		request_say(&put);
	ck_assert_uint_eq(fake.count, 0);
	answer_expect_done(29);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0);
}
END_TEST

/* Answers that waited have the bytes at the time they are sent, in the order of the requests. */
START_TEST(answers_wait_for_room)
{
	struct request get = {.op = WIRE_GET, .flags = WIRE_DATA, .key = KEY_ALL, .want = 8};
	struct request put = {.op = WIRE_PUT, .flags = WIRE_DATA, .key = KEY_ALL, .len = 8};
	struct request add = {.op = WIRE_AMO,
			      .flags = WIRE_DATA,
			      .key = KEY_ALL,
			      .amo = {FI_SUM, FI_UINT64, ATOMIC_FETCH, 0, 8},
			      .len = 8};
	unsigned char first[8];

	fake.room = 0;
	for (uint32_t seq = 1; seq < 5; seq++) {
		get.seq = put.seq = add.seq = seq;
		get.want = seq == 1 ? 8 : 100;
		put.key = seq == 4 ? KEY_READ : KEY_ALL;
		request_say(seq % 2 ? &get : seq == 2 ? &add : &put);
	}
	request_say(&(struct request){.op = WIRE_PUT,
				      .flags = WIRE_DATA,
				      .seq = 5,
				      .key = KEY_ALL,
				      .len = 8,
				      .first = 99});
	memcpy(first, memory[0].data, 8);
	ck_assert_int_eq(first[0], 99);
	worker_progress(fake.worker);
	memset(memory[0].data, 0xee, 200);
	for (fake.room = 2; get.seq < 7; get.want = 8) { /* no answer overtakes waiting ones */
		get.seq = get.seq < 6 ? 6 : 7;
		request_say(&get);
		ck_assert_uint_eq(fake.count, 0);
	}
	for (fake.room = 1; worker_progress(fake.worker); fake.room = 1)
		;
	ck_assert_uint_eq(fake.count, 7);
	ck_assert_uint_eq(fake.packets[0].head, WIRE_HEAD(WIRE_RESULT, 0, 0, 1));
	ck_assert_mem_eq(fake.packets[0].payload, copy[0].data, 8);
	ck_assert_uint_eq(fake.packets[1].head, WIRE_HEAD(WIRE_RESULT, 0, 0, 2));
	ck_assert_mem_eq(fake.packets[1].payload, copy[0].data, 8);
	ck_assert_uint_eq(fake.packets[2].head, WIRE_HEAD(WIRE_RESULT, 0, 0, 3));
	ck_assert_uint_eq(fake.packets[2].len, 100);
	ck_assert_mem_eq(fake.packets[2].payload + 8, copy[0].data + 8, 92);
	ck_assert_uint_eq(fake.packets[3].head, WIRE_HEAD(WIRE_FAILED, 0, 0, 4));
	ck_assert_uint_eq(fake.packets[4].head, WIRE_HEAD(WIRE_DONE, 0, 0, 5));
	ck_assert_uint_eq(fake.packets[5].head, WIRE_HEAD(WIRE_RESULT, 0, 0, 6));
	ck_assert_uint_eq(fake.packets[6].head, WIRE_HEAD(WIRE_RESULT, 0, 0, 7));
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* A long answer; its region is closed after `fragments` fragments were sent. */
static void answer_long(unsigned int fragments)
{
	struct request get = {
		.op = WIRE_GET, .flags = WIRE_DATA, .seq = 3, .key = KEY_READ, .want = REGION};
	const struct fake_packet *p;
	size_t at = 0;

	fake.room = 0;
	request_say(&get);
	worker_progress(fake.worker);
	for (unsigned int i = 0; at < REGION && i < fragments; i++) {
		fake.room = 1;
		worker_progress(fake.worker);
		ck_assert_uint_eq(fake.count, i + 1);
		p = fake_last(0);
		ck_assert_uint_eq(p->head, WIRE_HEAD(WIRE_RESULT, 0, 0, 3));
		ck_assert_uint_eq(p->tag, at);
		ck_assert_mem_eq(p->payload, memory[1].data + at, p->len);
		at += p->len;
	}
	fake.count = 0;
	fake.room = FAKE_PLENTY;
	if (at < REGION) {
		region_close(KEY_READ);
		answer_expect_failed(3, FI_EACCES, FI_ENOKEY);
	}
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}

START_TEST(long_answer)
{
	answer_long(UINT32_MAX);
}
END_TEST

START_TEST(region_closed_half_way)
{
	answer_long(2);
}
END_TEST

/* ---- Requests ---- */

START_TEST(full_link_is_eagain)
{
	uint64_t word = 1, old;

	fake.room = 0;
	ck_assert_int_eq(post_write(8, NULL), -FI_EAGAIN);
	ck_assert_int_eq(post_write(1000, NULL), -FI_EAGAIN);
	ck_assert_int_eq(post_read(8, NULL), -FI_EAGAIN);
	ck_assert_int_eq(post_read(REGION, NULL), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject_write(fake.ep, buf, 8, fake.addr, 0, KEY_ALL), -FI_EAGAIN);
	ck_assert_int_eq(fi_fetch_atomic(fake.ep, &word, 1, NULL, &old, NULL, fake.addr, 0, KEY_ALL,
					 FI_UINT64, FI_SUM, NULL),
			 -FI_EAGAIN);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_uint_eq(fake.peer->rma.awaiting_count, 0);
	fake.room = FAKE_PLENTY;
	ck_assert_int_eq(post_write(8, &word), 0);
	says_done(wire_id(fake_last(0)->head));
	fake_expect(&word, FI_RMA | FI_WRITE);
	for (unsigned int i = 0; i < FAKE_TX_SIZE; i++)
		ck_assert_int_eq(post_write(8, NULL), 0);
	ck_assert_int_eq(post_write(8, NULL), -FI_EAGAIN); /* tx_attr->size limits the backlog */
	ck_assert_int_eq(post_read(8, NULL), -FI_EAGAIN);
}
END_TEST

/* A long write with room for one packet at a time; the next write waits. */
START_TEST(long_write_in_fragments)
{
	unsigned int sent = 0;

	fake.room = 0;
	ck_assert_int_eq(post_write(REGION, &buf[1]), 0);
	ck_assert_int_eq(post_write(8, &buf[2]), -FI_EAGAIN);
	for (fake.room = 1; worker_progress(fake.worker); fake.room = 1) {
		ck_assert_uint_eq(fake.count, sent + 1);
		ck_assert_uint_eq(wire_id(fake_last(0)->head), wire_id(fake.packets[0].head));
		come_back(sent, sent + 1);
		sent = fake.count;
		fake.room = 0;
		fake_expect_nothing();
		if (!list_empty(&fake.peer->txreqs[TXREQ_BACKLOG]))
			ck_assert_int_eq(post_write(8, &buf[2]), -FI_EAGAIN);
		if (memory[0].data[REGION - 1] == buf[REGION - 1])
			break;
	}
	ck_assert_uint_gt(sent, REGION / FAKE_PACKET);
	ck_assert_mem_eq(memory[0].data, buf, REGION);
	ck_assert(guards_whole());
	fake.room = FAKE_PLENTY;
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.count, sent + 1); /* one acknowledgement */
	come_back(sent, sent + 1);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* A region that is enabled only for the last fragments: the write fails, as not all was written. */
START_TEST(long_write_refused_at_first)
{
	struct mr *mr = LIST_ENTRY(regions[KEY_ALL], struct mr, fid);
	unsigned int sent;

	mr->enabled = false;
	fake.room = 2;
	ck_assert_int_eq(post_write(REGION, &buf[1]), 0);
	ck_assert_uint_eq(fake.count, 2);
	fake.room = FAKE_PLENTY;
	come_back(0, 1);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_FAILED);
	mr->enabled = true;
	come_back(1, 2);
	come_back(2, 3);
	ck_assert_int_eq(fake_expect_error(&buf[1], FI_EACCES).prov_errno, FI_ENOKEY);
	sent = fake.count;
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, sent); /* nor are later fragments answered */
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
	ck_assert_int_eq(post_write(8, &buf[2]), 0);
	come_back(sent, fake.count);
	worker_progress(fake.worker);
	come_back(sent + 1, fake.count);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
}
END_TEST

/* No later operation is performed before the answer to a long read is complete. */
START_TEST(behind_a_long_read)
{
	unsigned int sent;

	ck_assert_int_eq(post_read(REGION, &buf[1]), 0);
	ck_assert_int_eq(post_write(8, &buf[2]), 0);
	ck_assert_int_eq(fi_inject_write(fake.ep, buf, 4, fake.addr, 100, KEY_ALL), -FI_EAGAIN);
	/* A message waits too: its receiver may change the memory that is being read. */
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 4, NULL, fake.addr, 1, &buf[3]), -FI_EAGAIN);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	come_back(0, 1); /* the read; its answer starts with the next progress call */
	while (worker_progress(fake.worker))
		;
	sent = fake.count;
	ck_assert_uint_gt(sent, 1 + REGION / FAKE_PACKET);
	come_back(1, sent - 1);
	worker_progress(fake.worker);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, sent);
	come_back(sent - 1, sent);
	ck_assert_mem_eq(buf, memory[0].data, REGION);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 4, NULL, fake.addr, 1, &buf[3]), 0);
	fake_expect(&buf[3], FI_TAGGED | FI_SEND);
	ck_assert_uint_eq(fake.count, sent + 2);
	ck_assert_uint_eq(wire_op(fake.packets[sent].head), WIRE_PUT);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_MSG);
	says_done(wire_id(fake_last(1)->head));
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* A waiting compare atomic keeps copies of its operands and compare values. */
static void compare_waits(enum fi_datatype type, size_t count, size_t len)
{
	unsigned char operand[64], compare[64], old[64];
	unsigned int sent = fake.count;

	for (size_t i = 0; i < sizeof(operand); i++) {
		operand[i] = (unsigned char)(i + 1);
		compare[i] = memory[0].data[i];
	}
	ck_assert_int_eq(post_read(REGION, &buf[1]), 0);
	ck_assert_int_eq(fi_compare_atomic(fake.ep, operand, count, NULL, compare, NULL, old, NULL,
					   fake.addr, 0, KEY_ALL, type, FI_CSWAP, &buf[2]),
			 0);
	memset(operand, 0, sizeof(operand));
	memset(compare, 0, sizeof(compare));
	ck_assert_uint_eq(fake.count, sent + 1);
	come_back(sent, sent + 1);
	while (worker_progress(fake.worker))
		;
	come_back(sent + 1, fake.count);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect_nothing();
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_AMO);
	ck_assert_uint_eq(fake_last(0)->len, sizeof(struct wire_amo) + 2 * len);
	sent = fake.count;
	come_back(sent - 1, sent);
	come_back(sent, fake.count);
	fake_expect(&buf[2], FI_ATOMIC | FI_READ);
	ck_assert_mem_eq(old, copy[0].data, len);
	for (size_t i = 0; i < len; i++)
		copy[0].data[i] = (unsigned char)(i + 1);
	ck_assert(memory_untouched());
}

START_TEST(compare_behind_a_long_read)
{
	compare_waits(FI_UINT8, 1, 1);
	compare_waits(FI_UINT64, 1, 8);
	compare_waits(FI_UINT32, 3, 12);
	compare_waits(FI_UINT64, 2, 16);
	compare_waits(FI_UINT64, 8, 64);
}
END_TEST

/* Under XOFF atomics on tagged receives, which the peer keeps until matched, are bounded by number. */
START_TEST(paused_like_messages)
{
	struct fi_ioc ioc = {buf, 1};
	struct fi_rma_ioc to = {.count = 1, .key = KEY};
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .addr = fake.addr,
				    .rma_iov = &to,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &buf[1]};

	fake_says(WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0, 0, NULL, 0);
	for (unsigned int i = 0; i < FAKE_TX_SIZE; i++)
		ck_assert_int_eq(fi_atomicmsg(fake.ep, &msg, FI_TAGGED), 0);
	ck_assert_int_eq(fi_atomicmsg(fake.ep, &msg, FI_TAGGED), -FI_EAGAIN);
	for (unsigned int i = 0; i < FAKE_TX_SIZE; i++) {
		fake_says_ats(wire_id(fake_last(i)->head), 0);
		fake_expect(&buf[1], FI_TAGGED | FI_ATOMIC | FI_WRITE);
	}
	ck_assert_int_eq(fi_atomicmsg(fake.ep, &msg, FI_COMPLETION), 0);
	ck_assert_int_eq(post_write(8, &buf[2]), 0);
	fake_says(WIRE_HEAD(WIRE_XON, 0, 0, 0), 0, 0, NULL, 0);
	ck_assert_int_eq(fi_atomicmsg(fake.ep, &msg, FI_TAGGED | FI_COMPLETION), 0);
	ck_assert_uint_eq(wire_flags(fake_last(0)->head), WIRE_MATCH | WIRE_DATA);
	fake_says_ats(wire_id(fake_last(0)->head), 0);
	fake_expect(&buf[1], FI_TAGGED | FI_ATOMIC | FI_WRITE);
	says_done(wire_id(fake_last(1)->head));
	fake_expect(&buf[1], FI_ATOMIC | FI_WRITE);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

/* ---- Fences ---- */

static ssize_t post_fenced(void *context)
{
	struct iovec iov = {buf, 8};
	struct fi_rma_iov to = {.addr = THERE, .len = 8, .key = KEY};
	struct fi_msg_rma msg = {.msg_iov = &iov,
				 .iov_count = 1,
				 .addr = fake.addr,
				 .rma_iov = &to,
				 .rma_iov_count = 1,
				 .context = context};

	return fi_writemsg(fake.ep, &msg, FI_FENCE | FI_COMPLETION);
}

START_TEST(fence_waits)
{
	uint32_t seq;

	ck_assert_int_eq(post_fenced(&buf[1]), 0); /* the fence has nothing to wait for */
	seq = wire_id(fake_last(0)->head);
	ck_assert_int_eq(post_fenced(&buf[2]), 0);
	ck_assert_int_eq(post_read(8, &buf[3]), 0);
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 4, NULL, fake.addr, 1, &buf[4]), -FI_EAGAIN);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	says_done(seq);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	worker_progress(fake.worker);
	ck_assert_int_eq(fi_tsend(fake.ep, buf, 4, NULL, fake.addr, 1, &buf[4]), 0);
	fake_expect(&buf[4], FI_TAGGED | FI_SEND);
	ck_assert_uint_eq(fake.count, 4);
	ck_assert_uint_eq(wire_op(fake.packets[1].head), WIRE_PUT);
	ck_assert_uint_eq(wire_op(fake.packets[2].head), WIRE_GET);
	ck_assert_uint_eq(wire_op(fake.packets[3].head), WIRE_MSG);
	ck_assert_uint_eq(wire_id(fake.packets[2].head), seq + 2);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 2), 0, 0, buf, 8);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	fake_expect(&buf[3], FI_RMA | FI_READ);
	ck_assert_uint_eq(pool_in_use(&fake.worker->tx_pool), 0);
}
END_TEST

static void setup(void)
{
	rma_setup();
	fill();
}

int main(void)
{
	Suite *suite = suite_create("xfer_rma_flow");
	TCase *answers = tcase_create("answers"), *requests = tcase_create("requests");

	tcase_add_checked_fixture(answers, setup, rma_teardown);
	tcase_add_test(answers, acknowledged_together);
	tcase_add_test(answers, answers_wait_for_room);
	tcase_add_test(answers, long_answer);
	tcase_add_test(answers, region_closed_half_way);
	tcase_add_checked_fixture(requests, setup, rma_teardown);
	tcase_add_test(requests, full_link_is_eagain);
	tcase_add_test(requests, long_write_in_fragments);
	tcase_add_test(requests, long_write_refused_at_first);
	tcase_add_test(requests, behind_a_long_read);
	tcase_add_test(requests, compare_behind_a_long_read);
	tcase_add_test(requests, paused_like_messages);
	tcase_add_test(requests, fence_waits);
	suite_add_tcase(suite, answers);
	suite_add_tcase(suite, requests);
	return suite_run(suite);
}
