/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a peer that no longer answers is noticed in time, and that a peer that only does not
 * read stays connected. The test runs in a network namespace and takes its loopback interface down.
 */
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "tcp_pair.h"

#define MSG     WIRE_HEAD(WIRE_MSG, 0, 0, 0)
#define TIMEOUT 1000 /* ms */
#define SLACK   2500

static unsigned char bytes[TCP_PACKET_MAX];

static int network(bool up)
{
	struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP | IFF_RUNNING : 0)};
	int sock = socket(AF_INET, SOCK_DGRAM, 0), ret = ioctl(sock, SIOCSIFFLAGS, &ifr);

	close(sock);
	return ret;
}

static int put(uint32_t id, size_t len)
{
	return link_of(id)->ops->send(link_of(id), bytes, len, 0, MSG, 0);
}

/*
 * Takes the network down. Returns the ms until the link ends, by polling or (`sleeps`) by a
 * sleeper.
 */
static uint64_t until_noticed(uint32_t id, bool sleeps)
{
	struct pollfd p = {.fd = tcp_transport.fd(sides[0].hw), .events = POLLIN};
	uint64_t began = clock_coarse_ms();

	ck_assert_int_eq(network(false), 0);
	while (!joints[id - 1].ends && clock_coarse_ms() < began + 20000) {
		if (sleeps && tcp_transport.arm(sides[0].hw))
			poll(&p, 1, 20000);
		make_progress(0);
	}
	ck_assert_int_eq(network(true), 0);
	ck_assert_int_eq(joints[id - 1].ends, 1);
	ck_assert_int_eq(joints[id - 1].ended, FI_ETIMEDOUT);
	return clock_coarse_ms() - began;
}

static void noticed_in_time(uint64_t ms)
{
	ck_assert_uint_lt(ms, TIMEOUT + SLACK);
}

START_TEST(idle)
{
	uint32_t id = join_raw();

	quiet_calls(300);
	noticed_in_time(until_noticed(id, _i));
}
END_TEST

START_TEST(on_its_way)
{
	uint32_t id = join_raw();
	uint64_t ms;

	ck_assert_int_eq(put(id, 8), 0);
	quiet_calls(300);
	ck_assert_int_eq(network(false), 0);
	ck_assert_int_eq(put(id, 8), 0);
	ms = until_noticed(id, _i);
	noticed_in_time(ms);
	ck_assert_uint_gt(ms, TIMEOUT / 2);
}
END_TEST

static int sock_of(uint32_t id)
{
	return ((struct tcp_link *)link_of(id))->sock;
}

/*
 * Fills the socket buffers: all at once, so that the peer's kernel drops some packets, or slowly.
 * The kernel then probes for space in two different ways.
 */
static void fill_up(uint32_t id, bool slowly)
{
	while (put(id, 20000) == 0)
		if (slowly)
			quiet_calls(1);
	quiet_calls(50);
}

START_TEST(window_shut)
{
	uint32_t id = join_raw();

	fill_up(id, _i & 2);
	/* The kernel's probes become ever rarer. */
	ck_assert_uint_lt(until_noticed(id, _i & 1), 4 * TIMEOUT + SLACK);
}
END_TEST

/* A peer that reads nothing for long, but answers probes, stays connected. */
START_TEST(busy)
{
	uint32_t id[3] = {join_raw(), join_raw(), join_raw()};

	ck_assert_int_eq(put(id[0], 8), 0);
	fill_up(id[1], false);
	fill_up(id[2], true);
	for (int i = 0; i < 8 * TIMEOUT / 10; i++) {
		tcp_transport.arm(sides[0].hw);
		make_progress(0);
		usleep(10000);
	}
	for (int i = 0; i < 3; i++) {
		ssize_t n = 1;

		ck_assert_int_eq(joints[id[i] - 1].ends, 0);
		while (n > 0 || put(id[i], 8) == -FI_EAGAIN) {
			n = recv(peer_of(id[i]), bytes, sizeof(bytes), 0);
			make_progress(0);
		}
		ck_assert_int_eq(joints[id[i] - 1].ends, 0);
	}
}
END_TEST

/* A check just after a send that follows a long silence does not end the link. */
START_TEST(one_look)
{
	uint32_t id = join_raw();
	struct tcp *t = sides[0].hw;
	uint64_t next;
	int off = 0;

	setsockopt(sock_of(id), SOL_SOCKET, SO_KEEPALIVE, &off, sizeof(off));
	quiet_calls(TIMEOUT + 200);
	for (next = t->next_poll; t->next_poll == next;)
		make_progress(0);
	ck_assert_int_eq(network(false), 0);
	ck_assert_int_eq(put(id, 8), 0);
	for (next = t->next_poll; t->next_poll == next;)
		make_progress(0);
	ck_assert_int_eq(network(true), 0);
	quiet_calls(TIMEOUT);
	ck_assert_int_eq(joints[id - 1].ends, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_alive");
	TCase *tcase = tcase_create("alive");
	char timeout[16];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) || network(true)) {
		printf("no network namespace of our own: %s\n", strerror(errno));
		return 77;
	}
	snprintf(timeout, sizeof(timeout), "%d", TIMEOUT);
	setenv("FI_WEFT_PEER_TIMEOUT", timeout, 1);
	tcase_add_loop_test(tcase, idle, 0, 2);
	tcase_add_loop_test(tcase, on_its_way, 0, 2);
	tcase_add_loop_test(tcase, window_shut, 0, 4);
	tcase_add_test(tcase, one_look);
	tcase_add_test(tcase, busy);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
