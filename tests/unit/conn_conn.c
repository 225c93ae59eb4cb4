/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a poll of the sockets ends although input never does, and that a connect whose hello
 * came too late begins again. The test replaces system calls: input without end, or connects
 * without space.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <unistd.h>

#include "xfer/worker.h"
#include "conn/conn_own.h"
#include "suite.h"

#define ENOUGH 100000 /* calls; more mean an endless loop */
#define SOCK   1000   /* not a descriptor */

static struct worker worker;
static struct peer *peer;
static struct link its_link;
static unsigned int polls, reads;
static bool endless;
static bool gone;           /* the other side has closed the connection */
static unsigned int refuse; /* connects that fail with EAGAIN */

/* Replaces the C library's: returns `max` events, or one. */
int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	(void)epfd, (void)timeout;
	polls++;
	ck_assert_uint_lt(polls, ENOUGH);
	for (int i = 0; i < max; i++)
		events[i].data.u64 = (uint64_t)STATION_PEER << 32 | pool_id(peer);
	return endless ? max : 1;
}

/* Replaces the C library's: the peer sends wake-ups without end. */
ssize_t recv(int sock, void *buf, size_t len, int flags)
{
	(void)flags;
	if (gone)
		return 0;
	ck_assert_int_eq(sock, SOCK);
	ck_assert_uint_ge(len, 1);
	reads++;
	ck_assert_uint_lt(reads, ENOUGH);
	*(char *)buf = BOOT_WAKE;
	return 1;
}

/* The same, which bring no descriptors. */
ssize_t recvmsg(int sock, struct msghdr *msg, int flags)
{
	msg->msg_controllen = 0;
	return recv(sock, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
}

static int unwatched = -1; /* the last descriptor that an epoll instance was to forget */

int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	(void)epfd, (void)event;
	if (op == EPOLL_CTL_DEL)
		unwatched = fd;
	return 0;
}

/* Replaces the C library's: a connect that stays pending, and binds the socket to a port. */
int connect(int sock, const struct sockaddr *to, socklen_t len)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};

	(void)to, (void)len;
	if (refuse) {
		refuse--;
		errno = EAGAIN;
		return -1;
	}
	ck_assert_int_eq(bind(sock, (const struct sockaddr *)&any, sizeof(any)), 0);
	errno = EINPROGRESS;
	return -1;
}

static void setup(void)
{
	static const struct addr nobody = {.kind = ADDR_NONE};

	memset(&worker, 0, sizeof(worker));
	worker.conn.timer = -1;
	endless = gone = false;
	polls = reads = refuse = 0;
	list_init(&worker.conn.peers_list);
	list_init(&worker.busy);
	acceptor_init(&worker.conn.acceptor, -1);
	worker.conn.up = &peer_upcalls;
	pool_init(&worker.conn.peer_pool, sizeof(struct peer));
	peer = peer_of(contact_new(&worker.conn, &nobody));
	ck_assert_ptr_nonnull(peer);
	its_link = (struct link){LINK_BARE, .silent = true};
	peer->conn.real = &its_link;
	peer->conn.state = PEER_CONNECTED;
	peer->conn.sock = SOCK;
}

static void teardown(void)
{
	attempt_end(&peer->conn);
	pool_fini(&worker.conn.peer_pool);
}

/* The next progress call continues at once: the worker stays armed. */
START_TEST(events_without_end)
{
	endless = true;
	ck_assert(conn_poll(&worker.conn));
	ck_assert_uint_gt(polls, 1);
	ck_assert(worker.conn.opener.armed);
}
END_TEST

START_TEST(bytes_without_end)
{
	ck_assert(conn_poll(&worker.conn));
	ck_assert_uint_eq(polls, 1);
	ck_assert_uint_gt(reads, 1);
	ck_assert(!worker.conn.opener.armed);
	ck_assert(!its_link.silent);
}
END_TEST

/* Over TCP: the other side closed the connection while our hello was on its way. */
static void comes_too_late(void)
{
	const struct addr to = {.kind = ADDR_IN, .ip = {192, 0, 2, 1}, .port = 9};

	worker.conn.via[LINK_SOCKET].state = &worker;
	peer->conn.name = peer->conn.key = to;
	peer->conn.named = 1;
	peer->conn.state = PEER_HANDSHAKE;
	peer->conn.real = NULL;
	if (!peer->conn.attempt)
		ck_assert_int_eq(attempt_begin(&peer->conn), 0);
	peer->conn.attempt->late = gone = true;
}

static void begins_to_connect(void)
{
	ck_assert_int_eq(peer->conn.state, PEER_CONNECTING);
	ck_assert_int_ge(peer->conn.sock, 0);
	ck_assert_int_ne(peer->conn.sock, SOCK);
	ck_assert_uint_eq(worker.conn.handshakes, 1);
}

/* Queued operations wait for later progress calls, which connect again. */
START_TEST(no_room_to_connect_again)
{
	comes_too_late();
	peer->conn.attempt->deadline = 1; /* of the attempt whose hello came too late */
	refuse = 3;
	for (int rounds = 0; rounds < 2; rounds++) {
		conn_poll(&worker.conn);
		ck_assert_int_eq(peer->conn.state, PEER_RETRYING);
		ck_assert_int_eq(peer->conn.sock, -1);
		ck_assert_uint_eq(worker.conn.handshakes, 1);
		ck_assert(!list_empty(&peer->tx.in_busy));
	}
	ck_assert_uint_eq(refuse, 0);
	conn_poll(&worker.conn);
	begins_to_connect();
	close(peer->conn.sock);
}
END_TEST

static uint16_t number_of(int sock)
{
	struct sockaddr_in own;
	socklen_t len = sizeof(own);

	ck_assert_int_eq(getsockname(sock, (struct sockaddr *)&own, &len), 0);
	return ntohs(own.sin_port);
}

static void ended(struct station *of, int err, const void *data, size_t len)
{
	(void)of, (void)err, (void)data, (void)len;
}

/* Connects again; checks whether the worker keeps the port that the kernel chose first. */
static void connect_again_as(uint16_t asked, uint16_t named)
{
	static const struct station_cm cm = {.ended = ended};
	struct contact *contacts[] = {&peer->conn};
	uint16_t first;

	worker.conn.cm = &cm;
	worker.conn.peers = contacts;
	worker.conn.name = (struct addr){.kind = ADDR_IN, .ip = {192, 0, 2, 2}, .port = asked};
	comes_too_late();
	conn_poll(&worker.conn);
	begins_to_connect();
	first = number_of(peer->conn.sock);
	ck_assert_uint_eq(worker.conn.name.port, named ? named : first);
	peer->conn.state = PEER_HANDSHAKE;
	peer->conn.attempt->late = true;
	peer->conn.sock = dup(peer->conn.sock); /* a duplicate keeps the port in use */
	conn_poll(&worker.conn);
	begins_to_connect();
	ck_assert_uint_ne(number_of(peer->conn.sock), first);
	ck_assert_uint_eq(worker.conn.name.port, named ? named : number_of(peer->conn.sock));
}

START_TEST(named_anew)
{
	connect_again_as(0, 0);
}
END_TEST

/* A port that the application chose stays. */
START_TEST(named_by_its_owner)
{
	connect_again_as(4711, 4711);
}
END_TEST

/* A program may have closed its standard input: the timer is descriptor 0 then, as good as any. */
START_TEST(timer_without_standard_input)
{
	int input = dup(STDIN_FILENO);

	close(STDIN_FILENO);
	conn_single_waits(&worker.conn);
	ck_assert_int_eq(worker.conn.timer, STDIN_FILENO);
	conn_timer_clear(&worker.conn);
	ck_assert_int_eq(unwatched, STDIN_FILENO); /* a forked child may still have it open */
	ck_assert_int_eq(fcntl(STDIN_FILENO, F_GETFD), -1);
	ck_assert_int_eq(worker.conn.timer, -1);
	if (input >= 0) {
		ck_assert_int_eq(dup2(input, STDIN_FILENO), STDIN_FILENO);
		close(input);
	}
}
END_TEST

/* Sanitizers show a use of the peer that could not be made. */
START_TEST(no_memory_for_a_peer)
{
	static const struct addr nobody = {.kind = ADDR_NONE};
	struct list *last = worker.conn.peers_list.prev;

	worker.conn.peer_pool.free = NULL;
	worker.conn.peer_pool.count = POOL_INDEX_MASK;
	ck_assert_ptr_null(contact_new(&worker.conn, &nobody));
	worker.conn.peer_pool.count = POOL_CHUNK;
	ck_assert_ptr_eq(worker.conn.peers_list.prev, last);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_conn");
	TCase *tcase = tcase_create("conn");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, events_without_end);
	tcase_add_test(tcase, bytes_without_end);
	tcase_add_test(tcase, no_room_to_connect_again);
	tcase_add_test(tcase, named_anew);
	tcase_add_test(tcase, named_by_its_owner);
	tcase_add_test(tcase, timer_without_standard_input);
	tcase_add_test(tcase, no_memory_for_a_peer);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
