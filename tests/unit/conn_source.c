/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves that tries of keys are limited by the network address they come from. */
#include <string.h>

#include "suite.h"
#include "xfer/worker.h"
#include "conn/source.h"

static uint64_t key;

static struct addr ip4(uint8_t last, uint16_t port)
{
	return (struct addr){.kind = ADDR_IN, .port = port, .ip = {10, 0, 0, last}};
}

static struct addr ip6(uint8_t net, uint8_t host)
{
	return (struct addr){.kind = ADDR_IN6, .port = 1, .ip = {0x20, 1, net, [15] = host}};
}

START_TEST(ports_are_one_address)
{
	struct addr a = ip4(1, 1), b = ip4(1, 2), c = ip4(2, 1), mapped = {.kind = ADDR_IN6};

	memcpy(mapped.ip, (uint8_t[]){[10] = 0xff, 0xff, 10, 0, 0, 1}, 16);
	ck_assert_uint_ne(source_id(&a), 0);
	ck_assert_uint_eq(source_id(&a), source_id(&b));
	ck_assert_uint_eq(source_id(&a), source_id(&mapped));
	ck_assert_uint_ne(source_id(&a), source_id(&c));
	a = ip6(1, 1);
	b = ip6(1, 2);
	c = ip6(2, 1);
	ck_assert_uint_eq(source_id(&a), source_id(&b));
	ck_assert_uint_ne(source_id(&a), source_id(&c));
	a = (struct addr){.kind = ADDR_STR, .str = "x"};
	ck_assert_uint_eq(source_id(&a), 0);
}
END_TEST

/* The limit counts within a second; the refusal ends by itself. */
START_TEST(too_many_in_a_second)
{
	struct sources all = {NULL};
	uint64_t now = 5000;

	for (int i = 0; i < 3; i++, now += SOURCE_WINDOW_MS)
		for (int n = 1; n < SOURCE_WRONG_MAX; n++)
			ck_assert(!source_wrong_key(&all, 7, ++key, now));
	ck_assert(!source_refused(&all, 7, now));
	for (int n = 1; n < SOURCE_WRONG_MAX; n++)
		ck_assert(!source_wrong_key(&all, 7, ++key, now));
	ck_assert(source_wrong_key(&all, 7, ++key, now + SOURCE_WINDOW_MS - 1));
	now += SOURCE_WINDOW_MS - 1;
	ck_assert(!source_wrong_key(&all, 7, ++key, now)); /* said once */
	ck_assert(source_refused(&all, 7, now));
	ck_assert(!source_refused(&all, 8, now));
	ck_assert(source_refused(&all, 7, now + SOURCE_REFUSED_MS - 1));
	ck_assert(!source_refused(&all, 7, now + SOURCE_REFUSED_MS));
	source_free(&all);
}
END_TEST

/* A key that was right once is often used again, by a program that knows no better. */
START_TEST(the_same_key)
{
	struct sources all = {NULL};

	for (int n = 0; n < 2 * SOURCE_WRONG_MAX; n++)
		ck_assert(!source_wrong_key(&all, 7, 1, 1000));
	ck_assert_uint_eq(all.wrong_keys, 1);
	ck_assert(!source_refused(&all, 7, 1000));
	source_free(&all);
}
END_TEST

/* Other addresses do not make a refused one forgotten. */
START_TEST(many_addresses)
{
	struct sources all = {NULL};

	for (int n = 0; n < SOURCE_WRONG_MAX; n++)
		source_wrong_key(&all, 7, ++key, 1000);
	for (uint64_t id = 100; id < 1000; id++)
		ck_assert(!source_wrong_key(&all, id, ++key, 1001));
	ck_assert(source_refused(&all, 7, 1002));
	source_free(&all);
}
END_TEST

/* Nobody is counted whose address is unknown: peers inside the host. */
START_TEST(no_address)
{
	struct sources all = {NULL};

	for (int n = 0; n < 2 * SOURCE_WRONG_MAX; n++)
		ck_assert(!source_wrong_key(&all, 0, ++key, 1000));
	ck_assert(!source_refused(&all, 0, 1000));
	source_free(&all);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_source");
	TCase *tc = tcase_create("source");

	tcase_add_test(tc, ports_are_one_address);
	tcase_add_test(tc, too_many_in_a_second);
	tcase_add_test(tc, the_same_key);
	tcase_add_test(tc, many_addresses);
	tcase_add_test(tc, no_address);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
