/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "info/rdma_ports.h"

#define DEVICES "/sys/class/infiniband"
#define GIDS    256 /* GID table entries to read */
#define EMPTY   16  /* after so many empty entries the rest is taken to be empty */

static const uint8_t nothing[16];

/* Reads a port's sysfs file, without newline. False: not there. */
static bool rdma_ports_read_file(const struct rdma_port *p, const char *name, char *text, int size)
{
	char path[256];
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), DEVICES "/%s/ports/%u/%s", p->device, p->port, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	good = fgets(text, size, f);
	fclose(f);
	if (good)
		text[strcspn(text, "\n")] = '\0';
	return good;
}

/* Format: "0000:0000:0000:0000:0000:ffff:0a4d:0001". */
static bool rdma_ports_read_gid(struct rdma_port *p, unsigned int index)
{
	char name[32], text[64];
	unsigned int word[8];

	snprintf(name, sizeof(name), "gids/%u", index);
	if (!rdma_ports_read_file(p, name, text, sizeof(text)) ||
	    sscanf(text, "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &word[0], &word[1], &word[2], &word[3],
		   &word[4], &word[5], &word[6], &word[7]) != 8)
		return false;
	for (size_t i = 0; i < 8; i++) {
		p->gid[2 * i] = word[i] >> 8;
		p->gid[2 * i + 1] = word[i] & 0xff;
	}
	p->gid_index = index;
	return memcmp(p->gid, nothing, sizeof(nothing)) != 0;
}

static bool is_v2(const struct rdma_port *p)
{
	char name[48], text[32];

	snprintf(name, sizeof(name), "gid_attrs/types/%u", p->gid_index);
	return rdma_ports_read_file(p, name, text, sizeof(text)) && strcmp(text, "RoCE v2") == 0;
}

/* Does the comma list contain `name`, or a beginning of it? */
static bool is_listed(const char *list, const char *name)
{
	while (*list) {
		size_t len = strcspn(list, ",");

		if (len && strncmp(list, name, len) == 0)
			return true;
		list += len + (list[len] == ',');
	}
	return false;
}

/* Does FI_VERBS_IFACE permit the GID's network interface? Those of InfiniBand have none. */
static bool is_permitted(const struct rdma_port *p)
{
	const char *only = env_get()->verbs_iface;
	char name[48], text[64];

	snprintf(name, sizeof(name), "gid_attrs/ndevs/%u", p->gid_index);
	return !only || p->infiniband ||
	       (rdma_ports_read_file(p, name, text, sizeof(text)) && is_listed(only, text));
}

/* Rates a GID entry: higher is better, 0: does not fit. */
static int rdma_ports_rate(const struct rdma_port *p, const uint8_t wanted[16])
{
	if (memcmp(p->gid, wanted, 16) == 0)
		return p->infiniband || is_v2(p) ? 3 : 2;
	return p->infiniband && p->gid_index == 0 ? 1 : 0;
}

/* Sets *found to the best entry of the port's table if it beats *best. */
static void look_at_gids(struct rdma_port *p, const uint8_t wanted[16], struct rdma_port *found,
			 int *best)
{
	int only = env_get()->verbs_gid_index;
	unsigned int empty = 0;

	for (unsigned int i = 0; i < GIDS && *best < 3 && empty < EMPTY; i++) {
		int rating;

		if (only >= 0 && (unsigned int)only != i)
			continue;
		if (!rdma_ports_read_gid(p, i)) {
			empty++;
			continue;
		}
		empty = 0;
		rating = rdma_ports_rate(p, wanted);
		if (rating > *best && is_permitted(p)) {
			*best = rating;
			*found = *p;
		}
	}
}

static void look_at_device(const char *device, const uint8_t wanted[16], struct rdma_port *found,
			   int *best)
{
	struct rdma_port p = {.port = 1};
	size_t len = strlen(device);
	char text[64];

	if (len >= sizeof(p.device))
		return;
	memcpy(p.device, device, len + 1);
	for (; rdma_ports_read_file(&p, "state", text, sizeof(text)); p.port++) {
		if (!strstr(text, "ACTIVE"))
			continue;
		p.infiniband = rdma_ports_read_file(&p, "link_layer", text, sizeof(text)) &&
			       strcmp(text, "InfiniBand") == 0;
		look_at_gids(&p, wanted, found, best);
	}
}

static bool is_device(const struct dirent *entry)
{
	const char *only = env_get()->verbs_device;

	return entry->d_name[0] != '.' && (!only || is_listed(only, entry->d_name));
}

bool rdma_ports_any(void)
{
	DIR *dir = opendir(DEVICES);
	struct dirent *entry;
	bool any = false;

	if (!dir)
		return false;
	while (!any && (entry = readdir(dir)))
		any = is_device(entry);
	closedir(dir);
	return any;
}

bool rdma_ports_find(const struct addr *a, struct rdma_port *found)
{
	DIR *dir = a->kind == ADDR_STR ? NULL : opendir(DEVICES);
	struct addr wanted = *a;
	struct dirent *entry;
	int best = 0;

	if (!dir)
		return false;
	addr_map(&wanted, ADDR_IN6); /* the GID of an IPv4 address */
	while (best < 3 && (entry = readdir(dir)))
		if (is_device(entry))
			look_at_device(entry->d_name, wanted.ip, found, &best);
	closedir(dir);
	return best > 0;
}

const char *rdma_ports_choice(char text[RDMA_CHOICE_MAX])
{
	const char *device = env_get()->verbs_device, *iface = env_get()->verbs_iface;

	snprintf(text, RDMA_CHOICE_MAX, "%s%.60s%s%.60s", device ? ", FI_VERBS_DEVICE_NAME=" : "",
		 device ? device : "", iface ? ", FI_VERBS_IFACE=" : "", iface ? iface : "");
	return text;
}
