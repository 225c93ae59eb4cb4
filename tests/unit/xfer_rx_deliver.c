/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves what the shortest way of a message does: one of eight bytes into a posted receive. */
#include "fake_link.h"

#include "core/cq.h"
#include "core/ep.h"

#define MANY 3000 /* more than the queue holds at first */

static uint64_t in[MANY];

static void post(uint64_t tag, uint64_t *to)
{
	ck_assert_int_eq(fi_trecv(fake.ep, to, sizeof(*to), NULL, FI_ADDR_UNSPEC, tag, 0, to), 0);
}

static void says(unsigned int flags, uint64_t tag, uint64_t word)
{
	fake_says(WIRE_HEAD(WIRE_MSG, flags, 0, 0), tag, flags & WIRE_DATA ? ~word : 0, &word,
		  sizeof(word));
}

/* Receives one message; returns the source that its completion reports. */
static fi_addr_t source_of_next(void)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t src = 4711;

	post(1, in);
	says(WIRE_TAGGED, 1, 5);
	ck_assert_int_eq(fi_cq_readfrom(fake.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(in[0], 5);
	return src;
}

START_TEST(all_kinds)
{
	struct fi_cq_tagged_entry entry;

	(void)source_of_next(); /* from now on the source is known */
	for (unsigned int flags = 0; flags <= (WIRE_TAGGED | WIRE_DATA); flags++) {
		bool tagged = flags & WIRE_TAGGED, data = flags & WIRE_DATA;

		if (tagged)
			post(9, &in[flags]);
		else
			ck_assert_int_eq(
				fi_recv(fake.ep, &in[flags], 8, NULL, FI_ADDR_UNSPEC, &in[flags]),
				0);
		says(flags, tagged ? 9 : 0, 100 + flags);
		ck_assert_int_eq(fi_cq_read(fake.cq, &entry, 1), 1);
		ck_assert_ptr_eq(entry.op_context, &in[flags]);
		ck_assert_uint_eq(entry.flags, FI_RECV | (tagged ? FI_TAGGED : FI_MSG) |
						       (data ? FI_REMOTE_CQ_DATA : 0));
		ck_assert_uint_eq(entry.len, 8);
		ck_assert_uint_eq(entry.tag, tagged ? 9 : 0);
		ck_assert_uint_eq(entry.data, data ? ~(uint64_t)(100 + flags) : 0);
		ck_assert_ptr_null(entry.buf);
		ck_assert_uint_eq(in[flags], 100 + flags);
	}
}
END_TEST

START_TEST(more_than_the_queue_holds)
{
	struct fi_cq_tagged_entry entry[7];
	unsigned int seen = 0;

	(void)source_of_next();
	for (unsigned int i = 0; i < MANY; i++)
		post(i, &in[i]);
	for (unsigned int i = 0; i < MANY; i++)
		says(WIRE_TAGGED, i, i);
	while (seen < MANY) {
		ssize_t n = fi_cq_read(fake.cq, entry, 7);

		ck_assert_int_gt(n, 0);
		for (ssize_t i = 0; i < n; i++, seen++) {
			ck_assert_ptr_eq(entry[i].op_context, &in[seen]);
			ck_assert_uint_eq(in[seen], seen);
		}
	}
	fake_expect_nothing();
}
END_TEST

START_TEST(short_buffer_is_not_overrun)
{
	(void)source_of_next();
	in[1] = ~(uint64_t)0;
	ck_assert_int_eq(fi_trecv(fake.ep, in, 7, NULL, FI_ADDR_UNSPEC, 2, 0, in), 0);
	says(WIRE_TAGGED, 2, 0);
	(void)fake_expect_error(in, FI_ETRUNC);
	ck_assert_uint_eq(((unsigned char *)in)[7], 0); /* of source_of_next */
	ck_assert_uint_eq(in[1], ~(uint64_t)0);
}
END_TEST

START_TEST(source_follows_the_address_vector)
{
	fi_addr_t again;

	ck_assert_uint_eq(source_of_next(), fake.addr);
	ck_assert_uint_eq(source_of_next(), fake.addr);
	ck_assert_int_eq(fi_av_set_user_id(fake.av, fake.addr, 77, 0), 0);
	ck_assert_uint_eq(source_of_next(), 77);
	ck_assert_uint_eq(source_of_next(), 77);
	ck_assert_int_eq(fi_av_remove(fake.av, &fake.addr, 1, 0), 0);
	ck_assert_uint_eq(source_of_next(), FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_av_insert(fake.av, "fi_shm://fake", 1, &again, 0, NULL), 1);
	ck_assert_uint_eq(source_of_next(), again);
}
END_TEST

/* With FI_SELECTIVE_COMPLETION each receive says whether it is reported. */
START_TEST(selective_completions)
{
	struct iovec iov = {in, 8};
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .iov_count = 1,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = 3,
				    .context = &in[1]};
	struct fi_cq_tagged_entry entry;

	(void)source_of_next();
	fake.worker->rx[0]->complete_all = false; /* as if the queue had been bound so */
	((struct ep *)fake.ep)->rx_msg_flags = 0;
	ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, 0), 0);
	says(WIRE_TAGGED, 3, 11);
	ck_assert_int_eq(fi_cq_read(fake.cq, &entry, 1), -FI_EAGAIN);
	ck_assert_uint_eq(in[0], 11);
	ck_assert_int_eq(fi_trecvmsg(fake.ep, &msg, FI_COMPLETION), 0);
	says(WIRE_TAGGED, 3, 12);
	ck_assert_int_eq(fi_cq_read(fake.cq, &entry, 1), 1);
	ck_assert_ptr_eq(entry.op_context, &in[1]);
	ck_assert_uint_eq(in[0], 12);
}
END_TEST

/* A peer that is to be disconnected has lost a packet: no later one may be delivered, of any length. */
START_TEST(nothing_of_an_expelled_peer)
{
	struct fi_cq_tagged_entry entry;

	(void)source_of_next();
	post(1, in);
	contact_expel(&fake.peer->conn, END_BUDGET);
	fake_says(WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0), 1, 0, "abcd", 4);
	says(WIRE_TAGGED, 1, 6);
	ck_assert_uint_eq(in[0], 5); /* of source_of_next */
	ck_assert_int_eq(fi_cq_read(fake.cq, &entry, 1), -FI_EAGAIN);
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_rx_deliver");
	TCase *tcase = tcase_create("shortest");

	tcase_add_checked_fixture(tcase, fake_open_connected, fake_shut);
	tcase_add_test(tcase, all_kinds);
	tcase_add_test(tcase, more_than_the_queue_holds);
	tcase_add_test(tcase, short_buffer_is_not_overrun);
	tcase_add_test(tcase, source_follows_the_address_vector);
	tcase_add_test(tcase, selective_completions);
	tcase_add_test(tcase, nothing_of_an_expelled_peer);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
