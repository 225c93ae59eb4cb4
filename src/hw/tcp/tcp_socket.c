/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream of a link is what its socket carries, as it is. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/forked.h"
#include "base/log.h"
#include "hw/tcp/tcp_output.h"

#define DROPS 64 /* reads per call of drop_input */

static ssize_t tcp_socket_receive(struct tcp_link *l, const struct iovec *iov, size_t count)
{
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = count};

	return recvmsg(l->sock, &m, MSG_DONTWAIT);
}

/* epoll tells of all. */
static bool tcp_socket_unread(const struct tcp_link *l)
{
	(void)l;
	return false;
}

int tcp_socket_watch(struct tcp_link *l, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = l};
	int op = !events ? EPOLL_CTL_DEL : l->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (l->events == events)
		return 0;
	if (epoll_ctl(l->own->epfd, op, l->sock, &ev)) {
		int err = errno;

		LOG_PEER(
			LOG_EP_CTRL,
			"tcp: cannot watch the socket of peer %#x: %s (/proc/sys/fs/epoll/max_user_watches is a limit)",
			l->id, fi_strerror(err));
		return -err;
	}
	l->events = events;
	return 0;
}

bool tcp_socket_arrived(const struct tcp_link *l)
{
	int unsent = 0;

	return !ioctl(l->sock, SIOCOUTQ, &unsent) && !unsent;
}

/* Two checks in a row must agree: our own process may have been stopped before the first. */
bool tcp_socket_is_dead(struct tcp_link *l, uint32_t timeout)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	bool doubt = l->doubt, unanswered;

	if (getsockopt(l->sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	/*
	 * To a peer with a closed window the kernel sends probes ever more rarely. Packets are unanswered if nothing has come
	 * for longer than the current interval of these (ms and us), or if two probes are unanswered.
	 */
	unanswered =
		(info.tcpi_unacked && info.tcpi_last_ack_recv * 4000ull > info.tcpi_rto * 5ull) ||
		info.tcpi_probes > 1;
	l->doubt = info.tcpi_last_ack_recv >= timeout && unanswered;
	return doubt && l->doubt;
}

/* Reads and discards input. False: the connection is broken. */
static bool drop_input(const struct tcp_link *l)
{
	char scrap[4096];
	ssize_t len = 1;

	for (int i = 0; i < DROPS && len > 0; i++)
		len = recv(l->sock, scrap, sizeof(scrap), MSG_DONTWAIT);
	return len >= 0 || errno == EAGAIN || errno == EINTR;
}

/*
 * Has the output arrived, although it is not acknowledged? Some kernels acknowledge a lone segment as late as 40 ms
 * after it came. Assume arrival when all was sent, nothing retransmitted, and twice the round-trip time has passed.
 */
static bool tcp_socket_arrived_at(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int unsent = 0;

	return !ioctl(sock, SIOCOUTQNSD, &unsent) && !unsent &&
	       !getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) && !info.tcpi_retransmits &&
	       !info.tcpi_lost && info.tcpi_last_data_sent * 1000ull > 2ull * info.tcpi_rtt + 1000;
}

/* The FIN counts as one byte and need not be acknowledged. */
bool tcp_acknowledged(int sock)
{
	int unsent;

	return ioctl(sock, SIOCOUTQ, &unsent) || unsent <= 1 || tcp_socket_arrived_at(sock);
}

bool tcp_socket_linger(struct tcp_link *l)
{
	if (l->tx == TCP_REST)
		tcp_flush(l);
	if (l->tx == TCP_FAILED || !drop_input(l))
		return true;
	if (l->tx == TCP_REST)
		return false;
	if (!l->shut)
		shutdown(l->sock, SHUT_WR);
	l->shut = true;
	return tcp_acknowledged(l->sock);
}

void tcp_socket_close(struct tcp_link *l, bool abort)
{
	if (abort)
		setsockopt(l->sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	forked_close(l->sock);
}

const struct tcp_stream_ops tcp_socket_ops = {
	.recv = tcp_socket_receive,
	.unread = tcp_socket_unread,
	.send = tcp_put,
	.end = tcp_put_last,
	.flush = tcp_flush,
	.push = tcp_push,
	.watch = tcp_socket_watch,
	.arrived = tcp_socket_arrived,
	.is_dead = tcp_socket_is_dead,
	.linger = tcp_socket_linger,
	.close = tcp_socket_close,
};
