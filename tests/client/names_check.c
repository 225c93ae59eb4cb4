/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds a provider as a client does whose configure script has written down a name, and sends itself a message:
 *
 *     names_check ask NAME       names it in the hints
 *     names_check scan NAME      names none, and takes the first entry of that name
 *     names_check domain NAME    names it, then the domain that the answer has
 *     names_check iface NAME     names none, and takes the first entry whose domain is NAME
 *
 * Prints the entry's provider and domain. Exits with 2 if fi_getinfo has none.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API FI_VERSION(1, 18)

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, fi_strerror(-ret));
	exit(ret == -FI_ENODATA ? 2 : 1);
}

/* What runtimes of parallel languages ask for. */
static struct fi_info *usual_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_RMA | FI_MSG | FI_MULTI_RECV;
	hints->mode = FI_CONTEXT;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_SAFE;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode =
		FI_MR_ALLOCATED | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	return hints;
}

static struct fi_info *list_of(struct fi_info *hints)
{
	struct fi_info *list;

	must(fi_getinfo(API, NULL, NULL, 0, hints, &list), "fi_getinfo");
	return list;
}

static struct fi_info *named(const char *name, struct fi_info *hints)
{
	hints->fabric_attr->prov_name = strdup(name);
	return list_of(hints);
}

/* Names the domain of the first answer in a second call, for peers across the network. */
static struct fi_info *domain_of(const char *name, struct fi_info *hints)
{
	struct fi_info *first = named(name, hints);

	hints->domain_attr->name = strdup(first->domain_attr->name);
	hints->caps |= FI_REMOTE_COMM;
	fi_freeinfo(first);
	return list_of(hints);
}

static struct fi_info *find(const char *way, const char *name, struct fi_info *hints)
{
	struct fi_info *list;

	if (strcmp(way, "ask") == 0)
		return named(name, hints);
	if (strcmp(way, "domain") == 0)
		return domain_of(name, hints);
	list = list_of(hints);
	for (struct fi_info *i = list; i; i = i->next) {
		const char *is =
			strcmp(way, "scan") ? i->domain_attr->name : i->fabric_attr->prov_name;

		if (strcmp(is, name) == 0)
			return i;
	}
	must(-FI_ENODATA, "the list of entries");
	return NULL;
}

static void await(struct fid_cq *cq, int count)
{
	struct fi_cq_msg_entry entry;

	while (count) {
		ssize_t ret = fi_cq_read(cq, &entry, 1);

		if (ret != 1 && ret != -FI_EAGAIN)
			must((int)ret, "fi_cq_read");
		count -= ret == 1;
	}
}

static void send_oneself(struct fi_info *info)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_MSG};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	char name[128], out[] = "a message", in[sizeof(out)] = "";
	size_t len = sizeof(name);
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(ep), "fi_enable");
	must(fi_getname(&ep->fid, name, &len), "fi_getname");
	must(fi_av_insert(av, name, 1, NULL, 0, NULL) == 1 ? 0 : -FI_EINVAL, "fi_av_insert");
	must((int)fi_recv(ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
	while (fi_send(ep, out, sizeof(out), NULL, 0, NULL) == -FI_EAGAIN)
		fi_cq_read(cq, NULL, 0);
	await(cq, 2);
	must(strcmp(in, out) ? -FI_EIO : 0, "the message");
	must(fi_close(&ep->fid), "fi_close");
	must(fi_close(&cq->fid), "fi_close");
	must(fi_close(&av->fid), "fi_close");
	must(fi_close(&domain->fid), "fi_close");
	must(fi_close(&fabric->fid), "fi_close");
}

int main(int argc, char **argv)
{
	struct fi_info *info;

	if (argc != 3)
		return 1;
	info = find(argv[1], argv[2], usual_hints());
	send_oneself(info);
	printf("%s %s\n", info->fabric_attr->prov_name, info->domain_attr->name);
	return 0;
}
