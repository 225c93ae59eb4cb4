/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A turn of the sockets ends however much there is to read. The kernel's part is played by this test: it
 * always has more.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "xfer/conn.h"
#include "suite.h"

#define ENOUGH 100000 /* calls: nobody would stop by himself */
#define SOCK   1000   /* no descriptor */

static struct port port;
static struct peer *peer;
static unsigned int polls, reads;
static bool endless;

/* In the place of the C library's: as many events as there is room for, or one. */
int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	(void)epfd, (void)timeout;
	polls++;
	ck_assert_uint_lt(polls, ENOUGH);
	for (int i = 0; i < max; i++)
		events[i].data.u64 = (uint64_t)PORT_PEER << 32 | pool_id(peer);
	return endless ? max : 1;
}

/* The peer wakes us without end. */
ssize_t recv(int sock, void *buf, size_t len, int flags)
{
	(void)flags;
	ck_assert_int_eq(sock, SOCK);
	ck_assert_uint_ge(len, 1);
	reads++;
	ck_assert_uint_lt(reads, ENOUGH);
	*(char *)buf = BOOT_WAKE;
	return 1;
}

static void setup(void)
{
	static const struct addr nobody = {.kind = ADDR_NONE};

	list_init(&port.peers_list);
	pool_init(&port.peer_pool, sizeof(struct peer));
	peer = peer_new(&port, &nobody);
	ck_assert_ptr_nonnull(peer);
	peer->state = PEER_CONNECTED;
	peer->sock = SOCK;
}

static void teardown(void)
{
	pool_fini(&port.peer_pool);
}

/* And the next turn goes on, without waiting for its time. */
START_TEST(events_without_end)
{
	endless = true;
	ck_assert(conn_poll(&port));
	ck_assert_uint_gt(polls, 1);
	ck_assert(port.armed);
}
END_TEST

START_TEST(bytes_without_end)
{
	ck_assert(conn_poll(&port));
	ck_assert_uint_eq(polls, 1);
	ck_assert_uint_gt(reads, 1);
	ck_assert(!port.armed);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_conn");
	TCase *tcase = tcase_create("conn");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, events_without_end);
	tcase_add_test(tcase, bytes_without_end);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
