/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The budget of unexpected messages: shared by all senders, whether they are connected or not. Those that pause when
 * they are asked to lose nothing and are not held up by others; those that do not pause are disconnected.
 */
#include <rdma/fi_ext_weft.h>
#include <stdio.h>

#include "fake_link.h"
#include "conn/conn_own.h"

#define MARK    (64u << 10) /* FI_WEFT_UNEXPECTED_MAX */
#define LIMIT   (1u << 20)  /* FI_WEFT_UNEXPECTED_LIMIT */
#define BYTES   8192        /* of a message */
#define SENDERS 8

static unsigned char bytes[BYTES], in[BYTES];
static unsigned int names;
static struct fake_link {
	struct link link;
	int closed;
	unsigned int xoff, xon;
} links[SENDERS];

/* ---- Senders, each with a link that counts pauses --------------------------------------------- */

static int count_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		       size_t count)
{
	struct fake_link *l = (struct fake_link *)link;

	(void)iov, (void)count;
	l->xoff += wire_op(p->head) == WIRE_XOFF;
	l->xon += wire_op(p->head) == WIRE_XON;
	return 0;
}

static int count_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		      uint64_t tag)
{
	struct packet p = {.head = head, .tag = tag, .data = data, .len = len};

	(void)buf;
	return count_sendv(link, &p, NULL, 0);
}

static void count_close(struct link *link)
{
	((struct fake_link *)link)->closed++;
}

static const struct link_ops count_ops = {
	.send = count_send,
	.sendv = count_sendv,
	.close = count_close,
};

/* Connects a sender by link `n`, with a new name; `known`: inserted into the address vector. */
static struct peer *sender_new(unsigned int n, bool known)
{
	struct peer *peer;
	struct addr name;
	fi_addr_t addr;
	char text[32];

	snprintf(text, sizeof(text), "fi_shm://sender-%u", ++names);
	if (known)
		ck_assert_int_eq(fi_av_insert(fake.av, text, 1, &addr, 0, NULL), 1);
	ck_assert_int_eq(addr_from_user(&name, FI_ADDR_STR, text, 0), 0);
	peer = peer_of(contact_by_name(&fake.worker->conn, &name, 0));
	addr_free(&name);
	ck_assert_ptr_nonnull(peer);
	links[n] = (struct fake_link){.link = {LINK_BARE, .ops = &count_ops}};
	peer->conn.real = &links[n].link;
	contact_connected(&peer->conn);
	return peer;
}

static void say(struct peer *peer, size_t len)
{
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0),
			   .tag = 7,
			   .payload = bytes,
			   .len = len};

	rx_deliver(&fake.worker->conn.opener, pool_id(peer), &p);
}

/* The peer is gone, as if its socket had ended. */
static void go(struct peer *peer)
{
	contact_failed(&peer->conn, FI_ECONNRESET);
	conn_forget(&peer->conn);
}

static struct fi_weft_stats stats(void)
{
	struct fi_weft_ops_stats *ops = NULL;
	struct fi_weft_stats s;

	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), 0);
	ck_assert_int_eq(ops->read(&fake.ep->fid, &s, sizeof(s)), 0);
	ck_assert_uint_eq(s.size, sizeof(s));
	return s;
}

/* Receives all that is kept; returns how many messages it was. */
static unsigned int drain(void)
{
	const struct fi_cq_tagged_entry *entry;
	unsigned int count = 0;

	for (;; count++) {
		ck_assert_int_eq(fi_trecv(fake.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, 7, 0, in), 0);
		entry = fake_read();
		if (entry)
			continue;
		ck_assert_int_eq(fi_cancel(&fake.ep->fid, in), 0);
		fake_expect_error(in, FI_ECANCELED);
		return count;
	}
}

static void setup(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%u", MARK);
	setenv("FI_WEFT_UNEXPECTED_MAX", text, 1);
	snprintf(text, sizeof(text), "%u", LIMIT);
	setenv("FI_WEFT_UNEXPECTED_LIMIT", text, 1);
	names = 0;
	fake_open_connected();
}

/* ---- Limits ----------------------------------------------------------------------------------- */

/* Connects anew each time, by a new name, and leaves messages behind. */
START_TEST(unknown_senders_come_and_go)
{
	size_t len = _i ? 0 : BYTES;
	unsigned int each = _i ? 250 : 20;

	say(fake.peer, 5);
	for (unsigned int i = 0; i < 200; i++) {
		struct peer *peer = sender_new(0, false);

		for (unsigned int j = 0; j < each; j++)
			say(peer, len);
		go(peer);
		ck_assert_uint_le(stats().unexpected_bytes, LIMIT / 2 + BYTES);
		/* One of the known sender's. */
		ck_assert_uint_le(stats().unexpected_count,
				  LIMIT / 2 / sizeof(struct unexpected) + 1);
	}
	ck_assert_uint_gt(stats().unexpected_dropped, 1000);
	/* The one that was in the address vector lost nothing. */
	ck_assert_int_eq(fi_trecv(fake.ep, in, BYTES, NULL, fake.addr, 7, 0, in), 0);
	ck_assert_uint_eq(fake_read()->len, 5);
	drain();
	ck_assert_uint_eq(stats().unexpected_bytes, 0);
	ck_assert_uint_eq(stats().unexpected_count, 0);
}
END_TEST

/* The one that has most, not the one whose message is too much. */
START_TEST(unknown_sender_goes_on)
{
	struct peer *bad = sender_new(0, false), *good = sender_new(1, false);
	unsigned int most = LIMIT / 2 / BYTES - 4;

	say(good, BYTES);
	for (unsigned int i = 0; i < most && !contact_expelled(&bad->conn); i++)
		say(bad, BYTES);
	ck_assert_uint_eq(links[0].xoff, 1);
	for (unsigned int i = 0; i < 8; i++)
		say(good, BYTES);
	ck_assert(contact_expelled(&bad->conn));
	ck_assert(!contact_expelled(&good->conn));
	ck_assert_uint_eq(stats().unexpected_disconnected, 1);
	ck_assert_uint_eq(drain(), 9);
	contact_failed(&bad->conn, FI_EPROTO);
	go(good);
	conn_forget(&bad->conn);
}
END_TEST

/* What is under way in full socket buffers of each of them; all of it is received. */
START_TEST(known_senders_lose_nothing)
{
	unsigned int sent = 0;
	struct peer *peer[SENDERS];

	for (unsigned int i = 0; i < SENDERS; i++)
		peer[i] = sender_new(i, true);
	for (unsigned int n = 0; n < (10u << 20) / BYTES; n++)
		for (unsigned int i = 0; i < SENDERS; i++, sent++)
			say(peer[i], BYTES - 32);
	for (unsigned int i = 0; i < SENDERS; i++) {
		ck_assert(!contact_expelled(&peer[i]->conn));
		ck_assert_uint_eq(links[i].xoff, 1);
	}
	ck_assert_uint_eq(drain(), sent);
	for (unsigned int i = 0; i < SENDERS; i++)
		ck_assert_uint_eq(links[i].xon, 1);
	ck_assert_uint_eq(stats().unexpected_dropped, 0);
	for (unsigned int i = 0; i < SENDERS; i++)
		go(peer[i]);
}
END_TEST

/* It connects again and again: what it left counts, and at last it is disconnected, with nothing kept of it. */
START_TEST(known_sender_goes_on)
{
	struct peer *bad = sender_new(0, true), *good = sender_new(1, true);
	size_t sent = 0;

	say(good, BYTES);
	while (!stats().unexpected_disconnected) {
		ck_assert_uint_le(sent, LIMIT + 3 * BUDGET_UNDER_WAY);
		for (unsigned int j = 0; j < 1000 && !contact_expelled(&bad->conn);
		     j++, sent += BYTES)
			say(bad, BYTES);
		if (contact_expelled(&bad->conn))
			break;
		contact_failed(&bad->conn, FI_ECONNRESET);
		bad->conn.real = &links[0].link;
		contact_connected(&bad->conn);
	}
	ck_assert(!contact_expelled(&good->conn));
	ck_assert_uint_eq(drain(), 1);
	go(good);
	go(bad);
}
END_TEST

/* ---- What links keep of packets that are not complete ----------------------------------------- */

#define PART (LIMIT / 5) /* bytes: two fit the half of unknown senders */

static void *hold(struct peer *peer)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), .len = PART};

	return rx_payload_new(&fake.worker->conn.opener, pool_id(peer), &p);
}

static void release(struct peer *peer, void *payload)
{
	rx_payload_free(&fake.worker->conn.opener, pool_id(peer), payload);
}

/* Of unknown senders the one is disconnected for which nothing has become complete for longest; none of the address vector. */
START_TEST(unknown_senders_hold)
{
	struct peer *peer[] = {sender_new(0, false), sender_new(1, false), sender_new(2, false),
			       sender_new(3, true)};
	void *part[4][3];

	for (int n = 0; n < 3; n++)
		ck_assert_ptr_nonnull(part[3][n] = hold(peer[3]));
	ck_assert_ptr_nonnull(part[0][0] = hold(peer[0]));
	ck_assert_ptr_nonnull(part[1][0] = hold(peer[1]));
	ck_assert(rx_hold(&fake.worker->conn.opener, pool_id(peer[0]), 0));
	ck_assert_ptr_nonnull(part[2][0] = hold(peer[2]));
	ck_assert(!contact_expelled(&peer[0]->conn) && !contact_expelled(&peer[2]->conn));
	ck_assert(contact_expelled(&peer[1]->conn) && !contact_expelled(&peer[3]->conn));
	ck_assert_ptr_null(hold(peer[1]));
	ck_assert_uint_eq(stats().unexpected_disconnected, 1);
	for (int n = 0; n < 3; n++)
		release(peer[3], part[3][n]);
	for (int i = 0; i < 3; i++)
		release(peer[i], part[i][0]);
	ck_assert_uint_eq(fake.worker->budget.begun, 0);
	for (int i = 0; i < 4; i++)
		go(peer[i]);
}
END_TEST

/* What is complete is counted with the messages, and no longer as held. */
START_TEST(held_becomes_a_message)
{
	struct peer *peer = sender_new(0, false);
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), .tag = 7, .len = PART};
	size_t before = stats().unexpected_bytes;

	p.payload = hold(peer);
	ck_assert_uint_gt(fake.worker->budget.begun, PART);
	rx_deliver_collected(&fake.worker->conn.opener, pool_id(peer), &p);
	ck_assert_uint_eq(fake.worker->budget.begun, 0);
	ck_assert_uint_gt(stats().unexpected_bytes, before + PART);
	go(peer);
}
END_TEST

/* It comes into the address vector while its link keeps something. */
START_TEST(held_by_one_who_becomes_known)
{
	struct peer *peer = sender_new(0, false);
	void *part = hold(peer);
	fi_addr_t addr;
	char text[32];

	snprintf(text, sizeof(text), "fi_shm://sender-%u", names);
	ck_assert_uint_gt(fake.worker->budget.begun, 0);
	ck_assert_int_eq(fi_av_insert(fake.av, text, 1, &addr, 0, NULL), 1);
	ck_assert(rx_hold(&fake.worker->conn.opener, pool_id(peer), 0));
	ck_assert_uint_eq(fake.worker->budget.begun, 0);
	release(peer, part);
	ck_assert_uint_eq(peer->rx.account.begun, 0);
	go(peer);
}
END_TEST

/* ---- Pauses ----------------------------------------------------------------------------------- */

/* Messages that nobody receives fill the mark for ever: others still go on when theirs are received. */
START_TEST(others_are_not_held_up)
{
	struct peer *full = sender_new(0, _i), *gone = sender_new(1, false);
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), .tag = 8, .len = 1000};
	struct peer *peer = sender_new(2, true);

	p.payload = bytes;
	while (!links[0].xoff)
		say(full, BYTES);
	say(gone, BYTES);
	go(gone);
	for (unsigned int round = 1; round < 20; round++) {
		unsigned int sent = 0;

		for (; links[2].xoff < round; sent++) {
			ck_assert_uint_lt(sent, MARK / 1000);
			rx_deliver(&fake.worker->conn.opener, pool_id(peer), &p);
		}
		ck_assert_uint_gt(sent, MARK / 8 / 1000);
		while (sent--) {
			ck_assert_int_eq(
				fi_trecv(fake.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, 8, 0, in), 0);
			ck_assert_ptr_nonnull(fake_read());
		}
		ck_assert_uint_eq(links[2].xon, round);
	}
	ck_assert_uint_eq(links[0].xon, 0);
	go(full);
	go(peer);
}
END_TEST

START_TEST(figures)
{
	struct fi_weft_ops_stats *ops = NULL;
	struct fi_weft_stats s = {.unexpected_bytes = 4711};
	void *none;

	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, "x", 0, &none, NULL), -FI_ENOSYS);
	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, FI_WEFT_STATS, 0, NULL, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), 0);
	ck_assert_uint_eq(ops->size, sizeof(*ops));
	say(fake.peer, 100);
	ck_assert_int_eq(ops->read(&fake.ep->fid, &s, 4), -FI_EINVAL);
	ck_assert_int_eq(ops->read(&fake.ep->fid, NULL, sizeof(s)), -FI_EINVAL);
	ck_assert_int_eq(
		ops->read(&fake.ep->fid, &s, offsetof(struct fi_weft_stats, unexpected_bytes)), 0);
	ck_assert_uint_eq(s.unexpected_count, 1);
	ck_assert_uint_eq(s.unexpected_bytes, 4711);
	ck_assert_uint_gt(stats().unexpected_bytes, 100);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_budget");
	TCase *limits = tcase_create("limits"), *pauses = tcase_create("pauses");

	tcase_add_checked_fixture(limits, setup, fake_shut);
	tcase_add_loop_test(limits, unknown_senders_come_and_go, 0, 2);
	tcase_add_test(limits, unknown_sender_goes_on);
	tcase_add_test(limits, known_senders_lose_nothing);
	tcase_add_test(limits, known_sender_goes_on);
	tcase_add_test(limits, unknown_senders_hold);
	tcase_add_test(limits, held_becomes_a_message);
	tcase_add_test(limits, held_by_one_who_becomes_known);
	tcase_add_checked_fixture(pauses, setup, fake_shut);
	tcase_add_loop_test(pauses, others_are_not_held_up, 0, 2);
	tcase_add_test(pauses, figures);
	tcase_set_timeout(limits, 30);
	suite_add_tcase(suite, limits);
	suite_add_tcase(suite, pauses);
	return suite_run(suite);
}
