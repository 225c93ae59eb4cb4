/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves which TCP connections count as local, that connect_set_linked changes only those, and
 * which descriptors connections leave to the application.
 */
#include "xfer/worker.h"
#include "conn/acceptor.h"
#include "conn/connect.h"
#include "suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

static int client, accepted;

static struct sockaddr_in at(const char *ip)
{
	struct sockaddr_in sin = {.sin_family = AF_INET};

	inet_pton(AF_INET, ip, &sin.sin_addr);
	return sin;
}

/* Makes a TCP connection between two addresses of this host. */
static void join(const char *from, const char *to)
{
	struct sockaddr_in near = at(from), far = at(to);
	socklen_t len = sizeof(far);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&far, len), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&far, &len), 0);
	ck_assert_int_eq(bind(client, (struct sockaddr *)&near, sizeof(near)), 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&far, sizeof(far)), 0);
	accepted = accept(listener, NULL, NULL);
	ck_assert_int_ge(accepted, 0);
	close(listener);
}

static void part(void)
{
	close(client);
	close(accepted);
}

static const char *congestion(int sock)
{
	static char name[16];
	socklen_t len = sizeof(name);

	memset(name, 0, sizeof(name));
	ck_assert_int_eq(getsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	return name;
}

static int user_timeout(int sock)
{
	int low = 0;
	socklen_t len = sizeof(low);

	ck_assert_int_eq(getsockopt(sock, SOL_SOCKET, SO_RCVLOWAT, &low, &len), 0);
	return low;
}

START_TEST(the_hellos_wait_for_all)
{
	join("127.0.0.1", "127.0.0.1");
	connect_tune(client);
	ck_assert_int_gt(user_timeout(client), 1);
	connect_set_linked(client);
	ck_assert_int_eq(user_timeout(client), 1);
	part();
}
END_TEST

START_TEST(one_address_is_one_host)
{
	join("127.0.0.1", "127.0.0.1");
	connect_set_linked(client);
	connect_set_linked(accepted);
	ck_assert_str_eq(congestion(client), "reno");
	ck_assert_str_eq(congestion(accepted), "reno");
	part();
}
END_TEST

/* Two addresses of one host: not recognized as local, so unchanged. */
START_TEST(two_addresses_are_as_the_system_wants)
{
	char before[16];

	join("127.0.0.1", "127.0.0.2");
	strcpy(before, congestion(client));
	connect_set_linked(client);
	ck_assert_str_eq(congestion(client), before);
	part();
}
END_TEST

/* ---- Descriptors ---- */

static void allow_files(rlim_t limit)
{
	struct rlimit files;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
	ck_assert_uint_ge(files.rlim_max, limit);
	files.rlim_cur = limit;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
}

/* Takes descriptors until `first` is the next one. */
static void take_until(int first)
{
	int fd = dup(STDIN_FILENO);

	while (fd >= 0 && fd < first)
		fd = dup(STDIN_FILENO);
	ck_assert_int_eq(fd, first);
	close(fd);
}

static int listener_at(struct addr *name)
{
	struct sockaddr_in at_any_port = at("127.0.0.1");
	socklen_t len = sizeof(at_any_port);
	int sock = connect_socket(AF_INET);

	ck_assert_int_ge(sock, 0);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&at_any_port, len), 0);
	ck_assert_int_eq(listen(sock, 4), 0);
	ck_assert_int_eq(getsockname(sock, (struct sockaddr *)&at_any_port, &len), 0);
	ck_assert_int_eq(addr_from_user(name, FI_SOCKADDR_IN, &at_any_port, len), 0);
	return sock;
}

START_TEST(few_descriptors_serve_connections)
{
	struct addr name;

	allow_files(24);
	take_until(20);
	listener_at(&name);
	ck_assert(connect_affordable());
	ck_assert_int_eq(connect_network(&name, NULL), 21);
	ck_assert_int_eq(connect_network(&name, NULL), 22);
	ck_assert(!connect_affordable());
	ck_assert_int_eq(connect_network(&name, NULL), -FI_EMFILE);
}
END_TEST

START_TEST(the_last_ones_are_for_listeners)
{
	struct addr name;

	allow_files(1024);
	take_until(1024 - 17);
	ck_assert(connect_affordable());
	ck_assert_int_eq(listener_at(&name), 1024 - 17);
	ck_assert(!connect_affordable());
	ck_assert_int_eq(connect_network(&name, NULL), -FI_EMFILE);
	ck_assert_int_eq(connect_inside(&name), -FI_EMFILE);
	ck_assert_int_eq(listener_at(&name), 1024 - 16);
}
END_TEST

/* Connections of others wait in the backlog while no descriptor is to spare. */
START_TEST(no_last_one_is_accepted)
{
	struct acceptor a;
	struct accepted conn;
	struct addr name;
	int sock = listener_at(&name), epfd = epoll_create1(EPOLL_CLOEXEC);

	acceptor_init(&a, epfd);
	ck_assert_int_eq(acceptor_listen(&a, ACCEPTOR_NETWORK, sock), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_ge(connect_network(&name, NULL), 0);
	allow_files(256);
	take_until(256 - 17);
	acceptor_event(&a, (uint64_t)ACCEPTOR_NETWORK << 32, &conn);
	ck_assert_uint_eq(a.count, 1);
	ck_assert(a.paused);
	allow_files(512);
	acceptor_event(&a, (uint64_t)ACCEPTOR_TIMER << 32, &conn);
	acceptor_event(&a, (uint64_t)ACCEPTOR_NETWORK << 32, &conn);
	ck_assert_uint_eq(a.count, 2);
	acceptor_close(&a);
}
END_TEST

/* No descriptor, of whatever it may be, stands for a listener that there is not. */
START_TEST(no_listener)
{
	struct acceptor a;

	memset(&a, 0, sizeof(a));
	acceptor_init(&a, -1);
	ck_assert_int_eq(a.network[0], -1);
	ck_assert_int_eq(a.inside, -1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conn_connect");
	TCase *all = tcase_create("connect");

	tcase_add_test(all, the_hellos_wait_for_all);
	tcase_add_test(all, one_address_is_one_host);
	tcase_add_test(all, two_addresses_are_as_the_system_wants);
	tcase_add_test(all, few_descriptors_serve_connections);
	tcase_add_test(all, the_last_ones_are_for_listeners);
	tcase_add_test(all, no_last_one_is_accepted);
	tcase_add_test(all, no_listener);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
