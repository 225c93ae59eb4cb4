/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: opening, binding, closing. fi_endpoint(3). */
#include "api/ep.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fid.h"
#include "base/log.h"
#include "core/mr.h"
#include "info/job_key.h"
#include "xfer/engine.h"
#include "link/link.h"

#define LAST_MS     1000   /* ms that a close waits at most for peers to take their answers */
#define LAST_NAP_NS 100000 /* ns between two looks at that */

/* Waits for peers that access memory directly. 0 or -FI_EBUSY. Not locked. */
static int ep_quiesce(struct ep *ep)
{
	int err;

	domain_lock(ep->dom);
	err = ep->worker ? worker_quiesce(ep->worker) : 0;
	domain_unlock(ep->dom);
	return err;
}

/* Nothing is locked while peers are waited for: they may be endpoints of this domain. */
void ep_serve_last(struct ep *ep)
{
	const struct timespec nap = {.tv_nsec = LAST_NAP_NS};
	uint64_t end = clock_coarse_ms() + LAST_MS;
	bool done;

	for (;;) {
		domain_lock(ep->dom);
		done = !ep->worker || worker_serve_last(ep->worker);
		domain_unlock(ep->dom);
		if (done || clock_coarse_ms() >= end)
			return;
		nanosleep(&nap, NULL);
	}
}

/* Events that counters can be bound for, in the order of struct ep.cntrs. */
static const uint64_t events_bound[] = {FI_SEND,  FI_RECV,        FI_READ,
					FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
#define CNTR_EVENTS      (sizeof(events_bound) / sizeof(events_bound[0]))
#define CNTR_EVENT_FLAGS (FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define BIND_FLAGS       (CNTR_EVENT_FLAGS | FI_TRANSMIT | FI_SELECTIVE_COMPLETION)

static struct fi_ops ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ep_stats_open,
	.tostr = fid_no_tostr,
	.ops_set = fid_no_ops_set,
};

struct ep *ep_new(struct domain *dom, size_t fclass, void *context)
{
	struct ep *ep = apart_alloc(sizeof(*ep));

	if (!ep)
		return NULL;
	if (xfer_tables(ep)) {
		free(ep);
		return NULL;
	}
	ep->fid.fid = (struct fid){fclass, context, &ep_fi_ops};
	ep->fid.ops = &ep_ops;
	ep->fid.cm = &ep_cm_ops;
	ep->dom = dom;
	shard_enter(dom, &ep->shard);
	ep->base = ep;
	ep->addr_mask = UINT64_MAX;
	ep->inject_limit = ep->inject_least = LINK_INJECT_MAX;
	ep->inject_max = ep->tagged_inject_max = LINK_INJECT_MAX;
	ep->rma_inject_max = ep->atomic_inject_max = LINK_INJECT_MAX;
	list_init(&ep->in_domain);
	list_init(&ep->aliases);
	list_init(&ep->in_aliases);
	ref_get(&dom->ref);
	return ep;
}

void ep_free(struct ep *ep)
{
	ep_cm_free(ep);
	ref_put(&ep->dom->ref);
	fi_freeinfo(ep->info);
	xfer_tables_free(ep);
	free(ep->tx_ctx);
	free(ep->rx_ctx);
	fid_free(&ep->fid.fid);
}

static bool ep_supported(enum fi_ep_type type)
{
	return type == FI_EP_RDM || type == FI_EP_MSG || type == FI_EP_DGRAM;
}

int ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct domain *dom = domain_of(domain);
	struct ep *ep;
	int err;

	if (!out)
		return -FI_EINVAL;
	if (!info || !info->ep_attr || !ep_supported(info->ep_attr->type))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "endpoint type %d is not supported",
				  info && info->ep_attr ? (int)info->ep_attr->type : -1);
	ep = ep_new(dom, FI_CLASS_EP, context);
	if (!ep)
		return -FI_ENOMEM;
	err = ep_own_info(ep, info);
	if (!err)
		err = job_key_resolve(ep->info, dom->info, domain_api(dom));
	if (!err && info->ep_attr->type == FI_EP_MSG)
		err = ep_cm_open(ep, info);
	if (err) {
		ep_free(ep);
		return err;
	}
	domain_admit(dom, info);
	*out = &ep->fid;
	return 0;
}

int ep_open2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, uint64_t flags,
	     void *context)
{
	if (flags) {
		LOG_WARN(LOG_EP_CTRL, "fi_endpoint2: flags %#llx: unknown, or no peers here",
			 (unsigned long long)flags);
		return flags & ~(FI_PEER | FI_PEER_TRANSFER) ? -FI_EINVAL : -FI_ENOSYS;
	}
	return ep_open(domain, info, ep, context);
}

static int bind_cq(struct ep *ep, struct cq *cq, uint64_t flags)
{
	int err = 0;

	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    !(flags & (FI_TRANSMIT | FI_RECV)) || (flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "completion queue with flags %#llx: unknown or bound twice",
				  (unsigned long long)flags);
	if (cq->dom != ep->dom)
		return -FI_EDOMAIN;
	domain_lock(ep->dom);
	if (ep->enabled)
		err = ep_late_cq(ep, cq, flags);
	if (!err && flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_bind_flags = flags & FI_SELECTIVE_COMPLETION;
		ref_get(&cq->ref);
	}
	if (!err && flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_bind_flags = flags & FI_SELECTIVE_COMPLETION;
		ref_get(&cq->ref);
	}
	if (!err && ep->enabled)
		ep_take_bindings(ep);
	domain_unlock(ep->dom);
	return err;
}

static int ep_bind_cntr(struct ep *ep, struct cntr *cntr, uint64_t flags)
{
	int err = 0;

	if (!flags || flags & ~CNTR_EVENT_FLAGS)
		return -FI_EINVAL;
	/* A device does not report accesses of peers. */
	if (ep->dom->device_ops && flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_EOPNOTSUPP;
	if (cntr->dom != ep->dom)
		return -FI_EDOMAIN;
	for (unsigned int i = 0; i < CNTR_EVENTS; i++)
		if (flags & events_bound[i] && ep->cntrs[i])
			return -FI_EINVAL;
	domain_lock(ep->dom);
	if (ep->enabled)
		err = ep_late_cntr(ep, cntr, flags);
	for (unsigned int i = 0; !err && i < CNTR_EVENTS; i++)
		if (flags & events_bound[i]) {
			ep->cntrs[i] = cntr;
			ref_get(&cntr->ref);
		}
	if (!err && ep->enabled)
		ep_take_bindings(ep);
	domain_unlock(ep->dom);
	return err;
}

static int bind_av(struct ep *ep, struct av *av)
{
	if (ep->av)
		return -FI_EINVAL;
	if (av->dom != ep->dom)
		return -FI_EDOMAIN;
	ep->av = av;
	ref_get(&av->ref);
	return 0;
}

static int bind_srx(struct ep *ep, struct ep *srx)
{
	if (ep->srx || srx->fid.fid.fclass != FI_CLASS_SRX_CTX ||
	    ep->info->ep_attr->type == FI_EP_DGRAM)
		return -FI_EINVAL;
	if (srx->dom != ep->dom)
		return -FI_EDOMAIN;
	ep->srx = srx;
	ref_get(&srx->ref);
	return 0;
}

/* Closing a shared context revokes it from its endpoints, so another one may replace it. */
static int bind_stx(struct ep *ep, struct stx *stx)
{
	if (ep->stx && !ep->stx->closed)
		return -FI_EINVAL;
	if (stx->dom != ep->dom)
		return -FI_EDOMAIN;
	if (ep->stx)
		sep_stx_put(ep->stx);
	ep->stx = stx;
	ref_get(&stx->ref);
	return 0;
}

static int ep_bind_eq(struct ep *ep, struct eq *eq)
{
	if (ep->eq)
		return -FI_EINVAL;
	if (eq->fabric != ep->dom->fabric)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_CTRL,
			"bind: endpoint and event queue have different fabrics: open both on one");
	ep->eq = eq;
	ref_get(&eq->ref);
	return 0;
}

/* fi_mr_bind called on the endpoint, at any time. The region knows which accesses count. */
static int bind_mr(struct ep *ep, struct fid *mr, uint64_t flags)
{
	if (flags & ~CNTR_EVENT_FLAGS)
		return -FI_EBADFLAGS;
	return mr_object_ops.bind(mr, &ep->fid.fid, 0);
}

int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ep *ep = (struct ep *)fid;
	int err;

	if (!bfid || flags & ~BIND_FLAGS) {
		LOG_WARN(LOG_EP_CTRL, "bind: %s, flags %#llx", bfid ? "unknown flags" : "no object",
			 (unsigned long long)flags);
		return bfid ? -FI_EBADFLAGS : -FI_EINVAL;
	}
	if (bfid->fclass == FI_CLASS_MR)
		return bind_mr(ep, bfid, flags);
	if (ep->is_alias)
		ep = ep->base; /* an alias shares the bindings. fi_endpoint(3) */
	err = ep->enabled ? ep_late(ep, bfid->fclass) : 0;
	if (err)
		return err;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, (struct cq *)bfid, flags);
	case FI_CLASS_CNTR:
		return ep_bind_cntr(ep, (struct cntr *)bfid, flags);
	case FI_CLASS_AV:
		return bind_av(ep, (struct av *)bfid);
	case FI_CLASS_EQ:
		return ep_bind_eq(ep, (struct eq *)bfid);
	case FI_CLASS_SRX_CTX:
		return bind_srx(ep, (struct ep *)bfid);
	case FI_CLASS_STX_CTX:
		return bind_stx(ep, (struct stx *)bfid);
	default:
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "an object of class %zu does not bind to an endpoint",
				  bfid->fclass);
	}
}

void ep_drop_worker(struct ep *ep)
{
	cntr_join_closing(worker_driven(ep->worker));
	worker_close(ep->worker);
	ep->worker = NULL;
}

/* Removes the endpoint from all objects that refer to it. Domain locked. */
static void ep_detach(struct ep *ep)
{
	struct worker *worker = ep->worker;

	if (!worker)
		return;
	xfer_forget(ep, NULL);
	if (ep->tx_cq)
		cq_del_worker(ep->tx_cq, worker_driven(worker));
	if (ep->rx_cq)
		cq_del_worker(ep->rx_cq, worker_driven(worker));
	for (unsigned int i = 0; i < CNTR_EVENTS; i++)
		if (ep->cntrs[i])
			cntr_del_worker(ep->cntrs[i], worker_driven(worker));
	if (ep->base == ep)
		ep_drop_worker(ep);
	else if (ep->fid.fid.fclass == FI_CLASS_RX_CTX)
		worker_bind_rx(worker, ep->index, NULL);
}

static void put_bindings(struct ep *ep)
{
	for (unsigned int i = 0; i < CNTR_EVENTS; i++)
		if (ep->cntrs[i])
			ref_put(&ep->cntrs[i]->ref);
	if (ep->tx_cq)
		ref_put(&ep->tx_cq->ref);
	if (ep->rx_cq)
		ref_put(&ep->rx_cq->ref);
	if (ep->av)
		ref_put(&ep->av->ref);
	if (ep->eq) {
		eq_forget(ep->eq, &ep->fid.fid);
		ref_put(&ep->eq->ref);
	}
	if (ep->srx)
		ref_put(&ep->srx->ref);
	if (ep->stx)
		sep_stx_put(ep->stx);
}

static int close_alias(struct ep *ep)
{
	domain_lock(ep->dom);
	defer_forget(ep, ep->base);
	if (ep->worker)
		xfer_forget(ep, ep->base);
	list_remove(&ep->in_aliases);
	domain_unlock(ep->dom);
	ref_put(&ep->base->ref);
	ref_put(&ep->dom->ref);
	xfer_tables_free(ep);
	fid_free(&ep->fid.fid);
	return 0;
}

int ep_close(struct fid *fid)
{
	struct ep *ep = (struct ep *)fid;

	if (domain_foreign(ep->dom))
		return 0;
	if (ep->is_alias)
		return close_alias(ep);
	if (ref_busy(&ep->ref)) {
		LOG_INFO(LOG_EP_CTRL,
			 "close: contexts, aliases or endpoints still use the endpoint");
		return -FI_EBUSY;
	}
	if (ep->base == ep && ep_quiesce(ep))
		return -FI_EBUSY;
	ep_serve_last(ep);
	ep_cm_leave(ep);
	coll_leave(ep);
	domain_lock(ep->dom);
	defer_forget(ep, NULL);
	list_remove(&ep->in_domain);
	shard_leave(&ep->shard);
	ep_detach(ep);
	if (ep->own_rx)
		xfer_rx_close(ep->own_rx);
	if (ep->device_srx)
		ep->dom->device_ops->srx_close(ep->device_srx);
	defer_run(ep->dom); /* operations that failed here may trigger other work */
	domain_unlock(ep->dom);
	put_bindings(ep);
	if (ep->base != ep) {
		struct ep **slot =
			ep->fid.fid.fclass == FI_CLASS_TX_CTX ? ep->base->tx_ctx : ep->base->rx_ctx;
		slot[ep->index] = NULL;
		ref_put(&ep->base->ref);
	}
	ep_free(ep);
	return 0;
}
