/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that early control messages about groups share one budget fairly: peers that fill it, leave
 * and come back cannot keep a member's join out. Proves who counts as a member once a join begins.
 */
#include "fake_group.h"

#include <stdio.h>

#include "coll/group/group.h"

#define MAX   64u /* kept at the least */
#define SHARE 4u  /* of one peer */
#define KEYS  1000u

static void teardown(void)
{
	fake_shut();
}

static size_t kept(void)
{
	return our.coll->kept_count[0] + our.coll->kept_count[1];
}

static struct peer *peer_named(const char *text)
{
	struct peer *peer;
	struct addr name;

	ck_assert_int_eq(addr_parse(&name, text), 0);
	peer = peer_of(contact_by_name(&fake.worker->conn, &name, 0));
	ck_assert_ptr_nonnull(peer);
	addr_free(&name);
	return peer;
}

static struct peer *peer_number(unsigned int n)
{
	char text[64];

	snprintf(text, sizeof(text), "fi_shm://other-%u", n);
	return peer_named(text);
}

static void says(struct peer *peer, struct wire_group word)
{
	struct packet p = {
		.head = WIRE_HEAD(WIRE_GROUP, 0, 0, 0), .payload = &word, .len = sizeof(word)};

	rx_deliver(&fake.worker->conn.opener, pool_id(peer), &p);
}

/* The peer reports in `count` joins that nobody here begins, or ends groups. */
static void says_many(struct peer *peer, unsigned int count, enum wire_group_kind kind)
{
	struct wire_group word = {.kind = kind, .rank = 1, .size = 2, .attempt = 1};

	for (word.key = 1; word.key <= count; word.key++) {
		word.id = kind == WIRE_GROUP_UP ? 0 : MANAGED_ID | word.key << 16 | 1;
		says(peer, word);
	}
}

/* Returns the key of the group of our endpoint and `member`. *set is its set. */
static uint64_t key_with(fi_addr_t member, struct fid_av_set **set)
{
	struct fid_mc *mc;
	uint64_t key;

	*set = group_set((const fi_addr_t[]){our.self, member}, 2);
	mc = group_join(*set, false);
	key = ((struct group *)mc)->join.key;
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	return key;
}

static struct wire_group up_of(uint64_t key)
{
	return (struct wire_group){
		.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 2, .key = key};
}

/* The join with the fake peer is complete at once: its report was kept. */
static void expect_kept(struct fid_av_set *set)
{
	struct fid_mc *mc = group_join(set, false);

	group_expect_stands(mc, true);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}

/* ---- The budget ------------------------------------------------------------------------------ */

/* A peer has its share and no more, of both kinds together, and a new one after it came back. */
START_TEST(share_of_a_peer)
{
	enum wire_group_kind first = _i ? WIRE_GROUP_LEAVE : WIRE_GROUP_UP;
	struct peer *other = peer_number(0);

	says_many(fake.peer, KEYS, first);
	ck_assert_uint_eq(kept(), SHARE);
	ck_assert_uint_eq(our.coll->kept_count[_i], SHARE);
	says_many(fake.peer, KEYS, _i ? WIRE_GROUP_UP : WIRE_GROUP_LEAVE);
	ck_assert_uint_eq(kept(), SHARE);
	ck_assert_uint_eq(fake.worker->joins_refused, 2 * KEYS - SHARE);
	says_many(other, 1, WIRE_GROUP_LEAVE);
	ck_assert_uint_eq(kept(), SHARE + 1);
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	ck_assert_uint_eq(kept(), 1);
	fake_connect();
	says_many(fake.peer, KEYS, first);
	ck_assert_uint_eq(kept(), SHARE + 1);
	fake.closed = 0;
}
END_TEST

/* Many peers fill the budget before and after a member has reported: its report stays. */
START_TEST(many_peers)
{
	struct fid_av_set *set;
	struct wire_group up = up_of(key_with(fake.addr, &set));
	unsigned int n = 0;

	for (; n < MAX; n++)
		says_many(peer_number(n), KEYS, _i ? WIRE_GROUP_LEAVE : WIRE_GROUP_UP);
	ck_assert_uint_eq(kept(), MAX);
	group_says(up);
	ck_assert_uint_eq(kept(), MAX);
	/* Each of these has as many as the member at the most. */
	for (; n < MAX + 20; n++)
		says_many(peer_number(n % MAX), KEYS, WIRE_GROUP_UP);
	ck_assert_uint_eq(kept(), MAX);
	expect_kept(set);
}
END_TEST

/* One peer comes again and again, under the same name or a new one. */
START_TEST(comes_again)
{
	struct fid_av_set *set;
	struct wire_group up = up_of(key_with(fake.addr, &set));

	group_says(up);
	for (unsigned int n = 0; n < 10 * MAX; n++) {
		struct peer *peer = peer_number(_i ? n : 0);

		says_many(peer, KEYS, WIRE_GROUP_UP);
		ck_assert_uint_eq(kept(), SHARE + 1);
		peer->conn.state = PEER_CONNECTED;
		contact_failed(&peer->conn, FI_ECONNRESET);
		ck_assert_uint_eq(kept(), 1);
	}
	expect_kept(set);
}
END_TEST

/* What a disconnected peer had left unread is kept only as long as the peer. */
START_TEST(peer_is_freed)
{
	struct peer *peer = peer_number(0);

	says_many(peer, KEYS, WIRE_GROUP_UP);
	ck_assert_uint_eq(kept(), SHARE);
	contact_free(&peer->conn);
	ck_assert_uint_eq(kept(), 0);
}
END_TEST

/* A peer that gives up a join takes its report back: neither piles up. */
START_TEST(fails_often)
{
	struct wire_group word = {.rank = 1, .size = 2, .key = 5};

	for (word.attempt = 1; word.attempt < KEYS; word.attempt++) {
		word.kind = WIRE_GROUP_UP;
		group_says(word);
		word.kind = WIRE_GROUP_FAIL;
		group_says(word);
		ck_assert_uint_eq(kept(), 1);
	}
	ck_assert_uint_eq(fake.worker->joins_refused, 0);
}
END_TEST

/* ---- Members --------------------------------------------------------------------------------- */

/* FAIL before the join counts if a member has said it. */
START_TEST(failed_before)
{
	struct fid_av_set *set;
	struct wire_group fail = up_of(key_with(fake.addr, &set));
	struct fid_mc *mc;

	fail.kind = WIRE_GROUP_FAIL;
	fail.attempt = 7;
	says(_i ? fake.peer : peer_get(fake.worker, our.nobody), fail);
	mc = group_join(set, false);
	ck_assert_uint_eq(((struct group *)mc)->join.attempt, _i ? 8 : 2);
	ck_assert_uint_eq(fake.worker->nonmember_refused, !_i);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* A member connects and reports before its address is inserted here. */
START_TEST(inserted_late)
{
	struct peer *late = peer_named("fi_shm://late");
	struct wire_group fail;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;

	ck_assert_uint_eq(late->conn.addr, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://late", 1, &addr, 0, NULL), 1);
	set = group_set((const fi_addr_t[]){our.self, fake.addr, addr}, 3);
	mc = group_join(set, true);
	group_expect_stands(mc, true);
	fail = (struct wire_group){
		.kind = WIRE_GROUP_ABORT, .error = FI_EIO, .id = ((struct group *)mc)->id};
	says(peer_get(fake.worker, our.nobody), fail);
	ck_assert_int_eq(((struct group *)mc)->err, 0);
	says(late, fail);
	ck_assert_int_eq(((struct group *)mc)->err, FI_EIO);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* The end of a managed group that is not joined here yet: only its members can tell of it. */
START_TEST(managed_group_ends)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){our.self, fake.addr}, 2);
	struct fid_mc *mc = group_join(set, true);
	struct wire_group end = {.kind = WIRE_GROUP_ABORT, .rank = 1, .error = FI_EIO};

	group_expect_stands(mc, true);
	end.id = managed_next(((struct group *)mc)->id);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	says(_i ? fake.peer : peer_get(fake.worker, our.nobody), end);
	ck_assert_uint_eq(kept(), 1);
	mc = group_join(set, true);
	group_expect_stands(mc, true);
	ck_assert_uint_eq(((struct group *)mc)->id, end.id);
	ck_assert_uint_eq(kept(), 0);
	ck_assert_int_eq(((struct group *)mc)->err, _i ? FI_EIO : 0);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* A parent must not give a group the number of a managed one, of which it may be no member. */
START_TEST(number_of_another)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group down = group_said(WIRE_GROUP_UP, 0);
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	uint32_t event;

	down.kind = WIRE_GROUP_DOWN;
	down.rank = 0;
	down.id = _i ? MANAGED_ID | 1 << 16 | 1 : 0;
	group_says(down);
	ck_assert_int_eq(fi_eq_read(fake.eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	ck_assert_int_gt(fi_eq_readerr(fake.eq, &err, 0), 0);
	ck_assert_int_eq(err.err, FI_EPROTO);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_kept");
	TCase *budget = tcase_create("budget"), *members = tcase_create("members");

	setenv("FI_WEFT_UNEXPECTED_MAX", "1000", 1); /* the least is kept all the same */
	tcase_add_checked_fixture(budget, group_setup, teardown);
	tcase_add_loop_test(budget, share_of_a_peer, 0, 2);
	tcase_add_loop_test(budget, many_peers, 0, 2);
	tcase_add_loop_test(budget, comes_again, 0, 2);
	tcase_add_test(budget, peer_is_freed);
	tcase_add_test(budget, fails_often);
	tcase_add_checked_fixture(members, group_setup, teardown);
	tcase_add_loop_test(members, failed_before, 0, 2);
	tcase_add_test(members, inserted_late);
	tcase_add_loop_test(members, managed_group_ends, 0, 2);
	tcase_add_loop_test(members, number_of_another, 0, 2);
	suite_add_tcase(suite, budget);
	suite_add_tcase(suite, members);
	return suite_run(suite);
}
