/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that long messages are registered for the peer's device to read, as long as it may. */
#include "fake_link.h"
#include "xfer/defer/defer.h"

#define TAG   0x55
#define LEN   20000u
#define PLACE UINT64_C(0x8000000000001000) /* address for the peer */

static unsigned char bytes[LEN];
static struct link_memory_ops ops;
static int registered, deregistered, refusal, done, done_err;

static int expose(struct link *link, const struct iovec *iov, size_t count, struct fi_rma_iov *at,
		  void **token)
{
	ck_assert_ptr_eq(link, &fake.link);
	ck_assert_uint_eq(count, 1);
	ck_assert_ptr_eq(iov->iov_base, bytes);
	if (refusal)
		return refusal;
	registered++;
	at[0] = (struct fi_rma_iov){.addr = PLACE, .len = iov->iov_len, .key = 0};
	*token = &registered;
	return 0;
}

static void deregister(struct link *link, void *token)
{
	ck_assert_ptr_eq(link, &fake.link);
	ck_assert_ptr_eq(token, &registered);
	deregistered++;
}

static void ended(struct work *work, int err)
{
	(void)work;
	done++;
	done_err = err;
}

static const struct work_kind kind = {.done = ended};
static struct work work;

static void start(void)
{
	fake_open_connected();
	ops = link_no_memory;
	ops.reg = expose;
	ops.dereg = deregister;
	fake.link.memory = &ops;
	fake.link.rdma_usable = true;
	registered = deregistered = refusal = done = 0;
	work = (struct work){.kind = &kind};
}

static void finish(void)
{
	ck_assert_int_eq(deregistered, registered);
	fake_shut();
}

/* Sends a long message. Returns its request id. */
static uint32_t send(void)
{
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0),
			   .tag = TAG,
			   .payload = bytes,
			   .len = LEN};
	unsigned int before = fake.count;

	ck_assert_int_eq(tx_ahead(fake.peer, &p, &work), 0);
	return fake.count > before ? wire_id(fake.packets[before].head) : 0;
}

/* Checks that the first packet is an RTS with address `addr`. */
static void expect_rts(uint64_t addr)
{
	const struct fake_packet *p = &fake.packets[0];
	struct wire_rts rts;

	memcpy(&rts, p->payload, p->len);
	ck_assert_uint_eq(wire_op(p->head), WIRE_RTS);
	ck_assert_uint_eq(wire_flags(p->head), WIRE_TAGGED | WIRE_DATA);
	ck_assert_uint_eq(rts.len, LEN);
	ck_assert_uint_eq(rts.count, 1);
	ck_assert_uint_eq(rts.segment[0].addr, addr);
	ck_assert_uint_eq(rts.segment[0].len, LEN);
}

static void expect_done(int err)
{
	ck_assert_int_eq(done, 1);
	ck_assert_int_eq(done_err, err);
	ck_assert_int_eq(deregistered, registered);
}

START_TEST(until_it_is_answered)
{
	uint32_t id = send();

	expect_rts(PLACE);
	ck_assert_uint_eq(fake.count, 1);
	ck_assert_int_eq(deregistered, 0);
	fake_says_ats(id, 0);
	expect_done(0);
	ck_assert_int_eq(registered, 1);
}
END_TEST

START_TEST(not_without_a_device)
{
	uint32_t id;

	fake.link.rdma_usable = false;
	id = send();
	expect_rts((uintptr_t)bytes);
	fake_says_ats(id, 0);
	expect_done(0);
	ck_assert_int_eq(registered, 0);
}
END_TEST

/* It cannot be registered: the peer asks for it, or reads it by itself. */
START_TEST(no_room_there)
{
	uint32_t id;

	refusal = -FI_ENOSYS;
	id = send();
	expect_rts((uintptr_t)bytes);
	fake_says_ats(id, 0);
	expect_done(0);
}
END_TEST

START_TEST(once_while_the_rts_waits)
{
	fake.room = 0;
	ck_assert_uint_eq(send(), 0);
	fake_expect_nothing();
	ck_assert_uint_eq(fake.count, 0);
	fake.room = FAKE_PLENTY;
	fake_expect_nothing();
	expect_rts(PLACE);
	ck_assert_int_eq(registered, 1);
	fake_says_ats(wire_id(fake.packets[0].head), 0);
	expect_done(0);
}
END_TEST

START_TEST(asked_for_all_the_same)
{
	uint32_t id = send();
	size_t got = 0;

	fake_says(WIRE_HEAD(WIRE_CTS, 0, 0, id), 5, 0, NULL, 0);
	ck_assert_int_eq(deregistered, 1);
	fake_expect_nothing();
	for (unsigned int i = 1; i < fake.count; i++) {
		const struct fake_packet *p = &fake.packets[i];

		ck_assert_uint_eq(p->head, WIRE_HEAD(WIRE_FRAG, 0, 0, 5));
		ck_assert_mem_eq(p->payload, bytes + got, p->len);
		got += p->len;
	}
	ck_assert_uint_eq(got, LEN);
	fake_says_ats(id, 0);
	expect_done(0);
}
END_TEST

START_TEST(the_peer_is_gone)
{
	send();
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	expect_done(FI_ECONNRESET);
	fake.closed = 0; /* for fake_shut */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rndv_register");
	TCase *tcase = tcase_create("stage");

	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (unsigned char)(i * 3 + (i >> 8));
	tcase_add_checked_fixture(tcase, start, finish);
	tcase_add_test(tcase, until_it_is_answered);
	tcase_add_test(tcase, not_without_a_device);
	tcase_add_test(tcase, no_room_there);
	tcase_add_test(tcase, once_while_the_rts_waits);
	tcase_add_test(tcase, asked_for_all_the_same);
	tcase_add_test(tcase, the_peer_is_gone);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
