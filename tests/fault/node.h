/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint with its objects: every process of a fault test has one. */
#ifndef FAULT_NODE_H
#define FAULT_NODE_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "must.h"

#ifndef NODE_CAPS
#define NODE_CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)
#endif

#ifndef NODE_MR
#define NODE_MR 0 /* FI_MR_ bits */
#endif
#ifndef NODE_KEYS
#define NODE_KEYS 0 /* FI_AV_AUTH_KEY: the address vector holds keys */
#endif
#ifndef NODE_FORMAT
#define NODE_FORMAT FI_FORMAT_UNSPEC /* of addresses */
#endif
#ifndef NODE_WAIT
#define NODE_WAIT FI_WAIT_NONE /* wait object of the queue */
#endif

/*
 * Operations with a dead peer end within this time (ms). One second of it is the kernel's: a SYN
 * that meets a closing listener is dropped, and sent again after a second.
 */
#define DEAD_MS 1500

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

struct name {
	size_t len;
	char bytes[128];
};

struct event {
	void *context;
	uint64_t flags, tag, data;
	size_t len;
	int err; /* positive */
	int prov_errno;
};

static inline const char *provider(void)
{
	const char *hw = getenv("HW");

	return hw && *hw ? hw : "shm";
}

static inline struct fi_info *node_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	int ret;

	hints->fabric_attr->prov_name = strdup(provider());
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = NODE_CAPS;
	hints->addr_format = NODE_FORMAT;
	hints->domain_attr->mr_mode = NODE_MR;
	hints->domain_attr->auth_key_size = NODE_KEYS;
	ret = fi_getinfo(NODE_KEYS ? FI_VERSION(1, 20) : FI_VERSION(1, 17), NULL, NULL, 0, hints,
			 &info);
	fi_freeinfo(hints);
	if (ret == -FI_ENODATA) {
		printf("no provider %s here\n", provider());
		exit(77);
	}
	must(ret, "fi_getinfo");
	return info;
}

static inline void try_info(void *arg)
{
	(void)arg;
	fi_freeinfo(node_info());
}

/*
 * Skips the test where the provider is missing. A child asks, so this process stays without the
 * library.
 */
static inline void need_provider(void)
{
	int status;

	if (waitpid(start("main", try_info, NULL), &status, 0) > 0 && WIFEXITED(status) &&
	    !WEXITSTATUS(status))
		return;
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
}

static inline void node_bind(struct node *n)
{
	must(fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(n->ep), "fi_enable");
}

/* Opens all objects; the endpoint is neither bound nor enabled. `name`: its address; NULL: any. */
static inline void node_create(struct node *n, const struct name *name)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096, .wait_obj = NODE_WAIT};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	int ret;

	n->info = node_info();
	if (name) {
		free(n->info->src_addr);
		n->info->src_addr = malloc(name->len);
		n->info->src_addrlen = name->len;
		memcpy(n->info->src_addr, name->bytes, name->len);
	}
	must(fi_fabric(n->info->fabric_attr, &n->fabric, NULL), "fi_fabric");
	must(fi_domain(n->fabric, n->info, &n->domain, NULL), "fi_domain");
	must(fi_av_open(n->domain, &av, &n->av, NULL), "fi_av_open");
	must(fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	ret = fi_endpoint(n->domain, n->info, &n->ep, NULL);
	if (ret == -FI_ENOSYS) {
		printf("no library for keys or encryption here\n");
		exit(77);
	}
	must(ret, "fi_endpoint");
}

static inline void node_open(struct node *n, const struct name *name)
{
	node_create(n, name);
	node_bind(n);
}

static inline void node_close(struct node *n)
{
	must(fi_close(&n->ep->fid), "fi_close");
	must(fi_close(&n->cq->fid), "fi_close");
	must(fi_close(&n->av->fid), "fi_close");
	must(fi_close(&n->domain->fid), "fi_close");
	must(fi_close(&n->fabric->fid), "fi_close");
	fi_freeinfo(n->info);
}

static inline struct name node_name(struct node *n)
{
	struct name name = {.len = sizeof(name.bytes)};

	must(fi_getname(&n->ep->fid, name.bytes, &name.len), "fi_getname");
	return name;
}

static inline fi_addr_t node_insert(struct node *n, const struct name *name)
{
	fi_addr_t addr;

	if (fi_av_insert(n->av, name->bytes, 1, &addr, 0, NULL) != 1)
		fail("fi_av_insert refuses an address");
	return addr;
}

/* Exchanges names with the other process and inserts its name. Returns its address. */
static inline fi_addr_t node_meet(struct node *n, int end)
{
	struct name mine = node_name(n), theirs;

	tell(end, &mine, sizeof(mine));
	hear(end, &theirs, sizeof(theirs));
	return node_insert(n, &theirs);
}

/* Reads one completion. Returns false if there is none. */
static inline bool node_poll(struct node *n, struct event *e)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t ret = fi_cq_read(n->cq, &entry, 1);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret == 1) {
		*e = (struct event){.context = entry.op_context,
				    .flags = entry.flags,
				    .tag = entry.tag,
				    .data = entry.data,
				    .len = entry.len};
		return true;
	}
	if (ret != -FI_EAVAIL)
		must(ret, "fi_cq_read");
	must(fi_cq_readerr(n->cq, &error, 0), "fi_cq_readerr");
	*e = (struct event){error.op_context, error.flags, error.tag,       error.data,
			    error.len,        error.err,   error.prov_errno};
	return true;
}

/* Returns the next completion; fails if none comes within `ms`. */
static inline struct event node_wait(struct node *n, unsigned int ms, const char *what)
{
	uint64_t end = now_ms() + ms;
	struct event e;

	while (!node_poll(n, &e)) {
		if (now_ms() > end)
			fail("no completion within %u ms: %s", ms, what);
		sched_yield();
	}
	return e;
}

#endif
