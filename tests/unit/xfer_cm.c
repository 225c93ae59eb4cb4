/* SPDX-License-Identifier: BSD-2-Clause */
/* Proves how the listener of a passive endpoint treats connection requests and other clients. */
#include <dirent.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "api/cm.h"
#include "link/link.h"

#include "cm_raw.h"
#include "suite.h"

static struct fi_info *info;
static struct cm_listener listener;
static bool bound;
static struct addr name; /* the listener's */

static unsigned int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int count = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void setup(void)
{
	info = fi_allocinfo();
	ck_assert_ptr_nonnull(info);
	info->ep_attr->type = FI_EP_MSG;
	info->addr_format = FI_SOCKADDR_IN;
	info->fabric_attr->prov_name = strdup("weft");
	name = (struct addr){.kind = ADDR_IN, .ip = {127, 0, 0, 1}};
	ck_assert_int_eq(cm_open(&listener, info, &name), 0);
	ck_assert_uint_ne(name.port, 0);
	bound = true;
}

static void teardown(void)
{
	if (bound)
		cm_close(&listener);
	fi_freeinfo(info);
}

/* Returns the next request; NULL: none came within 200 ms. */
static struct cm_request *hear(void)
{
	struct pollfd p = {.fd = cm_fd(&listener), .events = POLLIN};
	struct cm_request *req = NULL;

	while (!req && poll(&p, 1, 200) == 1)
		req = cm_next(&listener);
	return req;
}

/*
 * Checks that the answer is a REJECT with `data_len` bytes of data, then the end of the connection.
 */
static void expect_refusal(int sock, size_t data_len)
{
	struct wire_hello hello;
	char byte;

	ck_assert_int_eq(recv(sock, &hello, sizeof(hello), MSG_WAITALL), sizeof(hello));
	ck_assert_uint_eq(hello.kind, HELLO_REJECT);
	ck_assert_uint_eq(hello.error, FI_ECONNREFUSED);
	ck_assert_uint_eq(hello.data_len, data_len);
	ck_assert_int_eq(recv(sock, &byte, 1, 0), 0);
	close(sock);
}

/* A bound listener that does not listen refuses connects. */
START_TEST(bound_only)
{
	ck_assert_int_eq(raw_connect(&name, _i), -FI_ECONNREFUSED);
	ck_assert_ptr_null(cm_next(&listener));
	ck_assert_int_eq(cm_listen(&listener, 5), 0);
	close(raw_connect(&name, _i));
	ck_assert_ptr_null(hear());
}
END_TEST

START_TEST(request)
{
	static const size_t lengths[] = {0, 1, WIRE_CM_DATA_MAX};
	unsigned int before;

	ck_assert_int_eq(cm_listen(&listener, 5), 0);
	before = count_fds();
	for (size_t i = 0; i < 3; i++) {
		struct wire_hello hello = raw_hello(HELLO_REQUEST, lengths[i]);
		const unsigned char *data;
		struct cm_request *req;
		int sock = raw_connect(&name, _i);
		size_t len;

		raw_send(sock, &hello, _i);
		req = hear();
		ck_assert_ptr_nonnull(req);
		ck_assert_uint_eq(cm_request_name(req)->port, 4711);
		ck_assert_int_eq(cm_request_name(req)->kind, ADDR_IN);
		data = cm_request_data(req, &len);
		ck_assert_uint_eq(len, lengths[i]);
		for (size_t at = 0; at < len; at++)
			ck_assert_uint_eq(data[at], 'd');
		ck_assert_int_eq(cm_request_reject(req, hello.data, lengths[i]), 0);
		expect_refusal(sock, lengths[i]);
		ck_assert_uint_eq(count_fds(), before);
	}
}
END_TEST

/* A client that sends no valid request gets a REJECT, or the end of its connection. */
START_TEST(no_request)
{
	struct wire_hello hello = raw_hello(HELLO_CONNECT, 0);
	unsigned int before;
	char byte;
	int sock;

	ck_assert_int_eq(cm_listen(&listener, 5), 0);
	before = count_fds();
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	ck_assert_ptr_null(hear());
	expect_refusal(sock, 0);

	hello = raw_hello(HELLO_REQUEST, 0);
	hello.name_format = 12345; /* an unknown address format */
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	ck_assert_ptr_null(hear());
	expect_refusal(sock, 0);

	hello = raw_hello(HELLO_REQUEST, WIRE_CM_DATA_MAX + 1);
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	ck_assert_ptr_null(hear());
	ck_assert_int_le(recv(sock, &byte, 1, 0), 0);
	close(sock);

	hello = raw_hello(HELLO_REQUEST, 0);
	hello.magic++;
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	ck_assert_ptr_null(hear());
	ck_assert_int_le(recv(sock, &byte, 1, 0), 0);
	close(sock);
	ck_assert_uint_eq(count_fds(), before);
}
END_TEST

/* Too long data of a refusal is truncated. */
START_TEST(long_refusal)
{
	struct wire_hello hello = raw_hello(HELLO_REQUEST, 0);
	unsigned char much[2 * WIRE_CM_DATA_MAX] = {0};
	struct cm_request *req;
	int sock;

	ck_assert_int_eq(cm_listen(&listener, 5), 0);
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	req = hear();
	ck_assert_ptr_nonnull(req);
	ck_assert_int_eq(cm_request_reject(req, much, sizeof(much)), 0);
	expect_refusal(sock, WIRE_CM_DATA_MAX);
}
END_TEST

/* Silent clients do not keep others out, and are disconnected when the listener closes. */
START_TEST(silence)
{
	struct wire_hello hello = raw_hello(HELLO_REQUEST, 0);
	struct cm_request *req;
	int silent[40], sock;
	char byte;

	ck_assert_int_eq(cm_listen(&listener, 100), 0);
	for (size_t i = 0; i < 40; i++)
		ck_assert_int_ge(silent[i] = raw_connect(&name, _i), 0);
	sock = raw_connect(&name, _i);
	raw_send(sock, &hello, _i);
	req = hear();
	ck_assert_ptr_nonnull(req);
	cm_close(&listener);
	bound = false;
	for (size_t i = 0; i < 40; i++) {
		send(silent[i], "", 1,
		     MSG_NOSIGNAL); /* TCP_DEFER_ACCEPT may still withhold the client */
		ck_assert_int_le(recv(silent[i], &byte, 1, 0), 0);
		close(silent[i]);
	}
	/* A client whose request was read still awaits its answer. */
	ck_assert_int_eq(recv(sock, &byte, 1, MSG_DONTWAIT), -1);
	cm_request_free(req);
	expect_refusal(sock, 0);
}
END_TEST

/* A provider without shared memory has no Unix socket. */
START_TEST(network_only)
{
	cm_close(&listener);
	free(info->fabric_attr->prov_name);
	info->fabric_attr->prov_name = strdup("tcp");
	name.port = 0;
	ck_assert_int_eq(cm_open(&listener, info, &name), 0);
	ck_assert_int_eq(cm_listen(&listener, 5), 0);
	ck_assert_int_eq(raw_connect(&name, true), -FI_ECONNREFUSED);
	close(raw_connect(&name, false));
}
END_TEST

/* The wildcard address: the listener gets a port and an address that others can use. */
START_TEST(any_address)
{
	static const unsigned char any[sizeof(name.ip)];

	for (int known = 0; known < 2; known++) {
		cm_close(&listener);
		name = (struct addr){.kind = known ? ADDR_IN : ADDR_NONE};
		ck_assert_int_eq(cm_open(&listener, info, &name), 0);
		ck_assert_int_eq(name.kind, ADDR_IN);
		ck_assert_uint_ne(name.port, 0);
		ck_assert_int_ne(memcmp(name.ip, any, sizeof(any)), 0);
		ck_assert_int_eq(cm_listen(&listener, 5), 0);
		close(raw_connect(&name, false));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("xfer_cm");
	TCase *tcase = tcase_create("cm");

	tcase_set_timeout(tcase, 20);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, bound_only, 0, 2);
	tcase_add_loop_test(tcase, request, 0, 2);
	tcase_add_loop_test(tcase, no_request, 0, 2);
	tcase_add_loop_test(tcase, long_refusal, 0, 2);
	tcase_add_loop_test(tcase, silence, 0, 2);
	tcase_add_test(tcase, network_only);
	tcase_add_test(tcase, any_address);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
