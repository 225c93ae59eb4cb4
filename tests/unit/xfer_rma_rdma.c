/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves what becomes of one-sided operations that a device has been given and does not perform: they
 * go by packets, in order, once each, although later ones may go to a device again.
 */
#include "core/mr_table.h"
#include "fake_rma.h"
#include "xfer/events.h"
#include "suite.h"

#define KEY (MR_KEY_IN_NIC | 11)
#define LEN ((size_t)16)

static uint64_t posted[FAKE_TX_SIZE]; /* ids of operations that the device has been given */
static unsigned int posts;
static int refusal;
static unsigned char data[FAKE_TX_SIZE][LEN];

static int rdma_post(struct link *link, const struct link_copy *op)
{
	ck_assert_ptr_eq(link, &fake.link);
	ck_assert(op->write);
	if (refusal)
		return refusal;
	posted[posts++] = op->id;
	return LINK_UNDER_WAY;
}

static void rdma_abort(struct link *link)
{
	(void)link;
}

static const struct link_memory_ops rdma_ops = {.copy = rdma_post, .abort = rdma_abort};

static void setup(void)
{
	rma_setup();
	fake.link.memory = &rdma_ops;
	fake.link.rdma_usable = fake.link.reaches = true;
	posts = 0;
	refusal = 0;
}

/* Writes number `i`, which says so in its first byte. */
static void writes(unsigned int i)
{
	data[i][0] = (unsigned char)i;
	ck_assert_int_eq(fi_write(fake.ep, data[i], LEN, NULL, fake.addr, 0, KEY, &data[i]), 0);
}

/* The packets are these writes, in this order. */
static void has_written(unsigned int first, unsigned int count)
{
	ck_assert_uint_eq(fake.count, count);
	for (unsigned int i = 0; i < count; i++) {
		ck_assert_uint_eq(wire_op(fake.packets[i].head), WIRE_PUT);
		ck_assert_uint_eq(fake.packets[i].payload[0], first + i);
	}
}

/* What is not reported goes by packets, and is reported once, when the peer has answered. */
START_TEST(goes_by_packets)
{
	for (unsigned int i = 0; i < 4; i++)
		writes(i);
	ck_assert_uint_eq(posts, 4);
	rma_copied(&fake.worker->conn.opener, posted[0], LINK_DONE);
	fake_expect(&data[0], FI_RMA | FI_WRITE);
	rdma_rma_failed(&fake.worker->conn.opener, pool_id(fake.peer));
	fake_expect_nothing();
	has_written(1, 3);
	rma_copied(&fake.worker->conn.opener, posted[1], LINK_DONE); /* it is the packets' now */
	fake_expect_nothing();
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, fake.peer->rma.seq), 0, 0, NULL, 0);
	for (unsigned int i = 1; i < 4; i++)
		fake_expect(&data[i], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(posts, 4);
	writes(4);
	ck_assert_uint_eq(posts, 5);
	rma_copied(&fake.worker->conn.opener, posted[4], LINK_DONE);
	fake_expect(&data[4], FI_RMA | FI_WRITE);
	ck_assert_uint_eq(fake.count, 3);
}
END_TEST

/* What a device refuses waits for what it has, then goes by packets. */
START_TEST(refused_behind)
{
	writes(0);
	refusal = -FI_ENOMEM;
	writes(1);
	ck_assert_uint_eq(fake.count, 0);
	rma_copied(&fake.worker->conn.opener, posted[0], LINK_DONE);
	fake_expect(&data[0], FI_RMA | FI_WRITE);
	fake_expect_nothing();
	has_written(1, 1);
	fake_says(WIRE_HEAD(WIRE_DONE, 0, 0, fake.peer->rma.seq), 0, 0, NULL, 0);
	fake_expect(&data[1], FI_RMA | FI_WRITE);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("xfer_rma_rdma");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, rma_teardown);
	tcase_add_test(c, goes_by_packets);
	tcase_add_test(c, refused_behind);
	suite_add_tcase(s, c);
	return suite_run(s);
}
