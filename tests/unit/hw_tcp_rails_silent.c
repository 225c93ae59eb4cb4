/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a rail and a link count as silent, in a network of the test's own, which goes down. */
#include <linux/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include "hw/tcp/rails/tcp_rails.h"
#include "tcp_pair.h"

#define FIRST 1 /* the first link of a test */
#define MANY  12
#define TICK  20 /* ms by which the coarse clock, and the time between two readings, may differ */

static void set_network(bool up)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = up ? IFF_UP : 0};
	int sock = socket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_int_eq(ioctl(sock, SIOCSIFFLAGS, &lo), 0);
	close(sock);
}

/* Called by each test before its first link. */
static void limits(const char *rail_ms, const char *peer_ms)
{
	set_network(true);
	setenv("FI_WEFT_RAIL_TIMEOUT", rail_ms, 1);
	setenv("FI_WEFT_PEER_TIMEOUT", peer_ms, 1);
	engine.rails = 1;
}

static const struct tcp_rails *rails(void)
{
	return ((struct tcp_link *)link_of(FIRST))->rails;
}

/* A packet of the first link gets no answer from now on. */
static void begin_silence(void)
{
	const struct packet p = {.head = WIRE_HEAD(WIRE_MSG, 0, 0, 0), .len = 4};
	const struct iovec iov = {"dark", 4};

	set_network(false);
	ck_assert_int_eq(link_of(FIRST)->zcopy->sendv(link_of(FIRST), &p, &iov, 1), 0);
}

/* So many calls have one look at least, if it is time for one. */
static void look(void)
{
	for (int i = 0; i < 64; i++)
		make_progress(0);
}

/* A new link, for which all are looked after at once, makes none older. */
START_TEST(others_come)
{
	int fds[MANY][2];
	uint64_t begun;

	limits("2000", "30000");
	join_raw();
	for (int i = 0; i < MANY; i++)
		tcp_sockets(fds[i]);
	begin_silence();
	begun = clock_coarse_ms();
	while (!rails()->rail[0].silence) {
		ck_assert_uint_lt(clock_coarse_ms(), begun + 10000);
		make_progress(0);
	}
	for (int i = 0; i < MANY; i++) {
		join_socket(&sides[0], fds[i][0]);
		look();
		ck_assert_uint_le(rails()->rail[0].silence, clock_coarse_ms() - begun + TICK);
	}
	for (int i = 0; i < MANY; i++)
		close(fds[i][1]);
}
END_TEST

/* After a pause of our own the peer has time to answer, even if it has little. */
START_TEST(own_pause)
{
	uint64_t end = clock_coarse_ms() + 10000;

	limits("2000", "400");
	join_raw();
	begin_silence();
	usleep(1000000);
	while (!joints[0].ends && !rails()->silence) {
		ck_assert_uint_lt(clock_coarse_ms(), end);
		make_progress(0);
	}
	ck_assert_int_eq(joints[0].ends, 0);
	PROGRESS_UNTIL(joints[0].ends == 1);
	ck_assert_int_eq(joints[0].ended, FI_ETIMEDOUT);
}
END_TEST

/* A process that looks rarely finds the peer silent within its limit, however short that of rails is. */
START_TEST(rare_looks)
{
	limits("40", "1600");
	join_raw();
	begin_silence();
	for (int i = 0; i < 4 && !joints[0].ends; i++) {
		usleep(800000);
		look();
	}
	ck_assert_int_eq(joints[0].ends, 1);
	ck_assert_int_eq(joints[0].ended, FI_ETIMEDOUT);
}
END_TEST

/* A sleeper wakes up for the shortest of its limits. */
static const struct {
	const char *rail, *peer, *operation;
} sleeps[] = {{"60000", "800", "0"}, {"60000", "0", "800"}, {"800", "60000", "60000"}};

START_TEST(sleeps_no_longer)
{
	struct pollfd fd = {.events = POLLIN};

	setenv("FI_WEFT_OPERATION_TIMEOUT", sleeps[_i].operation, 1);
	limits(sleeps[_i].rail, sleeps[_i].peer);
	join_raw();
	ck_assert(tcp_transport.arm(sides[0].hw));
	fd.fd = tcp_transport.fd(sides[0].hw);
	ck_assert_int_eq(poll(&fd, 1, 5000), 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_rails_silent");
	TCase *tcase = tcase_create("silent");

	if (unshare(CLONE_NEWNET)) {
		printf("no network of our own here\n");
		return 77;
	}
	tcase_add_test(tcase, others_come);
	tcase_add_test(tcase, own_pause);
	tcase_add_test(tcase, rare_looks);
	tcase_add_loop_test(tcase, sleeps_no_longer, 0, sizeof(sleeps) / sizeof(sleeps[0]));
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
