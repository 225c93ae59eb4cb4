/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves which packets of a TCP link wait for others, what makes them go out, and when they count
 * as sent. The test replaces send and sendmsg, to let the kernel take fewer bytes.
 */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/iov.h"
#include "hw/tcp/tcp_output.h"
#include "tcp_pair.h"

#define MSG  WIRE_HEAD(WIRE_MSG, 0, 0, 0)
#define PUT  WIRE_HEAD(WIRE_PUT, WIRE_DATA, 0, 0)
#define XON  WIRE_HEAD(WIRE_XON, 0, 0, 0)
#define DONE WIRE_HEAD(WIRE_DONE, WIRE_LATER, 0, 0)
#define LEN  24

static size_t most; /* atomic: bytes that one call sends; 0: no space */

ssize_t send(int sock, const void *buf, size_t len, int flags)
{
	size_t max = __atomic_load_n(&most, __ATOMIC_RELAXED);

	if (!max)
		return errno = EAGAIN, -1;
	return syscall(SYS_sendto, sock, buf, len < max ? len : max, flags, NULL, 0);
}

ssize_t sendmsg(int sock, const struct msghdr *m, int flags)
{
	struct iovec iov[128];
	struct msghdr some = {.msg_iov = iov};
	size_t len = __atomic_load_n(&most, __ATOMIC_RELAXED);

	if (!len)
		return errno = EAGAIN, -1;
	some.msg_iovlen = iov_slice(iov, m->msg_iov, m->msg_iovlen, 0, &len);
	return syscall(SYS_sendmsg, sock, &some, flags);
}

static void let(size_t bytes)
{
	__atomic_store_n(&most, bytes, __ATOMIC_RELAXED);
}

static unsigned char bytes[100000];

/* As the engine sends a message of which it reports the end. */
static int put(uint32_t id, uint64_t number, size_t len)
{
	struct packet p = {.head = MSG, .tag = number, .len = len};
	struct link *link = link_of(id);
	int err = -FI_EAGAIN;

	fill(bytes, number, len);
	if (link->zcopy_min)
		err = link->ops->send(link, bytes, len, 0, MSG, number);
	return err ? link->zcopy->sendv(link, &p, &(struct iovec){bytes, len}, 1) : 0;
}

/* Sends packets from number `from` on, below number `to`. */
static void put_row(uint32_t id, uint64_t from, uint64_t to)
{
	for (uint64_t i = from; i < to; i++)
		ck_assert_int_eq(put(id, i, LEN), 0);
}

static void expect_row(uint32_t src, unsigned int count)
{
	PROGRESS_UNTIL(seen_count >= count);
	for (unsigned int i = 0; i < count; i++)
		expect_seen(i, src, i, seen[i].len, seen[i].len);
}

static bool gathers(uint32_t id)
{
	return ((struct tcp_link *)link_of(id))->gather != NULL;
}

/* Packets of a stream wait until the next progress call, which says that they are out. */
START_TEST(until_progress)
{
	uint32_t id = join_both();

	put_row(id, 0, TCP_STREAM_MIN);
	ck_assert(!link_holds(link_of(id)));
	put_row(id, TCP_STREAM_MIN, 100);
	ck_assert(link_holds(link_of(id)));
	ck_assert(make_progress(0));
	ck_assert(!link_holds(link_of(id)));
	ck_assert(!gathers(id));
	expect_row(id + 1, 100);
}
END_TEST

/* Sends an answer that nobody waits for. */
static void answer(uint32_t id)
{
	struct packet done = {.head = DONE};

	ck_assert_int_eq(link_of(id)->ops->sendv(link_of(id), &done, NULL, 0), 0);
}

/* Returns the bytes that the kernel has been given and has not sent. */
static int unsent(uint32_t id)
{
	int len = -1;

	ck_assert_int_eq(ioctl(((struct tcp_link *)link_of(id))->sock, SIOCOUTQNSD, &len), 0);
	return len;
}

/* The kernel keeps such an answer until the next packet. */
START_TEST(answer_with_the_next)
{
	uint32_t id = join_both();

	answer(id);
	ck_assert_int_eq(unsent(id), sizeof(struct tcp_frame));
	put_row(id, 0, 1);
	ck_assert_int_eq(unsent(id), 0);
	PROGRESS_UNTIL(seen_count >= 2);
	ck_assert_uint_eq(wire_op(seen[0].head), WIRE_DONE);
	ck_assert_uint_eq(wire_op(seen[1].head), WIRE_MSG);
}
END_TEST

/* If none follows, the next progress call sends it, and so does going to sleep. */
START_TEST(answer_alone)
{
	uint32_t id = join_both();

	answer(id);
	make_progress(0);
	ck_assert_int_eq(unsent(id), 0);
	answer(id);
	ck_assert_int_eq(unsent(id), sizeof(struct tcp_frame));
	ck_assert(tcp_transport.arm(sides[0].hw));
	ck_assert_int_eq(unsent(id), 0);
	PROGRESS_UNTIL(seen_count >= 2);
}
END_TEST

/* Progress calls in between make no stream. */
START_TEST(requests_and_answers)
{
	uint32_t id = join_both();

	for (unsigned int i = 0; i < 400; i += 4) {
		put_row(id, i, i + 4);
		ck_assert(!link_holds(link_of(id)));
		make_progress(0);
	}
	expect_row(id + 1, 400);
}
END_TEST

/* After a long row the packets of the next one wait, and after a short one they do not. */
START_TEST(next_row)
{
	uint32_t id = join_both();

	put_row(id, 0, 40);
	make_progress(0);
	make_progress(0);
	put_row(id, 40, 44);
	ck_assert_uint_eq(link_of(id)->zcopy_posted - link_of(id)->zcopy_done, 4);
	make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	put_row(id, 44, 48);
	ck_assert(!link_holds(link_of(id)));
	expect_row(id + 1, 48);
}
END_TEST

/* Requests of one side: they have answers, so nothing says when they are out. */
START_TEST(requests)
{
	uint32_t id = join_both();
	struct link *link = link_of(id);

	for (uint64_t i = 0; i < 100; i++) {
		fill(bytes, i, LEN);
		ck_assert_int_eq(link->ops->send(link, bytes, LEN, 0, PUT, i), 0);
	}
	ck_assert(gathers(id));
	ck_assert(!link_holds(link));
	expect_row(id + 1, 100);
}
END_TEST

/* Nobody calls progress. */
START_TEST(left_alone)
{
	uint32_t id = join_raw();
	size_t left = 100 * (FRAME + LEN);
	struct pollfd p = {.fd = peer_of(id), .events = POLLIN};

	put_row(id, 0, 100);
	ck_assert(link_holds(link_of(id)));
	while (left) {
		ssize_t n;

		ck_assert_int_eq(poll(&p, 1, 10000), 1);
		n = recv(p.fd, bytes, sizeof(bytes), 0);
		ck_assert_int_gt(n, 0);
		left -= (size_t)n;
	}
	/* The engine learns of it in progress. */
	ck_assert(link_holds(link_of(id)));
	make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	/* And once more, when the thread may sleep. */
	usleep(20000);
	put_row(id, 0, 40);
	for (left = 40 * (FRAME + LEN); left;) {
		ck_assert_int_eq(poll(&p, 1, 10000), 1);
		left -= (size_t)recv(p.fd, bytes, sizeof(bytes), 0);
	}
}
END_TEST

/* A full buffer goes out; what is in it counts as sent. */
START_TEST(full)
{
	uint32_t id = join_both();
	uint64_t count = 0;

	while (!link_of(id)->zcopy_done) {
		put_row(id, count, count + 1);
		ck_assert_uint_lt(++count, 10000);
	}
	ck_assert(link_holds(link_of(id)));
	expect_row(id + 1, (unsigned int)count);
}
END_TEST

/* FI_MORE: the first one waits already, until one comes without it. */
START_TEST(more)
{
	uint32_t id = join_both();

	for (uint64_t i = 0; i < 3; i++) {
		link_of(id)->zcopy->cork(link_of(id), true);
		put_row(id, i, i + 1);
		ck_assert(link_holds(link_of(id)));
	}
	put_row(id, 3, 4);
	ck_assert(!link_holds(link_of(id)));
	/* None comes: progress sends them. */
	link_of(id)->zcopy->cork(link_of(id), true);
	put_row(id, 4, 5);
	ck_assert(link_holds(link_of(id)));
	make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	expect_row(id + 1, 5);
}
END_TEST

/* Long packets, answers and a goodbye do not overtake what waits. */
START_TEST(order)
{
	uint32_t id = join_both();
	struct link *link = link_of(id);
	uint64_t count = TCP_STREAM_MIN;

	put_row(id, 0, count);
	for (unsigned int i = 0; i < 20; i++) {
		put_row(id, count, count + 3);
		count += 3;
		ck_assert(link_holds(link));
		if (i & 1) {
			fill(bytes, count, 10000);
			ck_assert_int_eq(put(id, count++, 10000), 0);
		} else {
			fill(bytes, count, 0);
			ck_assert_int_eq(
				link->ops->sendv(link,
						 &(struct packet){.head = XON, .tag = count++},
						 NULL, 0),
				0);
		}
		ck_assert(!link_holds(link));
		put_row(id, count, count + 1);
		count++;
	}
	ck_assert_int_eq(
		link->ops->send(link, NULL, 0, 0, WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0), count), 0);
	close_joint(id);
	expect_row(id + 1, (unsigned int)count + 1);
}
END_TEST

/* What the kernel does not take is sent later, and counts as sent when all is. */
START_TEST(cut)
{
	uint32_t id = join_both();

	put_row(id, 0, TCP_STREAM_MIN);
	let(0); /* neither the flusher */
	put_row(id, TCP_STREAM_MIN, 100);
	let(70);
	make_progress(0);
	let(0);
	ck_assert_int_eq(((struct tcp_link *)link_of(id))->tx, TCP_REST);
	ck_assert(link_holds(link_of(id)));
	ck_assert_int_eq(put(id, 100, LEN), -FI_EAGAIN);
	let(SIZE_MAX);
	make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	expect_row(id + 1, 100);
}
END_TEST

/* Closing sends what waits; so does taking memory back. */
START_TEST(closed)
{
	uint32_t id = join_both();

	put_row(id, 0, 100);
	ck_assert(link_holds(link_of(id)));
	if (_i == 0) {
		close_joint(id);
	} else if (_i == 1) {
		ck_assert_int_eq(link_of(id)->zcopy->copy_out(link_of(id)), 0);
		ck_assert(!link_holds(link_of(id)));
	} else {
		link_of(id)->zcopy->cork(link_of(id), false);
		ck_assert(!link_holds(link_of(id)));
	}
	expect_row(id + 1, 100);
}
END_TEST

/* The connection breaks: packets that wait never count as sent, and the engine hears of it. */
START_TEST(broken)
{
	struct linger hard = {1, 0};
	uint32_t id = join_raw();

	put_row(id, 0, 100);
	make_progress(0);
	put_row(id, 100, 101);
	let(0);
	put_row(id, 101, 200);
	ck_assert(link_holds(link_of(id)));
	setsockopt(peer_of(id), SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(peer_of(id));
	joints[id - 1].peer = -1;
	let(SIZE_MAX);
	PROGRESS_UNTIL(joints[id - 1].ends);
	ck_assert_int_eq(joints[id - 1].ended, FI_ECONNRESET);
}
END_TEST

/* A thread that sleeps would not report what has left, and so nothing waits. */
START_TEST(beside_sleepers)
{
	uint32_t id = join_both();

	sides[0].opener.sleepers = true;
	put_row(id, 0, 100);
	ck_assert(!link_holds(link_of(id)));
	sides[0].opener.sleepers = false;
	put_row(id, 100, 102);
	ck_assert(link_holds(link_of(id)));
	ck_assert(!tcp_transport.arm(sides[0].hw));
	make_progress(0);
	ck_assert(!link_holds(link_of(id)));
	expect_row(id + 1, 102);
}
END_TEST

static void open_kernel(void)
{
	let(SIZE_MAX);
}

/* Holds the lock of the links that have something to send, until another thread has slept for it for some ms. */
static void *hold_links(void *taken)
{
	const struct lock *lock = &forked_locks[FORKED_FLUSHER].lock;

	forked_take(FORKED_FLUSHER);
	__atomic_store_n((bool *)taken, true, __ATOMIC_RELEASE);
	while (!(__atomic_load_n(&lock->state, __ATOMIC_RELAXED) & LOCK_SLEEPERS))
		sched_yield();
	usleep(5000);
	forked_give(FORKED_FLUSHER);
	return NULL;
}

/* A call that has failed says so by errno, whatever it waited for at its end. */
START_TEST(error_of_a_call_that_waits)
{
	struct tcp_link *l = (struct tcp_link *)link_of(join_both());
	pthread_t holder;
	bool taken = false;

	ck_assert_int_eq(pthread_create(&holder, NULL, hold_links, &taken), 0);
	while (!__atomic_load_n(&taken, __ATOMIC_ACQUIRE))
		sched_yield();
	tcp_flusher_lock(l);
	errno = EAGAIN;
	tcp_flusher_set(l, TCP_TICKS);
	ck_assert_int_eq(errno, EAGAIN);
	pthread_join(holder, NULL);
	tcp_flusher_set(l, TCP_NEVER);
	tcp_flusher_unlock(l);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hw_tcp_gather");
	TCase *tcase = tcase_create("gather");

	tcase_add_checked_fixture(tcase, open_kernel, open_kernel);
	tcase_add_test(tcase, until_progress);
	tcase_add_test(tcase, requests_and_answers);
	tcase_add_test(tcase, answer_with_the_next);
	tcase_add_test(tcase, answer_alone);
	tcase_add_test(tcase, next_row);
	tcase_add_test(tcase, requests);
	tcase_add_test(tcase, left_alone);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, more);
	tcase_add_test(tcase, order);
	tcase_add_test(tcase, cut);
	tcase_add_loop_test(tcase, closed, 0, 3);
	tcase_add_test(tcase, broken);
	tcase_add_test(tcase, beside_sleepers);
	tcase_add_test(tcase, error_of_a_call_that_waits);
	suite_add_tcase(suite, tcase);
	return run_suite(suite, tcase);
}
