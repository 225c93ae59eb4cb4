/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how the TCP transport sends: with and without socket space, sleeping, closing, broken
 * links.
 */
#include <poll.h>
#include <sys/wait.h>

#include "tcp_pair.h"

#define MSG(flags) WIRE_HEAD(WIRE_MSG, flags, 0, 0)
#define BYE        WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0)

static unsigned char bytes[2 * TCP_PACKET_MAX];

static struct packet packet(uint64_t number, size_t len, uint64_t flags)
{
	fill(bytes, number, len);
	return (struct packet){.head = MSG(flags), .tag = number, .data = ~number, .len = len};
}

enum way { SEND, SENDV, ZCOPY };

static int put(uint32_t id, enum way way, uint64_t number, size_t len)
{
	struct link *link = link_of(id);
	struct packet p = packet(number, len, number & 1 ? WIRE_DATA : 0);
	struct iovec iov[3] = {{bytes, len / 3}, {NULL, 0}, {bytes + len / 3, len - len / 3}};

	if (way == SEND)
		return link->ops->send(link, len ? bytes : NULL, len, p.data, p.head, p.tag);
	if (way == SENDV)
		return link->ops->sendv(link, &p, iov, len ? 3 : 0);
	return link->zcopy->sendv(link, &p, iov, 3);
}

START_TEST(every_size)
{
	static const size_t sizes[] = {0,
				       1,
				       8,
				       255,
				       8192,
				       8193,
				       32768,
				       32769,
				       4096,
				       4097,
				       65503,
				       65504,
				       65505,
				       65536,
				       TCP_EAGER_MAX,
				       TCP_EAGER_MAX + 1,
				       TCP_PACKET_MAX - 1,
				       TCP_PACKET_MAX};
	uint32_t id = join_both();
	uint64_t number = 0;

	engine.places = _i & 1;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int k = 0; k < 6; k++) {
			/* Longer messages need an RTS: -FI_EMSGSIZE tells the engine. */
			if (k / 2 == SEND && sizes[i] > TCP_EAGER_MAX) {
				ck_assert_int_eq(put(id, SEND, number, sizes[i]), -FI_EMSGSIZE);
				continue;
			}
			ck_assert_int_eq(put(id, k / 2, number, sizes[i]), 0);
			PROGRESS_UNTIL(seen_count == number + 1 && !link_holds(link_of(id)));
			expect_seen((unsigned int)number, id + 1, number, sizes[i], sizes[i]);
			ck_assert_uint_eq(seen[number].data, k & 1 ? ~number : 0);
			ck_assert_uint_eq(seen[number].head, MSG(k & 1 ? WIRE_DATA : 0));
			number++;
		}
	for (int way = SEND; way <= ZCOPY; way++)
		ck_assert_int_eq(put(id, way, 0, TCP_PACKET_MAX + 1), -FI_EMSGSIZE);
	quiet_calls(2);
	ck_assert_uint_eq(seen_count, number);
}
END_TEST

/* Sends until -FI_EAGAIN. Returns the number of the first packet not sent. */
static uint64_t put_all(uint32_t id, uint64_t from, size_t len)
{
	while (put(id, SEND, from, len) == 0)
		from++;
	return from;
}

/* The same until the kernel is full: without progress calls the packets of a stream wait for each other. */
static uint64_t put_until_full(uint32_t id, uint64_t from, size_t len)
{
	while (put(id, SEND, from, len) == 0) {
		from++;
		make_progress(0);
	}
	return from;
}

static void expect_from(uint32_t src, uint64_t count, size_t len)
{
	for (uint64_t i = 0; i < count; i++)
		expect_seen((unsigned int)i, src, i, len, len);
}

START_TEST(no_room)
{
	static const size_t sizes[] = {8, 100, 3000, 12000};
	size_t len = sizes[_i];
	uint32_t id = join_both();
	uint64_t count = 0;

	buffers(((struct tcp_link *)link_of(id))->sock, 20000);
	for (int round = 0; round < 4; round++) {
		count = put_until_full(id, count, len);
		for (int way = SEND; way < ZCOPY; way++)
			ck_assert_int_eq(put(id, way, 77, len), -FI_EAGAIN);
		ck_assert_int_eq(((struct tcp_link *)link_of(id))->tx, TCP_FULL);
		ck_assert(!link_holds(link_of(id)));
		PROGRESS_UNTIL(seen_count == count);
		ck_assert_int_eq(put(id, SEND, count, len), 0);
		count++;
	}
	PROGRESS_UNTIL(seen_count == count);
	quiet_calls(2);
	ck_assert_uint_eq(seen_count, count);
	expect_from(id + 1, count, len);
}
END_TEST

static bool readable(int ms)
{
	struct pollfd p = {.fd = tcp_transport.fd(sides[0].hw), .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static bool arm(void)
{
	return tcp_transport.arm(sides[0].hw);
}

START_TEST(woken_by_packets)
{
	uint32_t id = 0;

	ck_assert(arm());
	/* Few links, or so many that epoll reads them; armed or not. */
	for (int i = 0; i < (_i & 1 ? 30 : 1); i++)
		id = join_both();
	if (_i & 2)
		ck_assert(arm());
	ck_assert(!readable(0));
	for (int round = 0; round < 3; round++) {
		ck_assert_int_eq(put(id + 1, SEND, 5, 100), 0);
		ck_assert(readable(1000) || !(_i & 2));
		ck_assert(!arm());
		PROGRESS_UNTIL(seen_count == (unsigned int)round + 1);
		expect_seen((unsigned int)round, id, 5, 100, 100);
		ck_assert(arm());
		ck_assert(!readable(2));
	}
	close_joint(id + 1);
	ck_assert(readable(1000));
	ck_assert(!arm());
	PROGRESS_UNTIL(joints[id - 1].ends == 1);
	ck_assert(arm());
	ck_assert(!readable(2));
}
END_TEST

START_TEST(woken_by_room)
{
	uint32_t id = join_both();
	uint64_t count = 0;

	buffers(((struct tcp_link *)link_of(id))->sock, 20000);
	/* The receiving kernel may still take bytes that nobody reads. */
	for (;;) {
		count = put_until_full(id, count, _i ? 3000 : 8);
		if (!arm())
			make_progress(0);
		else if (!readable(100))
			break;
	}
	for (int i = 0; i < 1000 && !readable(1); i++)
		make_progress(1);
	ck_assert(readable(0));
	/* The cause of the wake-up is handled, or reported once; then arming succeeds. */
	for (int i = 0; i < 4 && !arm(); i++)
		make_progress(0);
	ck_assert(arm());
	ck_assert(!readable(5));
	ck_assert_int_eq(put(id, SEND, count, 8), 0);
	PROGRESS_UNTIL(seen_count == count + 1);
	ck_assert(arm());
	ck_assert(!readable(5));
}
END_TEST

START_TEST(zcopy)
{
	uint32_t id = join_both();
	struct link *link = link_of(id);
	const size_t len = TCP_PACKET_MAX;

	engine.places = _i & 2;
	buffers(((struct tcp_link *)link)->sock, 20000);
	ck_assert_uint_le(link->zcopy_min, len);
	ck_assert_int_eq(put(id, ZCOPY, 3, len), 0);
	ck_assert(link_holds(link));
	ck_assert_int_eq(put(id, SEND, 4, 0), -FI_EAGAIN);
	if (_i & 1) {
		ck_assert_int_eq(link->zcopy->copy_out(link), 0);
		ck_assert(!link_holds(link));
		memset(bytes, 0, len);
	} else {
		bytes[len - 1] ^= 0xff; /* zero-copy: the link reads this memory later */
	}
	PROGRESS_UNTIL(seen_count == 1);
	ck_assert(!link_holds(link));
	ck_assert_uint_eq(seen[0].len, len);
	for (size_t i = 0; i < len - 1; i++)
		ck_assert_uint_eq(seen[0].payload[i], byte_of(3, i));
	ck_assert_uint_eq(seen[0].payload[len - 1], byte_of(3, len - 1) ^ (_i & 1 ? 0 : 0xff));
	ck_assert_int_eq(link->zcopy->copy_out(link), 0);
	ck_assert_int_eq(put(id, SEND, 4, 0), 0);
	PROGRESS_UNTIL(seen_count == 2);
}
END_TEST

/* A zero-copy payload of many segments, interrupted at many places. */
START_TEST(zcopy_in_fragments)
{
	uint32_t id = join_both();
	struct link *link = link_of(id);
	struct iovec iov[36];
	size_t len = 0;

	buffers(((struct tcp_link *)link)->sock, 5000);
	for (int i = 0; i < 36; i++) {
		iov[i] = (struct iovec){bytes + len, (size_t)i % 5 * 1000};
		len += iov[i].iov_len;
	}
	for (uint64_t number = 0; number < 20; number++) {
		struct packet p = packet(number, len, WIRE_DATA);

		if (link->ops->send(link, bytes, number * 40, 0, MSG(0), 99) == 0)
			PROGRESS_UNTIL(seen_count == 2 * number + 1);
		fill(bytes, number, len);
		ck_assert_int_eq(link->zcopy->sendv(link, &p, iov, 36), 0);
		PROGRESS_UNTIL(seen_count == 2 * number + 2 && !link_holds(link));
		expect_seen(2 * (unsigned int)number + 1, id + 1, number, len, len);
	}
}
END_TEST

/*
 * A disconnect message always goes out, last; packets of a link closed without one are not lost
 * either.
 */
START_TEST(goodbye)
{
	uint32_t id = join_both();
	size_t len = _i & 2 ? TCP_PACKET_MAX : _i & 1 ? 3000 : 24;
	bool orderly = _i < 3;
	uint64_t count;

	buffers(((struct tcp_link *)link_of(id))->sock, 20000);
	if (_i & 2)
		ck_assert_int_eq(put(id, ZCOPY, 0, len), 0);
	count = _i & 2 ? 1 : put_all(id, 0, len);
	if (orderly)
		ck_assert_int_eq(link_of(id)->ops->send(link_of(id), NULL, 0, 0, BYE, 0), 0);
	ck_assert(link_holds(link_of(id)) == !orderly);
	close_joint(id);
	memset(bytes, 0, sizeof(bytes));
	PROGRESS_UNTIL(joints[id].ends);
	ck_assert_uint_eq(seen_count, count + orderly);
	expect_from(id + 1, count, len);
	if (orderly)
		ck_assert_uint_eq(seen[count].head, BYE);
	ck_assert_int_eq(joints[id].ended, FI_ECONNRESET);
}
END_TEST

/* Sent packets are not lost when a link is closed with unread input. */
START_TEST(closed_with_unread)
{
	uint32_t id = join_raw();
	uint64_t count;
	size_t total = 0;
	ssize_t n;

	buffers(peer_of(id), 20000);
	buffers(((struct tcp_link *)link_of(id))->sock, 20000);
	write_all(peer_of(id), bytes, 3000);
	usleep(1000);
	count = put_all(id, 0, _i ? 3000 : 8);
	close_joint(id);
	for (int round = 0; (n = recv(peer_of(id), bytes, sizeof(bytes), 0)) != 0; round++) {
		if (n > 0)
			total += (size_t)n;
		else
			ck_assert_int_eq(errno, EAGAIN);
		if (round < 100)
			send(peer_of(id), bytes, 1000, MSG_NOSIGNAL);
		make_progress(0);
	}
	ck_assert_uint_eq(total, count * ((_i ? 3000 : 8) + FRAME));
}
END_TEST

static void reopen(void)
{
	tcp_transport.close(sides[0].hw);
	ck_assert_int_eq(tcp_transport.open(&sides[0].opener, &sides[0].hw), 0);
}

/* The worker closes and its process ends: a peer that was busy reads everything later. */
START_TEST(worker_closed)
{
	uint32_t id = join_raw();
	uint64_t count;
	uint64_t began;
	pid_t pid;
	int status;

	buffers(peer_of(id), 50000);
	write_all(peer_of(id), bytes, 100);
	count = put_all(id, 0, 1000);
	pid = fork();
	if (pid == 0) {
		size_t total = 0;
		ssize_t n;

		alarm(LIMIT);
		usleep(300000);
		fcntl(peer_of(id), F_SETFL, 0);
		while ((n = recv(peer_of(id), bytes, sizeof(bytes), 0)) > 0)
			total += (size_t)n;
		_exit(n < 0 || total != count * (1000 + FRAME));
	}
	close(peer_of(id));
	joints[id - 1].peer = -1;
	began = clock_us();
	close_joint(id);
	ck_assert_uint_lt(clock_us() - began, 100000);
	reopen();
	ck_assert_uint_lt(clock_us() - began, 900000);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* Peers that do not read delay the close of a worker by a second in all. */
START_TEST(worker_closed_in_vain)
{
	uint64_t began;
	uint32_t id[5];

	for (int i = 0; i < 5; i++) {
		id[i] = join_raw();
		buffers(peer_of(id[i]), 5000);
		put_all(id[i], 0, 8000);
	}
	began = clock_us();
	for (int i = 0; i < 5; i++)
		close_joint(id[i]);
	ck_assert_uint_lt(clock_us() - began, 200000);
	reopen();
	ck_assert_uint_ge(clock_us() - began, 800000);
	ck_assert_uint_lt(clock_us() - began, 2500000);
}
END_TEST

/*
 * The connection breaks under a send: progress reports the end after the packets that came before.
 */
START_TEST(broken)
{
	unsigned char frame[64];
	uint32_t id = join_raw();
	struct linger hard = {1, 0};
	size_t len = put_frame(frame, MSG(0), 6, 0, 10);

	fill(frame + len, 6, 10);
	if (_i & 2) {
		buffers(peer_of(id), 5000);
		buffers(((struct tcp_link *)link_of(id))->sock, 5000);
		put(id, ZCOPY, 0, TCP_PACKET_MAX);
		make_progress(0);
		ck_assert(link_holds(link_of(id)));
	}
	write_all(peer_of(id), frame, len + 10);
	if (_i & 1)
		setsockopt(peer_of(id), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(peer_of(id));
	joints[id - 1].peer = -1;
	/* Longer than packets that wait for others. */
	for (int i = 0; i < 1000 && put(id, SEND, 0, 3000) == 0; i++)
		usleep(100);
	ck_assert_int_eq(put(id, SEND, 0, 100), -FI_EAGAIN);
	ck_assert_int_eq(put(id, ZCOPY, 0, 100), -FI_EAGAIN);
	ck_assert_int_eq(joints[id - 1].ends, 0);
	ck_assert(!arm());
	if (_i & 2)
		ck_assert(link_holds(link_of(id))); /* not sent */
	PROGRESS_UNTIL(joints[id - 1].ends);
	ck_assert_uint_eq(seen_count, 1);
	expect_seen(0, id, 6, 10, 10);
	ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
	quiet_calls(2);
	ck_assert_int_eq(joints[id - 1].ends, 1);
	ck_assert(arm());
}
END_TEST

/* Links are opened and closed while others are in use, with few and many links. */
START_TEST(many_links)
{
	uint32_t id[15];
	unsigned int rounds = 40, count = 0;

	for (int i = 0; i < 15; i++)
		id[i] = join_both();
	for (unsigned int round = 0; round < rounds; round++) {
		int gone = round < 10 ? 14 - (int)round : 15;

		for (int i = 0; i < gone && i < 15; i++) {
			if (!link_of(id[i]))
				continue;
			ck_assert_int_eq(put(id[i], ZCOPY, round, 20000), 0);
			ck_assert_int_eq(put(id[i] + 1, SEND, round, 10), 0);
			count += 2;
		}
		PROGRESS_UNTIL(seen_count == count);
		if (round < 10)
			close_joint(id[gone]);
	}
	for (int i = 0; i < 15; i++) {
		ck_assert_int_eq(joints[id[i] - 1].ends, 0);
		ck_assert_int_eq(joints[id[i]].ends, i > 4);
	}
	for (unsigned int i = 0; i < count; i++)
		ck_assert_uint_eq(seen[i].len, seen[i].src % 2 ? 10 : 20000);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_send");
	TCase *tcase = tcase_create("send");

	tcase_add_loop_test(tcase, every_size, 0, 2);
	tcase_add_loop_test(tcase, no_room, 0, 4);
	tcase_add_loop_test(tcase, woken_by_packets, 0, 4);
	tcase_add_loop_test(tcase, woken_by_room, 0, 2);
	tcase_add_loop_test(tcase, zcopy, 0, 4);
	tcase_add_test(tcase, zcopy_in_fragments);
	tcase_add_loop_test(tcase, goodbye, 0, 4);
	tcase_add_loop_test(tcase, closed_with_unread, 0, 2);
	tcase_add_test(tcase, worker_closed);
	tcase_add_test(tcase, worker_closed_in_vain);
	tcase_add_loop_test(tcase, broken, 0, 4);
	tcase_add_test(tcase, many_links);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
