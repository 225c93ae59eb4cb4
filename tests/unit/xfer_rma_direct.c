/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which one-sided operations access the peer's memory directly, and in which order. */
#include "fake_far.h"

START_TEST(long_ones_go_direct)
{
	far_post_write(100, 1000, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	far_post_read(5000, 1000, &buf[2]);
	fake_expect(&buf[2], FI_RMA | FI_READ);
	ck_assert_str_eq(there.said, "put@100+1000 get@5000+1000 ");
	ck_assert_mem_eq(there.memory + 100, buf + 100, 1000);
	ck_assert_mem_eq(there.memory + 5000, buf + 5000, 1000);
	ck_assert_uint_eq(fake.count, 0);
	there.put_ends = 1; /* the peer counts accesses: notify it */
	far_post_write(0, 1000, &buf[3]);
	fake_expect(&buf[3], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fake_last(0)->head, WIRE_HEAD(WIRE_NOTIFY, 0, 0, 0));
	ck_assert_uint_eq(fake_last(0)->len, sizeof(struct wire_range));
	ck_assert_mem_eq(fake_last(0)->payload, &((const struct wire_range){0, 1000, FAR_KEY}),
			 sizeof(struct wire_range));
	there.get_ends = -FI_EFAULT; /* a part may have been copied: no retry */
	far_post_read(0, 1000, &buf[4]);
	fake_expect_error(&buf[4], FI_EFAULT);
	ck_assert_uint_eq(fake.count, 1);
	there.put_ends = -FI_ENOKEY; /* the peer will answer with the reason */
	far_post_write(0, 1000, &buf[5]);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_PUT);
	far_says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[5], FI_RMA | FI_WRITE);
	far_expect_none_left();
}
END_TEST

/* A direct operation overtakes no posted one, and no later one overtakes it. */
START_TEST(long_ones_keep_their_order)
{
	far_post_write(0, 8, &buf[1]);
	far_post_write(100, 1000, &buf[2]);
	far_post_read(100, 8, &buf[3]);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_str_eq(there.said, "");
	far_says_done(wire_id(fake_last(0)->head));
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	fake_expect(&buf[2], FI_RMA | FI_WRITE);
	ck_assert_str_eq(there.said, "put@100+1000 ");
	ck_assert_uint_eq(fake.count, 2);
	fake_says(WIRE_HEAD(WIRE_RESULT, 0, 0, wire_id(fake_last(0)->head)), 0, 0, buf, 8);
	fake_expect(&buf[3], FI_RMA | FI_READ);
	far_expect_none_left();
}
END_TEST

/* Short operations also go directly while the link has no credits. */
START_TEST(a_full_link_is_passed_by)
{
	fake.room = 0;
	far_post_write(0, 8, &buf[1]);
	fake_expect(&buf[1], FI_RMA | FI_WRITE);
	ck_assert_str_eq(there.said, "put@0+8 ");
	there.put_ends = -FI_ENOKEY;
	ck_assert_int_eq(fi_write(fake.ep, buf, 8, NULL, fake.addr, 0, FAR_KEY, NULL), -FI_EAGAIN);
	ck_assert_int_eq(
		fi_atomic(fake.ep, buf, 1, NULL, fake.addr, 0, FAR_KEY, FI_UINT64, FI_SUM, NULL),
		-FI_EAGAIN);
	fake.room = FAKE_PLENTY;
	far_expect_none_left();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rma_direct");
	TCase *tcase = tcase_create("direct");

	tcase_add_checked_fixture(tcase, far_setup, far_teardown);
	tcase_add_test(tcase, long_ones_go_direct);
	tcase_add_test(tcase, long_ones_keep_their_order);
	tcase_add_test(tcase, a_full_link_is_passed_by);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
