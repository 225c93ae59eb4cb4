/* SPDX-License-Identifier: BSD-2-Clause */
/* Speed of plain sockets between two processes on two cores, over the loopback device, without a
 * library and with one system call per message:
 *
 *     sockets tcp SIZE...     one-way time of a ping-pong, microseconds; both sides spin
 *     sockets udp SIZE...     the same with sendto and recvfrom
 *     sockets stream SIZE...  windows of 64 messages with a buffer each, and an answer: GB/s
 *     sockets framed SIZE...  the same with a header of 32 bytes before each message, the least
 *                             that a protocol with different messages needs
 *
 * Alternatives for a transport:
 *
 *     sockets uring SIZE...     the ping-pong through io_uring, both sides spinning on its ring
 *     sockets zerocopy SIZE...  the stream with MSG_ZEROCOPY; the kernel says when buffers are free
 *
 * Prints a line "SIZE VALUE" for each size. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include "pair.h"

#define WINDOW 64
#define ANSWER 8 /* bytes */

struct way {
	const char *name;
	int type; /* socket type */
	void (*once)(size_t size, int rounds);
};

static const struct way *way;
static char **sizes; /* ends with NULL */
static int sock;
static struct sockaddr_in peer;
static char *tx, *rx;      /* WINDOW buffers each for a stream, else one */
static size_t size_of_all; /* bytes of tx, and of rx */

/* One system call, unless the kernel takes only a part. */
static void tcp_put(const char *from, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = send(sock, from + done, size - done, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			pair_fail("send");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void tcp_get(char *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = recv(sock, to + done, size - done, MSG_DONTWAIT);

		if (!n || (n < 0 && errno != EAGAIN))
			pair_fail("recv");
		done += n > 0 ? (size_t)n : 0;
	}
}

static void tcp_rounds(size_t size, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		if (side == 0)
			tcp_put(tx, size);
		tcp_get(rx, size);
		if (side == 1)
			tcp_put(tx, size);
	}
}

static void udp_put(size_t size)
{
	if (sendto(sock, tx, size, MSG_DONTWAIT, (struct sockaddr *)&peer, sizeof peer) !=
	    (ssize_t)size)
		pair_fail("sendto");
}

/* Takes the sender's address too, as an endpoint with several peers must. */
static void udp_get(size_t size)
{
	struct sockaddr_in from;
	socklen_t len;
	ssize_t n;

	do {
		len = sizeof from;
		n = recvfrom(sock, rx, size, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
	} while (n < 0 && errno == EAGAIN);
	if (n != (ssize_t)size)
		pair_fail("recvfrom");
}

/* One datagram in flight at a time, so none is lost. */
static void udp_rounds(size_t size, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		if (side == 0)
			udp_put(size);
		udp_get(size);
		if (side == 1)
			udp_put(size);
	}
}

static void stream_windows(size_t size, int windows)
{
	for (int i = 0; i < windows; i++) {
		for (size_t slot = 0; slot < WINDOW; slot++)
			side == 0 ? tcp_put(tx + slot * size, size)
				  : tcp_get(rx + slot * size, size);
		side == 0 ? tcp_get(rx, ANSWER) : tcp_put(tx, ANSWER);
	}
}

/* ---- With headers ---- */

#define FRAME 32 /* bytes */

static char frame[FRAME];

/* Skips the `len` bytes that have been transferred. */
static void pass_by(struct msghdr *m, size_t len)
{
	while (len) {
		size_t n = len < m->msg_iov->iov_len ? len : m->msg_iov->iov_len;

		m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + n;
		m->msg_iov->iov_len -= n;
		len -= n;
		if (!m->msg_iov->iov_len && m->msg_iovlen > 1) {
			m->msg_iov++;
			m->msg_iovlen--;
		}
	}
}

/* Header and payload in one system call, unless the kernel transfers only a part. */
static void framed_move(char *payload, size_t size, bool put)
{
	struct iovec iov[] = {{frame, FRAME}, {payload, size}};
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = 2};
	ssize_t n;

	for (size_t done = 0; done<FRAME + size; done += n> 0 ? (size_t)n : 0) {
		n = put ? sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL)
			: recvmsg(sock, &m, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			pair_fail("a message with its frame");
		if (n > 0)
			pass_by(&m, (size_t)n);
	}
}

static void framed_windows(size_t size, int windows)
{
	for (int i = 0; i < windows; i++) {
		for (size_t slot = 0; slot < WINDOW; slot++)
			framed_move((side == 0 ? tx : rx) + slot * size, size, side == 0);
		side == 0 ? tcp_get(rx, ANSWER) : tcp_put(tx, ANSWER);
	}
}

/* ---- Through a ring ---- */

static struct io_uring ring;

enum { RECEIVED = 1, SENT };

/* Waits for the next completion of this kind. Returns its bytes. Submits pending requests too. */
static size_t ring_wait(uint64_t what)
{
	struct io_uring_cqe *cqe;
	uint64_t of;
	int n;

	do {
		do
			io_uring_get_events(&ring);
		while (io_uring_peek_cqe(&ring, &cqe));
		n = cqe->res;
		of = cqe->user_data;
		io_uring_cqe_seen(&ring, cqe);
		if (n <= 0)
			pair_fail("io_uring");
	} while (of != what);
	return (size_t)n;
}

static void ring_ask(size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_recv(sqe, sock, rx, size, MSG_WAITALL);
	sqe->user_data = RECEIVED;
}

/* The same system call submits the next receive. */
static void ring_put(size_t size)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	io_uring_prep_send(sqe, sock, tx, size, MSG_WAITALL);
	sqe->user_data = SENT;
	ring_ask(size);
	if (io_uring_submit(&ring) != 2)
		pair_fail("io_uring_submit");
}

static void uring_rounds(size_t size, int rounds)
{
	if (!ring.ring_fd &&
	    io_uring_queue_init(64, &ring, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN))
		pair_fail("no io_uring");
	if (side == 1) {
		ring_ask(size);
		io_uring_submit(&ring);
	}
	for (int i = 0; i < rounds; i++) {
		if (side == 0)
			ring_put(size);
		ring_wait(RECEIVED);
		if (side == 1 && i < rounds - 1)
			ring_put(size);
	}
	if (side == 1)
		tcp_put(tx, size);
}

/* ---- Without a copy ---- */

static void zerocopy_put(const char *from, size_t size, unsigned int *calls)
{
	for (size_t done = 0; done < size;) {
		ssize_t n = send(sock, from + done, size - done,
				 MSG_DONTWAIT | MSG_NOSIGNAL | MSG_ZEROCOPY);

		if (n < 0 && errno != EAGAIN && errno != ENOBUFS)
			pair_fail("send with MSG_ZEROCOPY");
		done += n > 0 ? (size_t)n : 0;
		*calls += n > 0;
	}
}

/* A message of the socket's error queue reports a range of calls. */
static void zerocopy_wait(unsigned int calls)
{
	while (calls) {
		union {
			struct cmsghdr head;
			char room[256];
		} control;
		struct msghdr msg = {.msg_control = &control, .msg_controllen = sizeof control};
		const struct sock_extended_err *e;

		if (recvmsg(sock, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			continue;
		e = (const void *)CMSG_DATA(&control.head);
		calls -= e->ee_data - e->ee_info + 1;
	}
}

static void zerocopy_windows(size_t size, int windows)
{
	int on = 1;

	if (setsockopt(sock, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on))
		pair_fail("SO_ZEROCOPY");
	for (int i = 0; i < windows; i++) {
		unsigned int calls = 0;

		for (size_t slot = 0; slot < WINDOW; slot++)
			side == 0 ? zerocopy_put(tx + slot * size, size, &calls)
				  : tcp_get(rx + slot * size, size);
		side == 0 ? tcp_get(rx, ANSWER) : tcp_put(tx, ANSWER);
		zerocopy_wait(calls);
	}
}

static const struct way ways[] = {
	{"tcp", SOCK_STREAM, tcp_rounds},        {"udp", SOCK_DGRAM, udp_rounds},
	{"stream", SOCK_STREAM, stream_windows}, {"framed", SOCK_STREAM, framed_windows},
	{"uring", SOCK_STREAM, uring_rounds},    {"zerocopy", SOCK_STREAM, zerocopy_windows},
};

static bool streams(void)
{
	return way->once == stream_windows || way->once == framed_windows ||
	       way->once == zerocopy_windows;
}

/* Returns one-way microseconds, or GB/s. */
static double figure(size_t size)
{
	bool stream = streams();
	int rounds = stream ? pair_windows(size) : pair_rounds(size);
	double start = microseconds(), time;

	way->once(size, rounds);
	time = microseconds() - start;
	return stream ? (double)(rounds * WINDOW * size) / 1000 / time : time / rounds / 2;
}

static void measure(size_t size)
{
	double values[REPEATS_MAX];
	int repeats = pair_repeats(size);

	figure(size);
	for (int i = 0; i < repeats; i++)
		values[i] = figure(size);
	if (side == 0)
		printf("%zu %.4f\n", size, clock_median(values, repeats));
}

/* The kernel chooses ports; the sides exchange them. Side 0 listens. */
static void open_socket(void)
{
	struct sockaddr_in mine = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(PAIR_HOST)};
	bool tcp = way->type == SOCK_STREAM;
	socklen_t len = sizeof mine;
	int on = 1;

	sock = socket(AF_INET, way->type, 0);
	if (bind(sock, (struct sockaddr *)&mine, len) || (tcp && side == 0 && listen(sock, 1)) ||
	    getsockname(sock, (struct sockaddr *)&mine, &len))
		pair_fail("no socket");
	pair_swap(&mine, &peer, sizeof mine);
	if (tcp && side == 0)
		sock = accept(sock, NULL, NULL);
	else if (tcp && connect(sock, (struct sockaddr *)&peer, sizeof peer))
		pair_fail("connect");
	if (tcp && setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
		pair_fail("TCP_NODELAY");
}

static void open_buffers(void)
{
	for (char **size = sizes; *size; size++)
		if (strtoul(*size, NULL, 0) > size_of_all)
			size_of_all = strtoul(*size, NULL, 0);
	if (streams())
		size_of_all *= WINDOW;
	if (posix_memalign((void **)&tx, 4096, size_of_all) ||
	    posix_memalign((void **)&rx, 4096, size_of_all))
		pair_fail("no memory");
	memset(tx, side + 1, size_of_all);
	memset(rx, side + 1, size_of_all);
}

static void run(void)
{
	open_buffers();
	open_socket();
	for (char **size = sizes; *size; size++)
		measure(strtoul(*size, NULL, 0));
}

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof ways / sizeof ways[0] && argc > 1; i++)
		if (!strcmp(argv[1], ways[i].name))
			way = &ways[i];
	if (!way || argc < 3) {
		fputs("Usage: sockets tcp|udp|stream|uring|zerocopy SIZE...\n", stderr);
		return EXIT_FAILURE;
	}
	sizes = argv + 2;
	pair_network = true;
	return pair_run(run);
}
