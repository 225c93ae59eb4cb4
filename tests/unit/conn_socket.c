/* SPDX-License-Identifier: BSD-2-Clause */
/* What the end of its bootstrap socket means for a link that can, or cannot, tell by itself whether the peer is there. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_link.h"
#include "hw/transports.h"
#include "xfer/worker.h"
#include "conn/conn_own.h"

static bool can_tell;
static unsigned int pings;
static int far_end;

static bool fake_ping(struct link *link)
{
	ck_assert_ptr_eq(link, &fake.link);
	pings++;
	return can_tell;
}

/* Across the network, over devices. */
static void setup(void)
{
	static struct transport device;
	int ends[2];

	device = fake_transport;
	device.ping = fake_ping;
	can_tell = true;
	pings = 0;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	fake_open_connected();
	far_end = ends[1];
	fake.peer->conn.sock = ends[0];
	fake.worker->conn.via[fake.peer->conn.kind].transport = &device;
	ck_assert_int_eq(conn_watch(&fake.peer->conn, EPOLLIN), 0);
}

static void shut(void)
{
	fake_shut();
}

/* The far end ends: as a reset, if it leaves something unread. */
static void ends_socket(bool reset)
{
	if (reset)
		ck_assert_int_eq(send(fake.peer->conn.sock, "", 1, MSG_NOSIGNAL), 1);
	close(far_end);
	conn_poll(&fake.worker->conn);
}

static void is_over(void)
{
	ck_assert_ptr_null(fake.peer->conn.real);
	ck_assert_int_eq(fake.closed, 1);
	fake.closed = 0;
}

/* It is asked once, and the socket is not looked at any more. */
START_TEST(outlives_a_reset)
{
	ends_socket(true);
	conn_poll(&fake.worker->conn);
	ck_assert_uint_eq(pings, 1);
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
}
END_TEST

static void says_disconnect(void)
{
	fake_says(WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0), 0, 0, NULL, 0);
}

/* There is no end of the socket that could follow. */
START_TEST(disconnects_without_a_socket)
{
	static char buf[4 * FAKE_EAGER];

	ck_assert_int_eq(fi_send(fake.ep, buf, sizeof(buf), NULL, fake.addr, buf), 0);
	ends_socket(true);
	says_disconnect();
	is_over();
	fake_expect_error(buf, FI_ESHUTDOWN);
}
END_TEST

START_TEST(disconnects_before_the_end)
{
	says_disconnect();
	ck_assert_int_eq(fake.peer->conn.state, PEER_CONNECTED);
	ends_socket(true);
	is_over();
	ck_assert_uint_eq(pings, 0);
}
END_TEST

START_TEST(cannot_tell)
{
	can_tell = false;
	ends_socket(true);
	is_over();
}
END_TEST

START_TEST(ends_in_order)
{
	ends_socket(false);
	is_over();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_socket");
	TCase *tcase = tcase_create("socket");

	tcase_add_checked_fixture(tcase, setup, shut);
	tcase_add_test(tcase, outlives_a_reset);
	tcase_add_test(tcase, disconnects_without_a_socket);
	tcase_add_test(tcase, disconnects_before_the_end);
	tcase_add_test(tcase, cannot_tell);
	tcase_add_test(tcase, ends_in_order);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
