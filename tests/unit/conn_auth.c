/* SPDX-License-Identifier: BSD-2-Clause */
/* The proof of a key over both of its ends: what is good, and every change of it that is not. */
#include "xfer/worker.h"
#include "conn/auth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

static const struct job_key key = {.bytes = "a key of 16 bytes and more", .len = 26};
static const struct job_key other = {.bytes = "a key of 16 bytes, another", .len = 26};

static struct auth *initiator, *target;

static void setup(void)
{
	initiator = auth_new(&key, false);
	target = auth_new(&key, false);
}

static void teardown(void)
{
	auth_end(&initiator);
	auth_end(&target);
	ck_assert_ptr_null(initiator);
	auth_end(&initiator); /* once more is no harm */
}

static struct wire_hello sealed(struct auth *auth, enum hello_kind kind)
{
	struct wire_hello hello = {.magic = WIRE_MAGIC, .version = WIRE_VERSION, .kind = kind};

	ck_assert_int_eq(auth_seal(auth, &hello), 0);
	return hello;
}

static void pass(struct auth *from, struct auth *to, enum hello_kind kind)
{
	struct wire_hello hello = sealed(from, kind);

	ck_assert(auth_check(to, &hello));
}

START_TEST(good_ones)
{
	static const struct {
		enum hello_kind asks, answer;
	} pairs[] = {{HELLO_REQUEST, HELLO_ACCEPT},
		     {HELLO_CONNECT, HELLO_CROSSED},
		     {HELLO_REQUEST, HELLO_REJECT},
		     {HELLO_JOIN, HELLO_JOINED}};

	pass(initiator, target, HELLO_GREETING);
	pass(target, initiator, HELLO_CHALLENGE);
	pass(initiator, target, pairs[_i].asks);
	pass(target, initiator, pairs[_i].answer);
}
END_TEST

/* The greeting tells a target of several keys which one it is made with; and no two are alike. */
START_TEST(greeting_tells_the_key)
{
	static const uint8_t zero[WIRE_PROOF];
	struct wire_hello first = sealed(initiator, HELLO_GREETING);
	struct wire_hello second = sealed(target, HELLO_GREETING);
	struct auth *wrong = auth_new(&other, false), *right = auth_new(&key, false);

	ck_assert_mem_ne(first.nonce, zero, sizeof(zero));
	ck_assert_mem_ne(first.nonce, second.nonce, sizeof(zero));
	ck_assert_mem_ne(first.mac, second.mac, sizeof(zero));
	ck_assert(!auth_check(wrong, &first));
	wrong->key = key; /* what failed has changed nothing */
	ck_assert(auth_check(wrong, &first));
	ck_assert(auth_check(right, &first));
	auth_end(&wrong);
	auth_end(&right);
}
END_TEST

/* Every bit of a hello counts. */
START_TEST(any_bit_changed)
{
	struct wire_hello hello;

	pass(initiator, target, HELLO_GREETING);
	pass(target, initiator, HELLO_CHALLENGE);
	hello = sealed(initiator, HELLO_CONNECT);
	for (size_t i = 0; i < 8 * sizeof(hello); i++) {
		((unsigned char *)&hello)[i / 8] ^= (unsigned char)(1 << i % 8);
		ck_assert(!auth_check(target, &hello));
		((unsigned char *)&hello)[i / 8] ^= (unsigned char)(1 << i % 8);
	}
	ck_assert(auth_check(target, &hello));  /* what failed has changed nothing */
	ck_assert(!auth_check(target, &hello)); /* and it is good once */
}
END_TEST

START_TEST(of_what_was_said_before)
{
	struct wire_hello hello = sealed(initiator, HELLO_GREETING), earlier;
	struct auth *before = auth_new(&key, false);

	hello.nonce[31] ^= 1;
	ck_assert(!auth_check(target, &hello));
	earlier = sealed(before, HELLO_GREETING);
	ck_assert(
		auth_check(target, &earlier)); /* a greeting proves nothing: it may be an old one */
	hello = sealed(target, HELLO_CHALLENGE);
	ck_assert(!auth_check(initiator, &hello));
	auth_end(&before);
}
END_TEST

START_TEST(of_another_connection)
{
	struct wire_hello greeting = sealed(initiator, HELLO_GREETING), hello;
	struct auth *second = auth_new(&key, false);

	ck_assert(auth_check(target, &greeting));
	ck_assert(auth_check(second, &greeting));
	hello = sealed(second, HELLO_CHALLENGE);
	ck_assert(auth_check(initiator, &hello));
	sealed(target, HELLO_CHALLENGE); /* with a nonce of its own */
	hello = sealed(initiator, HELLO_CONNECT);
	ck_assert(!auth_check(target, &hello));
	ck_assert(auth_check(second, &hello));
	auth_end(&second);
}
END_TEST

START_TEST(of_another_key)
{
	struct wire_hello hello;

	pass(initiator, target, HELLO_GREETING);
	target->key = other;
	hello = sealed(target, HELLO_CHALLENGE);
	ck_assert(!auth_check(initiator, &hello));
	ck_assert(!job_key_equal(&key, &other));
	ck_assert(job_key_equal(&key, &key));
}
END_TEST

/* Our own code comes back: it is that of the other role. */
START_TEST(of_the_other_role)
{
	struct wire_hello hello;

	pass(initiator, target, HELLO_GREETING);
	hello = sealed(target, HELLO_CHALLENGE);
	hello.kind = HELLO_CONNECT;
	ck_assert(!auth_check(target, &hello));
}
END_TEST

/* The keys that encrypt sockets: both ends have the same one, and no two sockets, not of one link either. */
START_TEST(keys_of_sockets)
{
	static const enum hello_kind asks[] = {HELLO_CONNECT, HELLO_JOIN, HELLO_JOIN};
	uint8_t made[3][TLS_KEY], same[TLS_KEY];

	for (int i = 0; i < 3; i++) {
		teardown();
		setup();
		pass(initiator, target, HELLO_GREETING);
		pass(target, initiator, HELLO_CHALLENGE);
		pass(initiator, target, asks[i]);
		ck_assert(auth_link_key(target, made[i]));
		pass(target, initiator, asks[i] == HELLO_JOIN ? HELLO_JOINED : HELLO_ACCEPT);
		ck_assert(auth_link_key(initiator, same));
		ck_assert_mem_eq(same, made[i], TLS_KEY);
		for (int j = 0; j < i; j++)
			ck_assert_mem_ne(made[j], made[i], TLS_KEY);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_auth");
	TCase *all = tcase_create("auth");

	if (!hmac_load()) {
		printf("no libcrypto.so.3 here\n");
		return 77;
	}
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_loop_test(all, good_ones, 0, 4);
	tcase_add_test(all, greeting_tells_the_key);
	tcase_add_test(all, any_bit_changed);
	tcase_add_test(all, of_what_was_said_before);
	tcase_add_test(all, of_another_connection);
	tcase_add_test(all, of_another_key);
	tcase_add_test(all, of_the_other_role);
	if (tls_load())
		tcase_add_test(all, keys_of_sockets);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
