/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interfaces are on a NUMA node of the calling thread, as sysfs tells. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "info/ifaces.h"

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
