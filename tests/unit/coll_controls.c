/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that joins and leaves of groups work when control messages come twice, too early, or are
 * lost.
 */
#include "fake_group.h"

#include <sys/sysinfo.h>

#include "base/clock.h"
#include "coll/group/group.h"

#define KEPT                                                                                       \
	4096 /* messages kept of one peer about joins not begun here; as many of ends of groups */
#define LATE_MS 150 /* ms after which a waiting member has sent PROBE */

static void teardown(void)
{
	fake_shut();
}

static void wait_ms(int ms)
{
	for (int i = 0; i < ms; i += 10) {
		poll(NULL, 0, 10);
		worker_progress(fake.worker);
	}
}

/* Joins a group of two as its first member. */
static struct fid_mc *join_first(struct fid_av_set **set)
{
	*set = group_set((const fi_addr_t[]){our.self, fake.addr}, 2);
	return group_join(*set, false);
}

static void close_both(struct fid_mc *mc, struct fid_av_set *set)
{
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}

/* The child's UP was dropped (too many are kept): PROBE asks for it, and UP comes again. */
START_TEST(reported_again_when_asked)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	struct wire_group probe;
	struct fid_av_set *set;
	struct fid_mc *mc;

	for (up.key = 1; up.key <= KEPT; up.key++)
		group_says(up);
	mc = join_first(&set);
	up.key = ((struct group *)mc)->join.key;
	close_both(mc, set);
	up.attempt = 2;
	group_says(up); /* dropped: KEPT messages are kept */
	mc = join_first(&set);
	group_expect_stands(mc, false);
	wait_ms(LATE_MS);
	probe = group_said(WIRE_GROUP_PROBE, 0);
	ck_assert_uint_eq(probe.key, up.key);
	up.attempt = probe.attempt;
	up.id = probe.id;
	group_says(up);
	group_expect_stands(mc, true);
	close_both(mc, set);
}
END_TEST

/* A child answers each PROBE with UP, which has the id of that PROBE. */
START_TEST(tells_again)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group up = group_said(WIRE_GROUP_UP, 0), again;

	ck_assert_uint_eq(up.id, 0);
	group_says((struct wire_group){.kind = WIRE_GROUP_PROBE,
				       .rank = 0,
				       .size = 2,
				       .attempt = up.attempt,
				       .key = up.key,
				       .id = 77});
	again = group_said(WIRE_GROUP_UP, 0);
	ck_assert_uint_eq(again.id, 77);
	again.id = 0;
	ck_assert(!memcmp(&again, &up, sizeof(up)));
	group_says((struct wire_group){.kind = WIRE_GROUP_DOWN,
				       .size = 2,
				       .attempt = up.attempt,
				       .key = up.key,
				       .id = 4711});
	group_expect_stands(mc, true);
	close_both(mc, set);
}
END_TEST

/* A child's second UP, the answer to a PROBE, is not taken for the next join's. */
START_TEST(reported_twice)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);

	up.key = ((struct group *)mc)->join.key;
	wait_ms(LATE_MS);
	up.id = group_said(WIRE_GROUP_PROBE, 0).id;
	group_says((struct wire_group){
		.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1, .key = up.key});
	group_expect_stands(mc, true);
	group_says(up);
	close_both(mc, set);
	group_says(up);
	mc = join_first(&set);
	group_says(up);
	group_expect_stands(mc, false);
	up.id = 0;
	group_says(up);
	group_expect_stands(mc, true);
	close_both(mc, set);
}
END_TEST

/* ---- Processors and memory ------------------------------------------------------------------ */

/* All members get the least number of processors of any member's host. */
START_TEST(fewest_processors)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	uint32_t ours = (uint32_t)get_nprocs();
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);

	up.cpus = _i ? (uint16_t)(ours + 1) : 0;
	up.shares = (uint16_t)_i;
	up.key = ((struct group *)mc)->join.key;
	group_says(up);
	group_expect_stands(mc, true);
	ck_assert_uint_eq(group_said(WIRE_GROUP_DOWN, 0).cpus, _i ? ours : 0);
	ck_assert_uint_eq(((struct group *)mc)->cpus, _i ? ours : 0);
	ck_assert_uint_eq(group_said(WIRE_GROUP_DOWN, 0).shares, (unsigned int)_i);
	ck_assert_uint_eq(((struct group *)mc)->shares, _i);
	close_both(mc, set);
}
END_TEST

/* A child sends its number of processors and adopts the number in DOWN. */
START_TEST(given_processors)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group up = group_said(WIRE_GROUP_UP, 0);

	ck_assert_uint_eq(up.cpus, (uint32_t)get_nprocs());
	ck_assert_uint_eq(up.shares, 1);
	group_says((struct wire_group){.kind = WIRE_GROUP_DOWN,
				       .size = 2,
				       .attempt = up.attempt,
				       .cpus = 3,
				       .key = up.key,
				       .id = 4711});
	group_expect_stands(mc, true);
	ck_assert_uint_eq(((struct group *)mc)->cpus, 3);
	ck_assert(!((struct group *)mc)->shares);
	close_both(mc, set);
}
END_TEST

/* ---- Leaving -------------------------------------------------------------------------------- */

/* Joins a group with the peer as second member; the join completes. *id is the group's id. */
static struct fid_mc *stand(struct fid_av_set **set, uint64_t *id)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	struct fid_mc *mc = join_first(set);

	up.key = ((struct group *)mc)->join.key;
	up.attempt = ((struct group *)mc)->join.attempt;
	group_says(up);
	group_expect_stands(mc, true);
	*id = group_said(WIRE_GROUP_DOWN, 0).id;
	return mc;
}

static void post_broadcast(struct fid_mc *mc, fi_addr_t root, uint64_t *word)
{
	ck_assert_int_eq(
		fi_broadcast(fake.ep, word, 1, NULL, fi_mc_addr(mc), root, FI_UINT64, 0, word), 0);
}

/* Messages sent before LEAVE are received; a collective that needs a later one fails. */
START_TEST(last_word)
{
	uint64_t words[2] = {0}, sent = 42, id;
	struct fid_av_set *set;
	struct fid_mc *mc = stand(&set, &id);

	post_broadcast(mc, our.self, &sent);
	ck_assert_uint_eq(fake_last(0)->data, id);
	fake_expect(&sent, FI_COLLECTIVE);
	group_sends(id, group_tag(2, 1, 1), &sent, sizeof(sent));
	group_says((struct wire_group){.kind = WIRE_GROUP_LEAVE, .rank = 1, .size = 2, .id = id});
	post_broadcast(mc, fake.addr, &words[0]);
	fake_expect(&words[0], FI_COLLECTIVE);
	ck_assert_uint_eq(words[0], 42);
	post_broadcast(mc, fake.addr, &words[1]);
	fake_expect_error(&words[1], FI_ECONNABORTED);
	close_both(mc, set);
}
END_TEST

/* The peer leaves without having answered our RTS: the collective fails. */
START_TEST(rts_in_vain)
{
	static uint64_t big[4 * FAKE_EAGER];
	struct fid_av_set *set;
	struct fid_mc *mc;
	uint64_t id;

	mc = stand(&set, &id);
	ck_assert_int_eq(fi_broadcast(fake.ep, big, sizeof(big) / sizeof(big[0]), NULL,
				      fi_mc_addr(mc), our.self, FI_UINT64, 0, big),
			 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_RTS);
	fake_expect_nothing();
	group_says((struct wire_group){.kind = WIRE_GROUP_LEAVE, .rank = 1, .size = 2, .id = id});
	fake_expect_error(big, FI_ECONNABORTED);
	close_both(mc, set);
}
END_TEST

/*
 * The group is closed with an unanswered RTS of the peer: ABORT tells the reason, then ATS fails
 * the send.
 */
START_TEST(rts_not_taken)
{
	struct wire_rts rts = {.len = 8, .count = 1, .segment = {{.addr = 4096, .len = 8}}};
	struct wire_group said;
	struct fid_av_set *set;
	struct fid_mc *mc;
	uint64_t id;

	mc = stand(&set, &id);
	fake_says(WIRE_HEAD(WIRE_RTS, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 99),
		  WIRE_GROUP_TAG(1, 0, 1), id, &rts,
		  offsetof(struct wire_rts, segment) + sizeof(rts.segment[0]));
	ck_assert_uint_gt(fake.peer->rx.kept, 0);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_uint_eq(fake.peer->rx.kept, 0);
	ck_assert_uint_eq(wire_op(fake_last(0)->head), WIRE_ATS);
	ck_assert_uint_eq(wire_id(fake_last(0)->head), 99);
	ck_assert_uint_gt(fake_last(0)->tag, 0);
	said = group_said(WIRE_GROUP_ABORT,
			  1); /* before ATS, or the peer would take ATS's error for the reason */
	ck_assert(said.id == id && said.error == FI_ECONNABORTED);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* The peer leaves the group and dies: a collective whose messages all came completes. */
START_TEST(dies_after_leaving)
{
	uint64_t sent = 42, word = 0, id;
	struct fid_av_set *set;
	struct fid_mc *mc = stand(&set, &id);

	group_sends(id, group_tag(1, 1, 1), &sent, sizeof(sent));
	group_says((struct wire_group){.kind = WIRE_GROUP_LEAVE, .rank = 1, .size = 2, .id = id});
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	worker_progress(fake.worker);
	ck_assert_int_eq(((struct group *)mc)->err, 0);
	post_broadcast(mc, fake.addr, &word);
	fake_expect(&word, FI_COLLECTIVE);
	ck_assert_uint_eq(word, 42);
	close_both(mc, set);
	fake.closed = 0;
}
END_TEST

/*
 * The peer disconnects with messages unread: a collective waits for them for a bounded time, then
 * fails.
 */
START_TEST(goes_unread)
{
	struct fi_cq_tagged_entry none;
	uint64_t word = 0, id;
	struct fid_av_set *set;
	struct fid_mc *mc = stand(&set, &id);

	fake.peer->conn.end = END_CLOSED;
	contact_failed(&fake.peer->conn, FI_ESHUTDOWN);
	/* As if another process's unfinished packet were before them. */
	fake.peer->conn.unread_ms = clock_coarse_ms();
	post_broadcast(mc, fake.addr, &word);
	wait_ms(COLL_LATER_MS / 2);
	fake_expect_nothing();
	wait_ms(8 * COLL_LATER_MS);
	ck_assert_int_eq(fi_cq_read(fake.cq, &none, 1), -FI_EAVAIL);
	ck_assert_int_gt(((struct group *)mc)->err, 0);
	close_both(mc, set);
	fake.closed = 0;
}
END_TEST

/* HERE asks whether we are in the group: answered with LEAVE only after we left. */
START_TEST(asked_whether_here)
{
	struct wire_group here = {.kind = WIRE_GROUP_HERE, .rank = 0, .size = 2}, said;
	struct fid_av_set *set;
	unsigned int count;
	struct fid_mc *mc = stand(&set, &here.id);

	here.key = ((struct group *)mc)->join.key;
	count = fake.count;
	group_says(here);
	ck_assert_uint_eq(fake.count, count);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	said = group_said(WIRE_GROUP_LEAVE, 0);
	ck_assert(said.id == here.id && said.rank == 0);
	count = fake.count;
	group_says(here);
	ck_assert_uint_eq(fake.count, count + 1);
	said = group_said(WIRE_GROUP_LEAVE, 0);
	ck_assert(said.id == here.id && said.rank == 0);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/*
 * HERE during another join of the same set: LEAVE for the group we left, no answer for an unknown
 * id.
 */
START_TEST(asked_while_joining)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group up = group_said(WIRE_GROUP_UP, 0), said;
	struct wire_group down = {.kind = WIRE_GROUP_DOWN,
				  .size = 2,
				  .attempt = up.attempt,
				  .key = up.key,
				  .id = 4711};
	struct wire_group here = {
		.kind = WIRE_GROUP_HERE, .rank = 1, .size = 2, .key = up.key, .id = 4711};
	unsigned int count;

	group_says(down);
	group_expect_stands(mc, true);
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	mc = group_join(set, false);
	group_said(WIRE_GROUP_UP, 0);
	group_says(here);
	said = group_said(WIRE_GROUP_LEAVE, 0);
	ck_assert(said.id == here.id && said.rank == 1);
	count = fake.count;
	here.id = 4712;
	group_says(here); /* this id may become the id of the pending join */
	ck_assert_uint_eq(fake.count, count);
	close_both(mc, set);
}
END_TEST

/* HERE before we sent UP for a join: answered with LEAVE, as no group can exist yet. */
START_TEST(asked_before_telling)
{
	struct wire_group here = {.kind = WIRE_GROUP_HERE, .rank = 0, .size = 2, .id = 4711};
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);

	here.key = ((struct group *)mc)->join.key;
	group_says(here);
	ck_assert_uint_eq(group_said(WIRE_GROUP_LEAVE, 0).id, 4711);
	close_both(mc, set);
}
END_TEST

/* The peer has left or aborted the group before its DOWN came to us. */
static const struct {
	enum wire_group_kind kind;
	uint32_t said;
	int err;
} ends[] = {{WIRE_GROUP_LEAVE, 0, FI_ECONNABORTED},
	    {WIRE_GROUP_ABORT, FI_EIO, FI_EIO},
	    {WIRE_GROUP_ABORT, FI_ECANCELED, FI_ECONNABORTED}};

START_TEST(end_before_begin)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group up = group_said(WIRE_GROUP_UP, 0), end = up, down = up;
	uint64_t word = 0;
	ssize_t ret;

	end.kind = ends[_i].kind;
	end.error = ends[_i].said;
	end.rank = down.rank = 0;
	end.id = down.id = 4711;
	down.kind = WIRE_GROUP_DOWN;
	group_says(end);
	ck_assert_uint_eq(our.coll->kept_count[1], 1);
	group_says(down);
	ck_assert_uint_eq(our.coll->kept_count[1], 0);
	group_expect_stands(mc, true);
	ret = fi_broadcast(fake.ep, &word, 1, NULL, fi_mc_addr(mc), fake.addr, FI_UINT64, 0, &word);
	if (ends[_i].kind == WIRE_GROUP_ABORT)
		ck_assert_int_eq(ret, -ends[_i].err); /* the call fails at once */
	else
		fake_expect_error(&word, ends[_i].err);
	ck_assert_int_lt(fi_barrier(fake.ep, fi_mc_addr(mc), NULL), 0);
	close_both(mc, set);
}
END_TEST

/*
 * The group is closed with a collective under way: ours is cancelled, the peer's aborted (not
 * cancelled).
 */
START_TEST(closed_amidst)
{
	uint64_t word = 0, id;
	struct fid_av_set *set;
	struct fid_mc *mc = stand(&set, &id);
	struct wire_group here = {.kind = WIRE_GROUP_HERE, .rank = 0, .size = 2, .id = id}, said;
	unsigned int count;

	post_broadcast(mc, fake.addr, &word);
	count = fake.count;
	ck_assert_int_eq(fi_close(&mc->fid), 0);
	ck_assert_uint_gt(fake.count, count);
	said = group_said(WIRE_GROUP_ABORT, fake.count - 1 - count);
	ck_assert(said.id == id && said.error == FI_ECONNABORTED);
	fake_expect_error(&word, FI_ECANCELED);
	group_says(here);
	ck_assert_uint_eq(group_said(WIRE_GROUP_LEAVE, 0).id, id);
	/* DOWN for a join that we gave up is answered with ABORT. */
	group_says((struct wire_group){.kind = WIRE_GROUP_DOWN, .size = 2, .key = 1, .id = 4712});
	ck_assert_uint_eq(group_said(WIRE_GROUP_ABORT, 0).error, FI_ECONNABORTED);
	ck_assert_int_eq(fi_close(&set->fid), 0);
}
END_TEST

/* Messages kept for a join are freed when the join ends. */
START_TEST(kept_for_nothing)
{
	struct fid_av_set *set = group_set((const fi_addr_t[]){fake.addr, our.self}, 2);
	struct fid_mc *mc = group_join(set, false);
	struct wire_group end = group_said(WIRE_GROUP_UP, 0);

	end.kind = WIRE_GROUP_LEAVE;
	end.rank = 0;
	for (end.id = 100; end.id < 200; end.id++)
		group_says(end);
	ck_assert_uint_eq(our.coll->kept_count[1], 100);
	close_both(mc, set);
	ck_assert_uint_eq(our.coll->kept_count[1], 0);
	group_says(end);
	ck_assert_uint_eq(our.coll->kept_count[1], 0);
}
END_TEST

/*
 * A sleep on the event queue is interrupted from time to time while a join is pending, not after.
 */
START_TEST(sleep_after_join)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);
	struct fid *fid = &fake.eq->fid;
	struct pollfd p = {.events = POLLIN};

	ck_assert_int_eq(fi_control(fid, FI_GETWAIT, &p.fd), 0);
	while (fi_trywait(fake.fabric, &fid, 1) != 0)
		;
	ck_assert_int_eq(poll(&p, 1, 5000), 1);
	up.key = ((struct group *)mc)->join.key;
	group_says(up);
	group_expect_stands(mc, true);
	group_expect_stands(mc, false);
	while (fi_trywait(fake.fabric, &fid, 1) != 0)
		;
	ck_assert_int_eq(poll(&p, 1, 300), 0);
	close_both(mc, set);
}
END_TEST

/*
 * The peer connected, but had closed its socket when we accepted: no event tells that the peer is
 * gone.
 */
static void comes_in_vain(void)
{
	contact_not_taken(&fake.peer->conn, FI_ECONNRESET);
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0;
	wait_ms(5 * LATE_MS);
}

START_TEST(join_of_one_who_came_in_vain)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);
	uint32_t event;

	comes_in_vain();
	ck_assert_int_eq(fi_eq_read(fake.eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL);
	ck_assert_int_gt(fi_eq_readerr(fake.eq, &err, 0), 0);
	ck_assert_ptr_eq(err.fid, &mc->fid);
	ck_assert_int_eq(err.err, FI_ECONNREFUSED);
	close_both(mc, set);
}
END_TEST

START_TEST(collective_with_one_who_came_in_vain)
{
	struct wire_group up = {.kind = WIRE_GROUP_UP, .rank = 1, .size = 2, .attempt = 1};
	struct fid_av_set *set;
	struct fid_mc *mc = join_first(&set);

	up.key = ((struct group *)mc)->join.key;
	group_says(up);
	group_expect_stands(mc, true);
	ck_assert_int_eq(fi_barrier(fake.ep, fi_mc_addr(mc), &up), 0);
	fake_expect_nothing();
	comes_in_vain();
	fake_expect_error(&up, FI_ECONNREFUSED);
	close_both(mc, set);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("coll_controls");
	TCase *words = tcase_create("words");

	tcase_add_checked_fixture(words, group_setup, teardown);
	tcase_add_test(words, reported_again_when_asked);
	tcase_add_test(words, tells_again);
	tcase_add_test(words, reported_twice);
	tcase_add_loop_test(words, fewest_processors, 0, 2);
	tcase_add_test(words, given_processors);
	tcase_add_test(words, last_word);
	tcase_add_test(words, rts_in_vain);
	tcase_add_test(words, rts_not_taken);
	tcase_add_test(words, dies_after_leaving);
	tcase_add_test(words, goes_unread);
	tcase_add_test(words, asked_whether_here);
	tcase_add_test(words, asked_while_joining);
	tcase_add_test(words, asked_before_telling);
	tcase_add_loop_test(words, end_before_begin, 0, sizeof(ends) / sizeof(ends[0]));
	tcase_add_test(words, join_of_one_who_came_in_vain);
	tcase_add_test(words, collective_with_one_who_came_in_vain);
	tcase_add_test(words, closed_amidst);
	tcase_add_test(words, kept_for_nothing);
	tcase_add_test(words, sleep_after_join);
	suite_add_tcase(suite, words);
	return suite_run(suite);
}
