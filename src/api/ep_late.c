/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding to enabled endpoints. fi_endpoint(3) wants all bindings before fi_enable, but OpenSHMEM
 * runtimes bind counters and shared transmit contexts afterwards. Such bindings are accepted where
 * possible.
 */
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "api/ep.h"
#include "link/engine.h"

static int ep_late_refuse(const char *what)
{
	return LOG_REFUSE(
		-FI_EOPBADSTATE, LOG_EP_CTRL,
		"bind: the endpoint is enabled already: too late for %s, bind it before fi_enable",
		what);
}

/* Queues and counters are read at every operation, except by a device's operations. */
static int late_events(const struct ep *ep, const char *what)
{
	switch (ep->fid.fid.fclass) {
	case FI_CLASS_EP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
		return xfer_offloaded(ep->worker) ? ep_late_refuse(what) : 0;
	default:
		return ep_late_refuse(what);
	}
}

int ep_late(const struct ep *ep, size_t fclass)
{
	switch (fclass) {
	case FI_CLASS_CQ:
		return late_events(ep, "a completion queue");
	case FI_CLASS_CNTR:
		return late_events(ep, "a counter");
	case FI_CLASS_AV: /* the worker knows peers by entries of the bound vector */
		return ep_late_refuse("an address vector");
	case FI_CLASS_SRX_CTX: /* messages may have matched receives already */
		return ep_late_refuse("a shared receive context");
	default:
		return 0;
	}
}

int ep_late_cq(struct ep *ep, struct cq *cq, uint64_t flags)
{
	bool both = flags & FI_TRANSMIT && flags & FI_RECV;
	int err;

	shard_join(ep->dom, &ep->shard, &cq->workers.shard, workers_any(&cq->workers));
	err = cq_add_worker(cq, worker_driven(ep->worker));

	if (err || !both)
		return err;
	err = cq_add_worker(cq, worker_driven(ep->worker)); /* once for each binding */
	if (err)
		cq_del_worker(cq, worker_driven(ep->worker));
	return err;
}

int ep_late_cntr(struct ep *ep, struct cntr *cntr, uint64_t flags)
{
	int events = __builtin_popcountll(flags), err = 0, done;

	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) && !xfer_notifies_late(ep->worker))
		return ep_late_refuse(
			"a counter of remote accesses: peers connected by RDMA do not "
			"notify of them");
	shard_join(ep->dom, &ep->shard, &cntr->workers.shard, workers_any(&cntr->workers));
	for (done = 0; !err && done < events; done++)
		err = cntr_add_worker(cntr, worker_driven(ep->worker));
	for (; err && done > 1; done--)
		cntr_del_worker(cntr, worker_driven(ep->worker));
	return err;
}

/* Copies bindings only: other threads may use the alias meanwhile. */
void ep_follow_base(struct ep *base)
{
	LIST_EACH_OF (struct ep, alias, &base->aliases, in_aliases) {
		alias->tx_cq = base->tx_cq;
		alias->rx_cq = base->rx_cq;
		alias->tx_bind_flags = base->tx_bind_flags;
		alias->rx_bind_flags = base->rx_bind_flags;
		alias->tx_cntr = base->tx_cntr;
		alias->read_cntr = base->read_cntr;
		alias->write_cntr = base->write_cntr;
		memcpy(alias->cntrs, base->cntrs, sizeof(alias->cntrs));
		ep_fold_flags(alias, alias->tx_op_flags, alias->rx_op_flags);
	}
}
