/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks this host's addresses by how well other hosts can reach them. */
#include <stdlib.h>

#include "info/ifaces.h"

/* Where an address is valid. */
enum reach { ONE_LINK, THIS_HOST, EVERYWHERE };

static enum reach reach_of(const struct iface *i, const struct addr *a)
{
	if (i->kind == IFACE_LOOPBACK)
		return THIS_HOST;
	if (a->kind == ADDR_IN && a->ip[0] == 169 && a->ip[1] == 254)
		return ONE_LINK;
	return addr_is_link_local(a) ? ONE_LINK : EVERYWHERE;
}

/*
 * The kernel makes a link's state of its carrier a moment after that came up (up to a second), and has IFF_RUNNING
 * only then. <net/if.h> lacks the other two, IFF_LOWER_UP and IFF_DORMANT of <linux/if.h>.
 */
bool ifaces_running(unsigned int flags)
{
	const unsigned int lower_up = 0x10000, dormant = 0x20000;

	return flags & IFF_RUNNING || (flags & lower_up && !(flags & dormant));
}

bool ifaces_usable(const struct ifaces *all, const struct iface_addr *a)
{
	const struct iface *i = ifaces_of(all, a);

	return i->up && i->running && !a->unsettled;
}

#define MEGABIT 1000000u

/* The criteria as a number, the most important in the top bits; larger is better. */
static uint64_t ifaces_rank_score(const struct ifaces *all, const struct iface_addr *a)
{
	const struct iface *i = ifaces_of(all, a);
	uint64_t speed = i->speed / MEGABIT, s = ifaces_usable(all, a);

	if (speed > UINT32_MAX)
		speed = UINT32_MAX;
	s = s << 2 | (unsigned int)reach_of(i, &a->addr);
	s = s << 3 | i->kind;
	s = s << 32 | speed;
	s = s << 1 | !i->away;
	s = s << 1 | i->far;
	return s << 1 | (a->addr.kind == ADDR_IN);
}

/* Equal addresses stay in the kernel's order: by interface, then by address. */
static int ifaces_rank_compare(const void *left, const void *right, void *arg)
{
	const struct iface_addr *a = left, *b = right;
	const struct ifaces *all = arg;
	uint64_t of_a = ifaces_rank_score(all, a), of_b = ifaces_rank_score(all, b);

	if (of_a != of_b)
		return of_a > of_b ? -1 : 1;
	if (a->of != b->of)
		return ifaces_of(all, a)->index < ifaces_of(all, b)->index ? -1 : 1;
	return a->place < b->place ? -1 : a->place > b->place;
}

/* A bridge with a hardware port is itself a path to the network: counts as hardware. */
static void promote_bridges(struct ifaces *all)
{
	for (size_t n = 0; n < all->count; n++) {
		const struct iface *port = &all->iface[n];
		struct iface *bridge = port->master ? ifaces_at(all, port->master) : NULL;

		if (bridge && bridge->kind == IFACE_BRIDGE && port->kind == IFACE_NIC)
			bridge->kind = IFACE_NIC;
	}
}

void ifaces_rank(struct ifaces *all)
{
	promote_bridges(all);
	for (size_t n = 0; n < all->addr_count; n++)
		all->addr[n].place = (unsigned int)n;
	if (all->addr_count)
		qsort_r(all->addr, all->addr_count, sizeof(*all->addr), ifaces_rank_compare, all);
}
