/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint of any libfabric.so.1, and that of the other process. Programs that include this file
 * ask for API 1.17 and are linked against that release if it is installed. */
#ifndef BENCH_FABRIC_H
#define BENCH_FABRIC_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "pair.h"

#define NAME_ROOM   256
#define NOT_OFFERED 77 /* exit status */

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_cq *cq;
static struct fid_av *av;
static struct fid_ep *ep;
static fi_addr_t peer;
static enum fi_wait_obj fabric_wait = FI_WAIT_NONE; /* of cq */

static void must(ssize_t ret, const char *call)
{
	if (ret >= 0)
		return;
	fprintf(stderr, "bench: side %d: %s: %s\n", side, call, fi_strerror((int)-ret));
	exit(EXIT_FAILURE);
}

/* Like must, but if the library lacks the feature the program, with both sides of a pair, ends with NOT_OFFERED. */
static inline void fabric_offered(ssize_t ret, const char *call)
{
	if (ret != -FI_ENODATA && ret != -FI_EOPNOTSUPP && ret != -FI_ENOSYS) {
		must(ret, call);
		return;
	}
	if (side == 0)
		fprintf(stderr, "bench: %s: %s\n", call, fi_strerror((int)-ret));
	if (wire)
		pair_sync(); /* otherwise the process that ends first would end the other */
	exit(NOT_OFFERED);
}

/* Returns hints, to which the caller may add. `safe`: FI_THREAD_SAFE, else FI_THREAD_DOMAIN. */
static struct fi_info *fabric_hints(const char *provider, uint64_t caps, bool safe)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = caps;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->threading = safe ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/*
 * Calls fi_getinfo and frees the hints. The network is the loopback device: other addresses of this
 * host use it too, but cost the kernel more, and which one is chosen differs.
 */
static int fabric_find(struct fi_info *hints)
{
	const char *node = pair_network ? PAIR_HOST : NULL;
	int ret = fi_getinfo(FI_VERSION(1, 17), node, NULL, node ? FI_SOURCE : 0, hints, &info);

	fi_freeinfo(hints);
	return ret;
}

/* Opens an endpoint of the domain, with its queue and vector, and a counter of what it sends or NULL. */
static inline struct fid_ep *fabric_endpoint(struct fid_cntr *counter)
{
	struct fid_ep *opened;

	must(fi_endpoint(domain, info, &opened, NULL), "fi_endpoint");
	must(fi_ep_bind(opened, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_ep_bind(opened, &av->fid, 0), "fi_ep_bind");
	if (counter)
		must(fi_ep_bind(opened, &counter->fid, FI_SEND), "fi_ep_bind");
	must(fi_enable(opened), "fi_enable");
	return opened;
}

static inline void fabric_open(void)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = fabric_wait};
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 1};

	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
	must(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
	ep = fabric_endpoint(NULL);
}

static inline void fabric_name(struct fid_ep *of, char name[NAME_ROOM])
{
	size_t len = NAME_ROOM;

	memset(name, 0, NAME_ROOM);
	must(fi_getname(&of->fid, name, &len), "fi_getname");
}

static inline fi_addr_t fabric_insert(const char *name)
{
	fi_addr_t found;

	if (fi_av_insert(av, name, 1, &found, 0, NULL) != 1)
		pair_fail("fi_av_insert refused the address");
	return found;
}

static inline void fabric_meet(void)
{
	char mine[NAME_ROOM], theirs[NAME_ROOM];

	fabric_name(ep, mine);
	pair_swap(mine, theirs, sizeof mine);
	peer = fabric_insert(theirs);
}

/* Like pair_sync, but makes progress, as the other side may wait for answers of this one. */
static inline void fabric_sync(void (*progress)(void))
{
	char word = 0;

	if (send(wire, &word, 1, MSG_NOSIGNAL) != 1)
		pair_fail("the other side is gone");
	while (recv(wire, &word, 1, MSG_DONTWAIT) != 1) {
		if (errno != EAGAIN)
			pair_fail("the other side is gone");
		progress();
	}
}

/* Raises the limit of descriptors. Where it is less than what is needed, the program ends with NOT_OFFERED. */
static inline void fabric_descriptors(size_t needed)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		pair_fail("getrlimit");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		pair_fail("setrlimit");
	if (limit.rlim_max < needed)
		fabric_offered(-FI_EOPNOTSUPP, "so many descriptors");
}

/* Reads up to `room` completions. Returns their number; an error ends the program. */
static inline ssize_t fabric_read(struct fi_cq_tagged_entry *entry, size_t room)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_read(cq, entry, room);

	if (ret == -FI_EAVAIL && fi_cq_readerr(cq, &error, 0) == 1)
		ret = -error.err;
	if (ret < 0 && ret != -FI_EAGAIN)
		must(ret, "fi_cq_read");
	return ret;
}

static inline void fabric_close(void)
{
	fi_close(&ep->fid);
	fi_close(&av->fid);
	fi_close(&cq->fid);
	fi_close(&domain->fid);
	fi_close(&fabric->fid);
	fi_freeinfo(info);
}

#endif /* BENCH_FABRIC_H */
