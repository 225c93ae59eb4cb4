/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links over two devices (fakes here): packets that a broken rail has not confirmed go again over
 * the other one, in order, and the receiver takes each once.
 */
#include "fake_rails.h"
#include "hw/transports.h"
#include "suite.h"

/* What the peer has not confirmed goes again, in order and before anything else. */
START_TEST(goes_again)
{
	send_bytes("abcd");
	has_sent(0, "abcd", 1);
	has_sent(1, "", 0);
	credit(0, 1);
	breaks(0);
	has_sent(1, "bcd*", 2);
	send_bytes("e");
	has_sent(1, "bcd*e", 2);
}
END_TEST

/* So it does if the other rail has no space for all at once; new packets wait behind. */
START_TEST(goes_again_in_parts)
{
	send_bytes("abc");
	ends[1].l->credits = 2;
	breaks(0);
	has_sent(1, "ab", 1);
	ck_assert_int_eq(send_byte('d'), -FI_EAGAIN);
	credit(1, 1);
	has_sent(1, "abc", 1);
	ck_assert_int_eq(send_byte('d'), -FI_EAGAIN);
	credit(1, 1);
	has_sent(1, "abc*", 1);
	credit(1, 1);
	send_bytes("d");
	has_sent(1, "abc*d", 1);
}
END_TEST

/* So does the disconnect message, which needs no space. */
START_TEST(disconnects_behind)
{
	const uint64_t head = WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0);

	send_bytes("ab");
	ends[1].l->credits = 1;
	breaks(0);
	ck_assert_int_eq(link_made->ops->send(link_made, NULL, 0, 0, head, 0), 0);
	has_sent(1, "a", 1);
	ck_assert(verbs_rails_queued(&v));
	credit(1, 1);
	has_sent(1, "ab", 1);
	credit(1, 1);
	has_sent(1, "ab*!", 1);
	ck_assert(!verbs_rails_queued(&v));
}
END_TEST

/* A rail has come back: packets go over it when the other one keeps none. */
START_TEST(comes_back)
{
	send_bytes("a");
	credit(0, 1);
	breaks(0);
	has_sent(1, "*", 2);
	send_bytes("b");
	ends[0].l = make_link(0);
	verbs_rails_add(r, 0, ends[0].l, 2);
	ck_assert_int_eq(verbs_link_join(ends[0].l, &hello.nic, PEER), 0);
	ends[0].l->arrived = ends[0].l->posted;
	ends[0].sends = 0;
	multi.due = 0;
	verbs_rails_here.progress(&v);
	ck_assert(r->rail[0].proven);
	send_bytes("c");
	has_sent(1, "*bc", 2);
	credit(1, 2);
	send_bytes("d");
	has_sent(1, "*bcd", 2);
	credit(1, 2);
	send_bytes("e");
	has_sent(0, "e", 6);
}
END_TEST

/* No slot is lost: as many packets as one likes go over either rail. */
START_TEST(slots_come_back)
{
	for (unsigned int i = 0; i < 2 * VERBS_CHUNK * VERBS_CHUNKS; i++) {
		send_bytes("x");
		verbs_sent(ends[0].l, ends[0].l->posted);
		credit(0, 1);
		ends[0].sends = 0;
	}
	ck_assert_uint_eq(v.send.free_count, v.send.count);
	send_bytes("x");
	breaks(0);
	ck_assert_uint_eq(v.send.free_count, v.send.count);
}
END_TEST

static void send_long(char c)
{
	char text[VERBS_INLINE];

	memset(text, c, sizeof(text));
	ck_assert_int_eq(link_made->ops->send(link_made, text, sizeof(text), 0,
					      WIRE_HEAD(WIRE_RTS, 0, 0, 0), 0),
			 0);
}

/*
 * A peer returns credits for a packet that our device may still send to it from its slot: no other packet gets that slot.
 */
START_TEST(credited_too_early)
{
	send_long('a');
	credit(0, 1);
	send_long('b');
	ck_assert_int_eq(*ends[0].from[0], 'a');
	ck_assert_int_eq(*ends[0].from[1], 'b');
	if (_i) {
		breaks(0);
	} else {
		verbs_sent(ends[0].l, ends[0].l->posted);
		credit(0, 1);
	}
	ck_assert_uint_eq(v.send.free_count, v.send.count);
}
END_TEST

/* A peer waits for no more packets from us to get its last credits: nor if we go to sleep. */
START_TEST(credits_come_back)
{
	r->rail[1].ping_due = UINT64_MAX;
	ends[1].l->freed = 1;
	if (_i)
		ck_assert(verbs_arm(&v));
	else
		verbs_rails_here.progress(&v);
	ck_assert_uint_eq(ends[1].returned, 1);
	ck_assert_uint_eq(ends[1].l->freed, 0);
}
END_TEST

/* Nor does a rail that takes no more, as its wire is dark, keep the worker awake. */
START_TEST(sleeps_with_credits)
{
	ends[1].l->posted = ends[1].l->arrived + VERBS_FLIGHT;
	ends[1].l->freed = 1;
	ck_assert(verbs_arm(&v));
	ck_assert(list_empty(&device(1)->attend));
	verbs_sent(ends[1].l, ends[1].l->posted);
	ck_assert(verbs_arm(&v));
	ck_assert_uint_eq(ends[1].returned, 1);
}
END_TEST

/* A peer that does not read gets no more packets of credits than it has spare slots, however often we sleep. */
START_TEST(spares_are_bounded)
{
	struct verbs_head h = {.flags = 2u << VERBS_SPARES};
	unsigned int before;

	for (unsigned int i = 0; i < VERBS_WINDOW; i++) {
		ends[1].l->freed++;
		verbs_arm(&v);
		multi.due = 0;
		verbs_rails_here.progress(&v);
		verbs_sent(ends[1].l, ends[1].l->posted);
	}
	ck_assert_uint_le(ends[1].alone, VERBS_SPARE);
	ck_assert(list_empty(&device(1)->attend)); /* or nobody would sleep */
	before = ends[1].alone;
	ck_assert_uint_gt(ends[1].l->freed, 0);
	arrives(1, &h);
	ck_assert_uint_eq(ends[1].alone, before + 1);
	ck_assert_uint_eq(ends[1].l->freed, 0);
	ck_assert_uint_eq(ends[1].returned, VERBS_WINDOW);
}
END_TEST

/* More spare slots than there are, returned or used, break the rail. */
START_TEST(spares_are_checked)
{
	struct verbs_head h = {.flags = 0};

	ck_assert_uint_eq(ends[1].l->spares,
			  VERBS_SPARE - 1); /* the first packet of the initiator */
	if (_i) {
		h.flags = 2u << VERBS_SPARES;
		arrives(1, &h);
	} else {
		ends[1].l->spares = 0;
		for (unsigned int i = 0; i < VERBS_SPARE; i++)
			arrives(1, &h);
		ck_assert_int_eq(ends[1].l->err, 0);
		arrives(1, &h);
	}
	ck_assert_int_eq(ends[1].l->err, FI_EPROTO);
}
END_TEST

#define ROUNDS 2000
#define STEPS  20

/* A step of one of two ends: it returns a credit, or the other end reads its next packet of credits. */
static void step(unsigned int from, bool say, unsigned int read[VERBS_RAILS])
{
	struct end *e = &ends[from];

	verbs_sent(e->l, e->l->posted);
	if (say) {
		e->l->freed += e->l->freed < VERBS_WINDOW;
		verbs_say(e->l, false);
	} else if (read[from] != e->alone) {
		ends[1 - from].l->credits = 0; /* room for all that is returned */
		arrives(1 - from, &e->credit[read[from]++ % SENDS]);
	}
	ck_assert_uint_le(e->alone - read[from], VERBS_SPARE);
	ck_assert_int_eq(e->l->err, 0);
}

/*
 * The links of both rails stand for two ends of one, which say much and read late, then all: neither ever has more to
 * read than spare slots, nor do they wait for each other in the end.
 */
START_TEST(spares_never_run_out)
{
	unsigned int read[VERBS_RAILS] = {ends[0].alone, ends[1].alone}, seed = 1;

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		ends[i].l->spares = VERBS_SPARE;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < STEPS; i++)
			step((unsigned int)rand_r(&seed) / 7 % VERBS_RAILS,
			     rand_r(&seed) / 7 % STEPS >= round % STEPS, read);
		while (read[0] != ends[0].alone || read[1] != ends[1].alone)
			step((unsigned int)rand_r(&seed) / 7 % VERBS_RAILS, false, read);
		for (unsigned int i = 0; i < VERBS_RAILS; i++)
			ck_assert(!ends[i].l->owes);
	}
}
END_TEST

static uint32_t posted(void)
{
	return ends[0].l->posted + ends[1].l->posted;
}

/* The socket is lost: both rails show at once whether the peer is there, not when they are due. */
START_TEST(pings_at_once)
{
	uint32_t before;

	for (unsigned int i = 0; i < VERBS_RAILS; i++) {
		verbs_sent(ends[i].l, ends[i].l->posted);
		r->rail[i].ping_due = UINT64_MAX;
	}
	before = posted();
	verbs_rails_here.progress(&v);
	ck_assert_uint_eq(posted(), before);
	ck_assert(verbs_transport.ping(link_made));
	verbs_rails_here.progress(&v);
	ck_assert_uint_eq(posted(), before + VERBS_RAILS);
	ck_assert_uint_eq(ends[0].pings, 1); /* which take no slot of the peer's */
	ck_assert_uint_eq(ends[1].pings, 1);
}
END_TEST

/* A target may not send before it has heard its peer, nor does a link of one device ping. */
START_TEST(cannot_ping)
{
	ck_assert(!verbs_transport.ping(&ends[0].l->link));
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		ends[i].l->heard = false;
	ck_assert(!verbs_transport.ping(link_made));
}
END_TEST

/* A peer that has disconnected over one rail reads nothing that comes by the other one, either. */
START_TEST(waits_for_no_reader)
{
	uint32_t before;

	send_bytes("ab");
	ends[1].l->credits = 0;
	breaks(0);
	ends[0].l = make_link(0);
	verbs_rails_add(r, 0, ends[0].l, 2);
	ck_assert_int_eq(verbs_link_join(ends[0].l, &hello.nic, PEER), 0);
	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		list_push(&device(i)->all, &ends[i].l->in_all);
	ck_assert(verbs_rails_queued(&v));
	ends[1].l->disconnected = true;
	ck_assert(!verbs_rails_queued(&v));
	before = posted();
	verbs_drain(&v);
	ck_assert_uint_eq(posted(), before);
}
END_TEST

static bool takes(unsigned int rail, uint32_t number)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_RTS, 0, 0, 0)};

	return verbs_rails_take(ends[rail].l, number << VERBS_NUMBER, &p);
}

/* Each number is taken once, whatever rail it comes by. */
START_TEST(takes_once)
{
	ck_assert(takes(0, 1));
	ck_assert(takes(0, 2));
	ck_assert(!takes(1, 1));
	ck_assert(!takes(1, 2));
	ck_assert(takes(1, 3));
	ck_assert(!takes(0, 3));
	ck_assert_int_eq(ends[0].l->err, 0);
	r->got = VERBS_NUMBER_MASK;
	ck_assert(!takes(0, VERBS_NUMBER_MASK));
	ck_assert(takes(0, 0));
	ck_assert(!takes(1, 0));
}
END_TEST

/* A number that comes too early is a fault of the peer: the rail ends. */
START_TEST(takes_no_gap)
{
	ck_assert(takes(0, 1));
	ck_assert(!takes(0, 3));
	ck_assert_int_eq(ends[0].l->err, FI_EPROTO);
}
END_TEST

/* The peer finds a rail broken: ours is destroyed before the answer, and packets go again. */
START_TEST(peer_finds_it_broken)
{
	const struct verbs_rail_message m = {.what = VERBS_RAIL_BROKEN, .rail = 0, .serial = 0};

	send_bytes("ab");
	credit(0, 1);
	hears(1, 1, &m, sizeof(m));
	ck_assert_ptr_null(r->rail[0].link);
	has_sent(1, "b*", 2);
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	ck_assert_uint_eq(ends[1].said.rail, 0);
}
END_TEST

/* Both find it at a time: each answers the other. An earlier link of the rail is closed already. */
START_TEST(both_find_it_broken)
{
	struct verbs_rail_message m = {.what = VERBS_RAIL_BROKEN, .rail = 0, .serial = 0};

	breaks(0);
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_BROKEN);
	ck_assert(r->rail[0].closing);
	hears(1, 1, &m, sizeof(m));
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	m.what = VERBS_RAIL_CLOSED;
	hears(1, 2, &m, sizeof(m));
	ck_assert(!r->rail[0].closing);
	m = (struct verbs_rail_message){.what = VERBS_RAIL_BROKEN, .rail = 1, .serial = 7};
	hears(1, 3, &m, sizeof(m));
	ck_assert_uint_eq(ends[1].said.what, VERBS_RAIL_CLOSED);
	ck_assert_uint_eq(ends[1].said.serial, 7);
	ck_assert_ptr_nonnull(r->rail[1].link);
}
END_TEST

/* A message that makes no sense changes nothing here; the engine ends the link (FI_EPROTO). */
START_TEST(says_nonsense)
{
	static const struct {
		struct verbs_rail_message m;
		size_t len;
	} cases[] = {
		{{.what = 0}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_KEY + 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = VERBS_RAILS},
		 sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = UINT32_MAX},
		 sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_ACCEPTED, .rail = 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_REFUSED, .rail = 1}, sizeof(struct verbs_rail_message)},
		{{.what = VERBS_RAIL_BROKEN, .rail = 0}, sizeof(struct verbs_rail_message) - 1},
		{{.what = VERBS_RAIL_BROKEN, .rail = 0}, 0},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		hears(0, i + 1, &cases[i].m, cases[i].len);
	has_sent(0, "", 0);
	has_sent(1, "", 0);
	ck_assert_ptr_nonnull(r->rail[0].link);
	ck_assert_ptr_nonnull(r->rail[1].link);
}
END_TEST

/* A peer that returns no credits cannot make us keep answers without limit. */
START_TEST(asks_without_end)
{
	const struct verbs_rail_message m = {.what = VERBS_RAIL_BROKEN, .rail = 1, .serial = 7};
	unsigned int waiting = 0;

	ends[0].l->credits = 0;
	for (uint32_t i = 1; i < 1000; i++)
		hears(0, i, &m, sizeof(m));
	LIST_EACH (node, &r->queue)
		waiting++;
	ck_assert_uint_gt(waiting, 0);
	ck_assert_uint_lt(waiting, 100);
}
END_TEST

/* Probes are writes, so a rail permits them. The packets of a link over one device have no use for that. */
START_TEST(permits_writes)
{
	struct verbs_link *alone = make_link(0);

	for (unsigned int i = 0; i < VERBS_RAILS; i++)
		ck_assert_uint_eq(ends[i].access, IBV_ACCESS_REMOTE_WRITE);
	made = 0;
	ck_assert_int_eq(verbs_qp_make(alone), 0);
	ck_assert_uint_eq(ends[0].access, 0);
	ck_assert_int_eq(verbs_link_join(alone, &hello.nic, PEER), 0);
	ck_assert_uint_eq(ends[0].access, 0);
	verbs_link_free(alone);
}
END_TEST

/*
 * Two peers with one device each may use up their credits while each has two packets under way that return some, and
 * one that ends its link.
 */
START_TEST(all_packets_have_slots)
{
	struct verbs whole = {.path = v.path, .cq = v.cq, .srq = v.srq};

	verbs_state_init(&whole, &worker.conn.opener, NULL);
	verbs_slots_init(&whole.recv, &ends[0].dev, VERBS_SLOT);
	ends[0].slots = 0;
	for (unsigned int i = 0; i < 2; i++)
		ck_assert_uint_eq(verbs_grant(&whole), VERBS_WINDOW);
	ck_assert_uint_ge(ends[0].slots, 2 * (VERBS_WINDOW + 3));
	verbs_revoke(&whole, VERBS_WINDOW);
	ends[0].slots = 0;
	ck_assert_uint_eq(verbs_grant(&whole), VERBS_WINDOW);
	ck_assert_uint_eq(ends[0].slots, 0);
	verbs_slots_fini(&whole.recv, false);
	pool_fini(&whole.links);
	pool_fini(&whole.rdma_posted);
}
END_TEST

/* Credits are returned for slots that are there again. */
START_TEST(slots_before_credits)
{
	struct verbs_head h = {.head = WIRE_HEAD(WIRE_RTS, 0, 0, 0)};

	ends[0].alone = ends[0].slots = 0;
	for (unsigned int i = 1; !ends[0].alone; i++) {
		ck_assert_uint_le(i, VERBS_WINDOW);
		h.flags = i << VERBS_NUMBER;
		arrives(0, &h);
	}
	ck_assert_uint_gt(ends[0].returned, 0);
	ck_assert_uint_ge(ends[0].slots_before, ends[0].returned);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_rails");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, goes_again);
	tcase_add_test(c, goes_again_in_parts);
	tcase_add_test(c, slots_come_back);
	tcase_add_loop_test(c, credited_too_early, 0, 2);
	tcase_add_test(c, disconnects_behind);
	tcase_add_test(c, comes_back);
	tcase_add_loop_test(c, credits_come_back, 0, 2);
	tcase_add_test(c, sleeps_with_credits);
	tcase_add_test(c, spares_are_bounded);
	tcase_add_loop_test(c, spares_are_checked, 0, 2);
	tcase_add_test(c, spares_never_run_out);
	tcase_add_test(c, pings_at_once);
	tcase_add_test(c, cannot_ping);
	tcase_add_test(c, waits_for_no_reader);
	tcase_add_test(c, takes_once);
	tcase_add_test(c, takes_no_gap);
	tcase_add_test(c, peer_finds_it_broken);
	tcase_add_test(c, both_find_it_broken);
	tcase_add_test(c, says_nonsense);
	tcase_add_test(c, asks_without_end);
	tcase_add_test(c, permits_writes);
	tcase_add_test(c, all_packets_have_slots);
	tcase_add_test(c, slots_before_credits);
	suite_add_tcase(s, c);
	return suite_run(s);
}
