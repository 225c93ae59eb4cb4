/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens an endpoint as a client without hints does, and prints the memory of the process:
 *
 *	endpoint 64			fails if it was ever larger than 64 MiB; memory pinned
 *					by devices counts twice
 *	endpoint 64 verbs		the same with a provider's name
 *	endpoint 64 verbs msg		and another type of endpoint: rdm, msg or dgram
 */
#include <dirent.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(int ret, const char *call)
{
	if (!ret)
		return;
	fprintf(stderr, "endpoint: %s: %s\n", call, fi_strerror(-ret));
	exit(EXIT_FAILURE);
}

/* Returns a line of /proc/self/status, in KiB. */
static long status(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	size_t len = strlen(name);
	char line[256];
	long kib = -1;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len) && sscanf(line + len, ": %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	if (kib < 0) {
		fprintf(stderr, "endpoint: the kernel does not tell %s\n", name);
		exit(EXIT_FAILURE);
	}
	return kib;
}

/* Returns the number of RDMA devices that this process has open. */
static unsigned int devices(void)
{
	static const char node[] = "/dev/infiniband/uverbs";
	DIR *fds = opendir("/proc/self/fd");
	char to[sizeof(node)] = "";
	struct dirent *fd;
	unsigned int n = 0;

	while (fds && (fd = readdir(fds)))
		if (readlinkat(dirfd(fds), fd->d_name, to, sizeof(node) - 1) == sizeof(node) - 1)
			n += !strcmp(to, node);
	if (fds)
		closedir(fds);
	return n;
}

static struct fi_info *find(const char *provider, const char *type)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	hints->ep_attr->type = !strcmp(type, "msg")     ? FI_EP_MSG
			       : !strcmp(type, "dgram") ? FI_EP_DGRAM
							: FI_EP_RDM;
	hints->mode = FI_RX_CQ_DATA | FI_MSG_PREFIX;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

int main(int argc, char **argv)
{
	long limit = argc > 1 ? atol(argv[1]) * 1024 : 0, most, pinned;
	struct fi_info *info = find(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : "rdm");
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fi_eq_attr eq_attr = {.size = 0};
	bool msg = info->ep_attr->type == FI_EP_MSG;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av = NULL;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_ep *ep;
	char name[256];
	size_t len = sizeof(name);

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_eq_open(fabric, &eq_attr, &eq, NULL), "fi_eq_open");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	if (!msg) {
		must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
		must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	} else {
		must(fi_ep_bind(ep, &eq->fid, 0), "fi_ep_bind");
	}
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	if (!msg)
		must(fi_getname(&ep->fid, name, &len), "fi_getname");
	most = status("VmHWM");
	pinned = status("VmPin");
	printf("%s, %s: an open endpoint, %ld KiB in memory, %ld KiB of them pinned, devices: %u\n",
	       info->fabric_attr->prov_name, argc > 3 ? argv[3] : "rdm", most, pinned, devices());
	must(fi_close(&ep->fid), "fi_close");
	must(fi_close(&cq->fid), "fi_close");
	must(fi_close(&eq->fid), "fi_close");
	if (av)
		must(fi_close(&av->fid), "fi_close");
	must(fi_close(&domain->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
	fi_freeinfo(info);
	return most + pinned > limit;
}
