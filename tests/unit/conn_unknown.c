/* SPDX-License-Identifier: BSD-2-Clause */
/* FI_WEFT_UNKNOWN_MAX limits the peers that the address vector does not hold, and no others. */
#include <rdma/fi_ext_weft.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake_link.h"
#include "xfer/worker.h"
#include "conn/conn_own.h"

#define MOST  3
#define FILES 200 /* descriptors, for the default */

static unsigned int names;
static char name[32];

/* Makes a peer by another name. */
static struct peer *newcomer(void)
{
	struct peer *peer;
	struct addr addr;

	snprintf(name, sizeof(name), "fi_shm://unknown-%u", ++names);
	ck_assert_int_eq(addr_from_user(&addr, FI_ADDR_STR, name, 0), 0);
	peer = peer_of(contact_by_name(&fake.worker->conn, &addr, 0));
	addr_free(&addr);
	ck_assert_ptr_nonnull(peer);
	return peer;
}

static fi_addr_t insert(void)
{
	fi_addr_t addr;

	ck_assert_int_eq(fi_av_insert(fake.av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

static uint64_t refused(void)
{
	struct fi_weft_ops_stats *ops = NULL;
	struct fi_weft_stats s;

	ck_assert_int_eq(fi_open_ops(&fake.ep->fid, FI_WEFT_STATS, 0, (void **)&ops, NULL), 0);
	ck_assert_int_eq(ops->read(&fake.ep->fid, &s, sizeof(s)), 0);
	return s.unknown_refused;
}

/* Lets peers in until one is refused, whose peer is freed. Returns how many there were. */
static unsigned int fill(unsigned int most)
{
	for (unsigned int n = 0; n <= most; n++) {
		struct peer *peer = newcomer();

		if (conn_has_place(&peer->conn))
			continue;
		conn_forget(&peer->conn);
		return n;
	}
	return most + 1;
}

static void setup(void)
{
	setenv("FI_WEFT_UNKNOWN_MAX", "3", 1);
	fake_open_connected();
}

START_TEST(unknown_peers)
{
	struct peer *peer = newcomer();

	ck_assert(conn_has_place(&peer->conn));
	ck_assert_uint_eq(fill(MOST), MOST - 1);
	ck_assert_uint_eq(refused(), 1);
	conn_forget(&peer->conn);
	ck_assert_uint_eq(fill(MOST), 1);
	ck_assert_uint_eq(refused(), 2);
}
END_TEST

START_TEST(known_peers)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct peer *peer;

	ck_assert_uint_eq(fill(MOST), MOST);
	for (int i = 0; i < 2 * MOST; i++) {
		peer = newcomer();
		addr = insert();
		ck_assert(conn_has_place(&peer->conn));
	}
	/* One that has lost its entry counts again, others do not. */
	peer->conn.state = PEER_CONNECTED;
	ck_assert_int_eq(fi_av_remove(fake.av, &addr, 1, 0), 0);
	peer->conn.state = PEER_IDLE;
	ck_assert_uint_eq(fill(MOST), 0);
}
END_TEST

/* They count no more once they are in the vector. */
START_TEST(inserted_later)
{
	struct peer *peer = newcomer();

	ck_assert(conn_has_place(&peer->conn));
	insert();
	ck_assert_uint_eq(fill(MOST), MOST);
	ck_assert_uint_eq(refused(), 1);
}
END_TEST

/* Only while it is connected. */
START_TEST(the_relay)
{
	struct peer *relay = newcomer();

	relay->conn.named++;
	fake.worker->conn.relay.peer = &relay->conn;
	ck_assert_uint_eq(fill(MOST), MOST);
	relay->conn.state = PEER_CONNECTED;
	ck_assert(!conn_has_place(&newcomer()->conn));
	relay->conn.state = PEER_IDLE;
}
END_TEST

START_TEST(by_default)
{
	struct rlimit files;
	unsigned int used, may_be;

	setenv("FI_WEFT_UNKNOWN_MAX", "0", 1);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = FILES;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	fake_open_connected();
	used = (unsigned int)dup(0);
	close((int)used);
	may_be = FILES - used + 1; /* and that of the peer which is connected */
	ck_assert_uint_eq(fill(FILES), may_be - may_be / 4);
	fake_shut();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_unknown");
	TCase *limit = tcase_create("limit"), *by = tcase_create("default");

	tcase_add_checked_fixture(limit, setup, fake_shut);
	tcase_add_test(limit, unknown_peers);
	tcase_add_test(limit, known_peers);
	tcase_add_test(limit, inserted_later);
	tcase_add_test(limit, the_relay);
	tcase_add_test(by, by_default);
	suite_add_tcase(suite, limit);
	suite_add_tcase(suite, by);
	return suite_run(suite);
}
