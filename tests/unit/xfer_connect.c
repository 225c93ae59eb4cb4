/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves which TCP connections count as local, and that connect_set_linked changes only those. */
#include "xfer/conn/connect.h"
#include "suite.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
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

int main(void)
{
	Suite *suite = suite_create("xfer_connect");
	TCase *all = tcase_create("connect");

	tcase_add_test(all, the_hellos_wait_for_all);
	tcase_add_test(all, one_address_is_one_host);
	tcase_add_test(all, two_addresses_are_as_the_system_wants);
	suite_add_tcase(suite, all);
	return suite_run(suite);
}
