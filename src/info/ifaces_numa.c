/* SPDX-License-Identifier: BSD-2-Clause */
/* Which interfaces are on a NUMA node of this process, as sysfs tells. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "info/ifaces.h"

/* Is one of the processors in a list like "0-3,8" allowed? */
static bool allows(const cpu_set_t *allowed, const char *list)
{
	char *end;

	for (; *list >= '0' && *list <= '9'; list = *end == ',' ? end + 1 : end) {
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			if (CPU_ISSET(first, allowed))
				return true;
	}
	return false;
}

/* Reads the first line of a file below `sys`. False: there is none. */
static bool read_line(const char *path, char *line, int size)
{
	FILE *file = fopen(path, "re");
	bool any = file && fgets(line, size, file);

	if (file)
		fclose(file);
	return any;
}

/* What the kernel does not tell is no reason against an interface. */
static bool is_away(const char *sys, const char *name, const cpu_set_t *allowed)
{
	char path[256], line[4096];
	int node;

	snprintf(path, sizeof(path), "%s/class/net/%s/device/numa_node", sys, name);
	if (!read_line(path, line, sizeof(line)) || sscanf(line, "%d", &node) != 1 || node < 0)
		return false;
	snprintf(path, sizeof(path), "%s/devices/system/node/node%d/cpulist", sys, node);
	return read_line(path, line, sizeof(line)) && !allows(allowed, line);
}

void ifaces_near_first(struct ifaces *all, const char *sys)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (size_t n = 0; n < all->count; n++)
		all->iface[n].away = is_away(sys, all->iface[n].name, &allowed);
	ifaces_rank(all);
}
