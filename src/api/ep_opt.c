/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint control, aliases, cancel. Options: ep_option.c. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"
#include "api/ep.h"
#include "api/refused.h"
#include "link/link.h"
#include "xfer/engine.h"

int ep_control(struct fid *fid, int command, void *arg)
{
	struct ep *ep = (struct ep *)fid;

	switch (command) {
	case FI_ENABLE:
		return ep_enable(ep);
	case FI_ALIAS:
		return ep_alias(ep, arg);
	case FI_GETOPSFLAG:
		return arg ? ep_flags_get(ep, arg) : -FI_EINVAL;
	case FI_SETOPSFLAG:
		return arg ? ep_flags_set(ep, *(uint64_t *)arg) : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

#define SHARED_FROM offsetof(struct ep, worker)
#define SHARED_TO   offsetof(struct ep, base)

/* Copies what an alias has from its endpoint. The rest stays as it is: other threads read it without a lock. */
static void copy_state(struct ep *alias, const struct ep *from)
{
	const size_t len = SHARED_TO - SHARED_FROM;
	struct ep next = *alias;

	memcpy((char *)&next + SHARED_FROM, (const char *)from + SHARED_FROM, len);
	ep_fold_flags(&next, alias->tx_op_flags, alias->rx_op_flags);
	memcpy((char *)alias + SHARED_FROM, (char *)&next + SHARED_FROM, len);
}

int ep_alias(struct ep *ep, struct fi_alias *arg)
{
	uint64_t side = arg ? arg->flags & (FI_TRANSMIT | FI_RECV) : 0, rest;
	struct ep *alias;
	int err;

	if (ep->is_alias || (side != FI_TRANSMIT && side != FI_RECV))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "alias with flags %#llx: FI_TRANSMIT or FI_RECV has to be set",
				  arg ? (unsigned long long)arg->flags : 0);
	if (!arg->fid)
		return -FI_EINVAL;
	rest = arg->flags & ~side;
	err = ep_flags_check(ep, side, rest);
	if (err)
		return err;
	alias = apart_alloc(sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	*alias = *ep;
	if (xfer_tables(alias)) {
		free(alias);
		return -FI_ENOMEM;
	}
	alias->base = ep;
	alias->is_alias = true;
	alias->ref = 0;
	list_init(&alias->in_domain);
	list_init(&alias->aliases);
	list_init(&alias->in_aliases);
	alias->tx_op_flags = side == FI_TRANSMIT ? rest : ep->tx_op_flags;
	alias->rx_op_flags = side == FI_RECV ? rest : ep->rx_op_flags;
	domain_lock(ep->dom);
	shard_return(ep->dom, &ep->shard);
	shard_enter(ep->dom, &alias->shard);
	copy_state(alias, ep);
	list_push(&ep->aliases, &alias->in_aliases);
	if (ep->enabled)
		ep_install(alias);
	domain_unlock(ep->dom);
	ref_get(&ep->ref);
	ref_get(&ep->dom->ref);
	*arg->fid = &alias->fid.fid;
	return 0;
}

void ep_refresh_aliases(struct ep *ep)
{
	LIST_EACH_OF (struct ep, alias, &ep->aliases, in_aliases) {
		copy_state(alias, ep);
		ep_install(alias);
	}
}

/*
 * Cancels a receive or a waiting operation. Returns 0 also if there is nothing left to cancel: the completion tells.
 * fi_endpoint(3) RETURN VALUES. -FI_EOPNOTSUPP: a device has the operation and cannot cancel it.
 */
static ssize_t ep_cancel(fid_t fid, void *context)
{
	struct ep *ep = (struct ep *)fid;
	int found = -FI_ENOENT;

	domain_lock(ep->dom);
	if (ep->rx)
		found = rx_context_cancel(ep->rx, context);
	if (ep->device_srx)
		found = ep->dom->device_ops->srx_cancel(ep->device_srx, context);
	if (found == -FI_ENOENT)
		found = defer_cancel(ep, context);
	if (found == -FI_ENOENT && ep->worker)
		found = xfer_cancel(ep, context);
	domain_unlock(ep->dom);
	return found == -FI_EOPNOTSUPP ? found : 0;
}

static int ep_opt_no_tx_ctx(struct fid_ep *sep, int idx, struct fi_tx_attr *attr,
			    struct fid_ep **ep, void *context)
{
	(void)sep, (void)idx, (void)attr, (void)ep, (void)context;
	return -FI_EOPNOTSUPP;
}

static int ep_opt_no_rx_ctx(struct fid_ep *sep, int idx, struct fi_rx_attr *attr,
			    struct fid_ep **ep, void *context)
{
	(void)sep, (void)idx, (void)attr, (void)ep, (void)context;
	return -FI_EOPNOTSUPP;
}

static ssize_t rx_size_left(struct fid_ep *fid)
{
	struct ep *ep = ep_of(fid);

	if (!ep->enabled)
		return -FI_EOPBADSTATE;
	return ep->info && ep->info->rx_attr ? (ssize_t)ep->info->rx_attr->size : 0;
}

static ssize_t tx_size_left(struct fid_ep *fid)
{
	struct ep *ep = ep_of(fid);

	return ep->enabled ? (ssize_t)ep->tx_size : -FI_EOPBADSTATE;
}

/* clang-format off */
#define EP_OPS(cancel_, tx_ctx_, rx_ctx_, rx_left, tx_left)                                        \
	{                                                                                          \
		.size = sizeof(struct fi_ops_ep), .cancel = (cancel_), .getopt = ep_option_get,    \
		.setopt = ep_option_set, .tx_ctx = (tx_ctx_), .rx_ctx = (rx_ctx_),                 \
		.rx_size_left = (rx_left), .tx_size_left = (tx_left),                              \
		.export_xpu = fid_no_call_2_7,                                                     \
	}
/* clang-format on */

struct fi_ops_ep ep_ops =
	EP_OPS(ep_cancel, ep_opt_no_tx_ctx, ep_opt_no_rx_ctx, rx_size_left, tx_size_left);
struct fi_ops_ep sep_ops =
	EP_OPS(ep_cancel, sep_tx_context, sep_rx_context, rx_size_left, tx_size_left);
/* A shared transmit context has no operations of its own, only its endpoints have. */
struct fi_ops_ep stx_ops = EP_OPS(refused_cancel, ep_opt_no_tx_ctx, ep_opt_no_rx_ctx,
				  refused_rx_size_left, refused_tx_size_left);
