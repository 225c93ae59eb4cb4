/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * EP=msg: a test of two processes runs on connected endpoints. Rank 1 connects to rank 0, and what is given
 * as an address later means nothing: it is FI_ADDR_UNSPEC, or 0. Needs api.h.
 */
#ifndef API_PAIR_H
#define API_PAIR_H

#include "local.h"

#define PAIR_MS 10000 /* for an event */

struct pair {
	struct fid_domain *domain;
	const struct fi_info *info;
	struct fid_eq *eq;
	struct fid_pep *pep; /* of rank 0 */
	struct fi_info *request;
};

/* What a bare queue pair is for; who asks for more is not offered one. */
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
 * Are they a device's queue pairs and nothing more? Then what is sent waits for its receive, and there is
 * nothing that a device does not do: tags, messages that somebody keeps, cancelling.
 */
static inline bool pair_bare(void)
{
	return pair_wanted() && !strcmp(api_provider(), "verbs");
}

/* For a case, or what is left of it, that is about such things. */
static inline void pair_not_bare(const char *why)
{
	if (pair_bare())
		api_skip(why);
}

/* Rules of registration that the application follows beside those of the test: see local.h. */
static inline int pair_mr_mode(int mode)
{
	return pair_bare() ? FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY
			   : mode;
}

static inline fi_addr_t pair_addr(int rank)
{
	return rank ? 0 : FI_ADDR_UNSPEC;
}

/* The next event has to be this one. */
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

/* Rank 0 has heard rank 1 when it returns. */
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

/* An endpoint of the kind that is wanted, to be bound to what it needs. */
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

/* Connected when it returns. */
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
