/* SPDX-License-Identifier: BSD-2-Clause */
/* Interfaces, addresses and routes without libnl: getifaddrs, sysfs and sockets. */
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "info/ifaces.h"

/* Drivers of virtual interfaces, some of them on top of hardware. Hardware drivers name a bus. */
static const struct {
	const char *driver;
	enum iface_kind kind;
} kinds[] = {
	{"veth", IFACE_VETH},          {"bridge", IFACE_BRIDGE}, {"tun", IFACE_VIRTUAL},
	{"openvswitch", IFACE_BRIDGE}, {"bonding", IFACE_NIC},   {"802.1Q VLAN Support", IFACE_NIC},
	{"macvlan", IFACE_NIC},        {"ipvlan", IFACE_NIC},    {"team", IFACE_NIC},
};

static enum iface_kind ifaces_plain_kind_of(int fd, const char *name, unsigned int flags)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq req = {.ifr_data = (char *)&info};

	if (flags & IFF_LOOPBACK)
		return IFACE_LOOPBACK;
	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	if (ioctl(fd, SIOCETHTOOL, &req))
		return IFACE_VIRTUAL;
	for (size_t n = 0; n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		if (strcmp(info.driver, kinds[n].driver) == 0)
			return kinds[n].kind;
	}
	return *info.bus_info ? IFACE_NIC : IFACE_VIRTUAL;
}

static int master_of(const char *name)
{
	char path[64], link[256];
	const char *last;
	ssize_t len;

	snprintf(path, sizeof(path), "/sys/class/net/%s/master", name);
	len = readlink(path, link, sizeof(link) - 1);
	if (len <= 0)
		return 0;
	link[len] = '\0';
	last = strrchr(link, '/');
	return last ? (int)if_nametoindex(last + 1) : 0;
}

static size_t mtu_of(int fd, const char *name)
{
	struct ifreq req = {.ifr_mtu = 0};

	snprintf(req.ifr_name, sizeof(req.ifr_name), "%s", name);
	return ioctl(fd, SIOCGIFMTU, &req) ? 0 : (size_t)req.ifr_mtu;
}

static void set_hw_address(struct iface *i, const struct sockaddr_ll *ll)
{
	char *at = i->hw_address;

	i->type = ll->sll_hatype;
	for (int n = 0; n < ll->sll_halen && n < (int)sizeof(ll->sll_addr); n++)
		at += sprintf(at, "%s%02x", n ? ":" : "", ll->sll_addr[n]);
}

/* Called for the link-layer entry, which every interface has. */
static int ifaces_plain_add_link(struct ifaces *all, int fd, const struct ifaddrs *ifa)
{
	const struct sockaddr_ll *ll = (const struct sockaddr_ll *)ifa->ifa_addr;
	struct iface *i = ifaces_add(all);

	if (!i)
		return -FI_ENOMEM;
	snprintf(i->name, sizeof(i->name), "%s", ifa->ifa_name);
	i->index = ll->sll_ifindex;
	i->up = ifa->ifa_flags & IFF_UP;
	i->running = ifaces_running(ifa->ifa_flags);
	i->kind = ifaces_plain_kind_of(fd, i->name, ifa->ifa_flags);
	i->master = master_of(i->name);
	i->mtu = mtu_of(fd, i->name);
	set_hw_address(i, ll);
	return 0;
}

static uint8_t ifaces_plain_prefix_of(const struct sockaddr *mask)
{
	struct addr a;
	uint8_t bits = 0;

	if (!mask || addr_from_user(&a, FI_SOCKADDR, mask, 0))
		return 0;
	for (size_t n = 0; n < sizeof(a.ip); n++)
		bits += (uint8_t)__builtin_popcount(a.ip[n]);
	return bits;
}

static int ifaces_plain_add_addr(struct ifaces *all, const struct ifaddrs *ifa)
{
	struct iface *i = ifaces_at(all, (int)if_nametoindex(ifa->ifa_name));
	struct iface_addr *a;
	struct addr ip;

	if (!i || addr_from_user(&ip, FI_SOCKADDR, ifa->ifa_addr, 0))
		return 0;
	a = ifaces_add_addr(all);
	if (!a)
		return -FI_ENOMEM;
	a->addr = ip;
	a->prefix = ifaces_plain_prefix_of(ifa->ifa_netmask);
	a->of = (unsigned int)(i - all->iface);
	return 0;
}

static int ifaces_plain_fill(struct ifaces *all, int fd, const struct ifaddrs *list)
{
	int err = 0;

	for (const struct ifaddrs *ifa = list; ifa && !err; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr && ifa->ifa_addr->sa_family == AF_PACKET)
			err = ifaces_plain_add_link(all, fd, ifa);
	}
	for (const struct ifaddrs *ifa = list; ifa && !err; ifa = ifa->ifa_next) {
		if (ifa->ifa_addr)
			err = ifaces_plain_add_addr(all, ifa);
	}
	return err;
}

int ifaces_ask(struct ifaces *all)
{
	int err, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifaddrs *list;

	if (fd < 0)
		return 0;
	if (getifaddrs(&list)) {
		close(fd);
		return 0;
	}
	err = ifaces_plain_fill(all, fd, list);
	freeifaddrs(list);
	close(fd);
	return err;
}

/* Connects a datagram socket, which sends nothing, and reads the socket's own address. */
bool ifaces_ask_route(const struct addr *to, struct addr *from)
{
	struct sockaddr_in6 name = {.sin6_family = AF_INET6}; /* larger than sockaddr_in */
	size_t room = sizeof(name);
	struct addr dest = *to;
	socklen_t len;
	bool found;
	int fd;

	if (!dest.port)
		dest.port = 9;
	if (addr_to_user(&dest, &name, &room))
		return false;
	fd = socket(name.sin6_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	len = sizeof(name);
	found = connect(fd, (struct sockaddr *)&name, (socklen_t)room) == 0 &&
		getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
		addr_from_user(from, FI_SOCKADDR, &name, len) == 0;
	close(fd);
	from->port = 0;
	return found;
}
