/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hints API: asks fi_getinfo with open fabrics and domains in the hints, of the external provider
 * "loop" and of the library, and prints whose entries it gets: "loop", "others", "both" or "none".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

static uint32_t api;

/* An open fabric and domain, or NULL. */
struct objects {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
};

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "hints: %s\n", what);
	exit(1);
}

static struct fi_info *get(const char *prov_name, struct objects in_hints)
{
	struct fi_info *hints = fi_allocinfo(), *list;
	int ret;

	must(hints != NULL, "fi_allocinfo");
	hints->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~3;
	hints->fabric_attr->prov_name = prov_name ? strdup(prov_name) : NULL;
	hints->fabric_attr->fabric = in_hints.fabric;
	hints->domain_attr->domain = in_hints.domain;
	ret = fi_getinfo(api, NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	return ret ? NULL : list;
}

static struct objects open_of(const char *prov_name)
{
	struct fi_info *info = get(prov_name, (struct objects){0});
	struct objects opened;

	must(info != NULL, prov_name);
	must(!fi_fabric(info->fabric_attr, &opened.fabric, NULL), "fi_fabric");
	must(!fi_domain(opened.fabric, info, &opened.domain, NULL), "fi_domain");
	fi_freeinfo(info);
	return opened;
}

static void close_all(struct objects opened)
{
	must(!fi_close(&opened.domain->fid) && !fi_close(&opened.fabric->fid), "fi_close");
}

static void show(const char *what, struct objects in_hints)
{
	static const char *const whose[] = {"none", "loop", "others", "both"};
	struct fi_info *list = get(NULL, in_hints);
	int seen = 0;

	for (struct fi_info *info = list; info; info = info->next)
		seen |= strcmp(info->fabric_attr->prov_name, "loop") ? 2 : 1;
	printf("%s: %s\n", what, whose[seen]);
	fi_freeinfo(list);
}

int main(int argc, char **argv)
{
	unsigned int major, minor;
	struct objects loop, ours;

	must(argc == 2 && sscanf(argv[1], "%u.%u", &major, &minor) == 2, "usage: hints API");
	api = FI_VERSION(major, minor);
	loop = open_of("loop");
	ours = open_of("tcp");
	show("nothing", (struct objects){0});
	show("fabric of loop", (struct objects){.fabric = loop.fabric});
	show("domain of loop", (struct objects){.domain = loop.domain});
	show("fabric of tcp", (struct objects){.fabric = ours.fabric});
	show("domain of tcp", (struct objects){.domain = ours.domain});
	close_all(loop);
	close_all(ours);
	return 0;
}
