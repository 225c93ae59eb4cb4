/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranks this host's addresses by how well other hosts can reach them, and by the NUMA node of the calling thread. */
#include <sched.h>
#include <stdio.h>
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

/* ---- Which interfaces are on a NUMA node of the calling thread, as sysfs tells ---- */

#define COUNT_MAX ((size_t)1 << 17) /* processors; kernels of today have far fewer */

/* Processors 0 to `count`, exclusive, of which some may be used. */
struct processors {
	cpu_set_t *set;
	size_t count;
};

/* Asks where the calling thread may run. The kernel takes no smaller set than its own. False: it does not tell. */
static bool ask_allowed(struct processors *p)
{
	for (p->count = CPU_SETSIZE; p->count <= COUNT_MAX; p->count *= 2) {
		p->set = CPU_ALLOC(p->count);
		if (!p->set)
			return false;
		if (!sched_getaffinity(0, CPU_ALLOC_SIZE(p->count), p->set))
			return true;
		CPU_FREE(p->set);
	}
	return false;
}

/* Is one of the processors in a list like "0-3,8" allowed? */
static bool ifaces_numa_allows(const struct processors *allowed, const char *list)
{
	char *end;

	for (; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < allowed->count; first++)
			if (CPU_ISSET_S(first, CPU_ALLOC_SIZE(allowed->count), allowed->set))
				return true;
	}
	return false;
}

/* Reads the first line of a file below `sys`. False: there is none. */
static bool ifaces_numa_read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool any = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return any;
}

/* What the kernel does not tell is no reason against an interface. */
static bool is_away(const char *sys, const char *name, const struct processors *allowed)
{
	char path[256], line[4096];
	int node;

	snprintf(path, sizeof(path), "%s/class/net/%s/device/numa_node", sys, name);
	if (!ifaces_numa_read_line(path, line, sizeof(line)) || sscanf(line, "%d", &node) != 1 ||
	    node < 0)
		return false;
	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sys, node);
	return ifaces_numa_read_line(path, line, sizeof(line)) &&
	       !ifaces_numa_allows(allowed, line);
}

void ifaces_near_first(struct ifaces *all, const char *sys)
{
	struct processors allowed;

	if (!ask_allowed(&allowed))
		return;
	for (size_t n = 0; n < all->count; n++)
		all->iface[n].away = is_away(sys, all->iface[n].name, &allowed);
	CPU_FREE(allowed.set);
	ifaces_rank(all);
}
