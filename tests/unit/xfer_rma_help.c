/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which posted operations an initiator performs itself for a peer without progress. */
#include "fake_far.h"

/* Checks that the second rma_help without an answer does `said` for the peer, the first nothing. */
static void expect_help(const char *said)
{
	there.said[0] = 0;
	rma_help(fake.worker, false);
	ck_assert_str_eq(there.said, "");
	rma_help(fake.worker, false);
	ck_assert_str_eq(there.said, said);
	there.said[0] = 0;
}

START_TEST(reads_and_writes_in_order)
{
	struct fi_rma_iov to[2] = {{300, 10, FAR_KEY}, {400, 30, FAR_KEY}};
	struct iovec iov[2] = {{buf + 600, 15}, {buf + 700, 25}};
	struct fi_msg_rma msg = {.msg_iov = iov,
				 .iov_count = 2,
				 .addr = fake.addr,
				 .rma_iov = to,
				 .rma_iov_count = 2,
				 .context = &buf[3],
				 .data = 4};

	far_post_read(0, 8, &buf[1]);
	far_post_write(100, 20, &buf[2]);
	ck_assert_int_eq(fi_writemsg(fake.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION), 0);
	far_post_read(200, 8, &buf[4]);
	memset(buf + 600, 0xdd, 125); /* too late: the bytes of the packet are written */
	expect_help("get@0+8 take#1 put@100+20 back#1 take#2 put@300+10 back#2 get@200+8 ");
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	fake_expect(&buf[4], FI_RMA | FI_READ);
	ck_assert_mem_eq(there.memory + 100, buf + 100, 20);
	ck_assert_uint_eq(there.memory[300], (unsigned char)(600 * 5 + 1));
	ck_assert_uint_eq(there.memory[405], (unsigned char)(700 * 5 + 1));
	ck_assert_uint_eq(fake.count, 5);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_NOTIFY, WIRE_DATA, 0, 0));
	ck_assert_uint_eq(fake_last(0)->data, 4);
	/* The peer makes progress and answers the reads it finds. */
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[0].head)), 0, 0, buf, 8);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[3].head)), 0, 0, buf, 8);
	far_expect_none_left();
}
END_TEST

/* Writes with CQ data are reported to the peer in the order posted, or by its own progress. */
START_TEST(remote_data_in_order)
{
	far_post_write(100, 20, &buf[1]);
	ck_assert_int_eq(fi_writedata(fake.ep, buf, 8, NULL, 4, fake.addr, 300, FAR_KEY, &buf[2]),
			 0);
	ck_assert_int_eq(fi_writedata(fake.ep, buf, 8, NULL, 5, fake.addr, 400, FAR_KEY, &buf[3]),
			 0);
	expect_help("take#0 put@100+20 back#0 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, wire_id(fake.packets[1].head)), 0, 0, NULL, 0);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	expect_help("take#2 put@400+8 back#2 ");
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fake_last(0)->data, 5);
}
END_TEST

START_TEST(no_atomics)
{
	far_post_read(0, 8, &buf[1]);
	far_post_write(0, 8, &buf[2]);
	far_post_read(16, 8, &buf[3]);
	far_post_add(16, &buf[4]);
	far_post_write(24, 8, &buf[5]);
	expect_help("get@0+8 take#1 put@0+8 back#1 get@16+8 ");
	fake_expect(&buf[1], FI_RMA | FI_READ);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	fake_expect(&buf[3], FI_RMA | FI_READ);
	expect_help(""); /* nor any operation behind one */
	fake_expect_nothing();
	far_says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[4], FI_ATOMIC | FI_WRITE);
	fake_expect(&buf[5], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

/* The peer began the read meanwhile, perhaps also the atomic behind it: our read is void. */
START_TEST(read_begun_meanwhile)
{
	far_post_read(0, 8, &buf[1]);
	far_post_add(0, &buf[2]);
	there.begun = 2;
	expect_help("get@0+8 ");
	fake_expect_nothing();
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[0].head)), 0, 0, buf, 8);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	far_says_done(wire_id(fake.packets[1].head));
	fake_expect(&buf[2], FI_ATOMIC | FI_WRITE);
	far_expect_none_left();
}
END_TEST

START_TEST(what_the_peer_has_begun_is_its)
{
	uint32_t seq;

	far_post_write(0, 8, &buf[1]);
	seq = wire_id(fake_last(0)->head);
	far_post_read(100, 8, &buf[2]);
	there.begun = 1;
	expect_help("");
	fake_expect_nothing();
	far_says_done(seq);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 1), 0, 0, buf, 4);
	expect_help(""); /* the peer has begun the packet */
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, seq + 1), 4, 0, buf, 4);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	far_expect_none_left();
}
END_TEST

START_TEST(answers_put_it_off)
{
	for (uint32_t i = 0; i < 4; i++)
		far_post_write(i * 8, 8, &buf[i]);
	for (uint32_t i = 0; i < 4; i++) {
		rma_help(fake.worker, false);
		ck_assert_str_eq(there.said, "");
		far_says_done(wire_id(fake.packets[i].head));
		fake_expect(&buf[i], FI_RMA | FI_WRITE);
	}
	far_post_write(0, 8, &buf[1]);
	rma_help(fake.worker, true); /* before this process sleeps: help at once */
	ck_assert_str_eq(there.said, "take#4 put@0+8 back#4 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

START_TEST(out_of_reach)
{
	there.reachable = false;
	far_post_read(0, 8, &buf[1]);
	far_post_write(0, 8, &buf[2]);
	expect_help("");
	fake_expect_nothing();
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake.packets[0].head)), 0, 0, buf, 8);
	fake_expect(&buf[1], FI_RMA | FI_READ);
	far_says_done(wire_id(fake.packets[1].head));
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

/* A write that faults may be partly done: it ends with the error, and later operations go on. */
START_TEST(memory_is_not_there)
{
	there.put_ends = -FI_EFAULT;
	far_post_write(0, 8, &buf[1]);
	far_post_read(8, 8, &buf[2]);
	expect_help("take#0 put@0+8 back#0 get@8+8 ");
	ck_assert_int_eq(fake_expect_error(&buf[1], FI_EFAULT).prov_errno, FI_EFAULT);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	far_expect_none_left();
}
END_TEST

/* No guard, no key, no right: the packet is left to the peer, which answers. */
START_TEST(write_cannot_be_made)
{
	static const int cases[] = {-FI_EAGAIN, -FI_ENOKEY, -FI_EACCES, -FI_EINVAL, -FI_EPERM};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t seq;

		fake.count = 0;
		fake.peer->rma.direct_spell = 0;
		there.put_ends = cases[i];
		far_post_write(0, 8, &buf[1]);
		seq = wire_id(fake_last(0)->head);
		expect_help("take#0 put@0+8 left#0 ");
		fake_expect_nothing();
		fake_says(WIRE_HEAD(WIRE_FAILED, 0, 0, seq), FI_EACCES | FI_ENOKEY << 16, 0, NULL,
			  0);
		ck_assert_int_eq(fake_expect_error(&buf[1], FI_EACCES).prov_errno, FI_ENOKEY);
		far_expect_none_left();
	}
}
END_TEST

START_TEST(the_way_is_crowded)
{
	far_post_write(0, 8, &buf[1]);
	there.crowded = true;
	expect_help("take#0 put@0+8 left#0 ");
	fake_expect_nothing();
	rma_help(fake.worker, true);
	ck_assert_str_eq(there.said, "take#0 put@0+8 back#0 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

/* After help, operations go directly for a while, except behind a posted packet. */
START_TEST(a_spell_of_direct_ones)
{
	far_post_write(0, 8, &buf[1]);
	expect_help("take#0 put@0+8 back#0 ");
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	for (unsigned int i = 0; fake.peer->rma.direct_spell; i++) {
		ck_assert_uint_lt(i, 1000);
		far_post_write(0, 8, &buf[2]);
		fake_expect(&buf[2], FI_RMA | FI_WRITE);
		ck_assert_uint_eq(fake.count, 1);
	}
	far_post_write(0, 8, &buf[3]);
	ck_assert_uint_eq(fake.count, 2);
	far_says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

/* A read of a closed endpoint is not performed: its memory may be gone. */
START_TEST(endpoint_closed_meanwhile)
{
	far_post_read(0, 8, &buf[1]);
	far_post_write(100, 8, &buf[2]);
	tx_forget(fake.worker, ep_of(fake.ep), NULL);
	fake_expect_error(&buf[1], FI_ECANCELED);
	fake_expect_error(&buf[2], FI_ECANCELED);
	expect_help("take#1 put@100+8 back#1 ");
	ck_assert_uint_eq(buf[0], 1);
	far_expect_none_left();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rma_help");
	TCase *tcase = tcase_create("help");

	tcase_add_checked_fixture(tcase, far_setup, far_teardown);
	tcase_add_test(tcase, reads_and_writes_in_order);
	tcase_add_test(tcase, remote_data_in_order);
	tcase_add_test(tcase, no_atomics);
	tcase_add_test(tcase, read_begun_meanwhile);
	tcase_add_test(tcase, what_the_peer_has_begun_is_its);
	tcase_add_test(tcase, answers_put_it_off);
	tcase_add_test(tcase, out_of_reach);
	tcase_add_test(tcase, memory_is_not_there);
	tcase_add_test(tcase, write_cannot_be_made);
	tcase_add_test(tcase, the_way_is_crowded);
	tcase_add_test(tcase, a_spell_of_direct_ones);
	tcase_add_test(tcase, endpoint_closed_meanwhile);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
