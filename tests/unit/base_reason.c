/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that fi_cq_strerror gives a device's reason for the end of a link with the failed
 * operations.
 */
#include "fake_link.h"

#include "base/reason.h"
#include "xfer/peer.h"

#define STATUS 12

static const char *text_of(int number)
{
	return number == STATUS ? "tries ran out" : "something else";
}

static void setup(void)
{
	fake_open_connected();
	reason_given_by(text_of);
}

static void teardown(void)
{
	fake_shut();
}

/* Sends an RTS without an answer, then ends the link with `reason`. Returns the send's error. */
static struct fi_cq_err_entry lose(int reason, bool bye)
{
	static char big[4 * FAKE_EAGER];
	struct fi_cq_err_entry entry;

	ck_assert_int_eq(fi_send(fake.ep, big, sizeof(big), NULL, fake.addr, big), 0);
	fake_expect_nothing();
	fake.link.reason = reason;
	fake.peer->conn.disconnect_received = bye;
	peer_failed(fake.peer, FI_ETIMEDOUT);
	entry = fake_expect_error(big, FI_ETIMEDOUT);
	fake.closed = 0;
	return entry;
}

START_TEST(device_says)
{
	struct fi_cq_err_entry entry = lose(REASON_DEVICE + STATUS, false);
	char text[8];

	ck_assert_str_eq(fi_cq_strerror(fake.cq, entry.prov_errno, NULL, NULL, 0), "tries ran out");
	fi_cq_strerror(fake.cq, entry.prov_errno, NULL, text, sizeof(text));
	ck_assert_str_eq(text, "tries r");
}
END_TEST

/* Without a device's reason, or after a disconnect message, the text is that of the error. */
START_TEST(device_says_nothing)
{
	struct fi_cq_err_entry entry = lose(_i ? REASON_DEVICE + STATUS : 0, _i);

	ck_assert_int_eq(entry.prov_errno, FI_ETIMEDOUT);
	ck_assert_str_eq(fi_cq_strerror(fake.cq, entry.prov_errno, NULL, NULL, 0),
			 fi_strerror(FI_ETIMEDOUT));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_reason");
	TCase *tcase = tcase_create("reason");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, device_says);
	tcase_add_loop_test(tcase, device_says_nothing, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
