/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/wire.h"

#define PROBES 3 /* questions to an idle peer without an answer */

socklen_t dial_unix_name(struct sockaddr_un *un, const struct addr *name)
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

pid_t dial_pid(int sock)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -1;
	if (cred.uid != geteuid()) {
		LOG_WARN(LOG_EP_CTRL, "user %u is refused: endpoints are for user %u alone",
			 (unsigned int)cred.uid, (unsigned int)geteuid());
		return -1;
	}
	return cred.pid;
}

int dial_socket(int family)
{
	int type = family == AF_UNIX ? SOCK_SEQPACKET : SOCK_STREAM;
	int sock = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return sock < 0 ? -errno : sock;
}

int dial_keep(int sock, int err)
{
	if (!err)
		err = forked_guard(sock);
	if (!err)
		return sock;
	close(sock);
	return err;
}

int dial_inside(const struct addr *name)
{
	struct sockaddr_un un;
	socklen_t len = dial_unix_name(&un, name);
	int err = 0, sock = dial_socket(AF_UNIX);

	if (sock < 0)
		return sock;
	if (connect(sock, (struct sockaddr *)&un, len))
		err = errno == EAGAIN ? -FI_EAGAIN : -errno;
	else if (dial_pid(sock) < 0)
		err = -FI_EACCES;
	return dial_keep(sock, err);
}

void dial_set(int sock, int level, int option, int value)
{
	setsockopt(sock, level, option, &value, sizeof(value));
}

void dial_tune(int sock)
{
	int seconds = env_get()->peer_timeout / 1000;

	dial_set(sock, IPPROTO_TCP, TCP_NODELAY, 1);
	/* Not a word is read before all of the first one is there. */
	dial_set(sock, SOL_SOCKET, SO_RCVLOWAT, (int)sizeof(struct wire_hello));
	if (env_get()->peer_timeout <= 0)
		return;
	dial_set(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, env_get()->peer_timeout);
	/* Half of the time, then questions. */
	dial_set(sock, SOL_SOCKET, SO_KEEPALIVE, 1);
	dial_set(sock, IPPROTO_TCP, TCP_KEEPIDLE, seconds > PROBES ? seconds / 2 : 1);
	dial_set(sock, IPPROTO_TCP, TCP_KEEPINTVL, seconds > 4 * PROBES ? seconds / 2 / PROBES : 1);
	dial_set(sock, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
}

int dial_network(const struct addr *name)
{
	struct sockaddr_storage to = {0};
	size_t len = sizeof(to);
	int err = addr_to_user(name, &to, &len), sock;

	if (err)
		return err;
	sock = dial_socket(to.ss_family);
	if (sock < 0)
		return sock;
	dial_tune(sock);
	if (connect(sock, (struct sockaddr *)&to, (socklen_t)len) && errno != EINPROGRESS)
		err = -errno;
	return dial_keep(sock, err);
}

bool dial_remote(int sock, struct addr *addr)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	return !getpeername(sock, (struct sockaddr *)&from, &len) &&
	       !addr_from_user(addr, FI_SOCKADDR, &from, len);
}

static bool ends(int sock, struct addr *own, struct addr *other)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	return !getsockname(sock, (struct sockaddr *)&from, &len) &&
	       !addr_from_user(own, FI_SOCKADDR, &from, len) && dial_remote(sock, other);
}

/* Where nobody listens on a port of the dynamic range, the kernel may connect a socket to itself. */
static bool connected_to_itself(int sock)
{
	struct addr own, other;

	return ends(sock, &own, &other) && addr_equal(&own, &other);
}

/* An address that speaks with itself does so within its host. */
static bool within_host(int sock)
{
	struct addr own, other;

	if (!ends(sock, &own, &other))
		return false;
	own.port = other.port = 0;
	return addr_equal(&own, &other);
}

/*
 * Inside a host there is no path to be fair on, and the system's choice may pace what it sends, or weigh
 * every acknowledgement: Reno, which every kernel has and allows everyone, does least.
 */
void dial_over(int sock)
{
	static const char plain[] = "reno";

	dial_set(sock, SOL_SOCKET, SO_RCVLOWAT, 1);
	dial_set(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, 0);
	if (within_host(sock))
		setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof(plain) - 1);
}

int dial_connected(int sock)
{
	struct addr other;
	int err = 0;
	socklen_t len = sizeof(err);

	if (getsockopt(sock, SOL_SOCKET, SO_ERROR, &err, &len))
		return -errno;
	if (err)
		return -err;
	if (!dial_remote(sock, &other))
		return -FI_EAGAIN;
	return connected_to_itself(sock) ? -FI_ECONNREFUSED : 0;
}
