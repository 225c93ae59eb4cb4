/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves how many system calls and how much memory the TCP transport uses. The test replaces the
 * calls to count them and to send fewer bytes than asked.
 */
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "base/iov.h"
#include "tcp_pair.h"

#define MSG WIRE_HEAD(WIRE_MSG, 0, 0, 0)

static struct calls {
	unsigned int recv, recvmsg, send, sendmsg, epoll;
} calls;

static size_t most = SIZE_MAX; /* bytes that one call sends */

ssize_t recv(int sock, void *buf, size_t len, int flags)
{
	calls.recv++;
	return syscall(SYS_recvfrom, sock, buf, len, flags, NULL, NULL);
}

ssize_t recvmsg(int sock, struct msghdr *m, int flags)
{
	calls.recvmsg++;
	return syscall(SYS_recvmsg, sock, m, flags);
}

ssize_t send(int sock, const void *buf, size_t len, int flags)
{
	calls.send++;
	if (!most)
		return errno = EAGAIN, -1;
	return syscall(SYS_sendto, sock, buf, len < most ? len : most, flags, NULL, 0);
}

ssize_t sendmsg(int sock, const struct msghdr *m, int flags)
{
	struct iovec iov[128];
	struct msghdr some = {.msg_iov = iov};
	size_t len = most;

	calls.sendmsg++;
	if (!most)
		return errno = EAGAIN, -1;
	ck_assert_uint_le(m->msg_iovlen, 128);
	some.msg_iovlen = iov_slice(iov, m->msg_iov, m->msg_iovlen, 0, &len);
	return syscall(SYS_sendmsg, sock, &some, flags);
}

int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	calls.epoll++;
	return (int)syscall(SYS_epoll_pwait, epfd, events, max, timeout, NULL, 0);
}

static void expect_calls(struct calls want)
{
	ck_assert_uint_eq(calls.recv, want.recv);
	ck_assert_uint_eq(calls.recvmsg, want.recvmsg);
	ck_assert_uint_eq(calls.send, want.send);
	ck_assert_uint_eq(calls.sendmsg, want.sendmsg);
	ck_assert_uint_eq(calls.epoll, want.epoll);
	memset(&calls, 0, sizeof(calls));
}

static unsigned char bytes[TCP_PACKET_MAX];

static int put(uint32_t id, size_t len)
{
	return link_of(id)->ops->send(link_of(id), bytes, len, 0, MSG, 0);
}

START_TEST(ping_pong)
{
	uint32_t id = join_both();

	for (unsigned int i = 0; i < 100; i++) {
		ck_assert_int_eq(put(id + i % 2, 8), 0);
		usleep(100); /* lets the packet arrive */
		expect_calls((struct calls){.send = 1});
		ck_assert(make_progress(!(i % 2)));
		ck_assert_uint_eq(seen_count, i + 1);
		expect_calls((struct calls){.recv = 1});
	}
}
END_TEST

START_TEST(nobody_there)
{
	for (int i = 0; i < 1000; i++)
		ck_assert(!make_progress(0));
	expect_calls((struct calls){0});
}
END_TEST

/* Beside another transport a silent link is polled more and more rarely, but still read soon. */
START_TEST(beside_another)
{
	uint32_t id;
	unsigned int rounds = 0;

	sides[0].opener.opened = 2;
	id = join_both();
	for (int i = 0; i < 1600; i++)
		make_progress(0);
	ck_assert_uint_ge(calls.recv, 64);
	ck_assert_uint_le(calls.recv, 64 + 1600 / 16);
	ck_assert_int_eq(put(id + 1, 8), 0);
	usleep(1000);
	while (!seen_count && rounds++ < 1000)
		make_progress(0);
	ck_assert_uint_le(rounds, 16);
	/* Arming polls at once; so does a send, which expects an answer. */
	for (int i = 0; i < 200; i++)
		make_progress(0);
	tcp_transport.arm(sides[0].hw);
	memset(&calls, 0, sizeof(calls));
	make_progress(0);
	ck_assert_uint_eq(calls.recv, 1);
	for (int i = 0; i < 200; i++)
		make_progress(0);
	ck_assert_int_eq(put(id, 8), 0);
	memset(&calls, 0, sizeof(calls));
	make_progress(0);
	ck_assert_uint_eq(calls.recv, 1);
}
END_TEST

/* An unsent rest is sent on in every progress call, even if the links are silent. */
START_TEST(rest_beside_another)
{
	uint32_t id;

	sides[0].opener.opened = 2;
	id = join_both();
	for (int i = 0; i < 200; i++)
		make_progress(0);
	most = 10;
	ck_assert_int_eq(put(id, 8), 0);
	for (int i = 0; i < 200; i++)
		make_progress(0);
	most = 0;
	ck_assert_int_eq(put(id, 10000), -FI_EAGAIN);
	most = 1;
	ck_assert_int_eq(put(id, 10000), 0);
	memset(&calls, 0, sizeof(calls));
	for (int i = 0; i < 1000; i++)
		make_progress(0);
	ck_assert_uint_eq(calls.sendmsg, 1000);
}
END_TEST

/* After -FI_EAGAIN, space in the socket is reported once to a sleeper. */
START_TEST(space_is_reported_once)
{
	uint32_t id = join_both();

	most = 0;
	ck_assert_int_eq(put(id, 8), -FI_EAGAIN);
	ck_assert(!tcp_transport.arm(sides[0].hw));
	ck_assert(tcp_transport.arm(sides[0].hw));
	most = SIZE_MAX;
	ck_assert_int_eq(put(id, 8), 0);
	PROGRESS_UNTIL(seen_count == 1);
}
END_TEST

/* Overwrites the stack: the transport must not keep pointers into it. */
static __attribute__((noinline)) void spoil_stack(void)
{
	volatile unsigned char spoilt[32768];

	for (size_t i = 0; i < sizeof(spoilt); i++)
		spoilt[i] = 0xa5;
}

/* The kernel takes any number of bytes of a packet at a time. */
START_TEST(cut_anywhere)
{
	uint32_t id = join_both();
	struct link *link = link_of(id);
	const size_t len = 60;
	unsigned int count = 0;

	for (most = 1; most <= FRAME + len; most++) {
		size_t first = most;
		struct packet p = {.head = MSG, .tag = count, .len = len};
		struct iovec iov[3] = {{bytes, 20}, {bytes + 20, 1}, {bytes + 21, len - 21}};

		fill(bytes, count, len);
		if (_i == 0)
			ck_assert_int_eq(link->ops->send(link, bytes, len, 0, MSG, count), 0);
		else if (_i == 1)
			ck_assert_int_eq(link->ops->sendv(link, &p, iov, 3), 0);
		else
			ck_assert_int_eq(link->zcopy->sendv(link, &p, iov, 3), 0);
		spoil_stack();
		ck_assert(link_holds(link) == (_i >= 2 && first < FRAME + len));
		most = 9;
		if (_i == 3 && first < FRAME + len) {
			make_progress(0);
			ck_assert_int_eq(link->zcopy->copy_out(link), 0);
		}
		PROGRESS_UNTIL(seen_count == count + 1);
		expect_seen(count, id + 1, count, len, len);
		most = first;
		count++;
	}
	ck_assert_uint_eq(count, FRAME + len);
}
END_TEST

START_TEST(alone)
{
	join_raw();
	for (int i = 0; i < 1000; i++)
		make_progress(0);
	expect_calls((struct calls){.recv = 1000});
}
END_TEST

START_TEST(many)
{
	uint32_t id = 0;

	for (int i = 0; i < 20; i++)
		id = join_both();
	for (int i = 0; i < 100; i++)
		make_progress(0);
	expect_calls((struct calls){.epoll = 100});
	ck_assert_int_eq(put(id + 1, 8), 0);
	usleep(1000);
	make_progress(0);
	expect_calls((struct calls){.send = 1, .epoll = 1, .recv = 1});
	ck_assert_uint_eq(seen_count, 1);
}
END_TEST

/* A row of long messages: after the first, each is read by one call directly into its receive. */
START_TEST(long_messages)
{
	uint32_t id = join_both();

	engine.places = true;
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(put(id, 60000), 0);
	expect_calls((struct calls){.sendmsg = 5});
	usleep(10000);
	PROGRESS_UNTIL(seen_count == 5);
	for (int i = 1; i < 5; i++)
		ck_assert(seen[i].landed);
	ck_assert_uint_le(calls.recvmsg, 6);
}
END_TEST

/* A row of messages, each in memory of its own. */
#define ROW_LEN 60000u

static unsigned char rows[200 * TCP_ZCOPY_MIN];

/* Sends a message of the row; zero-copy if `send` asks for that, as the engine does. */
static int put_row(uint32_t id, unsigned int number, size_t len)
{
	struct link *link = link_of(id);
	unsigned char *row = rows + number * len;
	struct packet p = {.head = MSG, .tag = number, .payload = row, .len = len};
	int err;

	ck_assert_uint_le((number + 1) * len, sizeof(rows));
	fill(row, number, len);
	err = link->ops->send(link, row, len, 0, MSG, number);
	return err == -FI_EAGAIN ? link->zcopy->sendv(link, &p, &(struct iovec){row, len}, 1) : err;
}

static void expect_rows(uint32_t src, unsigned int count, size_t len)
{
	PROGRESS_UNTIL(seen_count >= count);
	for (unsigned int i = 0; i < count; i++)
		expect_seen(i, src, i, len, len);
}

/* Sends messages that wait for each other and go out by one call, with the last of them. */
static void put_batch(uint32_t id, unsigned int from, unsigned int to, size_t len)
{
	memset(&calls, 0, sizeof(calls));
	for (unsigned int i = from; i < to; i++) {
		ck_assert_int_eq(calls.sendmsg, 0);
		ck_assert_int_eq(put_row(id, i, len), 0);
	}
	ck_assert_int_eq(calls.sendmsg, 1);
	ck_assert(!link_holds(link_of(id)));
	while (seen_count < to)
		make_progress(1);
}

/* Sends messages that go out at once, each by one call. */
static void put_singly(uint32_t id, unsigned int from, unsigned int to, size_t len)
{
	memset(&calls, 0, sizeof(calls));
	for (unsigned int i = from; i < to; i++)
		ck_assert_int_eq(put_row(id, i, len), 0);
	ck_assert_int_eq(calls.sendmsg, to - from);
	ck_assert(!link_holds(link_of(id)));
}

/* The calls here are counted: those of the flusher, should the test be slow, would be others. */
static uint32_t join_for_rows(void)
{
	uint32_t id = join_both();

	((struct tcp_link *)link_of(id))->own->no_flusher = true;
	return id;
}

/*
 * The first 256 KiB go at once; then batches as long as all sent before; progress sends the last
 * one.
 */
START_TEST(row)
{
	uint32_t id = join_for_rows();

	put_singly(id, 0, 5, ROW_LEN);
	put_batch(id, 5, 10, ROW_LEN);
	put_batch(id, 10, 20, ROW_LEN);
	memset(&calls, 0, sizeof(calls));
	for (unsigned int i = 20; i < 30; i++)
		ck_assert_int_eq(put_row(id, i, ROW_LEN), 0);
	ck_assert_int_eq(calls.sendmsg, 0);
	ck_assert(link_holds(link_of(id)));
	/* A short message does not overtake the batch. */
	ck_assert_int_eq(put(id, 8), -FI_EAGAIN);
	make_progress(0);
	ck_assert_int_eq(calls.sendmsg, 1);
	ck_assert(!link_holds(link_of(id)));
	/* A progress call ends the row. */
	put_singly(id, 30, 35, ROW_LEN);
	ck_assert_int_eq(put_row(id, 35, ROW_LEN), 0);
	ck_assert(link_holds(link_of(id)));
	expect_rows(id + 1, 36, ROW_LEN);
}
END_TEST

/* A batch is limited to 1 MiB. */
START_TEST(row_of_many)
{
	uint32_t id = join_for_rows();

	put_singly(id, 0, 16, TCP_ZCOPY_MIN);
	put_batch(id, 16, 32, TCP_ZCOPY_MIN);
	put_batch(id, 32, 64, TCP_ZCOPY_MIN);
	put_batch(id, 64, 128, TCP_ZCOPY_MIN);
	most = 0; /* the batch is full, but the socket has no space */
	for (unsigned int i = 128; i < 192; i++)
		ck_assert_int_eq(put_row(id, i, TCP_ZCOPY_MIN), 0);
	ck_assert_int_eq(put_row(id, 192, TCP_ZCOPY_MIN), -FI_EAGAIN);
	make_progress(0);
	ck_assert_int_eq(put_row(id, 192, TCP_ZCOPY_MIN), -FI_EAGAIN);
	most = SIZE_MAX;
	expect_rows(id + 1, 192, TCP_ZCOPY_MIN);
}
END_TEST

/* The longest eager message also waits, if it does not fill the batch. */
START_TEST(row_of_longest)
{
	uint32_t id = join_for_rows();

	put_singly(id, 0, 1, TCP_EAGER_MAX);
	put_batch(id, 1, 2, TCP_EAGER_MAX);
	put_batch(id, 2, 4, TCP_EAGER_MAX);
	put_batch(id, 4, 8, TCP_EAGER_MAX);
	put_batch(id, 8, 12, TCP_EAGER_MAX);
	expect_rows(id + 1, 12, TCP_EAGER_MAX);
}
END_TEST

/* A batch goes out in parts of any size; or is copied out, or its link is closed, before. */
START_TEST(row_cut)
{
	static const size_t fragments[] = {ROW_LEN, ROW_LEN + FRAME - 1, 7777, 150001};
	uint32_t id = join_for_rows();

	for (unsigned int i = 0; i < 9; i++)
		ck_assert_int_eq(put_row(id, i, ROW_LEN), 0);
	ck_assert(link_holds(link_of(id)));
	most = fragments[_i / 3];
	if (_i % 3 == 1) {
		uint64_t out = link_of(id)->zcopy_done;

		make_progress(0);
		/* Completely sent packets are counted in zcopy_done. */
		ck_assert_uint_eq(link_of(id)->zcopy_done, out + most / (ROW_LEN + FRAME));
		ck_assert_int_eq(link_of(id)->zcopy->copy_out(link_of(id)), 0);
		ck_assert(!link_holds(link_of(id)));
		memset(rows, 0, sizeof(rows));
	} else if (_i % 3 == 2) {
		ck_assert_int_eq(link_of(id)->ops->send(link_of(id), NULL, 0, 0,
							WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0), 9),
				 0);
		ck_assert(!link_holds(link_of(id)));
		close_joint(id);
		memset(rows, 0, sizeof(rows));
		PROGRESS_UNTIL(seen_count == 10);
		expect_seen(9, id + 1, 9, 0, 0);
	}
	expect_rows(id + 1, 9, ROW_LEN);
}
END_TEST

/* Silent links hold no buffers after packets of any length. */
START_TEST(memory)
{
	size_t before = mallinfo2().uordblks, cut = 700;

	for (int i = 0; i < 30; i++)
		join_raw();
	put_frame(bytes, MSG, 0, 0, 8000);
	for (uint32_t id = 1; id <= joint_count; id++)
		write_all(peer_of(id), bytes, cut);
	quiet_calls(5);
	for (uint32_t id = 1; id <= joint_count; id++) {
		write_all(peer_of(id), bytes + cut, FRAME + 8000 - cut);
		ck_assert_int_eq(put(id, 1000), 0);
	}
	PROGRESS_UNTIL(seen_count == joint_count);
	forget();
	ck_assert_uint_le((mallinfo2().uordblks - before) / joint_count, 512);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_cost");
	TCase *tcase = tcase_create("cost");

	tcase_add_test(tcase, ping_pong);
	tcase_add_test(tcase, nobody_there);
	tcase_add_test(tcase, beside_another);
	tcase_add_test(tcase, rest_beside_another);
	tcase_add_test(tcase, space_is_reported_once);
	tcase_add_loop_test(tcase, cut_anywhere, 0, 4);
	tcase_add_test(tcase, alone);
	tcase_add_test(tcase, many);
	tcase_add_test(tcase, long_messages);
	tcase_add_test(tcase, row);
	tcase_add_test(tcase, row_of_many);
	tcase_add_test(tcase, row_of_longest);
	tcase_add_loop_test(tcase, row_cut, 0, 12);
	tcase_add_test(tcase, memory);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
