/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that each one-sided program opens first: fabric, domain, completion queue, address
 * vector, endpoint. After node_start() process N of the team has address N. */
#ifndef NODE_H
#define NODE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include "team.h"

static struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
} node;

static inline void must(ssize_t ret, const char *call)
{
	if (ret < 0)
		fail("%s: %s", call, fi_strerror((int)-ret));
}

/* Returns hints: one thread, reliable datagrams, and these capabilities; the caller may add
 * more. */
static inline struct fi_info *node_hints(const char *provider, uint64_t caps)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		fail("out of memory");
	hints->caps = caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider);
	return hints;
}

/* Opens all objects up to the endpoint; the caller may bind more before node_start(). Frees the
 * hints. Requests the API version that these programs were written for, not the library's. */
static inline void node_open(struct fi_info *hints, uint64_t cq_flags)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
	struct fi_av_attr av = {.type = FI_AV_TABLE, .count = TEAM_MAX};

	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &node.info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(node.info->fabric_attr, &node.fabric, NULL), "fi_fabric");
	must(fi_domain(node.fabric, node.info, &node.domain, NULL), "fi_domain");
	must(fi_cq_open(node.domain, &cq, &node.cq, NULL), "fi_cq_open");
	must(fi_av_open(node.domain, &av, &node.av, NULL), "fi_av_open");
	must(fi_endpoint(node.domain, node.info, &node.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(node.ep, &node.cq->fid, cq_flags), "fi_ep_bind");
	must(fi_ep_bind(node.ep, &node.av->fid, 0), "fi_ep_bind");
}

/* Enables the endpoint and exchanges addresses. In an FI_AV_TABLE the first inserted address is
 * number 0, the next number 1: the ranks of the team. */
static inline void node_start(void)
{
	char name[TEAM_CARD];
	size_t len = sizeof name;

	must(fi_enable(node.ep), "fi_enable");
	must(fi_getname(&node.ep->fid, name, &len), "fi_getname");
	team_exchange(name, len);
	for (int i = 0; i < team.size; i++)
		if (fi_av_insert(node.av, team_card(i), 1, NULL, 0, NULL) != 1)
			fail("process %d has a name that fi_av_insert does not take", i);
}

/* Registers memory that other processes may read and write; `key` is used if the application
 * chooses the keys. */
static inline struct fid_mr *node_expose(void *memory, size_t len, uint64_t key, uint64_t flags)
{
	struct fid_mr *mr;

	must(fi_mr_reg(node.domain, memory, len, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, key, flags,
		       &mr, NULL),
	     "fi_mr_reg");
	return mr;
}

/* Makes progress: with manual progress, operations advance only in such calls. */
static inline void node_progress(void)
{
	ssize_t ret = fi_cq_read(node.cq, NULL, 0);

	if (ret != -FI_EAGAIN)
		must(ret, "fi_cq_read");
}

/* Checks the return value of a post. True: no space, the caller must post again. */
static inline bool node_full(ssize_t ret, const char *call)
{
	if (ret == -FI_EAGAIN)
		node_progress();
	else
		must(ret, call);
	return ret == -FI_EAGAIN;
}

/* Waits for the next completion. Returns 0, or the positive error of a failed one. */
static inline int node_completion(struct fi_cq_data_entry *entry)
{
	struct fi_cq_err_entry error = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(node.cq, entry, 1)) == -FI_EAGAIN)
		sched_yield();
	if (ret == -FI_EAVAIL && fi_cq_readerr(node.cq, &error, 0) == 1)
		return error.err;
	must(ret, "fi_cq_read");
	return 0;
}

/* Waits for the completion of the one operation under way. */
static inline void node_complete(const char *call)
{
	struct fi_cq_data_entry entry;

	must(-node_completion(&entry), call);
}

/* Closes the endpoint. Objects bound to it can be closed afterwards, then the rest. */
static inline void node_stop(void)
{
	must(fi_close(&node.ep->fid), "fi_close");
}

static inline void node_close(void)
{
	struct fid *fids[] = {&node.av->fid, &node.cq->fid, &node.domain->fid, &node.fabric->fid};

	for (size_t i = 0; i < sizeof fids / sizeof fids[0]; i++)
		must(fi_close(fids[i]), "fi_close");
	fi_freeinfo(node.info);
}

#endif /* NODE_H */
