/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations on regions over two devices (fakes here): long ones go over both rails, each byte in the
 * order of one device; and asking for the keys by which the second device knows a region.
 */
#include "fake_regions.h"
#include "suite.h"

/* Completes all. Returns the bytes that the second rail carried. */
static size_t complete_all(void)
{
	size_t first, second, sum = 0;

	do {
		first = complete(0);
		second = complete(1);
		sum += second;
	} while (first + second);
	return sum;
}

static void once(size_t len)
{
	size_t wrong = 0;

	for (size_t i = 0; i < len; i++)
		wrong += times_read[i] != 1;
	ck_assert_uint_eq(wrong, 0);
	ck_assert(list_empty(&r->operations));
}

/* A long one asks once for the key of the other device, and goes over both rails from then on. */
START_TEST(long_ones_divide)
{
	ck_assert(link_made->reaches);
	ck_assert_int_eq(post(LONG), 0);
	ck_assert_uint_gt(ends[0].requests, 0);
	ck_assert_uint_eq(ends[1].requests, 0);
	ck_assert_uint_eq(asked.key, KEY);
	ck_assert_uint_eq(asked.rail, 1);
	tells(22);
	ck_assert_uint_gt(ends[1].requests, 0);
	ck_assert_uint_ge(complete_all(), LONG / 4);
	once(LONG);
	memset(times_read, 0, LONG);
	ck_assert_int_eq(post(LONG), 0);
	ck_assert_uint_ge(complete_all(), LONG / 4);
	once(LONG);
	ck_assert_uint_eq(asked.what, 0);
}
END_TEST

/* The peer's other device may not know the region. */
START_TEST(one_device_knows)
{
	ck_assert_int_eq(post(LONG), 0);
	tells(0);
	ck_assert_uint_eq(complete_all(), 0);
	once(LONG);
	breaks(0);
	closes(0);
	ck_assert_int_ne(post(SHORT), 0); /* the engine sends packets */
	ck_assert(list_empty(&r->operations));
}
END_TEST

/* Short ones ask for nothing, and keep to one rail. */
START_TEST(short_ones_keep_to_one)
{
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(post(SHORT), 0);
	ck_assert_uint_eq(ends[0].requests, 50);
	ck_assert_uint_eq(ends[0].sends, 0);
	ck_assert_uint_eq(complete_all(), 0);
	ck_assert(list_empty(&r->operations));
}
END_TEST

/* After a long one, a short one waits until the rail that it does not use has done its part. */
START_TEST(short_one_waits)
{
	unsigned int before;

	ck_assert_int_eq(post(2 * ((size_t)128 << 10)), 0);
	tells(22);
	complete_all();
	ck_assert_int_eq(post(2 * ((size_t)128 << 10)), 0);
	ck_assert_uint_eq(ends[0].done + 1, ends[0].requests);
	ck_assert_uint_eq(ends[1].done + 1, ends[1].requests);
	before = ends[0].requests + ends[1].requests;
	ck_assert_int_eq(post_key(KEY, 0, SHORT, true), -FI_ENOMEM); /* it has to go at once */
	ck_assert_int_eq(post(SHORT), 0);
	ck_assert_uint_eq(ends[0].requests + ends[1].requests, before);
	complete(1);
	ck_assert_uint_eq(ends[0].requests + ends[1].requests, before + 1);
	complete_all();
	ck_assert(list_empty(&r->operations));
}
END_TEST

/* What a broken rail had waits until the peer's end is destroyed, too, then goes over the other one. */
START_TEST(goes_again_when_closed)
{
	unsigned int before;

	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	breaks(_i);
	before = ends[1 - _i].requests;
	complete(1 - _i);
	ck_assert(link_made->reaches);
	if (_i) {
		while (complete(0))
			;
		ck_assert(!list_empty(&r->operations));
	}
	closes((unsigned int)_i);
	ck_assert_uint_gt(ends[1 - _i].requests, before);
	while (complete((unsigned int)(1 - _i)))
		;
	once(LONG);
}
END_TEST

/* If the other one does not know the region, the engine gets all back, but only then. */
START_TEST(given_up_when_closed)
{
	ck_assert_int_eq(post(SHORT), 0);
	ck_assert_int_eq(post(SHORT), 0);
	breaks(0);
	ck_assert(!list_empty(&r->operations));
	ck_assert_int_ne(post(SHORT), 0);
	closes(0);
	ck_assert(list_empty(&r->operations));
	ck_assert_uint_eq(ends[1].requests, 0);
	tells(22);
	ck_assert_int_eq(post(SHORT), 0);
	ck_assert_uint_eq(ends[1].requests, 1);
}
END_TEST

/* A refused access ends all operations, once the other rail has done what it had. */
START_TEST(access_is_refused)
{
	struct ibv_wc wc = {.qp_num = ends[0].direct.qp_num, .status = IBV_WC_REM_ACCESS_ERR};

	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	ck_assert_int_eq(post(SHORT), 0);
	wc.wr_id = ends[0].request[0].number;
	verbs_rdma_done(ends[0].l, &wc, false);
	ck_assert(!list_empty(&r->operations));
	ck_assert_int_ne(post(SHORT), 0);
	while (complete(1))
		;
	ck_assert(list_empty(&r->operations));
	ck_assert(!r->giving_up);
}
END_TEST

/*
 * A device that is taken away flushes its requests, and a rail that has failed does, too: what they had
 * waits until the peer's end is destroyed, and goes over the other rail then.
 */
START_TEST(flushed)
{
	struct ibv_wc wc = {.qp_num = ends[1].direct.qp_num, .status = IBV_WC_WR_FLUSH_ERR};

	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	ck_assert_uint_gt(ends[1].requests, 0);
	if (_i)
		verbs_fail(ends[1].l, FI_ETIMEDOUT);
	else
		take_away(1);
	wc.wr_id = ends[1].request[0].number;
	verbs_rdma_done(ends[1].l, &wc, false);
	ck_assert_int_ne(ends[1].l->err, 0);
	verbs_rails_here.broke(ends[1].l);
	while (complete(0))
		;
	ck_assert(!list_empty(&r->operations));
	ck_assert(!r->giving_up);
	closes(1);
	while (complete(0))
		;
	once(LONG);
}
END_TEST

/* A device that was taken away refuses requests: the rail ends, and they go over the other one. */
START_TEST(cannot_post)
{
	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	complete_all();
	once(LONG);
	memset(times_read, 0, LONG);
	take_away(1);
	ends[1].refusal = EIO;
	ck_assert_int_eq(post(LONG), 0);
	ck_assert_int_eq(ends[1].l->err, EIO);
	verbs_rails_here.broke(ends[1].l);
	ck_assert(!r->giving_up);
	closes(1);
	while (complete(0))
		;
	once(LONG);
}
END_TEST

/* Another link of the rail leads to a device that may be another one: the peer is asked again. */
START_TEST(forgets_keys)
{
	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	complete_all();
	breaks(1);
	closes(1);
	comes_again(1);
	ck_assert_int_eq(post(LONG), 0);
	tells(22);
	ck_assert_uint_gt(complete_all(), 0);
}
END_TEST

/* A late answer, one about another link of the rail, and one to nothing change nothing. */
START_TEST(ignores_answers)
{
	struct verbs_rail_message m;

	ck_assert_int_eq(post(LONG), 0);
	m = asked;
	m.what = VERBS_RAIL_KEY;
	m.rkey = 33;
	m.serial++;
	hears_next(&m);
	m.serial--;
	m.key ^= 1u << 31;
	hears_next(&m);
	ck_assert_uint_eq(ends[1].requests, 0);
	tells(22);
	m = asked;
	m.what = VERBS_RAIL_KEY;
	m.rkey = 33;
	hears_next(&m);
	complete_all();
	once(LONG);
}
END_TEST

/* A peer that does not answer is not asked without end. */
START_TEST(asks_little)
{
	for (uint64_t i = 0; i < 2 * VERBS_KEYS; i++) {
		ck_assert_int_eq(post_key(KEY | i << 32, 0, LONG, false), 0);
		while (complete(0))
			;
	}
	ck_assert_uint_gt(ends[0].sends, 0);
	ck_assert_uint_le(ends[0].sends, VERBS_KEYS / 4);
}
END_TEST

/* The peer has read all packets of the first rail, and returned their credits. */
static void all_read(void)
{
	uint32_t count = r->rail[0].count;

	verbs_sent(ends[0].l, ends[0].l->posted);
	credit(0, count);
	ends[0].sends = 0;
}

/* Long ones to more regions than are remembered: the peer is asked once for each of them. */
START_TEST(asks_once)
{
	const unsigned int regions = VERBS_KEYS + 8, most = 2 * regions;
	const uint32_t rkey = _i ? 22 : 0;
	size_t by_second;

	for (uint64_t i = 0; i < regions; i++) {
		ck_assert_int_eq(post_key(KEY | i << 32, 0, LONG, false), 0);
		all_read();
	}
	for (unsigned int answers = 0; answers < questions && answers < most; answers++) {
		struct verbs_rail_message m = question[answers % QUESTIONS];

		m.what = VERBS_RAIL_KEY;
		m.rkey = rkey;
		hears_next(&m);
		all_read();
	}
	ck_assert_uint_eq(questions, regions);
	by_second = complete_all();
	ck_assert(rkey ? by_second >= regions * LONG / 4 : !by_second);
	ck_assert(list_empty(&r->operations));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails_keys");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup_keyed, teardown);
	tcase_add_test(c, long_ones_divide);
	tcase_add_test(c, one_device_knows);
	tcase_add_test(c, short_ones_keep_to_one);
	tcase_add_test(c, short_one_waits);
	tcase_add_loop_test(c, goes_again_when_closed, 0, VERBS_RAILS);
	tcase_add_test(c, given_up_when_closed);
	tcase_add_test(c, access_is_refused);
	tcase_add_loop_test(c, flushed, 0, 2);
	tcase_add_test(c, cannot_post);
	tcase_add_test(c, forgets_keys);
	tcase_add_test(c, ignores_answers);
	tcase_add_test(c, asks_little);
	tcase_add_loop_test(c, asks_once, 0, 2);
	suite_add_tcase(s, c);
	return suite_run(s);
}
