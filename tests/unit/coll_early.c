/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which messages for groups not joined here yet are kept, how many, and for how long. */
#include "fake_group.h"

#include "coll/group/group.h"

#define BYTES (3u << 20) /* bytes of a message */
#define COUNT (WIRE_KEPT_MAX / BYTES)

static unsigned char bytes[BYTES];

static void setup(void)
{
	group_setup();
	fake.link.packet_max = 2 * BYTES;
}

static void teardown(void)
{
	fake_shut();
}

/* Makes a set for a managed group of three. *id is the id that the group will have when joined. */
static struct fid_av_set *set_of_three(uint64_t *id)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){our.self, fake.addr, our.nobody}, 3);
	struct fid_mc *mc = group_join(set, true);

	group_expect_stands(mc, true);
	*id = managed_next(((struct group *)mc)->id);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	return set;
}

static void post_broadcast(struct fid_mc *mc, fi_addr_t root, uint64_t *word)
{
	ck_assert_int_eq(
		fi_broadcast(fake.ep, word, 1, NULL, fi_mc_addr(mc), root, FI_UINT64, 0, word), 0);
}

/* A member's early messages count if sent under its own rank, not under another member's. */
START_TEST(in_whose_name)
{
	uint64_t word = 0, good = 42, forged = 666, id;
	struct fid_av_set *set = set_of_three(&id);
	struct fid_mc *mc;

	group_sends(id, group_tag(1, 1, 1), &good, sizeof(good));
	group_sends(id, group_tag(2, 2, 2), &forged, sizeof(forged));
	group_sends(id, group_tag(2, 2, 0), &forged, sizeof(forged));
	group_sends(id, group_tag(2, 2, 3), &forged, sizeof(forged));
	mc = group_join(set, true);
	group_expect_stands(mc, true);
	ck_assert_uint_eq(((struct group *)mc)->id, id);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	post_broadcast(mc, fake.addr, &word);
	fake_expect(&word, FI_COLLECTIVE);
	ck_assert_uint_eq(word, good);
	word = 0;
	post_broadcast(mc, our.nobody, &word);
	fake_expect_nothing();
	ck_assert_uint_eq(word, 0);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
}
END_TEST

/* Messages for a group that was left are dropped and answered with ABORT. */
START_TEST(of_the_past)
{
	uint64_t word = 0, id;
	struct fid_av_set *set = set_of_three(&id);
	struct wire_group said;

	group_sends(id - 1, WIRE_GROUP_TAG(1, 0, 1), &word, sizeof(word));
	said = group_said(WIRE_GROUP_ABORT, 0);
	ck_assert_uint_eq(said.id, id - 1);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	group_sends(4711, WIRE_GROUP_TAG(1, 0, 1), &word, sizeof(word));
	said = group_said(WIRE_GROUP_ABORT, 0);
	ck_assert_uint_eq(said.id, 4711);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* Messages that a pending join may need are kept until the join fails; RTS are then answered. */
START_TEST(for_a_join)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct {
		struct wire_rts rts;
	} o = {{.len = 8, .count = 1, .segment = {{.addr = 4096, .len = 8}}}};
	uint64_t word = 0;
	unsigned int count;

	group_sends(4711, WIRE_GROUP_TAG(1, 0, 1), &word, sizeof(word)); /* rank 1 is ourselves */
	ck_assert_uint_eq(group_said(WIRE_GROUP_ABORT, 0).id, 4711);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	group_sends(4711, WIRE_GROUP_TAG(1, 0, 0), &word, sizeof(word));
	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 99),
		  WIRE_GROUP_TAG(2, 0, 0), 4711, &o,
		  offsetof(struct wire_rts, segment) + sizeof(struct wire_segment));
	ck_assert_uint_gt(our.coll->early.unexpected_bytes, 0);
	ck_assert_uint_eq(fake.peer->rx.kept, our.coll->early.unexpected_bytes);
	count = fake.count;
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	ck_assert_uint_eq(fake.count, count + 4);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_ATS);
	ck_assert_uint_eq(wire_id(fake_last(0)->head), 99);
	ck_assert_uint_eq(fake_last(0)->tag, FI_ECANCELED);
	ck_assert_uint_eq(group_said(WIRE_GROUP_ABORT, 1).id, 4711);
	ck_assert_uint_eq(group_said(WIRE_GROUP_ABORT, 2).id, 4711);
	ck_assert_uint_eq(group_said(WIRE_GROUP_FAIL, 3).size, 2);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* ---- Limits ---------------------------------------------------------------------------------- */

/* Group messages without a tag or a group id are dropped: no receive could match them. */
static const unsigned int half[] = {0, WIRE_TAGGED, WIRE_DATA};

START_TEST(not_of_a_group)
{
	uint64_t word = 0, id, at[2];
	struct fid_av_set *set = set_of_three(&id);
	struct fid_mc *mc;

	at[0] = managed_next(id);
	mc = group_join(set, true);
	group_expect_stands(mc, true);
	at[1] = ((struct group *)mc)->id;
	for (int i = 0; i < 2; i++)
		fake_says(WIRE_HEAD(WIRE_MSG, half[_i], WIRE_RX_GROUP, 0), group_tag(1, 1, 1),
			  at[i], &word, sizeof(word));
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	ck_assert_uint_eq(((struct group *)mc)->rx.unexpected_bytes, 0);
	fake_says(WIRE_HEAD(WIRE_MSG, half[_i] | WIRE_ACK_MATCH, WIRE_RX_GROUP, 7),
		  group_tag(1, 1, 1), at[0], &word, sizeof(word));
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_ATS);
	ck_assert_uint_eq(wire_id(fake_last(0)->head), 7);
	ck_assert_uint_eq(fake_last(0)->tag, FI_EOPNOTSUPP);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* Early messages cause no XOFF. Beyond the limit the peer is disconnected, its messages freed. */
START_TEST(too_many)
{
	uint64_t id;
	struct fid_av_set *set = set_of_three(&id);
	unsigned int count = fake.count;
	size_t sent = 0;

	for (unsigned int i = 1; fake.peer->conn.state == PEER_CONNECTED; i++) {
		ck_assert_uint_le(sent, WIRE_KEPT_MAX);
		ck_assert_uint_eq(fake.count, count);
		group_sends(id, WIRE_GROUP_TAG(i, 0, 1), bytes, BYTES);
		sent += BYTES;
	}
	ck_assert_uint_gt(sent, WIRE_KEPT_MAX - BYTES);
	ck_assert_int_eq(fake.closed, 1);
	ck_assert_uint_eq(our.coll->early.unexpected_bytes, 0);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	fake.closed = 0;
}
END_TEST

/* Early messages of lost peers stay, up to a limit. */
static const struct {
	unsigned int messages;
	bool stays;
} left[] = {{1, true}, {COUNT - 1, false}};

START_TEST(sender_goes)
{
	uint64_t id;
	struct fid_av_set *set = set_of_three(&id);
	struct rx *early = &our.coll->early;

	ck_assert_uint_gt(early->unexpected_max, 2 * BYTES);
	ck_assert_uint_lt(early->unexpected_max, (COUNT - 1) * BYTES);
	for (unsigned int i = 1; i <= left[_i].messages; i++)
		group_sends(id, WIRE_GROUP_TAG(i, 0, 1), bytes, BYTES);
	ck_assert_uint_gt(early->unexpected_bytes, left[_i].messages * BYTES);
	contact_failed(&fake.peer->conn, FI_ESHUTDOWN);
	ck_assert_int_eq(early->unexpected_bytes > 0, left[_i].stays);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	if (left[_i].stays) {
		struct fid_mc *mc = group_join(set, true);

		group_expect_stands(mc, true);
		ck_assert_uint_eq(early->unexpected_bytes, 0);
		ck_assert_uint_gt(((struct group *)mc)->rx.unexpected_bytes, BYTES);
		ck_assert_int_eq(fi_close(&mc->fid), 0);
	}
	ck_assert_int_eq(fi_close(&set->fid), 0);
	fake.closed = 0;
}
END_TEST

/* The limit holds in a joined group too: beyond the limit the group fails. */
START_TEST(member_goes)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){our.self, fake.addr, our.nobody}, 3);
	struct fid_mc *mc = group_join(set, true);
	struct group *g = (struct group *)mc;

	group_expect_stands(mc, true);
	for (unsigned int i = 1; i <= left[_i].messages; i++)
		group_sends(g->id, WIRE_GROUP_TAG(i, 0, 1), bytes, BYTES);
	ck_assert_uint_gt(g->rx.unexpected_bytes, left[_i].messages * BYTES);
	fake.peer->conn.end = END_CLOSED;
	contact_failed(&fake.peer->conn, FI_ESHUTDOWN);
	worker_progress(fake.worker);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	ck_assert_int_eq(g->err == 0, left[_i].stays);
	ck_assert_int_eq(g->rx.unexpected_bytes > 0, left[_i].stays);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
	fake.closed = 0;
}
END_TEST

/* A peer that obeys XOFF may send messages of collectives, which XOFF does not cover. */
START_TEST(while_it_pauses)
{
	unsigned int most = (unsigned int)(WIRE_KEPT_MAX / BYTES) * 3 / 5;
	uint64_t id;
	struct fid_av_set *set = set_of_three(&id);

	while (!fake.peer->rx.xoff_sent)
		fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, bytes, BYTES);
	for (unsigned int i = 0; i < most; i++) {
		fake_says(WIRE_HEAD(WIRE_MSG, 0, 0, 0), 0, 0, bytes,
			  BYTES); /* sent before XOFF arrived */
		group_sends(id, WIRE_GROUP_TAG(i, 0, 1), bytes, BYTES);
	}
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_early");
	TCase *whose = tcase_create("whose"), *much = tcase_create("much");

	tcase_add_checked_fixture(whose, setup, teardown);
	tcase_add_test(whose, in_whose_name);
	tcase_add_test(whose, of_the_past);
	tcase_add_test(whose, for_a_join);
	tcase_add_checked_fixture(much, setup, teardown);
	tcase_set_timeout(much, 100);
	tcase_add_loop_test(whose, not_of_a_group, 0, sizeof(half) / sizeof(half[0]));
	tcase_add_test(much, too_many);
	tcase_add_loop_test(much, sender_goes, 0, sizeof(left) / sizeof(left[0]));
	tcase_add_loop_test(much, member_goes, 0, sizeof(left) / sizeof(left[0]));
	tcase_add_test(much, while_it_pauses);
	suite_add_tcase(suite, whose);
	suite_add_tcase(suite, much);
	return suite_run(suite);
}
