/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that early messages of a group are received in order, of any number and length. */
#include "fake_group.h"

#include "coll/group/group.h"

#define AHEAD (2 * EARLY_QUEUE_MESSAGES + 3) /* collectives by which the peer is ahead */

static struct fid_av_set *set;
static struct fid_mc *mc;
static struct group *group;

static void setup(void)
{
	group_setup();
	set = group_set((const fi_addr_t[]){our.self, fake.addr}, 2);
	mc = group_join(set, true);
	group_expect_stands(mc, true);
	group = (struct group *)mc;
}

static void teardown(void)
{
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	fake_shut();
}

static void post(uint64_t *to, size_t count)
{
	ck_assert_int_eq(
		fi_broadcast(fake.ep, to, count, NULL, fi_mc_addr(mc), fake.addr, FI_UINT64, 0, to),
		0);
}

/* Returns the tag of the peer's broadcast of `count` uint64. */
static uint64_t tag_of(uint64_t seq, size_t count)
{
	struct op_args a = {
		.kind = FI_BROADCAST, .type = FI_UINT64, .op = FI_NOOP, .count = count, .root = 1};

	return WIRE_GROUP_TAG(seq, op_what(&a), 1);
}

/* Returns the length of message `n`: each `every`th is too long for the early queue; 0: none. */
static size_t words_of(unsigned int n, int every)
{
	return every && n % (unsigned int)every == 0 ? EARLY_QUEUE_BYTES / sizeof(uint64_t) + 1 : 1;
}

/*
 * More messages than the queue holds, then received in order: later messages do not overtake kept
 * ones.
 */
START_TEST(far_ahead)
{
	static uint64_t got[AHEAD][EARLY_QUEUE_BYTES / sizeof(uint64_t) + 1];
	uint64_t sent[EARLY_QUEUE_BYTES / sizeof(uint64_t) + 1] = {0};
	unsigned int taken = 0;

	for (unsigned int n = 0; n < AHEAD; n++) {
		sent[0] = 100 + n;
		group_sends(group->id, tag_of(n + 1, words_of(n, _i)), sent,
			    words_of(n, _i) * sizeof(uint64_t));
		if (n < AHEAD / 2)
			continue;
		post(got[taken], words_of(taken, _i));
		fake_expect(got[taken], FI_COLLECTIVE);
		ck_assert_uint_eq(got[taken][0], 100 + taken);
		taken++;
	}
	for (; taken < AHEAD; taken++) {
		post(got[taken], words_of(taken, _i));
		fake_expect(got[taken], FI_COLLECTIVE);
		ck_assert_uint_eq(got[taken][0], 100 + taken);
	}
	ck_assert_uint_eq(group->early.count, 0);
	ck_assert_uint_eq(group->rx.unexpected_bytes, 0);
}
END_TEST

/* Several messages of one collective are received in the order sent. */
START_TEST(two_of_one)
{
	uint64_t first = 1, second = 2;
	struct early_message *s;

	group_sends(group->id, tag_of(1, 1), &first, sizeof(first));
	group_sends(group->id, tag_of(1, 1), &second, sizeof(second));
	ck_assert_uint_eq(group->early.count, 2);
	s = early_queue_find(&group->early, tag_of(1, 1));
	ck_assert_ptr_nonnull(s);
	ck_assert_mem_eq(s->payload, &first, sizeof(first));
	early_queue_drop(&group->early, s);
	s = early_queue_find(&group->early, tag_of(1, 1));
	ck_assert_ptr_nonnull(s);
	ck_assert_mem_eq(s->payload, &second, sizeof(second));
	ck_assert_ptr_null(early_queue_find(&group->early, tag_of(2, 1)));
	early_queue_drop(&group->early, s);
	ck_assert_ptr_null(early_queue_find(&group->early, tag_of(1, 1)));
}
END_TEST

/* A short message behind a long one waits behind it in the unexpected queue. */
START_TEST(behind_a_long_one)
{
	uint64_t sent[EARLY_QUEUE_BYTES / sizeof(uint64_t) + 1] = {0};

	group_sends(group->id, tag_of(1, 1), sent, sizeof(sent));
	group_sends(group->id, tag_of(1, 1), sent, sizeof(sent[0]));
	ck_assert_uint_eq(group->early.count, 0);
}
END_TEST

/* The peer runs another collective than we do, with another length or the same. */
START_TEST(another_collective)
{
	uint64_t sent[2] = {1, 2}, got = 0;
	uint64_t tag = _i ? tag_of(1, 2) : WIRE_GROUP_TAG(1, tag_of(1, 1) >> 24 ^ 1, 1);

	group_sends(group->id, tag, sent, _i ? sizeof(sent) : sizeof(sent[0]));
	ck_assert_uint_eq(group->early.count, 1);
	post(&got, 1);
	fake_expect_error(&got, FI_EINVAL);
}
END_TEST

/* A message that needs an answer on match is not kept in the early queue: it is not matched yet. */
START_TEST(to_be_answered)
{
	uint64_t sent = 42, got = 0;

	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA | WIRE_ACK_MATCH, WIRE_RX_GROUP, 99),
		  tag_of(1, 1), group->id, &sent, sizeof(sent));
	ck_assert_uint_eq(group->early.count, 0);
	post(&got, 1);
	fake_expect(&got, FI_COLLECTIVE);
	ck_assert_uint_eq(got, 42);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_ATS);
	ck_assert_uint_eq(wire_id(fake_last(0)->head), 99);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_early_queue");
	TCase *tcase = tcase_create("early_queue");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, far_ahead, 0, 4);
	tcase_add_test(tcase, two_of_one);
	tcase_add_test(tcase, behind_a_long_one);
	tcase_add_loop_test(tcase, another_collective, 0, 2);
	tcase_add_test(tcase, to_be_answered);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
