/* SPDX-License-Identifier: BSD-2-Clause */
/* Multicast groups, on the interface of the endpoint's address. */
#define LOG_PROV "udp"
#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/forked.h"
#include "base/log.h"
#include "info/ifaces.h"
#include "hw/udp/udp.h"

static unsigned int interface_of(const struct addr *a)
{
	const struct iface *iface;
	struct ifaces all;
	unsigned int index = 0;

	if (a->scope)
		return a->scope;
	if (ifaces_read(&all))
		return 0;
	iface = ifaces_holding(&all, a, NULL);
	if (iface)
		index = (unsigned int)iface->index;
	ifaces_free(&all);
	return index;
}

static bool udp_group_set(int fd, int level, int option, const void *value, size_t len)
{
	return setsockopt(fd, level, option, value, (socklen_t)len) == 0;
}

/* Makes datagrams to groups leave by our address's interface, and loop back to this host. */
static int choose_interface(struct udp *u, const struct addr *own)
{
	const int yes = 1;
	struct ip_mreqn mreq = {0};
	bool good;

	memcpy(&mreq.imr_address, own->ip, sizeof(mreq.imr_address));
	if (own->kind == ADDR_IN) {
		good = udp_group_set(u->fd, IPPROTO_IP, IP_MULTICAST_IF, &mreq, sizeof(mreq)) &&
		       udp_group_set(u->fd, IPPROTO_IP, IP_MULTICAST_LOOP, &yes, sizeof(yes));
		return good ? 0 : -errno;
	}
	if (!u->iface)
		u->iface = interface_of(own);
	good = udp_group_set(u->fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &u->iface, sizeof(u->iface)) &&
	       udp_group_set(u->fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &yes, sizeof(yes));
	return good ? 0 : -errno;
}

/* Joins the group. IP_MULTICAST_ALL off: not the groups that other sockets joined. */
static int join_in(int fd, const struct addr *group, const struct addr *own)
{
	const int no = 0;
	struct ip_mreqn mreq = {0};

	memcpy(&mreq.imr_multiaddr, group->ip, sizeof(mreq.imr_multiaddr));
	memcpy(&mreq.imr_address, own->ip, sizeof(mreq.imr_address));
	return udp_group_set(fd, IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof(no)) &&
			       udp_group_set(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq))
		       ? 0
		       : -errno;
}

static int join_in6(int fd, const struct addr *group, unsigned int iface)
{
	const int no = 0;
	struct ipv6_mreq mreq = {.ipv6mr_interface = group->scope ? group->scope : iface};

	memcpy(&mreq.ipv6mr_multiaddr, group->ip, sizeof(mreq.ipv6mr_multiaddr));
	udp_group_set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &no,
		      sizeof(no)); /* fails on kernels before 4.20 */
	return udp_group_set(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &mreq, sizeof(mreq)) ? 0 : -errno;
}

static int receive_from(struct udp *u, struct dgram_group *g, const struct addr *own)
{
	int fd = udp_bind(&g->addr, true), err;

	if (fd < 0)
		return fd;
	err = g->addr.kind == ADDR_IN ? join_in(fd, &g->addr, own)
				      : join_in6(fd, &g->addr, u->iface);
	if (err) {
		forked_close(fd);
		return err;
	}
	g->fd = fd;
	return 0;
}

static int udp_group_join(struct udp *u, struct dgram_group *g, const struct addr *own)
{
	bool group = g->addr.kind == ADDR_IN6 ? g->addr.ip[0] == 0xff : g->addr.ip[0] >> 4 == 0xe;
	int err;

	if (g->addr.kind != own->kind || !group)
		return -FI_EINVAL;
	err = choose_interface(u, own);
	/* An IPv6 group without a scope is that of our interface. */
	if (!err && g->addr.kind == ADDR_IN6 && !g->addr.scope)
		g->addr.scope = u->iface;
	if (!err && g->receives)
		err = receive_from(u, g, own);
	return err;
}

int udp_join(struct dgram *d, struct dgram_group *g)
{
	int err = udp_group_join((struct udp *)d, g, d->opener->name);
	char text[ADDR_STR_MAX];

	if (err) {
		addr_print(&g->addr, text, sizeof(text));
		LOG_WARN(LOG_EP_CTRL, "cannot join %s: %s", text, fi_strerror(-err));
	}
	return err;
}

/* Closing the group's socket ends the membership. */
void udp_leave(struct dgram *d, struct dgram_group *g)
{
	(void)d;
	if (g->fd >= 0)
		forked_close(g->fd);
	g->fd = -1;
}
