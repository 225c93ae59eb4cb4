/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EP=msg runs a test of two processes on connected endpoints. Rank 1 connects to rank 0. Addresses
 * passed to calls are then ignored: FI_ADDR_UNSPEC or 0. Needs api.h.
 */
#ifndef API_PAIR_H
#define API_PAIR_H

#include "local.h"

#define PAIR_MS 10000 /* limit for an event */

struct pair {
	struct fid_domain *domain;
	const struct fi_info *info;
	struct fid_eq *eq;
	struct fid_pep *pep; /* only on rank 0 */
	struct fi_info *request;
};

/* Capabilities of a bare queue pair. Hints with others match no provider. */
#define PAIR_BARE_CAPS                                                                             \
	(FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |   \
	 FI_REMOTE_WRITE | FI_RMA_PMEM | FI_FENCE | FI_LOCAL_COMM | FI_REMOTE_COMM)

static inline bool pair_wanted(void)
{
	const char *ep = getenv("EP");

	return ep && !strcmp(ep, "msg");
}

static inline enum fi_ep_type pair_type(void)
{
	return pair_wanted() ? FI_EP_MSG : FI_EP_RDM;
}

/*
 * Returns whether endpoints are bare queue pairs of a device. A send then waits for its receive,
 * and tags, unexpected messages and cancelling are not supported.
 */
static inline bool pair_bare(void)
{
	return pair_wanted() && !strcmp(api_provider(), "verbs");
}

/* Skips the case, or its rest, on bare queue pairs. */
static inline void pair_not_bare(const char *why)
{
	if (pair_bare())
		api_skip(why);
}

/* Returns the mr_mode to ask for: `mode`, or what bare queue pairs require (see local.h). */
static inline int pair_mr_mode(int mode)
{
	return pair_bare() ? FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY
			   : mode;
}

static inline fi_addr_t pair_addr(int rank)
{
	return rank ? 0 : FI_ADDR_UNSPEC;
}

/* Waits for the next event, which must be `wanted`. */
static inline void pair_event(const struct pair *p, uint32_t wanted, struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry err = {0};
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(p->eq, &event, entry, sizeof(*entry), PAIR_MS, 0);

	if (ret == -FI_EAVAIL && fi_eq_readerr(p->eq, &err, 0) > 0)
		ret = -err.err;
	api_check_eq(ret, sizeof(*entry), "fi_eq_sread");
	api_check_eq(event, wanted, "event");
}

static inline void pair_queue(struct pair *p, struct fid_fabric *fabric)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};

	OK(fi_eq_open(fabric, &attr, &p->eq, NULL));
}

/* Rank 0 listens, and waits for the request of rank 1. */
static inline void pair_listen(struct pair *p, struct api *a, struct fid_fabric *fabric,
			       struct fi_info *info)
{
	struct {
		char bytes[128];
		size_t len;
	} name = {.len = sizeof(name.bytes)};
	struct fi_eq_cm_entry entry;

	OK(fi_passive_ep(fabric, info, &p->pep, NULL));
	OK(fi_pep_bind(p->pep, &p->eq->fid, 0));
	OK(fi_listen(p->pep));
	OK(fi_getname(&p->pep->fid, name.bytes, &name.len));
	api_tell(a, 1, &name, sizeof(name));
	pair_event(p, FI_CONNREQ, &entry);
	p->request = entry.info;
}

/*
 * Opens an endpoint: connected with EP=msg, else reliable datagrams. The caller binds its queues.
 */
static inline struct fid_ep *pair_endpoint(struct pair *p, struct api *a, struct fid_fabric *fabric,
					   struct fid_domain *domain, struct fi_info *info)
{
	struct fid_ep *ep;

	p->domain = domain;
	p->info = info;
	if (pair_wanted()) {
		if (a->ranks != 2)
			api_skip("not for two processes");
		pair_queue(p, fabric);
		if (a->rank == 0)
			pair_listen(p, a, fabric, info);
	}
	OK(fi_endpoint(domain, p->request ? p->request : info, &ep, NULL));
	if (pair_wanted())
		OK(fi_ep_bind(ep, &p->eq->fid, 0));
	return ep;
}

/* Connects `ep`, and waits until it is connected. */
static inline void pair_meet(struct pair *p, struct api *a, struct fid_ep *ep)
{
	struct {
		char bytes[128];
		size_t len;
	} name;
	struct fi_eq_cm_entry entry;

	if (a->rank == 0) {
		OK(fi_accept(ep, NULL, 0));
	} else {
		api_hear(a, 0, &name, sizeof(name));
		OK(fi_connect(ep, name.bytes, NULL, 0));
	}
	pair_event(p, FI_CONNECTED, &entry);
	CHECK(entry.fid == &ep->fid);
	local_wrap(p->domain, p->info, ep);
}

static inline void pair_close(struct pair *p)
{
	if (p->pep)
		OK(fi_close(&p->pep->fid));
	if (p->eq)
		OK(fi_close(&p->eq->fid));
	fi_freeinfo(p->request);
}

#endif
