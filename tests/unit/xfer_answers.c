/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers that peers do not read: those that the address vector does not hold share
 * half of FI_WEFT_UNEXPECTED_LIMIT, and the one that has most is disconnected. Peers of the vector are no part
 * of that.
 */
#include <rdma/fi_ext_weft.h>
#include <stdio.h>

#include "fake_link.h"
#include "conn/conn_own.h"

#define LIMIT "2000000" /* FI_WEFT_UNEXPECTED_LIMIT; half is for answers */
#define BYTES 50000     /* of an answer */
#define FITS  19        /* answers within the limit */
#define PEERS 3

static unsigned char bytes[BYTES];
static unsigned int names;
static char name[PEERS][32];
static struct peer *peers[PEERS];

/* ---- Peers whose links are full -------------------------------------------------------------- */

static int full_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count)
{
	(void)link, (void)p, (void)iov, (void)count;
	return -FI_EAGAIN;
}

static int full_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		     uint64_t tag)
{
	(void)link, (void)buf, (void)len, (void)data, (void)head, (void)tag;
	return -FI_EAGAIN;
}

static void full_close(struct link *link)
{
	(void)link;
}

static const struct link_ops full_ops = {
	.send = full_send,
	.sendv = full_sendv,
	.close = full_close,
};

static struct link full_link = {LINK_BARE, .ops = &full_ops};

static fi_addr_t insert(unsigned int n)
{
	fi_addr_t addr;

	ck_assert_int_eq(fi_av_insert(fake.av, name[n], 1, &addr, 0, NULL), 1);
	return addr;
}

static void connect_peer(unsigned int n)
{
	struct addr addr;

	snprintf(name[n], sizeof(name[n]), "fi_shm://unread-%u", ++names);
	ck_assert_int_eq(addr_from_user(&addr, FI_ADDR_STR, name[n], 0), 0);
	peers[n] = peer_of(contact_by_name(&fake.worker->conn, &addr, 0));
	addr_free(&addr);
	ck_assert_ptr_nonnull(peers[n]);
	peers[n]->conn.real = &full_link;
	contact_connected(&peers[n]->conn);
}

static void answer(unsigned int n, unsigned int count)
{
	while (count--)
		tx_control_data(peers[n], &(struct packet){.head = WIRE_HEAD(WIRE_RESULT, 0, 0, 1),
							   .payload = bytes,
							   .len = BYTES});
}

static struct fi_weft_stats stats(void)
{
	struct fi_weft_ops_stats *ops = NULL;
	struct fi_weft_stats s;

	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), 0);
	ck_assert_int_eq(ops->read(&fake.ep->fid, &s, sizeof(s)), 0);
	return s;
}

/* Returns how many of the peers are about to be disconnected. */
static unsigned int expelled(void)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < PEERS; i++)
		count += contact_expelled(&peers[i]->conn);
	ck_assert_uint_eq(stats().answers_disconnected, count);
	return count;
}

static void setup(void)
{
	setenv("FI_WEFT_UNEXPECTED_LIMIT", LIMIT, 1);
	fake_open_connected();
	for (unsigned int i = 0; i < PEERS; i++)
		connect_peer(i);
}

static void teardown(void)
{
	for (unsigned int i = 0; i < PEERS; i++) {
		contact_failed(&peers[i]->conn, FI_ECONNRESET);
		conn_forget(&peers[i]->conn);
	}
	ck_assert_uint_eq(stats().answers_bytes, 0);
	ck_assert_uint_eq(fake.worker->answers.unknown, 0);
	fake_shut();
}

/* ---- Tests ----------------------------------------------------------------------------------- */

START_TEST(the_one_with_most_is_disconnected)
{
	answer(0, 12);
	answer(1, FITS - 12);
	ck_assert_uint_eq(expelled(), 0);
	ck_assert_uint_gt(stats().answers_bytes, FITS * BYTES);
	answer(2, 1);
	ck_assert(contact_expelled(&peers[0]->conn));
	ck_assert_uint_eq(expelled(), 1);
	/* Its part is free for others at once. */
	answer(1, FITS - 8);
	ck_assert_uint_eq(expelled(), 1);
	answer(2, 1);
	ck_assert(contact_expelled(&peers[1]->conn));
	ck_assert(!contact_expelled(&peers[2]->conn));
}
END_TEST

START_TEST(one_alone)
{
	answer(0, FITS);
	ck_assert_uint_eq(expelled(), 0);
	answer(0, 1);
	ck_assert(contact_expelled(&peers[0]->conn));
	answer(1, FITS);
	ck_assert_uint_eq(expelled(), 1);
}
END_TEST

START_TEST(known_peers_have_more)
{
	insert(0);
	answer(1, FITS);
	answer(0, 3 * FITS);
	ck_assert_uint_eq(expelled(), 0);
	while (peers[0]->tx.reply_bytes <= WIRE_ANSWERS_MAX - 2 * BYTES)
		answer(0, 1);
	ck_assert_uint_eq(expelled(), 0);
	answer(0, 2);
	ck_assert(contact_expelled(&peers[0]->conn));
	ck_assert_uint_eq(expelled(), 1);
}
END_TEST

/* What the vector holds when the limit is reached counts. */
START_TEST(inserted_and_removed)
{
	fi_addr_t addr;

	answer(0, FITS);
	addr = insert(0);
	answer(1, FITS - 1);
	ck_assert_uint_eq(expelled(), 0);
	answer(0, 1);
	ck_assert_int_eq(fi_av_remove(fake.av, &addr, 1, 0), 0);
	answer(1, 1);
	ck_assert(contact_expelled(&peers[0]->conn));
	ck_assert_uint_eq(expelled(), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_answers");
	TCase *all = tcase_create("limit");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, the_one_with_most_is_disconnected);
	tcase_add_test(all, one_alone);
	tcase_add_test(all, known_peers_have_more);
	tcase_add_test(all, inserted_and_removed);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
