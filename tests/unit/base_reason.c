/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that fi_cq_strerror gives the reason for the end of a link with the failed operations: a
 * device's, or our own.
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

/* Sends an RTS without an answer, then ends the link with `reason`, and `end`. Returns the send's error, `err`. */
static struct fi_cq_err_entry lose(int reason, enum conn_end end, int err)
{
	static char big[4 * FAKE_EAGER];
	struct fi_cq_err_entry entry;

	ck_assert_int_eq(fi_send(fake.ep, big, sizeof(big), NULL, fake.addr, big), 0);
	fake_expect_nothing();
	fake.link.reason = reason;
	fake.peer->conn.end = end;
	contact_failed(&fake.peer->conn, FI_ETIMEDOUT);
	entry = fake_expect_error(big, err);
	fake.closed = 0;
	return entry;
}

START_TEST(device_says)
{
	struct fi_cq_err_entry entry = lose(REASON_DEVICE + STATUS, END_NONE, FI_ETIMEDOUT);
	char text[8];

	ck_assert_str_eq(fi_cq_strerror(fake.cq, entry.prov_errno, NULL, NULL, 0), "tries ran out");
	fi_cq_strerror(fake.cq, entry.prov_errno, NULL, text, sizeof(text));
	ck_assert_str_eq(text, "tries r");
}
END_TEST

static const char *said(const struct fi_cq_err_entry *entry)
{
	return fi_cq_strerror(fake.cq, entry->prov_errno, NULL, NULL, 0);
}

/* Without a device's reason the text is ours: it names the setting that decided. */
START_TEST(device_says_nothing)
{
	struct fi_cq_err_entry entry = lose(0, END_NONE, FI_ETIMEDOUT);

	ck_assert_ptr_nonnull(strstr(said(&entry), "FI_WEFT_PEER_TIMEOUT"));
}
END_TEST

/* After a disconnect message of the peer nothing that a device says counts. */
START_TEST(peer_closes)
{
	struct fi_cq_err_entry entry = lose(REASON_DEVICE + STATUS, END_CLOSED, FI_ESHUTDOWN);

	ck_assert_ptr_nonnull(strstr(said(&entry), "closed its endpoint"));
}
END_TEST

/* What we ended the connection for is told, and not told of the next one. */
START_TEST(we_ended_it)
{
	static const struct {
		enum conn_end end;
		int err;
		const char *words;
	} ends[] = {{END_BUDGET, FI_EPROTO, "FI_WEFT_UNEXPECTED_LIMIT"},
		    {END_MEMORY, FI_ENOMEM, "no memory"},
		    {END_OVERDUE, FI_ETIMEDOUT, "FI_WEFT_SENDER_TIMEOUT"},
		    {END_STUCK, FI_ETIMEDOUT, "FI_WEFT_OPERATION_TIMEOUT"}};
	struct fi_cq_err_entry entry = lose(REASON_DEVICE + STATUS, ends[_i].end, ends[_i].err);

	ck_assert_ptr_nonnull(strstr(said(&entry), ends[_i].words));
	fake_connect();
	entry = lose(0, END_NONE, FI_ETIMEDOUT);
	ck_assert_ptr_null(strstr(said(&entry), ends[_i].words));
}
END_TEST

/* Numbers of errors keep their texts, and each reason has one of its own. */
START_TEST(texts)
{
	ck_assert_str_eq(reason_text(FI_ETRUNC), fi_strerror(FI_ETRUNC));
	for (int i = REASON_BUDGET; i < REASON_END; i++)
		for (int j = REASON_BUDGET; j < i; j++)
			ck_assert_str_ne(reason_text(i), reason_text(j));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base_reason");
	TCase *tcase = tcase_create("reason");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, device_says);
	tcase_add_test(tcase, device_says_nothing);
	tcase_add_test(tcase, peer_closes);
	tcase_add_loop_test(tcase, we_ended_it, 0, 4);
	tcase_add_test(tcase, texts);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
