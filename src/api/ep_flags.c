/* SPDX-License-Identifier: BSD-2-Clause */
/* Default flags of operations: which an endpoint honours, and what its entries make of them. */
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "api/ep_cm.h"
#include "link/engine.h"

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
	__atomic_store_n(&ep->rx_flags, ep->rx_flags | XFER_ENDED, __ATOMIC_RELAXED);
	__atomic_store_n(&ep->rx_msg_flags, ep->rx_msg_flags | XFER_ENDED, __ATOMIC_RELAXED);
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
