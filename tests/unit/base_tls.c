/* SPDX-License-Identifier: BSD-2-Clause */
/* Two connections with each other, by memory; a key as RFC 5869 derives it. */
#include "base/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define LEN 100000

/* One end: what it has to send, and what of that the other end has had. */
struct end {
	struct tls *tls;
	struct tls_out out;
};

static const uint8_t key[TLS_KEY] = {1, 2, 3}, other_key[TLS_KEY] = {3, 2, 1};
static bool kernels; /* for open_both */
static unsigned char data[LEN], in[LEN + 1];

static void open_both(struct end ends[2], const uint8_t first[TLS_KEY],
		      const uint8_t second[TLS_KEY])
{
	memset(ends, 0, 2 * sizeof(*ends));
	ends[0].tls = tls_new(first, true, kernels, &ends[0].out);
	ends[1].tls = tls_new(second, false, kernels, &ends[1].out);
	ck_assert(ends[0].tls && ends[1].tls);
	for (size_t i = 0; i < LEN; i++)
		data[i] = (unsigned char)(i * 7 + i / 251);
}

static void close_both(struct end ends[2])
{
	for (int i = 0; i < 2; i++) {
		tls_free(ends[i].tls);
		free(ends[i].out.bytes);
	}
}

/* Continues the handshake at one end with all that the other has sent. */
static int shake(struct end *to, struct end *from)
{
	int ret;

	tls_input(to->tls, from->out.bytes, from->out.len);
	ret = tls_handshake(to->tls);
	from->out.len = 0;
	return ret;
}

static void connect_both(struct end ends[2])
{
	ck_assert_int_eq(tls_handshake(ends[0].tls), 0);
	ck_assert_int_eq(shake(&ends[1], &ends[0]), 0);
	ck_assert_int_eq(shake(&ends[0], &ends[1]), 1);
	ck_assert_int_eq(shake(&ends[1], &ends[0]), 1);
	ck_assert_uint_eq(ends[1].out.len, 0);
}

START_TEST(both_ends_read_what_the_other_wrote)
{
	struct end ends[2];

	open_both(ends, key, key);
	connect_both(ends);
	for (int me = 0; me < 2; me++) {
		ck_assert(tls_write(ends[me].tls, data, LEN));
		ck_assert_uint_gt(ends[me].out.len, LEN);
		ck_assert_ptr_null(memmem(ends[me].out.bytes, ends[me].out.len, data, 16));
		tls_input(ends[!me].tls, ends[me].out.bytes, ends[me].out.len);
		ck_assert_int_eq(tls_read(ends[!me].tls, in, LEN), LEN);
		ck_assert_mem_eq(in, data, LEN);
		ck_assert(!tls_unused(ends[!me].tls));
		ck_assert_int_eq(tls_read(ends[!me].tls, in, LEN), 0);
	}
	close_both(ends);
}
END_TEST

START_TEST(input_may_come_in_any_pieces_and_go_into_any_room)
{
	struct end ends[2];
	size_t have = 0;
	ssize_t ret;

	open_both(ends, key, key);
	connect_both(ends);
	ck_assert(tls_write(ends[0].tls, data, LEN));
	for (size_t at = 0, n; at < ends[0].out.len; at += n) {
		n = at % 4000 + 1;
		if (n > ends[0].out.len - at)
			n = ends[0].out.len - at;
		tls_input(ends[1].tls, ends[0].out.bytes + at, n);
		do {
			ret = tls_read(ends[1].tls, in + have, 1 + have % 5000);
			ck_assert_int_ge(ret, 0);
			have += (size_t)ret;
		} while (tls_unused(ends[1].tls));
	}
	ck_assert_uint_eq(have, LEN);
	ck_assert_mem_eq(in, data, LEN);
	close_both(ends);
}
END_TEST

START_TEST(the_handshake_leaves_what_is_behind_it)
{
	struct end ends[2];
	size_t own;

	open_both(ends, key, key);
	ck_assert_int_eq(tls_handshake(ends[0].tls), 0);
	ck_assert_int_eq(shake(&ends[1], &ends[0]), 0);
	ck_assert_int_eq(shake(&ends[0], &ends[1]), 1);
	own = ends[0].out.len;
	ck_assert(tls_write(ends[0].tls, data, LEN));
	tls_input(ends[1].tls, ends[0].out.bytes, ends[0].out.len);
	ck_assert_int_eq(tls_handshake(ends[1].tls), 1);
	ck_assert_uint_eq(tls_left(ends[1].tls), ends[0].out.len - own);
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), LEN);
	ck_assert_uint_eq(tls_left(ends[1].tls), 0);
	close_both(ends);
}
END_TEST

START_TEST(both_ends_have_the_same_keys_for_their_kernels)
{
	struct tls_way out[2], into[2];
	struct end ends[2];

	kernels = true;
	open_both(ends, key, key);
	kernels = false;
	connect_both(ends);
	for (int i = 0; i < 2; i++)
		ck_assert(tls_kernel_keys(ends[i].tls, &out[i], &into[i]));
	ck_assert_mem_eq(&out[0], &into[1], sizeof(out[0]));
	ck_assert_mem_eq(&out[1], &into[0], sizeof(out[0]));
	ck_assert_mem_ne(out[0].key, out[1].key, TLS_CIPHER);
	ck_assert_mem_ne(out[0].iv, out[1].iv, TLS_IV);
	close_both(ends);
}
END_TEST

START_TEST(another_key_ends_the_handshake)
{
	struct end ends[2];

	open_both(ends, key, other_key);
	ck_assert_int_eq(tls_handshake(ends[0].tls), 0);
	ck_assert_int_eq(shake(&ends[1], &ends[0]), -1);
	ck_assert_str_ne(tls_error(ends[1].tls), "no reason known");
	close_both(ends);
}
END_TEST

START_TEST(a_changed_byte_ends_the_connection_behind_what_was_good)
{
	struct end ends[2];

	open_both(ends, key, key);
	connect_both(ends);
	ck_assert(tls_write(ends[0].tls, data, 10));
	ck_assert(tls_write(ends[0].tls, data, 10));
	ends[0].out.bytes[ends[0].out.len - 20] ^= 1;
	tls_input(ends[1].tls, ends[0].out.bytes, ends[0].out.len);
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), 10);
	ck_assert(tls_unused(ends[1].tls));
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), -1);
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), -1);
	close_both(ends);
}
END_TEST

START_TEST(a_record_played_again_ends_the_connection)
{
	struct end ends[2];

	open_both(ends, key, key);
	connect_both(ends);
	ck_assert(tls_write(ends[0].tls, data, 10));
	tls_input(ends[1].tls, ends[0].out.bytes, ends[0].out.len);
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), 10);
	tls_input(ends[1].tls, ends[0].out.bytes, ends[0].out.len);
	ck_assert_int_eq(tls_read(ends[1].tls, in, LEN), -1);
	close_both(ends);
}
END_TEST

/* RFC 5869, A.3: the first TLS_KEY of 42 bytes. */
START_TEST(keys_are_derived_as_the_standard_says)
{
	static const char expected[] =
		"8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d";
	uint8_t secret[22], got[TLS_KEY];
	char text[2 * TLS_KEY + 1];

	memset(secret, 0x0b, sizeof(secret));
	ck_assert(tls_derive(secret, sizeof(secret), "", 0, got));
	for (size_t i = 0; i < TLS_KEY; i++)
		snprintf(text + 2 * i, 3, "%02x", got[i]);
	ck_assert_str_eq(text, expected);
}
END_TEST

/* ---- Keys in memory ---- */

/* A key that is looked for, which itself lies nowhere as it is. */
struct hidden {
	uint8_t masked[TLS_CIPHER];
};

static struct hidden hide(const uint8_t *bytes)
{
	struct hidden h;

	for (size_t i = 0; i < sizeof(h.masked); i++)
		h.masked[i] = bytes[i] ^ 0xa5;
	return h;
}

static bool is_hidden(const struct hidden *h, const volatile uint8_t *at)
{
	size_t i = 0;

	while (i < sizeof(h->masked) && at[i] == (h->masked[i] ^ 0xa5))
		i++;
	return i == sizeof(h->masked);
}

/* Counts the copies in memory that the process can write. */
static unsigned int copies(const struct hidden *h)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int found = 0;
	unsigned long from, to;
	char line[512], mode[8];

	ck_assert_ptr_nonnull(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s", &from, &to, mode) == 3 && !strncmp(mode, "rw", 2) &&
		    !strstr(line, "[v"))
			for (; from + sizeof(h->masked) <= to; from++)
				found += is_hidden(h, (const volatile uint8_t *)from);
	fclose(maps);
	return found;
}

START_TEST(no_key_is_left_of_a_connection_that_has_ended)
{
	uint8_t secret[TLS_KEY];
	struct hidden keys[3];
	struct tls_way out, back;
	struct end ends[2];

	for (size_t i = 0; i < sizeof(secret); i++)
		secret[i] = (uint8_t)(i * 91 + 7);
	keys[0] = hide(secret);
	kernels = true;
	open_both(ends, secret, secret);
	kernels = false;
	explicit_bzero(secret, sizeof(secret));
	ck_assert_uint_gt(copies(&keys[0]), 0);
	connect_both(ends);
	ck_assert(tls_kernel_keys(ends[0].tls, &out, &back));
	keys[1] = hide(out.key);
	keys[2] = hide(back.key);
	explicit_bzero(&out, sizeof(out));
	explicit_bzero(&back, sizeof(back));
	ck_assert_uint_gt(copies(&keys[1]) + copies(&keys[2]), 0);
	close_both(ends);
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(copies(&keys[i]), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_tls");
	TCase *all = tcase_create("tls");

	if (!tls_load()) {
		printf("no libssl.so.3 here, or built without it\n");
		return 77;
	}
	tcase_add_test(all, both_ends_read_what_the_other_wrote);
	tcase_add_test(all, input_may_come_in_any_pieces_and_go_into_any_room);
	tcase_add_test(all, the_handshake_leaves_what_is_behind_it);
	tcase_add_test(all, both_ends_have_the_same_keys_for_their_kernels);
	tcase_add_test(all, another_key_ends_the_handshake);
	tcase_add_test(all, a_changed_byte_ends_the_connection_behind_what_was_good);
	tcase_add_test(all, a_record_played_again_ends_the_connection);
	tcase_add_test(all, keys_are_derived_as_the_standard_says);
	tcase_add_test(all, no_key_is_left_of_a_connection_that_has_ended);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
