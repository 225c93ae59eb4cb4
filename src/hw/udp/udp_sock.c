/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the endpoint's sockets; wakes sleeping waiters. */
#define LOG_PROV "udp"
#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/forked.h"
#include "base/log.h"
#include "base/ports.h"
#include "info/rules.h"
#include "info/providers.h"
#include "hw/udp/udp.h"
#include "hw/transports.h"

/* Bytes asked for a socket's receive buffer; the system may grant less. */
#define QUEUE_BYTES (4 << 20)

static const struct dgram_ops ops = {
	.send = udp_send,
	.send_many = udp_send_many,
	.join = udp_join,
	.leave = udp_leave,
};

socklen_t udp_name(const struct addr *a, union udp_name *name)
{
	size_t len = sizeof(*name);

	addr_to_user(a, name, &len);
	return (socklen_t)len;
}

static int bind_to(int fd, const struct addr *at, bool group)
{
	const int yes = 1, bytes = QUEUE_BYTES;
	union udp_name name;
	socklen_t len = udp_name(at, &name);

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/* The kernel's setting says whether the wildcard takes IPv4, too. */
	if ((at->kind == ADDR_IN6 && !addr_is_any(at) &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes))) ||
	    (group && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes))) ||
	    bind(fd, &name.sa, len))
		return -errno;
	return forked_guard(fd);
}

static int udp_sock_bound_socket(const struct addr *at, bool group)
{
	int fd = socket(at->kind == ADDR_IN6 ? AF_INET6 : AF_INET,
			SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int err = fd < 0 ? -errno : bind_to(fd, at, group);

	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

static int udp_sock_logged(const struct addr *at, int fd)
{
	char text[ADDR_STR_MAX];

	if (fd >= 0)
		return fd;
	addr_print(at, text, sizeof(text));
	LOG_WARN(LOG_EP_CTRL, "no socket at %s: %s", text, fi_strerror(-fd));
	return fd;
}

int udp_bind(const struct addr *at, bool group)
{
	return udp_sock_logged(at, udp_sock_bound_socket(at, group));
}

/* Binds to *name; to a port number of the user's range if it has none and there is one. */
static int bind_in_range(struct addr *name)
{
	struct ports ports = ports_to_use();
	int fd = -FI_EADDRINUSE;

	if (name->port || !ports.given)
		return udp_bind(name, false);
	name->port = ports_first(&ports);
	for (unsigned int i = 0; i < ports.count && fd == -FI_EADDRINUSE; i++) {
		name->port = ports_next(&ports, name->port);
		fd = udp_sock_bound_socket(name, false);
	}
	return udp_sock_logged(name, fd);
}

/* `all`: bound to the wildcard; the name stays one interface's. */
static int udp_sock_open_socket(struct udp *u, struct addr *name, bool all)
{
	struct addr at = *name;
	union udp_name bound = {0};
	socklen_t len = sizeof(bound);
	int err;

	if (name->kind != ADDR_IN && name->kind != ADDR_IN6)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_CTRL,
			"the endpoint's name is no IP address, but of kind %d: ask for FI_SOCKADDR_IN",
			name->kind);
	if (all)
		at = (struct addr){.kind = name->kind, .port = name->port};
	u->fd = bind_in_range(&at);
	if (u->fd < 0)
		return u->fd;
	/* The system has chosen a port number if none was asked for. */
	if (getsockname(u->fd, &bound.sa, &len)) {
		err = -errno;
		forked_close(u->fd);
		return err;
	}
	name->port = ntohs(name->kind == ADDR_IN6 ? bound.in6.sin6_port : bound.in.sin_port);
	return 0;
}

static int udp_open(struct opener *opener, void **state)
{
	struct udp *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -FI_ENOMEM;
	err = udp_sock_open_socket(u, opener->name, opener->all);
	if (err)
		goto free_state;
	u->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epfd < 0) {
		err = -errno;
		goto close_socket;
	}
	u->dgram.ops = &ops;
	u->dgram.max = rules_dgram_max(opener->name);
	udp_batch_init(u);
	*state = u;
	return 0;
close_socket:
	forked_close(u->fd);
free_state:
	free(u);
	return err;
}

static void udp_close(void *state)
{
	struct udp *u = state;

	forked_close(u->fd);
	close(u->epfd);
	free(u->gro);
	free(u);
}

static int udp_fd(void *state)
{
	return ((struct udp *)state)->epfd;
}

/* Makes epfd watch `fd` for the events `want`, or not at all if 0. False: epoll refuses. */
static bool udp_sock_watch(const struct udp *u, int fd, uint32_t *watched, uint32_t want)
{
	struct epoll_event ev = {.events = want};
	int how = !*watched ? EPOLL_CTL_ADD : want ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

	if (*watched == want)
		return true;
	if (epoll_ctl(u->epfd, how, fd, &ev))
		return false;
	*watched = want;
	return true;
}

/* Datagrams wake a sleeper only if a receive is posted; waiting ones do so at once. */
static bool udp_arm(void *state)
{
	struct udp *u = state;
	uint32_t in = u->dgram.events->wanted(&u->dgram) ? EPOLLIN : 0;
	uint32_t out = u->dgram.batch_count ? EPOLLOUT : 0;
	bool good = udp_sock_watch(u, u->fd, &u->watched, in | out) && !(in && udp_gro_waits(u));

	LIST_EACH_OF (struct dgram_group, g, &u->dgram.groups, link)
		if (g->fd >= 0)
			good &= udp_sock_watch(u, g->fd, &g->watched, in);
	return good;
}

const struct transport udp_transport = {
	.name = "udp",
	.bit = PROVIDER_UDP,
	.kind = LINK_DGRAM,
	.open = udp_open,
	.close = udp_close,
	.progress = udp_progress,
	.arm = udp_arm,
	.fd = udp_fd,
};
