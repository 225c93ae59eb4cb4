/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how a trace shows the arguments and results of calls: on one line, whatever they are. */
#include "hook/value.h"

#include <netinet/in.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "suite.h"

static char line[8192];

/* Returns the text of a value; `size` limits it. */
static const char *shown_in(size_t size, enum show show, enum fi_type type, uint64_t bits)
{
	const struct shape shape = {"x", (unsigned char)show, (unsigned char)type};
	struct text t;

	text_init(&t, line, size);
	value_add(&t, &shape, bits);
	return line;
}

static const char *shown(enum show show, enum fi_type type, uint64_t bits)
{
	return shown_in(sizeof(line), show, type, bits);
}

START_TEST(numbers)
{
	ck_assert_str_eq(shown(SHOW_NUMBER, 0, 17), "17");
	ck_assert_str_eq(shown(SHOW_NUMBER, 0, (uint64_t)-1), "-1"); /* a timeout */
	ck_assert_str_eq(shown(SHOW_HEX, 0, 0x70696e67), "0x70696e67");
	ck_assert_str_eq(shown(SHOW_HEX, 0, 0), "0");
	ck_assert_str_eq(shown(SHOW_ADDRESS, 0, 5), "0x5");
	ck_assert_str_eq(shown(SHOW_ADDRESS, 0, FI_ADDR_UNSPEC), "FI_ADDR_UNSPEC");
	ck_assert_str_eq(shown(SHOW_POINTER, 0, 0), "NULL");
	ck_assert_str_eq(shown(SHOW_POINTER, 0, 0x1000), "0x1000");
}
END_TEST

START_TEST(statuses)
{
	char expected[200];

	ck_assert_str_eq(shown(SHOW_STATUS, 0, 0), "0");
	ck_assert_str_eq(shown(SHOW_STATUS, 0, 3), "3");
	snprintf(expected, sizeof(expected), "%d (%s)", -FI_ETOOSMALL, fi_strerror(FI_ETOOSMALL));
	ck_assert_str_eq(shown(SHOW_STATUS, 0, (uint64_t)-FI_ETOOSMALL), expected);
}
END_TEST

START_TEST(decoded)
{
	struct fi_cq_attr attr = {.size = 77, .format = FI_CQ_FORMAT_TAGGED};

	ck_assert_str_eq(shown(SHOW_DECODED, FI_TYPE_ATOMIC_TYPE, FI_UINT32), "FI_UINT32");
	ck_assert_str_eq(shown(SHOW_DECODED, FI_TYPE_ATOMIC_OP, FI_CSWAP), "FI_CSWAP");
	ck_assert_str_eq(shown(SHOW_DECODED, FI_TYPE_OP_FLAGS, 0), "0");
	ck_assert_ptr_nonnull(
		strstr(shown(SHOW_DECODED, FI_TYPE_OP_FLAGS, FI_MORE | FI_INJECT), "FI_MORE"));
	ck_assert_ptr_nonnull(strstr(line, "FI_INJECT"));
	shown(SHOW_DECODED_AT, FI_TYPE_CQ_ATTR, (uintptr_t)&attr);
	ck_assert_ptr_nonnull(strstr(line, "size: 77 "));
	ck_assert_ptr_nonnull(strstr(line, "FI_CQ_FORMAT_TAGGED"));
	ck_assert_ptr_null(strchr(line, '\n'));
	ck_assert_str_eq(shown(SHOW_DECODED_AT, FI_TYPE_CQ_ATTR, 0), "NULL");
}
END_TEST

START_TEST(texts)
{
	ck_assert_str_eq(shown(SHOW_TEXT, 0, (uintptr_t) "two\n\twords\n"), "two words");
	ck_assert_str_eq(shown(SHOW_TEXT, 0, (uintptr_t) ""), "");
	ck_assert_str_eq(shown(SHOW_TEXT, 0, 0), "NULL");
	ck_assert_str_eq(shown_in(4, SHOW_TEXT, 0, (uintptr_t) "longer"), "lon");
}
END_TEST

START_TEST(names)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(4711)};
	struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(5), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const uint64_t other[4] = {UINT64_MAX};
	char where[32];

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_ptr_nonnull(strstr(shown(SHOW_NAME, 0, (uintptr_t)&in), "127.0.0.1:4711"));
	ck_assert_ptr_nonnull(strstr(shown(SHOW_NAME, 0, (uintptr_t)&in6), "[::1]:5"));
	ck_assert_str_eq(shown(SHOW_NAME, 0, (uintptr_t) "fi_shm://7"), "fi_shm://7");
	ck_assert_str_eq(shown(SHOW_NAME, 0, 0), "NULL");
	snprintf(where, sizeof(where), "%p", (const void *)other);
	ck_assert_str_eq(shown(SHOW_NAME, 0, (uintptr_t)other), where);
}
END_TEST

START_TEST(entries)
{
	struct fi_cq_tagged_entry e[20] = {{.op_context = (void *)0x10,
					    .flags = FI_TAGGED | FI_RECV,
					    .len = 64,
					    .buf = (void *)0x20,
					    .data = 5,
					    .tag = 0x77}};
	struct value_entries read = {e, 1, FI_CQ_FORMAT_TAGGED};
	size_t shown_entries = 0;

	shown(SHOW_ENTRIES, 0, (uintptr_t)&read);
	ck_assert_ptr_nonnull(strstr(line, "[{context 0x10 flags "));
	ck_assert_ptr_nonnull(strstr(line, "FI_TAGGED"));
	ck_assert_ptr_nonnull(strstr(line, " len 64 buf 0x20 data 0x5 tag 0x77}]"));
	read.format = FI_CQ_FORMAT_MSG;
	shown(SHOW_ENTRIES, 0, (uintptr_t)&read);
	ck_assert_ptr_nonnull(strstr(line, " len 64}]"));
	read.format = FI_CQ_FORMAT_UNSPEC;
	ck_assert_str_eq(shown(SHOW_ENTRIES, 0, (uintptr_t)&read), "[{context 0x10}]");
	read.count = -FI_EAGAIN;
	ck_assert_str_eq(shown(SHOW_ENTRIES, 0, (uintptr_t)&read), "[]");
	read = (struct value_entries){e, 20, FI_CQ_FORMAT_TAGGED};
	shown(SHOW_ENTRIES, 0, (uintptr_t)&read);
	ck_assert_ptr_nonnull(strstr(line, "}...]"));
	for (const char *at = line; (at = strstr(at, "{context")); at++)
		shown_entries++;
	ck_assert_uint_eq(shown_entries, 16);
}
END_TEST

START_TEST(lengths)
{
	const struct iovec iov[2] = {{NULL, 3}, {NULL, 40}};
	const struct fi_ioc ioc[2] = {{NULL, 5}, {NULL, 60}};

	ck_assert_uint_eq(value_bytes(iov, 2), 43);
	ck_assert_uint_eq(value_bytes(NULL, 3), 0);
	ck_assert_uint_eq(value_bytes(iov, 1000000), 0);
	ck_assert_uint_eq(value_elements(ioc, 2), 65);
	ck_assert_uint_eq(value_elements(NULL, 3), 0);
	ck_assert_uint_eq(value_elements(ioc, 1000000), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hook_value");
	TCase *tcase = tcase_create("value");

	tcase_add_test(tcase, numbers);
	tcase_add_test(tcase, statuses);
	tcase_add_test(tcase, decoded);
	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, names);
	tcase_add_test(tcase, entries);
	tcase_add_test(tcase, lengths);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
