/* SPDX-License-Identifier: BSD-2-Clause */
/* Which connections that break are made again at once, and whom the end of an attempt is told. */
#include "base/clock.h"
#include "fake_link.h"
#include "xfer/worker.h"
#include "conn/conn_own.h"

static void setup(void)
{
	fake_open_connected();
}

/* Would a connection that was made so long ago be made again if it broke with `err`? */
static bool renews(uint64_t ms_ago, int err)
{
	fake.peer->conn.attempt_ms = clock_coarse_ms() - ms_ago;
	return conn_reach_renews(&fake.peer->conn, err);
}

START_TEST(by_reason)
{
	ck_assert(renews(100000, FI_ECONNRESET));
	fake.peer->conn.renewals = 0;
	ck_assert(renews(100000, FI_ETIMEDOUT));
	fake.peer->conn.renewals = 0;
	ck_assert(!renews(100000, FI_ESHUTDOWN)); /* the peer has closed its endpoint */
	ck_assert(!renews(100000, FI_EPROTO));
	ck_assert(!renews(100000, FI_EACCES));
	fake.peer->conn.end = END_BUDGET;
	ck_assert(!renews(100000, FI_ECONNRESET));
}
END_TEST

/* A peer that accepts and ends each connection is called less and less often. */
START_TEST(seldom_for_short_lives)
{
	ck_assert(!renews(10, FI_ECONNRESET));
	ck_assert(renews(1500, FI_ECONNRESET));
	ck_assert(!renews(1500, FI_ECONNRESET));
	ck_assert(renews(2500, FI_ECONNRESET));
	for (int i = 0; i < 10; i++)
		renews(65000, FI_ECONNRESET);
	ck_assert(!renews(60000, FI_ECONNRESET));
	ck_assert(renews(200000, FI_ECONNRESET)); /* all is well again */
	ck_assert(renews(2500, FI_ECONNRESET));
}
END_TEST

/* An attempt that no operation asked for leaves no error for later ones. */
START_TEST(nobody_asked)
{
	contact_failed(&fake.peer->conn, FI_ECONNRESET);
	fake_attempt(PEER_CONNECTING);
	fake.peer->conn.attempt->in_advance = _i;
	contact_failed(&fake.peer->conn, FI_ETIMEDOUT);
	ck_assert_int_eq(fake.peer->conn.refused, _i ? 0 : FI_ETIMEDOUT);
	fake.closed = 0; /* links that are still open when the endpoint is closed */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_reach");
	TCase *tcase = tcase_create("reach");

	tcase_add_checked_fixture(tcase, setup, fake_shut);
	tcase_add_test(tcase, by_reason);
	tcase_add_test(tcase, seldom_for_short_lives);
	tcase_add_loop_test(tcase, nobody_asked, 0, 2);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
