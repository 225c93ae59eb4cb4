/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "link/wire.h"

#define SPARE      16 /* descriptors, at most, that no connection of ours takes */
#define SPARE_PART 16 /* and not more than this part of all */
#define PROBES     3  /* unanswered keepalive probes after which an idle peer counts as dead */

socklen_t connect_unix_name(struct sockaddr_un *un, const struct addr *name)
{
	char ip[INET6_ADDRSTRLEN] = "?";
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (name->kind == ADDR_STR) {
		len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/%s", name->str);
	} else {
		inet_ntop(name->kind == ADDR_IN6 ? AF_INET6 : AF_INET, name->ip, ip, sizeof(ip));
		len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "weft/%s/%u", ip,
			       name->port);
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

pid_t connect_pid(int sock)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -1;
	if (cred.uid != geteuid()) {
		LOG_PEER(
			LOG_EP_CTRL,
			"user %u is refused within the host: endpoints are for user %u alone; run both as one user, or connect by the network",
			(unsigned int)cred.uid, (unsigned int)geteuid());
		return -1;
	}
	return cred.pid;
}

/*
 * Does the descriptor leave some to the application? The kernel gives the lowest free one: so many, and more, are in
 * use.
 */
static bool leaves_some(int fd, rlim_t *limit)
{
	struct rlimit files;
	rlim_t spare;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return true;
	*limit = files.rlim_cur;
	spare = files.rlim_cur / SPARE_PART < SPARE ? files.rlim_cur / SPARE_PART : SPARE;
	return (rlim_t)fd + spare < files.rlim_cur;
}

bool connect_affordable(void)
{
	rlim_t limit;
	int next = eventfd(0, EFD_CLOEXEC);
	bool affordable = next < 0 || leaves_some(next, &limit);

	if (next >= 0)
		close(next);
	return affordable;
}

size_t connect_left(void)
{
	struct rlimit files;
	int next = eventfd(0, EFD_CLOEXEC);

	if (next < 0)
		return 0;
	close(next);
	if (getrlimit(RLIMIT_NOFILE, &files))
		return SIZE_MAX / 2;
	return files.rlim_cur > (rlim_t)next ? files.rlim_cur - (rlim_t)next : 0;
}

bool connect_is_spare(int sock)
{
	rlim_t limit;

	return !leaves_some(sock, &limit);
}

int connect_socket(int family)
{
	int type = family == AF_UNIX ? SOCK_SEQPACKET : SOCK_STREAM;
	int sock = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return sock < 0 ? -errno : sock;
}

/* Returns a socket to connect with, or a negative error. */
static int outgoing_socket(int family)
{
	rlim_t limit;
	int sock = connect_socket(family);

	if (sock < 0 || leaves_some(sock, &limit))
		return sock;
	close(sock);
	LOG_PEER(LOG_EP_CTRL,
		 "no socket: %d descriptors of %llu (ulimit -n) are in use, and the last "
		 "ones are left to the application",
		 sock, (unsigned long long)limit);
	return -FI_EMFILE;
}

int connect_keep(int sock, int err)
{
	if (!err)
		err = forked_guard(sock);
	if (!err)
		return sock;
	connect_close(sock);
	return err;
}

int connect_inside(const struct addr *name)
{
	struct sockaddr_un un;
	socklen_t len = connect_unix_name(&un, name);
	int err = 0, sock = outgoing_socket(AF_UNIX);

	if (sock < 0)
		return sock;
	if (connect(sock, (struct sockaddr *)&un, len))
		err = errno == EAGAIN ? -FI_EAGAIN : -errno;
	else if (connect_pid(sock) < 0)
		err = -FI_EACCES;
	return connect_keep(sock, err);
}

void connect_set(int sock, int level, int option, int value)
{
	setsockopt(sock, level, option, &value, sizeof(value));
}

/* Keepalive, in seconds: without traffic until the first probe, and between probes. */
static int first_probe(int timeout)
{
	return timeout > PROBES ? timeout / 2 : 1;
}

static int next_probe(int timeout)
{
	return timeout > 4 * PROBES ? timeout / 2 / PROBES : 1;
}

void connect_tune(int sock)
{
	int seconds = env_get()->peer_timeout / 1000;

	connect_set(sock, IPPROTO_TCP, TCP_NODELAY, 1);
	/* The socket becomes readable once a whole hello has come. */
	connect_set(sock, SOL_SOCKET, SO_RCVLOWAT, (int)sizeof(struct wire_hello));
	if (env_get()->peer_timeout <= 0)
		return;
	connect_set(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, env_get()->peer_timeout);
	/* Probes begin after half of the peer timeout. */
	connect_set(sock, SOL_SOCKET, SO_KEEPALIVE, 1);
	connect_set(sock, IPPROTO_TCP, TCP_KEEPIDLE, first_probe(seconds));
	connect_set(sock, IPPROTO_TCP, TCP_KEEPINTVL, next_probe(seconds));
	connect_set(sock, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}

/* Where that is not possible, the kernel chooses. */
static void bind_source(int sock, const struct addr *source)
{
	struct sockaddr_storage from = {0};
	struct addr any_port = *source;
	size_t len = sizeof(from);

	any_port.port = 0;
	if (addr_is_loopback(source) || addr_to_user(&any_port, &from, &len))
		return;
	connect_set(sock, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (bind(sock, (struct sockaddr *)&from, (socklen_t)len))
		LOG_INFO(LOG_EP_CTRL, "connecting from another address than the endpoint's: %s",
			 fi_strerror(errno));
}

int connect_network(const struct addr *name, const struct addr *source)
{
	struct sockaddr_storage to = {0};
	size_t len = sizeof(to);
	int err = addr_to_user(name, &to, &len), sock;

	if (err)
		return err;
	sock = outgoing_socket(to.ss_family);
	if (sock < 0)
		return sock;
	connect_tune(sock);
	if (source && source->kind == name->kind)
		bind_source(sock, source);
	if (connect(sock, (struct sockaddr *)&to, (socklen_t)len) && errno != EINPROGRESS)
		err = -errno;
	return connect_keep(sock, err);
}

/* More probes, as they begin earlier: nobody is given up sooner than without the question. */
void connect_ping(int sock, bool on)
{
	int seconds = env_get()->peer_timeout / 1000;
	int first = first_probe(seconds), next = next_probe(seconds);

	if (env_get()->peer_timeout <= 0)
		connect_set(sock, SOL_SOCKET, SO_KEEPALIVE, on);
	else
		connect_set(sock, IPPROTO_TCP, TCP_KEEPCNT,
			    on ? PROBES + (first - 1 + next - 1) / next : PROBES);
	connect_set(sock, IPPROTO_TCP, TCP_KEEPIDLE, on ? 1 : first);
}

bool connect_heard(int sock, uint64_t ms)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return !getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state == TCP_ESTABLISHED && info.tcpi_last_ack_recv < ms;
}

uint64_t connect_quiet_ms(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		return 0;
	return info.tcpi_last_data_sent < info.tcpi_last_data_recv ? info.tcpi_last_data_sent
								   : info.tcpi_last_data_recv;
}

bool connect_local(int sock, struct addr *addr)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);

	return !getsockname(sock, (struct sockaddr *)&at, &len) &&
	       !addr_from_user(addr, FI_SOCKADDR, &at, len);
}

bool connect_remote(int sock, struct addr *addr)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	return !getpeername(sock, (struct sockaddr *)&from, &len) &&
	       !addr_from_user(addr, FI_SOCKADDR, &from, len);
}

static bool connect_ends(int sock, struct addr *own, struct addr *other)
{
	return connect_local(sock, own) && connect_remote(sock, other);
}

/*
 * Is the socket connected to itself? The kernel does that if connect() picks the destination's own
 * port, which no process listens on.
 */
static bool connected_to_itself(int sock)
{
	struct addr own, other;

	return connect_ends(sock, &own, &other) && addr_equal(&own, &other);
}

/* Do both ends have the same address? Then the connection stays within the host. */
static bool within_host(int sock)
{
	struct addr own, other;

	if (!connect_ends(sock, &own, &other))
		return false;
	own.port = other.port = 0;
	return addr_equal(&own, &other);
}

/*
 * On loopback, congestion control that paces packets or evaluates each acknowledgement only costs
 * time. Reno does least, and each kernel has it and permits it to all users.
 */
void connect_set_linked(int sock)
{
	static const char plain[] = "reno";

	connect_set(sock, SOL_SOCKET, SO_RCVLOWAT, 1);
	connect_set(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
	if (within_host(sock))
		setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof(plain) - 1);
}

bool connect_closed(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLRDHUP};

	return poll(&p, 1, 0) == 1;
}

int connect_result(int sock)
{
	struct addr other;
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err)
		return -err;
	if (!connect_remote(sock, &other))
		return -FI_EAGAIN;
	return connected_to_itself(sock) ? -FI_ECONNREFUSED : 0;
}
