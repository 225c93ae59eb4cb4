/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/ports.h"
#include "info/ifaces.h"
#include "conn/advertise.h"
#include "conn/connect.h"

/*
 * Seconds that the kernel withholds silent connections from accept() (TCP_DEFER_ACCEPT): a process
 * may be busy after its kernel has connected it, and must not delay other peers.
 */
#define SILENT_SECONDS 3

static int listen_bound_socket(const struct sockaddr *sa, socklen_t len, int backlog)
{
	int err = 0, sock = connect_socket(sa->sa_family);

	if (sock < 0)
		return sock;
	if (sa->sa_family != AF_UNIX) {
		connect_set(sock, SOL_SOCKET, SO_REUSEADDR, 1);
		connect_set(sock, IPPROTO_TCP, TCP_DEFER_ACCEPT, SILENT_SECONDS);
	}
	/* The kernel's setting says whether the wildcard takes IPv4, too. */
	if (sa->sa_family == AF_INET6 &&
	    !IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)sa)->sin6_addr))
		connect_set(sock, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (bind(sock, sa, len) || (backlog != LISTEN_LATER && listen(sock, backlog)))
		err = -errno;
	return connect_keep(sock, err);
}

/* The Unix socket has the name that peers use. */
static int bind_inside(const struct addr *bound, int backlog)
{
	struct sockaddr_un un;
	struct addr name;
	int err = advertise_name(bound, &name);
	socklen_t len = connect_unix_name(&un, &name);

	if (err)
		return err;
	return listen_bound_socket((struct sockaddr *)&un, len, backlog);
}

static int bind_network(const struct addr *name, int backlog)
{
	struct sockaddr_storage sa = {0};
	size_t len = sizeof(sa);
	int err = addr_to_user(name, &sa, &len);

	return err ? err : listen_bound_socket((struct sockaddr *)&sa, (socklen_t)len, backlog);
}

void listen_drop(int socks[2])
{
	for (enum acceptor_source i = ACCEPTOR_INSIDE; i <= ACCEPTOR_NETWORK; i++) {
		if (socks[i] >= 0)
			connect_close(socks[i]);
		socks[i] = -1;
	}
}

/*
 * Binds both sockets, or none, to the name as it is now. The kernel lets several TCP sockets be
 * bound to one port number as long as none listens; the Unix name, which only one socket can have,
 * reserves the number. 0 or a negative error.
 */
static int bind_both(const struct addr *name, const struct listen_how *how, int socks[2])
{
	int err = 0;

	socks[ACCEPTOR_INSIDE] = socks[ACCEPTOR_NETWORK] = -1;
	if (how->network)
		err = socks[ACCEPTOR_NETWORK] = bind_network(name, how->backlog);
	if (err >= 0)
		err = socks[ACCEPTOR_INSIDE] =
			bind_inside(name, how->inside ? how->backlog : LISTEN_LATER);
	if (err >= 0)
		return 0;
	listen_drop(socks);
	return err;
}

/* Binds to any free port number. 0 or a negative error. */
static int bind_any_port(struct addr *name, const struct listen_how *how, int socks[2])
{
	struct ports ports = ports_to_use();
	int err = -FI_EADDRINUSE;

	advertise_cut(name, &ports);
	name->port = ports_first(&ports);
	for (unsigned int i = 0; i < ports.count && err == -FI_EADDRINUSE; i++) {
		name->port = ports_next(&ports, name->port);
		err = bind_both(name, how, socks);
	}
	if (err)
		name->port = 0;
	return err;
}

/*
 * Binds to "fi_shm://PID:N" with the lowest free N: "fi_shm://PID" names the process's first
 * endpoint. 0 or a negative error.
 */
static int bind_next_name(struct addr *name, const struct listen_how *how, int socks[2])
{
	char text[ADDR_STR_MAX];
	int err = -FI_EADDRINUSE;

	for (unsigned int i = 1; i < 65536 && err == -FI_EADDRINUSE; i++) {
		struct addr next = {.kind = ADDR_STR, .str = text};

		if (snprintf(text, sizeof(text), "%s:%u", name->str, i) >= (int)sizeof(text))
			return -FI_EADDRINUSE;
		err = bind_both(&next, how, socks);
		if (!err) {
			addr_free(name);
			return addr_dup(name, &next);
		}
	}
	return err;
}

static int listen_bind_name(struct addr *name, const struct listen_how *how, int socks[2])
{
	int err;

	if (name->kind != ADDR_STR && name->port == 0)
		return bind_any_port(name, how, socks);
	err = bind_both(name, how, socks);
	if (err == -FI_EADDRINUSE && name->kind == ADDR_STR && !strncmp(name->str, "fi_shm://", 9))
		err = bind_next_name(name, how, socks);
	return err;
}

/* Who has the Unix name of this address, as a part of a sentence; empty: nobody. */
static void name_holder(const struct addr *bound, char *text, size_t room)
{
	char who[64];
	struct sockaddr_un un;
	struct addr name;
	socklen_t len;

	*text = '\0';
	if (advertise_name(bound, &name))
		return;
	len = connect_unix_name(&un, &name);
	listen_holder(&un, len, who, sizeof(who));
	if (*who)
		snprintf(text, room, ": %s has the Unix socket @%s", who, un.sun_path + 1);
}

static int listen_fail(const struct addr *name, int err)
{
	char text[ADDR_STR_MAX + 32], holder[256] = "";
	bool in_use = err == -FI_EADDRINUSE;

	addr_print(name, text, sizeof(text));
	if (in_use)
		name_holder(name, holder, sizeof(holder));
	LOG_WARN(LOG_EP_CTRL, "cannot listen on %s: %s%s%s", text, fi_strerror(-err), holder,
		 in_use ? ": port 0 takes a free one" : "");
	return err;
}

int listen_bind(struct addr *name, const struct listen_how *how, int socks[2])
{
	int err = listen_bind_name(name, how, socks);

	if (err)
		return listen_fail(name, err);
	return advertise_name(name, name);
}

static int listen_begin_source(struct acceptor *l, enum acceptor_source source, int *sock,
			       int backlog)
{
	int err;

	if (*sock < 0)
		return 0;
	if (listen(*sock, backlog))
		return -errno;
	err = acceptor_listen(l, source, *sock);
	if (!err)
		*sock = -1;
	return err;
}

int listen_begin(struct acceptor *l, const struct listen_how *how, int socks[2])
{
	/* TCP first, which may fail: a listener bound to all addresses may have the port. */
	int err = listen_begin_source(l, ACCEPTOR_NETWORK, &socks[ACCEPTOR_NETWORK], how->backlog);

	if (!err && how->inside)
		err = listen_begin_source(l, ACCEPTOR_INSIDE, &socks[ACCEPTOR_INSIDE],
					  how->backlog);
	if (err)
		LOG_WARN(LOG_EP_CTRL, "cannot listen with a backlog of %d: %s", how->backlog,
			 fi_strerror(-err));
	return err;
}

int listen_open(struct acceptor *l, struct addr *name, const struct listen_how *how)
{
	int socks[2], err = listen_bind(name, how, socks);

	if (err)
		return err;
	err = listen_begin(l, how, socks);
	listen_drop(socks);
	if (err)
		acceptor_close(l);
	return err;
}

int listen_usable(struct addr *name)
{
	uint16_t port = name->port;
	int err;

	if (!addr_is_any(name))
		return 0;
	err = ifaces_default(name->kind == ADDR_IN6 ? AF_INET6 : AF_INET, name);
	name->port = port;
	return err;
}
