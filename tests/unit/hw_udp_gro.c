/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that datagrams which the kernel hands over together fill one receive each. A plain socket
 * sends them by UDP_SEGMENT: over loopback they stay together.
 */
#include <netinet/udp.h>
#include <string.h>

#include "dgram_open.h"

#define WARM_UP 32
#define LEN_MAX 1400
#define MANY    40

static unsigned char sent[MANY * LEN_MAX], got[MANY][LEN_MAX];

static void post(unsigned int i, size_t len)
{
	ck_assert_int_eq(fi_recv(opened.ep, got[i], len, NULL, FI_ADDR_UNSPEC, got[i]), 0);
}

/* Sends `len` bytes as datagrams of `segment` bytes; 0: as one. */
static void send_cut(size_t len, size_t segment)
{
	int size = (int)segment;

	ck_assert_int_eq(setsockopt(opened.plain, IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)),
			 0);
	ck_assert_int_eq(sendto(opened.plain, sent, len, 0, (struct sockaddr *)&opened.name,
				sizeof(opened.name)),
			 len);
}

/* The next completion is that of receive `i`, whose bytes were sent at `at`. */
static void expect_bytes(unsigned int i, size_t at, size_t len)
{
	ck_assert_uint_eq(expect(got[i]).len, len);
	ck_assert_mem_eq(got[i], sent + at, len);
}

static void setup(void)
{
	open_all();
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (unsigned char)(i * 7 + i / 256);
	for (unsigned int i = 0; i < WARM_UP; i++)
		post(i, LEN_MAX);
	for (unsigned int i = 0; i < WARM_UP; i++)
		send_cut(8, 0);
	for (unsigned int i = 0; i < WARM_UP; i++)
		expect_bytes(i, 0, 8);
	expect_nothing();
	ck_assert_ptr_nonnull(opened.udp->gro);
}

/* Datagrams that are waited for, one by one, make no stream. */
START_TEST(single_ones_are_read_directly)
{
	for (unsigned int i = 0; i < MANY; i++) {
		post(0, LEN_MAX);
		expect_nothing();
		send_cut(8, 0);
		expect_bytes(0, 0, 8);
	}
	ck_assert_ptr_null(opened.udp->gro);
}
END_TEST

START_TEST(each_fills_one_receive)
{
	static const size_t lens[] = {1, 8, 100, LEN_MAX};

	for (unsigned int k = 0; k < sizeof(lens) / sizeof(*lens); k++) {
		for (unsigned int i = 0; i < MANY; i++)
			post(i, LEN_MAX);
		send_cut(MANY * lens[k], lens[k]);
		for (unsigned int i = 0; i < MANY; i++)
			expect_bytes(i, i * lens[k], lens[k]);
		expect_nothing();
	}
}
END_TEST

/* Several messages in one call, with empty datagrams and a shorter last one among them. */
START_TEST(messages_in_order)
{
	for (unsigned int i = 0; i < 9; i++)
		post(i, LEN_MAX);
	send_cut(250, 100);
	send_cut(0, 0);
	send_cut(300, 0);
	send_cut(0, 0);
	send_cut(24, 8);
	expect_bytes(0, 0, 100);
	expect_bytes(1, 100, 100);
	expect_bytes(2, 200, 50);
	expect_bytes(3, 0, 0);
	expect_bytes(4, 0, 300);
	expect_bytes(5, 0, 0);
	for (unsigned int i = 0; i < 3; i++)
		expect_bytes(6 + i, i * 8, 8);
	expect_nothing();
}
END_TEST

/* What finds no receive waits for the next one, and keeps its reader from sleeping. */
START_TEST(the_rest_waits)
{
	struct worker *worker = ep_of(opened.ep)->worker;

	post(0, LEN_MAX);
	send_cut(50, 10);
	expect_bytes(0, 0, 10);
	expect_nothing();
	ck_assert(worker_arm(worker));
	for (unsigned int i = 1; i < 5; i++) {
		post(i, LEN_MAX);
		ck_assert(!worker_arm(worker));
		expect_bytes(i, i * 10, 10);
		expect_nothing();
	}
	post(0, LEN_MAX);
	ck_assert(worker_arm(worker));
	send_cut(10, 0);
	expect_bytes(0, 0, 10);
}
END_TEST

/* A datagram that is too long for its receive leaves its neighbours whole. */
START_TEST(truncated)
{
	struct fi_cq_err_entry e = {0};
	struct fi_cq_msg_entry unused;

	memset(got, 0, sizeof(got));
	post(0, LEN_MAX);
	post(1, 30);
	post(2, LEN_MAX);
	send_cut(300, 100);
	expect_bytes(0, 0, 100);
	ck_assert_int_eq(fi_cq_read(opened.cq, &unused, 1), -FI_EAVAIL);
	ck_assert_int_eq(fi_cq_readerr(opened.cq, &e, 0), 1);
	ck_assert_int_eq(e.err, FI_ETRUNC);
	ck_assert_uint_eq(e.olen, 70);
	ck_assert_mem_eq(got[1], sent + 100, 30);
	ck_assert_int_eq(got[1][30], 0);
	expect_bytes(2, 200, 100);
}
END_TEST

/* Datagrams share out several memory segments. */
START_TEST(scattered)
{
	for (unsigned int i = 0; i < 3; i++) {
		struct iovec iov[2] = {{got[i], 33}, {got[i] + 33, LEN_MAX - 33}};

		ck_assert_int_eq(fi_recvv(opened.ep, iov, NULL, 2, FI_ADDR_UNSPEC, got[i]), 0);
	}
	send_cut(300, 100);
	for (unsigned int i = 0; i < 3; i++)
		expect_bytes(i, i * 100, 100);
}
END_TEST

/* An endpoint that is closed while datagrams wait frees them. */
START_TEST(closed_with_a_rest)
{
	post(0, LEN_MAX);
	send_cut(50, 10);
	expect_bytes(0, 0, 10);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_udp_gro");
	TCase *stream = tcase_create("stream"), *single = tcase_create("single");

	tcase_add_checked_fixture(stream, setup, close_all);
	tcase_add_test(stream, each_fills_one_receive);
	tcase_add_test(stream, messages_in_order);
	tcase_add_test(stream, the_rest_waits);
	tcase_add_test(stream, truncated);
	tcase_add_test(stream, scattered);
	tcase_add_test(stream, closed_with_a_rest);
	tcase_add_checked_fixture(single, open_all, close_all);
	tcase_add_test(single, single_ones_are_read_directly);
	suite_add_tcase(suite, stream);
	suite_add_tcase(suite, single);
	return suite_run(suite);
}
