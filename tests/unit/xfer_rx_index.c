/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching with many unexpected messages: the same as by a search from the oldest one on, and in a time that does
 * not depend on their number where the receive names a tag.
 */
#include <stdio.h>
#include <time.h>

#include "fake_link.h"

#define SENDERS 3
#define MODEL   4096
#define STEPS   60000
#define TAGS    13
#define MANY    500000 /* messages */
#define POSTS   2000
#define SECONDS 1 /* of processor time for POSTS receives; a search takes many times that */

/* The model: messages kept, oldest first, numbered by their data. */
static struct kept {
	uint64_t tag;
	unsigned int from;
	uint64_t number;
} kept[MODEL];
static unsigned int kept_count;
static uint64_t numbers;

static struct peer *peer[SENDERS]; /* [0] is fake.peer; the last one is not in the address vector */
static fi_addr_t addr[SENDERS];
static uint32_t seed = 1;

static unsigned int any(unsigned int below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static const char *name_of(unsigned int n)
{
	static char text[32];

	snprintf(text, sizeof(text), "fi_shm://sender-%u", n);
	return text;
}

static void setup(void)
{
	fake_open_connected();
	kept_count = 0;
	peer[0] = fake.peer;
	addr[0] = fake.addr;
	for (unsigned int i = 1; i < SENDERS; i++) {
		struct addr name;

		ck_assert_int_eq(addr_from_user(&name, FI_ADDR_STR, name_of(i), 0), 0);
		peer[i] = peer_of(contact_by_name(&fake.worker->conn, &name, 0));
		addr[i] = FI_ADDR_NOTAVAIL;
		addr_free(&name);
	}
}

static void learn(unsigned int n)
{
	ck_assert_int_eq(fi_av_insert(fake.av, name_of(n), 1, &addr[n], 0, NULL), 1);
}

static void arrive(unsigned int from, uint64_t tag, bool tagged)
{
	struct packet p = {
		.head = WIRE_HEAD(WIRE_MSG, WIRE_DATA | (tagged ? WIRE_TAGGED : 0), 0, 0),
		.tag = tag,
		.data = ++numbers};

	rx_deliver(&fake.worker->conn.opener, pool_id(peer[from]), &p);
}

static void keep(unsigned int from, uint64_t tag)
{
	arrive(from, tag, true);
	kept[kept_count++] = (struct kept){tag, from, numbers};
}

/* Takes the oldest match out of the model: its number, or 0. */
static uint64_t expected(fi_addr_t src, uint64_t tag, uint64_t ignore)
{
	for (unsigned int i = 0; i < kept_count; i++) {
		uint64_t number = kept[i].number;

		if ((kept[i].tag ^ tag) & ~ignore ||
		    (src != FI_ADDR_UNSPEC && addr[kept[i].from] != src))
			continue;
		memmove(&kept[i], &kept[i + 1], (--kept_count - i) * sizeof(kept[0]));
		return number;
	}
	return 0;
}

/* Posts a receive; one that matches nothing is cancelled. */
static void take(fi_addr_t src, uint64_t tag, uint64_t ignore)
{
	uint64_t number = expected(src, tag, ignore);
	const struct fi_cq_tagged_entry *entry;

	ck_assert_int_eq(fi_trecv(fake.ep, NULL, 0, NULL, src, tag, ignore, &seed), 0);
	if (!number) {
		ck_assert_int_eq(fi_cancel(&fake.ep->fid, &seed), 0);
		fake_expect_error(&seed, FI_ECANCELED);
		return;
	}
	entry = fake_read();
	ck_assert_ptr_nonnull(entry);
	ck_assert_uint_eq(entry->data, number);
}

static void step(void)
{
	static const uint64_t ignores[] = {0, 0, 0, 0, 1, UINT64_MAX};
	unsigned int n = any(SENDERS);

	/* Longer and shorter by turns. */
	if (kept_count < MODEL - 1 && any(100) < (numbers / 5000 % 2 ? 40 : 60)) {
		keep(n, any(TAGS));
		return;
	}
	take(any(2) || addr[n] == FI_ADDR_NOTAVAIL ? FI_ADDR_UNSPEC : addr[n], any(TAGS),
	     ignores[any(sizeof(ignores) / sizeof(ignores[0]))]);
}

static void drain(void)
{
	while (kept_count)
		take(FI_ADDR_UNSPEC, 0, UINT64_MAX);
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
}

START_TEST(as_by_a_search)
{
	learn(1);
	for (unsigned int i = 0; i < STEPS; i++)
		step();
	drain();
}
END_TEST

/* Its messages match receives that name it, too, those that came before included. */
START_TEST(sender_is_inserted_later)
{
	for (unsigned int i = 0; i < 1000; i++)
		keep(any(SENDERS), any(TAGS));
	learn(2);
	learn(1);
	for (unsigned int i = 0; i < 3000; i++)
		take(addr[any(SENDERS)], any(TAGS), 0);
	drain();
}
END_TEST

/* Its messages have no source from then on, nor when the address has come back. */
START_TEST(sender_is_removed)
{
	learn(1);
	for (unsigned int i = 0; i < 1000; i++)
		keep(any(SENDERS), any(TAGS));
	ck_assert_int_eq(fi_av_remove(fake.av, &addr[1], 1, 0), 0);
	learn(2); /* takes the other one's number */
	ck_assert_uint_eq(addr[2], addr[1]);
	addr[1] = FI_ADDR_NOTAVAIL;
	for (unsigned int i = 0; i < 1000; i++)
		take(addr[any(2) * 2], any(TAGS), 0);
	drain();
}
END_TEST

START_TEST(sender_is_lost)
{
	learn(1);
	for (unsigned int i = 0; i < 1000; i++)
		keep(any(SENDERS), any(TAGS));
	fake.closed = 0;
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	for (unsigned int i = 0; i < 3000; i++)
		take(addr[any(2)], any(TAGS), 0);
	drain();
	fake.closed = 0;
}
END_TEST

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What stands before the messages that are received: all of one tag, or each of its own. */
START_TEST(many_messages)
{
	bool tagged = _i < 2;
	double begin;

	learn(1);
	for (unsigned int i = 0; i < MANY; i++)
		arrive(0, tagged ? (_i ? 100 + i : 100) : 0, tagged);
	for (unsigned int i = 0; i < POSTS; i++)
		arrive(1, tagged ? i % 50 : 0, tagged);
	begin = seconds();
	for (unsigned int i = 0; i < POSTS; i++) {
		fi_addr_t from = tagged && i % 2 ? FI_ADDR_UNSPEC : addr[1];

		if (tagged)
			fi_trecv(fake.ep, NULL, 0, NULL, from, i % 50, 0, NULL);
		else
			fi_recv(fake.ep, NULL, 0, NULL, from, NULL);
		ck_assert_ptr_nonnull(fake_read());
		/* No such message. */
		fi_trecv(fake.ep, NULL, 0, NULL, from, 77, 0, NULL);
		fake_expect_nothing();
	}
	ck_assert_double_lt(seconds() - begin, SECONDS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rx_index");
	TCase *order = tcase_create("order"), *many = tcase_create("many");

	tcase_add_checked_fixture(order, setup, fake_shut);
	tcase_add_test(order, as_by_a_search);
	tcase_add_test(order, sender_is_inserted_later);
	tcase_add_test(order, sender_is_removed);
	tcase_add_test(order, sender_is_lost);
	tcase_add_checked_fixture(many, setup, fake_shut);
	tcase_add_loop_test(many, many_messages, 0, 3);
	tcase_set_timeout(many, 120);
	suite_add_tcase(suite, order);
	suite_add_tcase(suite, many);
	return suite_run(suite);
}
