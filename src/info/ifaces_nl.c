/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces, addresses and routes by netlink, through libnl. */
#include <linux/if_addr.h>
#include <net/if_arp.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/route.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>

#include "base/forked.h"
#include "base/log.h"
#include "info/ifaces.h"

/* The kernel's names for interfaces on top of hardware, and for other kinds to distinguish. */
static const struct {
	const char *name;
	enum iface_kind kind;
} kinds[] = {
	{"bond", IFACE_NIC},    {"team", IFACE_NIC},      {"vlan", IFACE_NIC},
	{"macvlan", IFACE_NIC}, {"ipvlan", IFACE_NIC},    {"ipoib", IFACE_NIC},
	{"veth", IFACE_VETH},   {"bridge", IFACE_BRIDGE}, {"openvswitch", IFACE_BRIDGE},
};

static enum iface_kind ifaces_nl_kind_of(struct rtnl_link *link)
{
	const char *name = rtnl_link_get_type(link);
	unsigned int type = rtnl_link_get_arptype(link);

	if (rtnl_link_get_flags(link) & IFF_LOOPBACK)
		return IFACE_LOOPBACK;
	if (!name)
		return type == ARPHRD_ETHER || type == ARPHRD_INFINIBAND ? IFACE_NIC
									 : IFACE_VIRTUAL;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		if (strcmp(kinds[n].name, name) == 0)
			return kinds[n].kind;
	}
	return IFACE_VIRTUAL;
}

/* Argument of the loops over the two caches; `err` is the first failure. */
struct filling {
	struct ifaces *all;
	int err;
};

static void ifaces_nl_add_link(struct nl_object *object, void *arg)
{
	struct rtnl_link *link = (struct rtnl_link *)object;
	struct filling *f = arg;
	struct nl_addr *hw = rtnl_link_get_addr(link);
	const char *name = rtnl_link_get_name(link);
	struct iface *i = ifaces_add(f->all);

	if (!i) {
		f->err = -FI_ENOMEM;
		return;
	}
	snprintf(i->name, sizeof(i->name), "%s", name ? name : "");
	i->index = rtnl_link_get_ifindex(link);
	i->master = rtnl_link_get_master(link);
	i->kind = ifaces_nl_kind_of(link);
	i->up = rtnl_link_get_flags(link) & IFF_UP;
	i->running = ifaces_running(rtnl_link_get_flags(link));
	i->type = rtnl_link_get_arptype(link);
	i->mtu = rtnl_link_get_mtu(link);
	if (hw && nl_addr_get_len(hw))
		nl_addr2str(hw, i->hw_address, sizeof(i->hw_address));
}

/* Returns false if `from` is not an IP address. */
static bool ifaces_nl_convert(struct nl_addr *from, struct addr *to)
{
	unsigned int len = nl_addr_get_len(from);
	int family = nl_addr_get_family(from);

	memset(to, 0, sizeof(*to));
	if (family == AF_INET && len == 4)
		to->kind = ADDR_IN;
	else if (family == AF_INET6 && len == 16)
		to->kind = ADDR_IN6;
	else
		return false;
	memcpy(to->ip, nl_addr_get_binary_addr(from), len);
	return true;
}

static void ifaces_nl_add_addr(struct nl_object *object, void *arg)
{
	struct rtnl_addr *theirs = (struct rtnl_addr *)object;
	struct nl_addr *local = rtnl_addr_get_local(theirs);
	struct filling *f = arg;
	struct iface *i = ifaces_at(f->all, rtnl_addr_get_ifindex(theirs));
	struct iface_addr *a;
	struct addr ip;

	if (!i || !local || !ifaces_nl_convert(local, &ip))
		return;
	a = ifaces_add_addr(f->all);
	if (!a) {
		f->err = -FI_ENOMEM;
		return;
	}
	a->addr = ip;
	if (rtnl_addr_get_scope(theirs) == RT_SCOPE_LINK && ip.kind == ADDR_IN6)
		a->addr.scope = (uint32_t)i->index;
	a->prefix = (uint8_t)rtnl_addr_get_prefixlen(theirs);
	a->unsettled = rtnl_addr_get_flags(theirs) &
		       (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED);
	a->of = (unsigned int)(i - f->all->iface);
}

static void ifaces_nl_close_socket(struct nl_sock *sock)
{
	nl_socket_free(sock);
	forked_give(FORKED_NETLINK);
}

/* With FORKED_NETLINK until close_socket: libnl has locks of its own, which a forked child might find held. */
static struct nl_sock *ifaces_nl_open_socket(void)
{
	struct nl_sock *sock;
	int err;

	forked_take(FORKED_NETLINK);
	sock = nl_socket_alloc();
	err = sock ? nl_connect(sock, NETLINK_ROUTE) : -NLE_NOMEM;
	if (!err)
		return sock;
	ifaces_nl_close_socket(sock);
	return LOG_REFUSE(NULL, LOG_CORE, "asking the kernel for network interfaces: %s",
			  nl_geterror(err));
}

static int ifaces_nl_fill(struct ifaces *all, struct nl_sock *sock)
{
	struct nl_cache *links, *addrs;
	struct filling f = {all, 0};
	int err = rtnl_link_alloc_cache(sock, AF_UNSPEC, &links);

	if (err)
		goto complain;
	err = rtnl_addr_alloc_cache(sock, &addrs);
	if (err)
		goto free_links;
	nl_cache_foreach(links, ifaces_nl_add_link, &f);
	nl_cache_foreach(addrs, ifaces_nl_add_addr, &f);
	nl_cache_free(addrs);
free_links:
	nl_cache_free(links);
complain:
	if (err)
		LOG_WARN(LOG_CORE, "listing the network interfaces: %s", nl_geterror(err));
	return f.err;
}

int ifaces_ask(struct ifaces *all)
{
	struct nl_sock *sock = ifaces_nl_open_socket();
	int err;

	if (!sock)
		return 0;
	err = ifaces_nl_fill(all, sock);
	ifaces_nl_close_socket(sock);
	return err;
}

static bool source_of(struct rtnl_route *route, struct addr *from)
{
	struct nl_addr *source = rtnl_route_get_pref_src(route);

	return source && ifaces_nl_convert(source, from);
}

bool ifaces_ask_route(const struct addr *to, struct addr *from)
{
	bool v6 = to->kind == ADDR_IN6, found = false;
	struct nl_sock *sock = ifaces_nl_open_socket();
	struct rtnl_route *route;
	struct nl_addr *dest;

	if (!sock)
		return false;
	dest = nl_addr_build(v6 ? AF_INET6 : AF_INET, to->ip, v6 ? 16 : 4);
	if (dest && rtnl_route_lookup(sock, dest, &route) == 0) {
		found = source_of(route, from);
		rtnl_route_put(route);
	}
	nl_addr_put(dest);
	ifaces_nl_close_socket(sock);
	return found;
}
