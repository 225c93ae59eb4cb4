/* SPDX-License-Identifier: BSD-2-Clause */
/* Enabling endpoints: bindings and capabilities are combined into the fields that entries use. Flags: ep_flags.c. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "api/cm.h"
#include "api/ep.h"
#include "base/log.h"
#include "core/mr.h"
#include "xfer/engine.h"

/*
 * ---- Binding to enabled endpoints ----
 *
 * fi_endpoint(3) wants all bindings before fi_enable, but OpenSHMEM runtimes bind counters and shared transmit contexts
 * afterwards. Such bindings are accepted where possible.
 */
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
static void ep_follow_base(struct ep *base)
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

/* ---- Enabling ---- */

static bool ep_enable_sends(const struct ep *ep)
{
	size_t fclass = ep->fid.fid.fclass;

	return fclass == FI_CLASS_TX_CTX ||
	       (fclass == FI_CLASS_EP &&
		!(ep->info->caps & FI_RECV && !(ep->info->caps & FI_SEND)));
}

static bool ep_enable_receives(const struct ep *ep)
{
	size_t fclass = ep->fid.fid.fclass;

	return fclass == FI_CLASS_RX_CTX || fclass == FI_CLASS_SRX_CTX ||
	       (fclass == FI_CLASS_EP &&
		!(ep->info->caps & FI_SEND && !(ep->info->caps & FI_RECV)));
}

/* Returns whether the object initiates one-sided operations. */
static bool ep_enable_initiates(const struct ep *ep)
{
	size_t fclass = ep->fid.fid.fclass;

	return (fclass == FI_CLASS_TX_CTX || fclass == FI_CLASS_EP) &&
	       ep->info->caps & (FI_RMA | FI_ATOMIC) && ep->info->caps & (FI_READ | FI_WRITE);
}

static bool ep_enable_transmits(const struct ep *ep)
{
	return ep_enable_initiates(ep) ||
	       (ep_enable_sends(ep) && ep->info->caps & (FI_MSG | FI_TAGGED));
}

/* Returns whether the object receives messages, or counts accesses to its memory. */
static bool has_receive_side(const struct ep *ep)
{
	return ep_enable_receives(ep) || (ep->fid.fid.fclass == FI_CLASS_EP &&
					  ep->info->caps & (FI_REMOTE_READ | FI_REMOTE_WRITE));
}

static int open_worker(struct ep *ep)
{
	struct worker *worker;
	int err = worker_open(ep->dom, ep->info, ep->barred, &worker);

	if (err)
		return err;
	err = cntr_join_opened(worker_driven(worker));
	if (err) {
		worker_close(worker);
		return err;
	}
	if (ep->cm)
		cm_own(worker, ep);
	ep->worker = worker;
	return 0;
}

int ep_worker(struct ep *ep)
{
	struct ep *base = ep->base;
	int err = 0;

	if (!base->worker)
		err = open_worker(base);
	if (!err)
		ep->worker = base->worker;
	return err;
}

static int check_bindings(struct ep *ep)
{
	struct ep *base = ep->base;
	const char *lacks = NULL;

	if (!base->av && !base->cm)
		return LOG_REFUSE(
			-FI_ENOAV, LOG_EP_CTRL,
			"enable: no address vector is bound: call fi_ep_bind with one first");
	if (ep_enable_transmits(ep) && !ep->tx_cq && !ep->cntrs[0] && !ep->cntrs[2] &&
	    !ep->cntrs[3])
		lacks = "FI_TRANSMIT";
	if (ep_enable_receives(ep) && ep->info->caps & (FI_MSG | FI_TAGGED) && !ep->rx_cq &&
	    !ep->cntrs[1])
		lacks = "FI_RECV";
	if (lacks)
		return LOG_REFUSE(
			-FI_ENOCQ, LOG_EP_CTRL,
			"enable: neither a completion queue nor a counter is bound for %s: call fi_ep_bind with one first",
			lacks);
	return 0;
}

/* Sets how the receive context is taken from a fi_addr_t's upper bits. fi_rx_addr, fi_av(3). */
static void fold_addressing(struct ep *ep)
{
	int bits = ep->base->av ? ep->base->av->rx_ctx_bits : 0;

	/* Every address means the one peer. */
	if (ep->base->cm)
		ep->addr_mask = ep->rx_index_mask = 0;
	if (!bits || ep->base->cm)
		return;
	ep->addr_mask = UINT64_MAX >> bits;
	ep->rx_shift = 64 - (uint64_t)bits;
	ep->rx_index_mask = (UINT64_C(1) << bits) - 1;
}

static void set_rx(struct ep *ep)
{
	rx_context_set(ep->own_rx, &(struct rx_target){.cq = ep->rx_cq,
						       .cntr = ep->cntrs[1],
						       .read_cntr = ep->cntrs[4],
						       .write_cntr = ep->cntrs[5],
						       .caps = ep->info->caps,
						       .addr_mask = ep->addr_mask,
						       .min_multi_recv = ep->min_multi_recv,
						       .selective = ep->rx_bind_flags != 0,
						       .shared = ep->srx ? ep->srx->rx : NULL});
}

static int open_rx(struct ep *ep)
{
	ep->own_rx = xfer_rx_open(ep->dom);
	if (!ep->own_rx)
		return -FI_ENOMEM;
	set_rx(ep);
	ep->rx = ep->srx ? NULL : ep->own_rx;
	worker_bind_rx(ep->worker, ep->index, ep->own_rx);
	return 0;
}

static int join_queues(struct ep *ep)
{
	int err = 0;

	if (ep->tx_cq)
		err = cq_add_worker(ep->tx_cq, worker_driven(ep->worker));
	if (!err && ep->rx_cq)
		err = cq_add_worker(ep->rx_cq, worker_driven(ep->worker));
	for (unsigned int i = 0; !err && i < 6; i++)
		if (ep->cntrs[i])
			err = cntr_add_worker(ep->cntrs[i], worker_driven(ep->worker));
	return err;
}

/* Does nothing but its own calls, and reads of its queues and counters, touch the endpoint? */
static bool ep_enable_alone(const struct ep *ep)
{
	return ep->fid.fid.fclass == FI_CLASS_EP && ep->base == ep && !ep->cm && !ep->srx &&
	       !ep->stx && list_empty(&ep->aliases) && !(ep->info->caps & FI_COLLECTIVE) &&
	       !worker_shares(ep->worker);
}

static void add_use(struct shard_use *uses, size_t *count, struct workers *p)
{
	for (size_t i = 0; i < *count; i++)
		if (uses[i].object == &p->shard)
			return;
	uses[(*count)++] = (struct shard_use){&p->shard, workers_any(p)};
}

/* Chooses the endpoint's shard, before its worker joins the queues and counters. */
static void ep_enable_place(struct ep *ep)
{
	struct shard_use uses[2 + 2 + 6] = {{.object = &ep->shard},
					    {.object = &worker_driven(ep->worker)->shard}};
	size_t count = 2;

	if (ep->tx_cq)
		add_use(uses, &count, &ep->tx_cq->workers);
	if (ep->rx_cq)
		add_use(uses, &count, &ep->rx_cq->workers);
	for (unsigned int i = 0; i < 6; i++)
		if (ep->cntrs[i])
			add_use(uses, &count, &ep->cntrs[i]->workers);
	shard_place(ep->dom, uses, count, ep_enable_alone(ep));
}

static void fold_bindings(struct ep *ep)
{
	ep->tx_cntr = ep->cntrs[0];
	ep->read_cntr = ep->cntrs[2];
	ep->write_cntr = ep->cntrs[3];
	if (ep->cntrs[4] || ep->cntrs[5]) {
		mr_share_notify_all(ep->dom);
		worker_notify_all(ep->worker);
	}
	ep_fold_flags(ep, ep->tx_op_flags, ep->rx_op_flags);
}

void ep_take_bindings(struct ep *ep)
{
	fold_bindings(ep);
	if (ep->own_rx)
		set_rx(ep);
	ep_follow_base(ep);
}

void ep_install(struct ep *ep)
{
	xfer_install(ep, &(struct xfer_roles){.sends = ep_enable_sends(ep),
					      .receives = ep_enable_receives(ep) && !ep->srx,
					      .initiates = ep_enable_initiates(ep)});
	ep_refresh_aliases(ep);
}

static int enable_locked(struct ep *ep)
{
	int err = check_bindings(ep);

	if (!err)
		err = ep_worker(ep);
	if (err)
		return err;
	if (ep->base->av)
		worker_bind_av(ep->worker, ep->base->av);
	fold_addressing(ep);
	fold_bindings(ep);
	if (has_receive_side(ep))
		err = open_rx(ep);
	if (!err) {
		ep_enable_place(ep);
		err = join_queues(ep);
	}
	if (!err)
		err = xfer_enable(ep);
	if (err)
		return err;
	ep->enabled = true;
	if (ep->base->firewalled)
		worker_reach_out(ep->worker);
	ep_install(ep);
	list_push(&ep->dom->callees, &ep->in_domain);
	return 0;
}

/* A scalable endpoint only opens its worker; its contexts are enabled one by one. */
static int enable_scalable(struct ep *ep)
{
	int err;

	if (!ep->av)
		return -FI_ENOAV;
	err = ep_worker(ep);
	if (!err) {
		worker_bind_av(ep->worker, ep->av);
		worker_notify_all(
			ep->worker); /* contexts with counters may be enabled after peers connect */
		ep->enabled = true;
	}
	return err;
}

int ep_enable(struct ep *ep)
{
	int err;

	if (ep->is_alias)
		ep = ep->base;
	/* Repeated by applications that have bound more, or after fi_connect or fi_accept. */
	if (ep->enabled)
		return 0;
	domain_lock(ep->dom);
	err = ep->fid.fid.fclass == FI_CLASS_SEP ? enable_scalable(ep) : enable_locked(ep);
	domain_unlock(ep->dom);
	return err;
}
