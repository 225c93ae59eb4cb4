/* SPDX-License-Identifier: BSD-2-Clause */
/* HMAC-SHA-256 as the library gives it to us: the test cases of RFC 4231. */
#include "base/hmac.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

/* A byte, repeated; or text. */
struct bytes {
	const char *text;
	int byte;
	size_t len;
};

static const struct rfc_case {
	struct bytes key, data;
	const char *code;
} cases[] = {
	{{NULL, 0x0b, 20},
	 {"Hi There", 0, 0},
	 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
	{{"Jefe", 0, 0},
	 {"what do ya want for nothing?", 0, 0},
	 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
	{{NULL, 0xaa, 20},
	 {NULL, 0xdd, 50},
	 "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
	{{NULL, 0xaa, 131},
	 {"Test Using Larger Than Block-Size Key - Hash Key First", 0, 0},
	 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
	{{NULL, 0xaa, 131},
	 {"This is a test using a larger than block-size key and a larger than block-size "
	  "data. The key needs to be hashed before being used by the HMAC algorithm.",
	  0, 0},
	 "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
};

static size_t spell(const struct bytes *b, uint8_t out[256])
{
	if (b->text)
		memcpy(out, b->text, strlen(b->text));
	else
		memset(out, b->byte, b->len);
	return b->text ? strlen(b->text) : b->len;
}

START_TEST(of_the_rfc)
{
	const struct rfc_case *c = &cases[_i];
	uint8_t key[256], data[256], code[HMAC_LEN];
	size_t key_len = spell(&c->key, key), len = spell(&c->data, data);
	char text[2 * HMAC_LEN + 1];

	ck_assert(hmac_sha256(key, key_len, data, len, code));
	for (int i = 0; i < HMAC_LEN; i++)
		snprintf(text + 2 * i, 3, "%02x", code[i]);
	ck_assert_str_eq(text, c->code);
}
END_TEST

START_TEST(comparison)
{
	uint8_t a[HMAC_LEN] = {1}, b[HMAC_LEN] = {1};

	ck_assert(hmac_equal(a, b, sizeof(a)));
	for (int i = 0; i < HMAC_LEN; i++) {
		b[i] ^= 0x80;
		ck_assert(!hmac_equal(a, b, sizeof(a)));
		b[i] ^= 0x80;
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_hmac");
	TCase *all = tcase_create("hmac");

	if (!hmac_load()) {
		printf("no libcrypto.so.3 here\n");
		return 77;
	}
	tcase_add_loop_test(all, of_the_rfc, 0, sizeof(cases) / sizeof(cases[0]));
	tcase_add_test(all, comparison);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
