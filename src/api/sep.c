/* SPDX-License-Identifier: BSD-2-Clause */
/* Scalable endpoints, their contexts, and contexts shared by endpoints. fi_endpoint(3). */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "api/ep.h"
#include "base/fid.h"
#include "base/log.h"
#include "info/job_key.h"
#include "xfer/engine.h"
#include "link/link.h"

/* FI_SHARED_CONTEXT and 0 mean one context. */
static unsigned int context_count(size_t asked)
{
	return asked == 0 || asked == FI_SHARED_CONTEXT ? 1 : (unsigned int)asked;
}

int sep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct ep *ep;
	int err;

	if (!info || !info->ep_attr || info->ep_attr->type != FI_EP_RDM || !out)
		return -FI_EINVAL;
	ep = ep_new(domain_of(domain), FI_CLASS_SEP, context);
	if (!ep)
		return -FI_ENOMEM;
	err = ep_own_info(ep, info);
	if (!err)
		err = job_key_resolve(ep->info, ep->dom->info, domain_api(ep->dom));
	if (err)
		goto free_ep;
	ep->fid.ops = &sep_ops;
	ep->tx_count = context_count(info->ep_attr->tx_ctx_cnt);
	ep->rx_count = context_count(info->ep_attr->rx_ctx_cnt);
	if (ep->tx_count > XFER_CTX_MAX || ep->rx_count > XFER_CTX_MAX) {
		LOG_WARN(LOG_EP_CTRL, "%u transmit and %u receive contexts: at most %d each",
			 ep->tx_count, ep->rx_count, XFER_CTX_MAX);
		err = -FI_EINVAL;
		goto free_ep;
	}
	ep->tx_ctx = calloc(ep->tx_count, sizeof(struct ep *));
	ep->rx_ctx = calloc(ep->rx_count, sizeof(struct ep *));
	err = ep->tx_ctx && ep->rx_ctx ? 0 : -FI_ENOMEM;
	if (err)
		goto free_ep;
	/* Contexts share the worker; runtimes with FI_THREAD_DOMAIN use each from a thread of its own. */
	domain_lock(ep->dom);
	domain_use_locks(ep->dom);
	domain_unlock(ep->dom);
	*out = &ep->fid;
	return 0;
free_ep:
	ep_free(ep);
	return err;
}

/* Opens a context of the scalable endpoint, with the attributes of `info`; the caller enters it in tx_ctx or rx_ctx. */
static int sep_open_context(struct ep *sep, size_t fclass, int idx, const struct fi_info *info,
			    struct ep **out, void *context)
{
	struct ep *ep = ep_new(sep->dom, fclass, context);
	int err;

	if (!ep)
		return -FI_ENOMEM;
	err = ep_own_info(ep, info);
	if (err) {
		ep_free(ep);
		return err;
	}
	ep->base = sep;
	ep->index = (unsigned int)idx;
	ep->min_multi_recv = sep->min_multi_recv;
	ref_get(&sep->ref);
	*out = ep;
	return 0;
}

static bool index_free(struct ep **slots, unsigned int count, int idx)
{
	if (idx >= 0 && (unsigned int)idx < count && !slots[idx])
		return true;
	return LOG_REFUSE(
		false, LOG_EP_CTRL,
		"context %d of %u: no such index, or it is open: indices go from 0 to the count less one",
		idx, count);
}

int sep_tx_context(struct fid_ep *fid, int idx, struct fi_tx_attr *attr, struct fid_ep **out,
		   void *context)
{
	struct ep *sep = ep_of(fid), *ep;
	struct fi_tx_attr tx = attr ? *attr : *sep->info->tx_attr;
	struct fi_info info = *sep->info;
	int err;

	if (!out || !index_free(sep->tx_ctx, sep->tx_count, idx))
		return -FI_EINVAL;
	if (!tx.size)
		tx.size = sep->info->tx_attr->size;
	info.tx_attr = &tx;
	err = sep_open_context(sep, FI_CLASS_TX_CTX, idx, &info, &ep, context);
	if (err)
		return err;
	sep->tx_ctx[idx] = ep;
	*out = &ep->fid;
	return 0;
}

int sep_rx_context(struct fid_ep *fid, int idx, struct fi_rx_attr *attr, struct fid_ep **out,
		   void *context)
{
	struct ep *sep = ep_of(fid), *ep;
	struct fi_info info = *sep->info;
	int err;

	if (!out || !index_free(sep->rx_ctx, sep->rx_count, idx))
		return -FI_EINVAL;
	if (attr)
		info.rx_attr = attr;
	err = sep_open_context(sep, FI_CLASS_RX_CTX, idx, &info, &ep, context);
	if (err)
		return err;
	sep->rx_ctx[idx] = ep;
	*out = &ep->fid;
	return 0;
}

/* Opens the receive context, in the device or in the engine. 0 or a negative error. */
static int open_receives(struct ep *ep)
{
	struct domain *dom = ep->dom;

	if (dom->device_ops)
		return dom->device_ops->srx_open(dom->device, ep->info->rx_attr->size,
						 &ep->device_srx);
	ep->rx = ep->own_rx = xfer_rx_open(dom);
	if (!ep->rx)
		return -FI_ENOMEM;
	rx_context_set(ep->rx, &(struct rx_target){.caps = ep->info->caps,
						   .addr_mask = UINT64_MAX,
						   .min_multi_recv = ep->min_multi_recv});
	return 0;
}

/* A shared receive context has queues from the start; endpoints that bind it deliver messages. */
int sep_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **out,
		 void *context)
{
	struct domain *dom = domain_of(domain);
	struct fi_info info = *dom->info;
	struct ep *ep;
	int err;

	if (!out)
		return -FI_EINVAL;
	if (attr && (attr->op_flags & FI_PEER))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "fi_srx_context: op_flags %#llx with FI_PEER: no peers here",
				  (unsigned long long)attr->op_flags);
	ep = ep_new(dom, FI_CLASS_SRX_CTX, context);
	if (!ep)
		return -FI_ENOMEM;
	if (attr)
		info.rx_attr = attr;
	err = ep_own_info(ep, &info);
	if (err)
		goto free_ep;
	err = open_receives(ep);
	if (err)
		goto free_ep;
	ep_fold_flags(ep, 0, ep->info->rx_attr->op_flags);
	ep->enabled = true;
	domain_lock(dom);
	ep_install(ep);
	list_push(&dom->callees, &ep->in_domain);
	domain_unlock(dom);
	*out = &ep->fid;
	return 0;
free_ep:
	ep_free(ep);
	return err;
}

void sep_stx_put(struct stx *stx)
{
	if (__atomic_sub_fetch(&stx->ref, 1, __ATOMIC_ACQ_REL) == 0)
		fid_free(&stx->fid.fid);
}

static int stx_close(struct fid *fid)
{
	struct stx *stx = (struct stx *)fid;

	if (stx->closed)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "close: the shared context has been closed before");
	if (domain_foreign(stx->dom))
		return 0;
	ref_put(&stx->dom->ref);
	stx->dom = NULL;
	stx->closed = true;
	sep_stx_put(stx);
	return 0;
}

static struct fi_ops stx_fi_ops = FID_OPS(stx_close, fid_no_bind, fid_no_control);

int sep_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **out,
		 void *context)
{
	struct stx *stx = out ? calloc(1, sizeof(*stx)) : NULL;

	(void)attr;
	if (!out)
		return -FI_EINVAL;
	if (!stx)
		return -FI_ENOMEM;
	stx->dom = domain_of(domain);
	stx->fid.fid = (struct fid){FI_CLASS_STX_CTX, context, &stx_fi_ops};
	stx->fid.ops = &stx_ops;
	stx->ref = 1;
	ref_get(&stx->dom->ref);
	*out = &stx->fid;
	return 0;
}
