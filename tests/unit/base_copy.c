/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that copies of any length and alignment write exactly their bytes. */
#include "base/copy.h"
#include "suite.h"

enum { ROOM = 24576, GUARD = 64 };

static unsigned char from[ROOM] __attribute__((aligned(4096)));
static unsigned char to[ROOM] __attribute__((aligned(4096)));
static unsigned char guard[GUARD];

static void (*const ways[])(void *, const void *, size_t) = {copy_bytes, copy_around};

/* Copies and checks that `len` bytes were written, and none before or after them. */
static void check(int way, size_t dst, size_t src, size_t len)
{
	unsigned char *at = to + GUARD + dst;

	memset(guard, 0xa5, sizeof(guard));
	memset(to, 0xa5, dst + len + 2 * GUARD);
	ways[way](at, from + src, len);
	ck_assert_int_eq(memcmp(at, from + src, len), 0);
	ck_assert_int_eq(memcmp(at - GUARD, guard, GUARD), 0);
	ck_assert_int_eq(memcmp(at + len, guard, GUARD), 0);
}

static void fill(void)
{
	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 7 + (i >> 8));
}

START_TEST(short_ones)
{
	fill();
	for (size_t len = 0; len <= 200; len++)
		for (size_t dst = 0; dst < 64; dst += 3)
			check(_i, dst, len % 16, len);
}
END_TEST

/* Any distance between source and destination, modulo a page. */
START_TEST(long_ones)
{
	static const size_t lens[] = {2047, 2048, 2049, 4097, 6144, 16447};

	fill();
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		for (size_t dst = 0; dst < 160; dst += dst < 70 ? 1 : 16) {
			check(_i, dst, 0, lens[i]);
			check(_i, dst, 64, lens[i]);
			check(_i, 0, dst, lens[i]);
			check(_i, dst, 4090, lens[i]);
		}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_copy");
	TCase *tcase = tcase_create("copy");

	tcase_add_loop_test(tcase, short_ones, 0, 2);
	tcase_add_loop_test(tcase, long_ones, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
