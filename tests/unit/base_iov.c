/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that iov_slice returns the right segments for every offset and length, wherever they begin. */
#include "base/iov.h"
#include "suite.h"

#include <stdint.h>
#include <string.h>

/* Bytes 0 to 9 in segments of 3, 0, 5 and 2. */
static unsigned char bytes[10];
static const struct iovec all[4] = {{bytes, 3}, {NULL, 0}, {bytes + 3, 5}, {bytes + 8, 2}};

START_TEST(every_slice)
{
	for (size_t skip = 0; skip <= 11; skip++)
		for (size_t len = 0; len <= 12; len++) {
			size_t want = skip > 10 ? 0 : len < 10 - skip ? len : 10 - skip;
			size_t got = len, at = 0;
			struct iovec to[4];
			size_t count = iov_slice(to, all, 4, skip, &got);

			ck_assert_uint_eq(got, want);
			for (size_t i = 0; i < count; i++) {
				ck_assert_ptr_eq(to[i].iov_base, bytes + skip + at);
				ck_assert_uint_ne(to[i].iov_len, 0);
				at += to[i].iov_len;
			}
			ck_assert_uint_eq(at, want);
		}
}
END_TEST

/* Of another process, whose addresses are only numbers here. */
START_TEST(segment_at_address_0)
{
	const struct iovec from_0 = {NULL, 8};

	for (uintptr_t skip = 0; skip < 8; skip++) {
		size_t len = 8;
		struct iovec to;

		ck_assert_uint_eq(iov_slice(&to, &from_0, 1, skip, &len), 1);
		ck_assert_uint_eq((uintptr_t)to.iov_base, skip);
		ck_assert_uint_eq(to.iov_len, 8 - skip);
	}
}
END_TEST

START_TEST(every_copy)
{
	const char *from = "abcdefghijkl";

	for (size_t skip = 0; skip <= 11; skip++)
		for (size_t len = 0; len <= 12; len++) {
			size_t want = skip > 10 ? 0 : len < 10 - skip ? len : 10 - skip;

			memset(bytes, '.', sizeof(bytes));
			ck_assert_uint_eq(iov_scatter(all, 4, skip, from, len), want);
			for (size_t i = 0; i < 10; i++)
				ck_assert_int_eq(bytes[i], i >= skip && i < skip + want
								   ? from[i - skip]
								   : '.');
		}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_iov");
	TCase *tcase = tcase_create("iov");

	tcase_add_test(tcase, every_slice);
	tcase_add_test(tcase, segment_at_address_0);
	tcase_add_test(tcase, every_copy);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
