/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a batch arrives whole and in order, that neighbours of one length leave together, and
 * that datagrams leave one by one where the kernel refuses that. A socket with UDP_GRO shows what
 * left together, as the loopback device does not cut messages into datagrams.
 */
#include <net/if.h>
#include <netinet/udp.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "../valgrind.h"
#include "dgram_open.h"
#include "xfer/engine.h"

#define LEN_MAX 4000

static unsigned char bytes[DGRAM_BATCH_MAX][LEN_MAX];

static void set(int fd, int level, int option, int value)
{
	ck_assert_int_eq(setsockopt(fd, level, option, &value, sizeof(value)), 0);
}

static void setup(void)
{
	open_all();
	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		memset(bytes[i], (int)i + 1, LEN_MAX);
}

static void setup_gro(void)
{
	setup();
	set(opened.plain, IPPROTO_UDP, UDP_GRO, 1);
}

/* Sends number `i` in `pieces` memory segments. */
static void give(unsigned int i, fi_addr_t to, size_t len, size_t pieces, uint64_t flags)
{
	struct iovec iov[WIRE_IOV_MAX];
	struct fi_msg msg = {.msg_iov = iov, .iov_count = pieces, .addr = to, .context = bytes[i]};

	for (size_t k = 0; k < pieces; k++)
		iov[k] = (struct iovec){bytes[i],
					k + 1 < pieces ? len / pieces : len - k * (len / pieces)};
	ck_assert_int_eq(fi_sendmsg(opened.ep, &msg, flags), 0);
}

static void give_all(const size_t *lens, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		give(i, opened.to_plain, lens[i], 1, i + 1 < count ? FI_MORE : 0);
	for (unsigned int i = 0; i < count; i++)
		expect(bytes[i]);
	expect_nothing();
}

/* Receives what arrived together; returns its bytes and sets *segment, 0 if it is one datagram. */
static size_t receive(int fd, void *to, size_t *segment)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {to, 1 << 16};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t len;
	int size = 0;

	ck_assert_int_eq(poll(&p, 1, 1000), 1);
	len = recvmsg(fd, &msg, 0);
	ck_assert_int_ge(len, 0);
	if (msg.msg_controllen)
		memcpy(&size, CMSG_DATA(&control.head), sizeof(size));
	*segment = (size_t)size;
	return (size_t)len;
}

/* The next arrival holds the numbers from `first` on, each of `len` bytes, the last of `last`. */
static void expect_together(unsigned int first, unsigned int count, size_t len, size_t last)
{
	static unsigned char got[1 << 16];
	size_t segment;

	ck_assert_uint_eq(receive(opened.plain, got, &segment), (count - 1) * len + last);
	ck_assert_uint_eq(segment, count > 1 ? len : 0);
	for (unsigned int i = 0; i < count; i++)
		ck_assert_mem_eq(got + i * len, bytes[first + i], i + 1 < count ? len : last);
}

static void expect_alone(int fd, unsigned int i, size_t len)
{
	static unsigned char got[1 << 16];
	size_t segment;

	ck_assert_uint_eq(receive(fd, got, &segment), len);
	ck_assert_uint_eq(segment, 0);
	ck_assert_mem_eq(got, bytes[i], len);
}

START_TEST(mixed_lengths_arrive_in_order)
{
	static const size_t lens[] = {0,    1, 1, 8, 8,   8,    0,    0, 1400, 1400, 1400,
				      1399, 8, 9, 8, 100, 1400, 1400, 0, 1,    4000, 4000};
	const unsigned int count = sizeof(lens) / sizeof(*lens);

	give_all(lens, count);
	for (unsigned int i = 0; i < count; i++)
		expect_alone(opened.plain, i, lens[i]);
}
END_TEST

START_TEST(one_length_leaves_together)
{
	static const size_t lens[] = {8, 8, 8, 1400, 1400, 1400, 700, 700, 0, 1};

	give_all(lens, sizeof(lens) / sizeof(*lens));
	expect_together(0, 3, 8, 8);
	expect_together(3, 4, 1400, 700);
	expect_alone(opened.plain, 7, 700);
	expect_alone(opened.plain, 8, 0);
	expect_alone(opened.plain, 9, 1);
}
END_TEST

/* 64 datagrams leave though FI_MORE announces another; so do 64 KiB. */
START_TEST(a_full_batch_leaves)
{
	const unsigned int enough = (64 << 10) / LEN_MAX + 1;

	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		give(i, opened.to_plain, 8, 1, FI_MORE);
	expect_together(0, DGRAM_BATCH_MAX, 8, 8);
	for (unsigned int i = 0; i < enough; i++)
		give(i, opened.to_plain, LEN_MAX, 1, FI_MORE);
	expect_together(0, enough - 1, LEN_MAX, LEN_MAX);
	expect_alone(opened.plain, enough - 1, LEN_MAX);
}
END_TEST

/* More memory segments than one system call takes. */
START_TEST(many_pieces)
{
	size_t left = DGRAM_BATCH_MAX, segment;
	static unsigned char got[1 << 16];

	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		give(i, opened.to_plain, 100, WIRE_IOV_MAX, i + 1 < left ? FI_MORE : 0);
	for (unsigned int i = 0; i < DGRAM_BATCH_MAX; i++)
		expect(bytes[i]);
	while (left) {
		size_t n = receive(opened.plain, got, &segment) / 100;

		for (size_t i = 0; i < n; i++)
			ck_assert_mem_eq(got + i * 100, bytes[DGRAM_BATCH_MAX - left + i], 100);
		left -= n;
	}
}
END_TEST

START_TEST(two_destinations)
{
	struct sockaddr_in name;
	int second = plain_socket(&name);
	fi_addr_t to_second = insert(&name);

	for (unsigned int i = 0; i < 9; i++)
		give(i, i % 3 < 2 ? opened.to_plain : to_second, 50, 1, i < 8 ? FI_MORE : 0);
	for (unsigned int i = 0; i < 9; i += 3) {
		expect_together(i, 2, 50, 50);
		expect_alone(second, i + 2, 50);
	}
	close(second);
}
END_TEST

START_TEST(to_a_group)
{
	struct sockaddr_in group = {.sin_family = AF_INET};
	struct ip_mreqn member = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(group);
	struct sockaddr_in own;
	struct addr addr;
	fi_addr_t to;

	inet_pton(AF_INET, "239.77.0.1", &member.imr_multiaddr);
	close(opened.plain);
	opened.plain = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	group.sin_addr = member.imr_multiaddr;
	ck_assert_int_eq(bind(opened.plain, (struct sockaddr *)&group, len), 0);
	ck_assert_int_eq(getsockname(opened.plain, (struct sockaddr *)&own, &len), 0);
	group.sin_port = own.sin_port;
	ck_assert_int_eq(
		setsockopt(opened.plain, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof(member)),
		0);
	set(opened.plain, IPPROTO_UDP, UDP_GRO, 1);
	ck_assert_int_eq(addr_from_user(&addr, FI_SOCKADDR, &group, len), 0);
	ck_assert_int_eq(dgram_join(ep_of(opened.ep)->worker, &addr, FI_SEND, &to), 0);
	for (unsigned int i = 0; i < 3; i++)
		give(i, to, 100, 1, i < 2 ? FI_MORE : 0);
	expect_together(0, 3, 100, 100);
	dgram_leave(ep_of(opened.ep)->worker, to);
}
END_TEST

START_TEST(closing_sends_the_batch)
{
	for (unsigned int i = 0; i < 3; i++)
		give(i, opened.to_plain, 8, 1, FI_MORE);
	ck_assert_int_eq(fi_close(&opened.ep->fid), 0);
	opened.ep = NULL;
	expect_together(0, 3, 8, 8);
}
END_TEST

/* A socket without checksums cannot send messages of several datagrams. */
START_TEST(refused_by_the_socket)
{
	static const size_t lens[] = {100, 100, 100, 50};

	set(opened.udp->fd, SOL_SOCKET, SO_NO_CHECK, 1);
	for (int round = 0; round < 2; round++) {
		give_all(lens, 4);
		for (unsigned int i = 0; i < 4; i++)
			expect_alone(opened.plain, i, lens[i]);
		/* The kernel is not asked again for this length. */
		set(opened.udp->fd, SOL_SOCKET, SO_NO_CHECK, 0);
	}
}
END_TEST

/* An error of the destination is not taken for a refusal to send together. */
START_TEST(wrong_destination)
{
	struct sockaddr_in far = {.sin_family = AF_INET, .sin_port = htons(9)};
	static const size_t lens[] = {8, 8};
	fi_addr_t to;

	inet_pton(AF_INET, "203.0.113.1", &far.sin_addr);
	to = insert(&far);
	give(0, to, 8, 1, FI_MORE);
	give(1, to, 8, 1, 0);
	expect_error(bytes[0], FI_EINVAL);
	expect_error(bytes[1], FI_EINVAL);
	give_all(lens, 2);
	expect_together(0, 2, 8, 8);
}
END_TEST

/* A datagram of memory that cannot be read fails alone. */
START_TEST(wrong_memory)
{
	void *none = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = {none, 8};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = opened.to_plain, .context = none};
	static const size_t lens[] = {8, 8};

	ck_assert_ptr_ne(none, MAP_FAILED);
	give(0, opened.to_plain, 8, 1, FI_MORE);
	ck_assert_int_eq(fi_sendmsg(opened.ep, &msg, FI_MORE), 0);
	give(1, opened.to_plain, 8, 1, 0);
	expect(bytes[0]);
	expect_error(none, FI_EFAULT);
	expect(bytes[1]);
	expect_alone(opened.plain, 0, 8);
	expect_alone(opened.plain, 1, 8);
	give_all(lens, 2);
	expect_together(0, 2, 8, 8);
}
END_TEST

/* Makes a network of our own, whose loopback device takes `mtu` bytes. False: not permitted. */
static bool narrow_loopback(int mtu)
{
	struct ifreq req = {.ifr_name = "lo", .ifr_mtu = mtu};
	int fd;
	bool good;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	good = fd >= 0 && !ioctl(fd, SIOCSIFMTU, &req);
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	good = good && !ioctl(fd, SIOCSIFFLAGS, &req);
	close(fd);
	return good;
}

/* Datagrams longer than the path's MTU leave one by one, as fragments; shorter ones together. */
START_TEST(longer_than_the_path)
{
	static const size_t longs[] = {4000, 4000, 4000}, shorts[] = {1000, 1000, 1000};

	if (!narrow_loopback(1500))
		return;
	setup_gro();
	for (int round = 0; round < 2; round++) {
		give_all(longs, 3);
		for (unsigned int i = 0; i < 3; i++)
			expect_alone(opened.plain, i, 4000);
		give_all(shorts, 3);
		expect_together(0, 3, 1000, 1000);
	}
	close_all();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_udp_batch");
	TCase *plain = tcase_create("plain"), *gro = tcase_create("gro");
	TCase *narrow = tcase_create("narrow");

	tcase_add_checked_fixture(plain, setup, close_all);
	tcase_add_test(plain, mixed_lengths_arrive_in_order);
	tcase_add_checked_fixture(gro, setup_gro, close_all);
	tcase_add_test(gro, one_length_leaves_together);
	tcase_add_test(gro, a_full_batch_leaves);
	tcase_add_test(gro, many_pieces);
	tcase_add_test(gro, two_destinations);
	tcase_add_test(gro, to_a_group);
	tcase_add_test(gro, closing_sends_the_batch);
	tcase_add_test(gro, refused_by_the_socket);
	tcase_add_test(gro, wrong_destination);
	if (!in_valgrind())
		tcase_add_test(gro, wrong_memory);
	tcase_add_test(narrow, longer_than_the_path);
	suite_add_tcase(suite, plain);
	suite_add_tcase(suite, gro);
	suite_add_tcase(suite, narrow);
	return suite_run(suite);
}
