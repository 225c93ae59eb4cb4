/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens an endpoint as a client that names nothing gets it, and says what the process came to:
 *
 *	endpoint 64		fails if it was ever more than 64 MiB in memory
 *	endpoint 64 verbs	the same with a provider's name
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int ret, const char *call)
{
	if (!ret)
		return;
	fprintf(stderr, "endpoint: %s: %s\n", call, fi_strerror(-ret));
	exit(EXIT_FAILURE);
}

/* KiB of the process in memory, at most so far. */
static long most_memory(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	long most = -1;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "VmHWM: %ld", &most) == 1)
			break;
	if (file)
		fclose(file);
	return most;
}

int main(int argc, char **argv)
{
	long limit = argc > 1 ? atol(argv[1]) * 1024 : 0, most;
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[256];
	size_t len = sizeof(name);

	if (argc > 2)
		hints->fabric_attr->prov_name = strdup(argv[2]);
	hints->ep_attr->type = FI_EP_RDM;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, name, &len), "fi_getname");
	most = most_memory();
	printf("%s: an open endpoint, %ld KiB in memory\n", info->fabric_attr->prov_name, most);
	must(fi_close(&ep->fid), "fi_close");
	must(fi_close(&cq->fid), "fi_close");
	must(fi_close(&av->fid), "fi_close");
	must(fi_close(&domain->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return most < 0 || most > limit;
}
