/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that an ICMP error for an earlier datagram (no listener there) fails neither the next
 * datagram nor a receive. Sockets report such errors only on demand (IP_RECVERR), which this test
 * enables.
 */
#include "dgram_open.h"

#define MANY 5

/* Makes the socket have a pending error. */
static void make_error(void)
{
	struct pollfd p = {.fd = opened.udp->fd};
	uint64_t word = 1;

	ck_assert_int_eq(fi_inject(opened.ep, &word, sizeof(word), opened.to_nobody), 0);
	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	ck_assert(p.revents & POLLERR);
}

static void setup(void)
{
	const int yes = 1;

	open_all();
	ck_assert_int_eq(setsockopt(opened.udp->fd, IPPROTO_IP, IP_RECVERR, &yes, sizeof(yes)), 0);
}

static void expect_at_plain(uint64_t word)
{
	struct pollfd p = {.fd = opened.plain, .events = POLLIN};
	uint64_t got = 0;

	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	ck_assert_int_eq(recv(opened.plain, &got, sizeof(got), 0), sizeof(got));
	ck_assert_uint_eq(got, word);
}

START_TEST(sends_go_on)
{
	for (uint64_t i = 0; i < 3; i++) {
		make_error();
		ck_assert_int_eq(send_word(opened.ep, opened.to_plain, &i, 0), 0);
		expect(&i);
		expect_at_plain(i);
	}
	expect_nothing();
}
END_TEST

START_TEST(several_go_on)
{
	uint64_t words[MANY];

	make_error();
	for (uint64_t i = 0; i < MANY; i++) {
		words[i] = i;
		ck_assert_int_eq(send_word(opened.ep, opened.to_plain, &words[i],
					   i + 1 < MANY ? FI_MORE : 0),
				 0);
	}
	for (uint64_t i = 0; i < MANY; i++) {
		expect(&words[i]);
		expect_at_plain(i);
	}
	expect_nothing();
}
END_TEST

/*
 * With one receive posted, and with several, which are read by another call when datagrams keep
 * coming.
 */
static void receive_through_errors(void)
{
	uint64_t words[MANY], out = 7;

	for (int i = 0; i < MANY; i++)
		ck_assert_int_eq(fi_recv(opened.ep, &words[i], sizeof(words[i]), NULL,
					 FI_ADDR_UNSPEC, &words[i]),
				 0);
	for (int i = 0; i < MANY; i++) {
		make_error();
		opened.udp->spell = i & 1 ? 100 : 0;
		expect_nothing();
		ck_assert_int_eq(sendto(opened.plain, &out, sizeof(out), 0,
					(struct sockaddr *)&opened.name, sizeof(opened.name)),
				 sizeof(out));
		ck_assert_uint_eq(expect(&words[i]).len, sizeof(out));
		ck_assert_uint_eq(words[i], out);
	}
}

START_TEST(receives_go_on)
{
	receive_through_errors();
}
END_TEST

START_TEST(streams_go_on)
{
	udp_gro_start(opened.udp);
	ck_assert_ptr_nonnull(opened.udp->gro);
	receive_through_errors();
}
END_TEST

/* A datagram's own error is reported: loopback has no route to other networks. */
START_TEST(own_errors_are_reported)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)};
	uint64_t word = 1, more = 2;
	fi_addr_t to;

	inet_pton(AF_INET, "203.0.113.1", &far.sin_addr);
	to = insert(&far);
	make_error();
	ck_assert_int_eq(send_word(opened.ep, to, &word, 0), 0);
	expect_error(&word, FI_EINVAL);
	ck_assert_int_eq(fi_inject(opened.ep, &word, sizeof(word), to), -FI_EINVAL);
	expect_nothing();
	ck_assert_int_eq(send_word(opened.ep, to, &word, FI_MORE), 0);
	ck_assert_int_eq(send_word(opened.ep, opened.to_plain, &more, 0), 0);
	expect_error(&word, FI_EINVAL);
	expect(&more);
	expect_at_plain(2);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_udp_errors");
	TCase *tcase = tcase_create("errors");

	tcase_add_checked_fixture(tcase, setup, close_all);
	tcase_add_test(tcase, sends_go_on);
	tcase_add_test(tcase, several_go_on);
	tcase_add_test(tcase, receives_go_on);
	tcase_add_test(tcase, streams_go_on);
	tcase_add_test(tcase, own_errors_are_reported);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
