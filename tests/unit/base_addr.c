/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how addresses are read, printed, compared, and recognized as local. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/addr.h"
#include "suite.h"

static struct sockaddr_in in_of(const char *ip, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	ck_assert_int_eq(inet_pton(AF_INET, ip, &in.sin_addr), 1);
	return in;
}

static struct sockaddr_in6 in6_of(const char *ip, uint16_t port, uint32_t scope)
{
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = scope};

	ck_assert_int_eq(inet_pton(AF_INET6, ip, &in6.sin6_addr), 1);
	return in6;
}

static struct addr parsed(const char *text)
{
	struct addr a;

	ck_assert_msg(addr_parse(&a, text) == 0, "%s", text);
	return a;
}

START_TEST(sockaddrs_go_in_and_out)
{
	struct sockaddr_in in = in_of("10.1.2.3", 4567), in_back;
	struct sockaddr_in6 in6 = in6_of("fe80::1", 7, 3), in6_back;
	size_t len = sizeof(in_back);
	struct addr a;

	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR, &in, sizeof(in)), 0);
	ck_assert_int_eq(a.kind, ADDR_IN);
	ck_assert_uint_eq(a.port, 4567);
	ck_assert_uint_eq(addr_user_len(&a), sizeof(in));
	ck_assert_int_eq(addr_to_user(&a, &in_back, &len), 0);
	ck_assert_uint_eq(len, sizeof(in));
	ck_assert_mem_eq(&in, &in_back, sizeof(in));

	len = sizeof(in6_back);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN6, &in6, 0), 0);
	ck_assert_int_eq(addr_to_user(&a, &in6_back, &len), 0);
	ck_assert_uint_eq(len, sizeof(in6));
	ck_assert_mem_eq(&in6, &in6_back, sizeof(in6));
}
END_TEST

START_TEST(unaligned_sockaddrs_are_read)
{
	struct sockaddr_in in = in_of("1.2.3.4", 5);
	char buf[sizeof(in) + 1];
	struct addr a;

	memcpy(buf + 1, &in, sizeof(in));
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, buf + 1, 0), 0);
	ck_assert_uint_eq(a.port, 5);
}
END_TEST

START_TEST(wrong_input_is_refused)
{
	struct sockaddr_in in = in_of("1.2.3.4", 5);
	struct sockaddr_in6 in6 = in6_of("::1", 5, 0);
	struct addr a;

	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, NULL, 0), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, &in6, 0), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN6, &in, 0), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, &in, sizeof(in) - 1), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR, &in6, sizeof(in)), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR, &in, 1), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IB, &in, 0), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_STR, "", 0), -FI_EINVAL);
	in.sin_family = AF_UNIX;
	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR, &in, 0), -FI_EINVAL);
}
END_TEST

START_TEST(strings_are_copied_and_bounded)
{
	char text[ADDR_STR_MAX + 1], out[8] = "xxxxxxx";
	size_t len = 4;
	struct addr a, b;

	memset(text, 'a', sizeof(text) - 1);
	text[ADDR_STR_MAX] = '\0';
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_STR, text, 0), -FI_EINVAL);
	text[ADDR_STR_MAX - 1] = '\0';
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_STR, text, 0), 0);
	addr_free(&a);
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_STR, text, 3), 0);
	ck_assert_str_eq(a.str, "aaa");
	ck_assert_int_eq(addr_dup(&b, &a), 0);
	ck_assert_ptr_ne(a.str, b.str);
	ck_assert(addr_equal(&a, &b));
	ck_assert_uint_eq(addr_hash(&a), addr_hash(&b));
	ck_assert_int_eq(addr_to_user(&a, out, &len), 0);
	ck_assert_str_eq(out, "aaa");
	ck_assert_uint_eq(len, 4);
	addr_free(&a);
	ck_assert_int_eq(a.kind, ADDR_NONE);
	addr_free(&a);
	addr_free(&b);
}
END_TEST

START_TEST(short_room_gets_a_part_and_the_length)
{
	struct sockaddr_in in = in_of("1.2.3.4", 5);
	unsigned char out[sizeof(in)];
	size_t len = 5;
	struct addr a;

	ck_assert_int_eq(addr_from_user(&a, FI_SOCKADDR_IN, &in, 0), 0);
	memset(out, 0xee, sizeof(out));
	ck_assert_int_eq(addr_to_user(&a, out, &len), -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(in));
	ck_assert_mem_eq(out, &in, 5);
	ck_assert_uint_eq(out[5], 0xee);
	len = 0;
	ck_assert_int_eq(addr_to_user(&a, NULL, &len), -FI_ETOOSMALL);
	ck_assert_uint_eq(len, sizeof(in));
}
END_TEST

static const char *const texts[] = {
	"fi_sockaddr_in://1.2.3.4:5", "fi_sockaddr_in://255.255.255.255:65535",
	"fi_sockaddr_in6://[::1]:0",  "fi_sockaddr_in6://[fe80::6:12%4]:7471",
	"fi_shm://1000:17:3",         "anything at all",
};

START_TEST(text_goes_in_and_out)
{
	struct addr a = parsed(texts[_i]);
	char buf[128];

	addr_print(&a, buf, sizeof(buf));
	ck_assert_str_eq(buf, texts[_i]);
	addr_print(&a, buf, 6);
	ck_assert_uint_eq(strlen(buf), 5);
	addr_free(&a);
}
END_TEST

START_TEST(text_may_leave_parts_out)
{
	struct addr a = parsed("fi_sockaddr://10.31.6.12:7471?qos=3");

	ck_assert_int_eq(a.kind, ADDR_IN);
	ck_assert_uint_eq(a.port, 7471);
	a = parsed("fi_sockaddr://[::1]");
	ck_assert_int_eq(a.kind, ADDR_IN6);
	ck_assert_uint_eq(a.port, 0);
	a = parsed("fi_sockaddr_in://10.31.6.12/x");
	ck_assert_uint_eq(a.port, 0);
}
END_TEST

static const char *const bad_texts[] = {
	"",
	"fi_sockaddr_in://",
	"fi_sockaddr_in://host:5",
	"fi_sockaddr_in://1.2.3.4:",
	"fi_sockaddr_in://1.2.3.4:65536",
	"fi_sockaddr_in://1.2.3.4:5x",
	"fi_sockaddr_in://[::1]:5",
	"fi_sockaddr_in6://1.2.3.4:5",
	"fi_sockaddr_in6://[::1:5",
	"fi_sockaddr_in6://[::1]5",
	"fi_sockaddr_in6://[fe80::1%]:5",
	"fi_sockaddr_in6://[fe80::1%4294967296]:5",
};

START_TEST(bad_text_is_refused)
{
	struct addr a = {.kind = 77};

	ck_assert_msg(addr_parse(&a, bad_texts[_i]) == -FI_EINVAL, "%s", bad_texts[_i]);
	ck_assert_int_eq(a.kind, 77);
}
END_TEST

START_TEST(order_is_total)
{
	const char *rising[] = {"fi_sockaddr_in://1.2.3.4:9",
				"fi_sockaddr_in://1.2.3.5:5",
				"fi_sockaddr_in://1.2.3.5:6",
				"fi_sockaddr_in6://[::1]:1",
				"fi_sockaddr_in6://[::2]:1",
				"fi_sockaddr_in6://[::2%1]:1",
				"a",
				"b"};
	const int n = sizeof(rising) / sizeof(rising[0]);

	for (int i = 0; i < n; i++) {
		for (int j = 0; j < n; j++) {
			struct addr a = parsed(rising[i]), b = parsed(rising[j]);
			int diff = addr_compare(&a, &b);

			ck_assert_int_eq((diff > 0) - (diff < 0), (i > j) - (i < j));
			addr_free(&a);
			addr_free(&b);
		}
	}
}
END_TEST

START_TEST(equality_forgives_an_unknown_scope)
{
	struct addr none = parsed("fi_sockaddr_in6://[fe80::1]:1"),
		    two = parsed("fi_sockaddr_in6://[fe80::1%2]:1"),
		    three = parsed("fi_sockaddr_in6://[fe80::1%3]:1"),
		    port = parsed("fi_sockaddr_in6://[fe80::1%3]:2");

	ck_assert(addr_equal(&none, &two));
	ck_assert(!addr_equal(&two, &three));
	ck_assert(!addr_equal(&three, &port));
	ck_assert_uint_eq(addr_hash(&none), addr_hash(&two));
	ck_assert_uint_ne(addr_hash(&three), addr_hash(&port));
}
END_TEST

START_TEST(loopback_and_interfaces_are_local)
{
	const char *local[] = {"fi_sockaddr_in://127.0.0.1:1",
			       "fi_sockaddr_in://127.8.9.10:1",
			       "fi_sockaddr_in6://[::1]:1",
			       "fi_sockaddr_in6://[::ffff:127.0.0.1]:1",
			       "fi_sockaddr_in://0.0.0.0:1",
			       "fi_sockaddr_in6://[::]:1",
			       "fi_shm://x"};
	const char *far[] = {"fi_sockaddr_in://192.0.2.1:1", "fi_sockaddr_in6://[2001:db8::1]:1",
			     "fi_sockaddr_in6://[::ffff:192.0.2.1]:1"};
	struct ifaddrs *list;
	struct addr a;

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++) {
		a = parsed(local[i]);
		ck_assert_msg(addr_is_local(&a), "%s", local[i]);
		addr_free(&a);
	}
	for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++) {
		a = parsed(far[i]);
		ck_assert_msg(!addr_is_local(&a), "%s", far[i]);
	}
	ck_assert_int_eq(getifaddrs(&list), 0);
	for (struct ifaddrs *i = list; i; i = i->ifa_next)
		if (i->ifa_addr && addr_from_user(&a, FI_SOCKADDR, i->ifa_addr, 0) == 0)
			ck_assert(addr_is_local(&a));
	freeifaddrs(list);
	a = (struct addr){.kind = ADDR_NONE};
	ck_assert(!addr_is_local(&a));
}
END_TEST

/* Layout and text are those of other implementations of the interface. */
START_TEST(queue_pairs_go_in_and_out)
{
	unsigned char name[32], back[32];
	size_t len = sizeof(back);
	struct addr a, b;
	char text[ADDR_STR_MAX];

	for (unsigned char i = 0; i < sizeof(name); i++)
		name[i] = i + 1;
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_IB_UD, name, 0), -FI_EINVAL); /* 24 bits */
	name[19] = 0;
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_IB_UD, name, 31), -FI_EINVAL);
	ck_assert_int_eq(addr_from_user(&a, FI_ADDR_IB_UD, name, sizeof(name)), 0);
	ck_assert_int_eq(a.kind, ADDR_IB);
	addr_print(&a, text, sizeof(text));
	ck_assert_str_eq(text, "fi_addr_ib_ud://102:304:506:708:90a:b0c:d0e:f10:"
			       "131211/1615/ffff/1b");
	ck_assert_uint_eq(addr_user_len(&a), sizeof(back));
	ck_assert_int_eq(addr_to_user(&a, back, &len), 0);
	ck_assert_uint_eq(len, sizeof(back));
	ck_assert_mem_eq(back, name, 22);
	ck_assert_uint_eq(back[26], name[26]);
	ck_assert_int_eq(addr_from_user(&b, FI_ADDR_IB_UD, back, 0), 0);
	ck_assert(addr_equal(&a, &b) && addr_hash(&a) == addr_hash(&b));
	name[16]++;
	ck_assert_int_eq(addr_from_user(&b, FI_ADDR_IB_UD, name, 0), 0);
	ck_assert(!addr_equal(&a, &b) && addr_hash(&a) != addr_hash(&b));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_addr");
	TCase *user = tcase_create("user"), *text = tcase_create("text"),
	      *order = tcase_create("order");

	tcase_add_test(user, sockaddrs_go_in_and_out);
	tcase_add_test(user, unaligned_sockaddrs_are_read);
	tcase_add_test(user, wrong_input_is_refused);
	tcase_add_test(user, strings_are_copied_and_bounded);
	tcase_add_test(user, queue_pairs_go_in_and_out);
	tcase_add_test(user, short_room_gets_a_part_and_the_length);
	tcase_add_loop_test(text, text_goes_in_and_out, 0, sizeof(texts) / sizeof(texts[0]));
	tcase_add_test(text, text_may_leave_parts_out);
	tcase_add_loop_test(text, bad_text_is_refused, 0, sizeof(bad_texts) / sizeof(bad_texts[0]));
	tcase_add_test(order, order_is_total);
	tcase_add_test(order, equality_forgives_an_unknown_scope);
	tcase_add_test(order, loopback_and_interfaces_are_local);
	suite_add_tcase(suite, user);
	suite_add_tcase(suite, text);
	suite_add_tcase(suite, order);
	return suite_run(suite);
}
