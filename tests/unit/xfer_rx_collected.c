/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that a message that no receive waits for stays where its payload was collected, and that the memory is used again. */
#include "fake_link.h"

enum { LEN = 100000 };

static unsigned char in[LEN];

/* Collects a payload, all of it `byte`. Returns its memory. */
static unsigned char *collected(unsigned char byte)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), .len = LEN};
	unsigned char *payload = rx_payload_new(&fake.worker->conn.opener, pool_id(fake.peer), &p);

	ck_assert_ptr_nonnull(payload);
	ck_assert_uint_eq((uintptr_t)payload % 16, 0);
	memset(payload, byte, LEN);
	return payload;
}

static void comes(unsigned int op, const void *payload)
{
	struct packet p = {
		.head = WIRE_HEAD(op, WIRE_TAGGED, 0, 0), .tag = 7, .payload = payload, .len = LEN};

	rx_deliver_collected(&fake.worker->conn.opener, pool_id(fake.peer), &p);
}

static void post(void)
{
	memset(in, 0, sizeof(in));
	ck_assert_int_eq(fi_trecv(fake.ep, in, LEN, NULL, FI_ADDR_UNSPEC, 7, 0, in), 0);
}

static void expect(unsigned char byte)
{
	fake_expect(in, FI_RECV | FI_TAGGED);
	for (int i = 0; i < LEN; i++)
		ck_assert_uint_eq(in[i], byte);
}

/* Returns the oldest message that is kept. */
static const struct unexpected *kept(void)
{
	struct list *first = ep_of(fake.ep)->rx->unexpected[1].next;

	return LIST_ENTRY(first, struct unexpected, link);
}

START_TEST(stays_there)
{
	unsigned char *first = collected(1), *second;

	comes(WIRE_MSG, first);
	ck_assert_ptr_eq(kept()->payload, first);
	second = collected(2);
	ck_assert_ptr_ne(second, first);
	comes(WIRE_MSG, second);
	post();
	expect(1);
	post();
	expect(2);
	ck_assert_uint_eq(ep_of(fake.ep)->rx->unexpected_bytes, 0);
}
END_TEST

START_TEST(memory_is_used_again)
{
	unsigned char *payload = collected(3);

	post();
	comes(WIRE_MSG, payload);
	expect(3);
	ck_assert_ptr_eq(collected(4), payload); /* was received at once */
	comes(WIRE_MSG, payload);
	post();
	expect(4);
	ck_assert_ptr_eq(collected(5), payload); /* was kept */
	rx_payload_free(&fake.worker->conn.opener, pool_id(fake.peer), payload);
	ck_assert_ptr_eq(collected(6), payload); /* did not come */
	comes(WIRE_OPS - 1, payload);            /* was no message */
	ck_assert_ptr_eq(collected(7), payload);
	rx_payload_free(&fake.worker->conn.opener, pool_id(fake.peer), payload);
	rx_payload_free(&fake.worker->conn.opener, pool_id(fake.peer), NULL);
}
END_TEST

/* The sender has gone: the message stays, and its memory is freed with it. */
START_TEST(outlives_its_sender)
{
	comes(WIRE_MSG, collected(8));
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	post();
	expect(8);
	fake.closed = 0;
	fake_connect();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rx_collected");
	TCase *tcase = tcase_create("collected");

	tcase_add_checked_fixture(tcase, fake_open_connected, fake_shut);
	tcase_add_test(tcase, stays_there);
	tcase_add_test(tcase, memory_is_used_again);
	tcase_add_test(tcase, outlives_its_sender);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
