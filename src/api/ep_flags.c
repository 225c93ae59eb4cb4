/* SPDX-License-Identifier: BSD-2-Clause */
/* What an endpoint takes from its struct fi_info; default flags of operations, and what entries make of them. */
#include <rdma/fi_errno.h>

#include "api/ep.h"
#include "base/env.h"
#include "base/log.h"
#include "info/hints.h"
#include "info/providers.h"
#include "xfer/engine.h"

#define COMMON_FLAGS       (FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_MORE)
#define ACKNOWLEDGED_FLAGS (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE)

/* The flags of a ...msg call that sends; all others mean nothing there. */
#define TX_MSG_FLAGS                                                                               \
	(COMMON_FLAGS | ACKNOWLEDGED_FLAGS | FI_INJECT | FI_FENCE | FI_MULTICAST | FI_TRIGGER |    \
	 FI_REMOTE_CQ_DATA)

/*
 * Returns the default flags that operations of one side honour. A receive ends when its message is
 * in place, so it meets the weaker levels of completion, too.
 */
static uint64_t ep_flags_honoured(const struct ep *ep, bool transmits)
{
	uint64_t flags = COMMON_FLAGS | (ep->info->caps & FI_TRIGGER);

	if (!transmits)
		return flags | FI_MULTI_RECV | FI_DELIVERY_COMPLETE;
	flags |= FI_INJECT | FI_FENCE;
	return flags | (ep->info->ep_attr->type == FI_EP_DGRAM ? FI_MULTICAST : ACKNOWLEDGED_FLAGS);
}

int ep_flags_check(const struct ep *ep, uint64_t side, uint64_t flags)
{
	bool transmits = side == FI_TRANSMIT;
	uint64_t wrong = flags & ~ep_flags_honoured(ep, transmits);

	if (!wrong)
		return 0;
	return LOG_REFUSE(-FI_EBADFLAGS, LOG_EP_CTRL,
			  "default flags %#llx: the endpoint's %s do not have them",
			  (unsigned long long)wrong, transmits ? "transmits" : "receives");
}

int ep_flags_get(const struct ep *ep, uint64_t *flags)
{
	if ((*flags & (FI_TRANSMIT | FI_RECV)) == FI_TRANSMIT)
		*flags = ep->tx_op_flags;
	else if ((*flags & (FI_TRANSMIT | FI_RECV)) == FI_RECV)
		*flags = ep->rx_op_flags;
	else
		return -FI_EINVAL;
	return 0;
}

int ep_flags_set(struct ep *ep, uint64_t flags)
{
	uint64_t side = flags & (FI_TRANSMIT | FI_RECV), rest = flags & ~side;
	int err;

	if (side != FI_TRANSMIT && side != FI_RECV)
		return -FI_EINVAL;
	err = ep_flags_check(ep, side, rest);
	if (err)
		return err;
	domain_lock(ep->dom);
	if (side == FI_TRANSMIT)
		ep_fold_flags(ep, rest, ep->rx_op_flags);
	else
		ep_fold_flags(ep, ep->tx_op_flags, rest);
	if (ep->enabled)
		ep_install(ep);
	domain_unlock(ep->dom);
	return 0;
}

/*
 * Sets FI_COMPLETION for every operation unless the binding is selective, and clears it if there is
 * no queue: entries then test one flag only.
 */
static uint64_t ep_flags_fold(uint64_t flags, const struct cq *cq, uint64_t bind_flags, bool msg)
{
	flags = msg ? 0 : flags;
	if (!cq)
		return flags & ~FI_COMPLETION;
	if (!(bind_flags & FI_SELECTIVE_COMPLETION))
		flags |= FI_COMPLETION;
	return flags;
}

static void end_receives(struct ep *ep)
{
	if (ep->srx)
		return;
	__atomic_store_n(&ep->rx_flags, ep->rx_flags | EP_ENDED, __ATOMIC_RELAXED);
	__atomic_store_n(&ep->rx_msg_flags, ep->rx_msg_flags | EP_ENDED, __ATOMIC_RELAXED);
}

void ep_fold_flags(struct ep *ep, uint64_t tx_op_flags, uint64_t rx_op_flags)
{
	ep->tx_op_flags = tx_op_flags;
	ep->rx_op_flags = rx_op_flags;
	ep->tx_flags = ep_flags_fold(tx_op_flags, ep->tx_cq, ep->tx_bind_flags, false);
	ep->tx_msg_flags = ep_flags_fold(tx_op_flags, ep->tx_cq, ep->tx_bind_flags, true);
	ep->tx_msg_mask = ep->tx_cq ? TX_MSG_FLAGS : TX_MSG_FLAGS & ~FI_COMPLETION;
	ep->rx_flags = ep_flags_fold(rx_op_flags, ep->rx_cq, ep->rx_bind_flags, false);
	ep->rx_msg_flags = ep_flags_fold(rx_op_flags, ep->rx_cq, ep->rx_bind_flags, true);
	if (ep->base->cm && ep->base->cm->state == EP_CM_ENDED)
		end_receives(ep);
	/* A shared context has no queue: the endpoint that receives the message decides. */
	if (ep->fid.fid.fclass == FI_CLASS_SRX_CTX)
		ep->rx_flags |= rx_op_flags & FI_COMPLETION;
}

void ep_end_receives(struct ep *ep)
{
	end_receives(ep);
	LIST_EACH (node, &ep->aliases)
		end_receives(LIST_ENTRY(node, struct ep, in_aliases));
}

/*
 * Defaults (bytes) of FI_OPT_MIN_MULTI_RECV, equal to libfabric's. A multi-receive buffer is
 * released while it has space for usual messages, so that none is truncated.
 */
#define MIN_MULTI_RECV     16384
#define MIN_MULTI_RECV_SHM 4096

static size_t default_min_multi_recv(const struct fi_info *info)
{
	const struct provider *provider = provider_of(info);
	size_t least = provider && provider->transports == PROVIDER_SHM ? MIN_MULTI_RECV_SHM
									: MIN_MULTI_RECV;

	return info->ep_attr->max_msg_size < least ? info->ep_attr->max_msg_size : least;
}

/* Does `info` say no more than fi_getinfo would grant? 0 or -FI_ENODATA. */
static int ep_info_check(const struct ep *ep, const struct fi_info *info)
{
	struct refusal why;

	if (hints_allow(provider_of(info), domain_api(ep->dom), info, &why))
		return 0;
	return LOG_REFUSE(-FI_ENODATA, LOG_EP_CTRL,
			  "an endpoint with more than fi_getinfo grants: %s", why.text);
}

/* Copies what the application asked for, and adds defaults. 0 or a negative error. */
int ep_own_info(struct ep *ep, const struct fi_info *info)
{
	int err;

	if (!info->tx_attr || !info->rx_attr || !info->ep_attr)
		return -FI_EINVAL;
	err = domain_refuse_xpu(ep->dom, &info->ep_attr->xpu_ctx, "fi_endpoint");
	if (!err)
		err = ep_info_check(ep, info);
	if (err)
		return err;
	ep->info = fi_dupinfo(info);
	if (!ep->info)
		return -FI_ENOMEM;
	ep->info->caps = caps_complete(info->caps); /* the application may have taken bits out */
	err = ep_flags_check(ep, FI_TRANSMIT, ep->info->tx_attr->op_flags);
	if (!err)
		err = ep_flags_check(ep, FI_RECV, ep->info->rx_attr->op_flags);
	if (err)
		return err;
	ep->tx_size = ep->info->tx_attr->size ? ep->info->tx_attr->size : 1024;
	if (ep->info->tx_attr->inject_size)
		ep_limit_inject(ep, ep->info->tx_attr->inject_size);
	ep->min_multi_recv = default_min_multi_recv(ep->info);
	ep->tx_op_flags = ep->info->tx_attr->op_flags;
	ep->rx_op_flags = ep->info->rx_attr->op_flags;
	ep->firewalled = env_get()->tcp_firewall_addr && provider_connects(ep->info);
	if (ep->info->ep_attr->type == FI_EP_DGRAM)
		ep->info->caps &= ~(FI_TAGGED | FI_RMA | FI_ATOMIC);
	return 0;
}
