/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the tables of an endpoint, and other calls of xfer/engine.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/ep.h"
#include "link/link.h"
#include "xfer/dgram/dgram.h"
#include "xfer/entry/entry_tables.h"
#include "xfer/group.h"
#include "xfer/rndv/rxreq.h"
#include "link/offload.h"
#include "xfer/peer.h"
#include "conn/attempt.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/engine.h"

/* Who performs the endpoint's calls. */
static const struct entry_tables *install_performer(const struct ep *ep)
{
	const struct worker *worker = ep->worker;

	if (worker && worker->dgram)
		return ep->dom->unlocked ? &dgram_st : &dgram_mt;
	if (worker && worker->offload)
		return worker->offload->entries;
	if (ep->device_srx)
		return ep->dom->device_ops->srx_entries;
	if (ep->base->cm)
		return &entry_pair;
	return ep->dom->unlocked ? &entry_st : &entry_mt;
}

typedef uintptr_t word __attribute__((may_alias));

/* Those of the tables' calls that the public headers list from one to the other refuse. */
static void install_refuse(struct ep_tables *tables, size_t first, size_t last)
{
	for (size_t at = first; at <= last; at += sizeof(word))
		*(word *)((char *)tables + at) =
			*(const word *)((const char *)&refuse_support + at);
}

#define REFUSE(tables, first, last)                                                                \
	install_refuse(tables, offsetof(struct ep_tables, first), offsetof(struct ep_tables, last))

/* What the endpoint's capabilities and roles do not permit refuses; atomics that return a value need FI_READ. */
static void install_limit(struct ep_tables *to, uint64_t caps, const struct xfer_roles *roles)
{
	const bool messages = caps & (FI_MSG | FI_MULTICAST), tagged = caps & FI_TAGGED;
	const bool rma = roles->initiates && caps & FI_RMA;
	const bool atomics = roles->initiates && caps & FI_ATOMIC;

	if (!roles->sends || !messages)
		REFUSE(to, msg.send, msg.injectdata);
	if (!roles->receives || !messages)
		REFUSE(to, msg.recv, msg.recvmsg);
	if (!roles->sends || !tagged)
		REFUSE(to, tagged.send, tagged.injectdata);
	if (!roles->receives || !tagged)
		REFUSE(to, tagged.recv, tagged.recvmsg);
	if (!rma || !(caps & FI_WRITE))
		REFUSE(to, rma.write, rma.injectdata);
	if (!rma || !(caps & FI_READ))
		REFUSE(to, rma.read, rma.readmsg);
	if (!atomics || !(caps & FI_WRITE))
		REFUSE(to, atomic.write, atomic.inject);
	if (!atomics || !(caps & FI_READ))
		REFUSE(to, atomic.readwrite, atomic.compwritemsg);
	if (!atomics)
		REFUSE(to, atomic.writevalid, atomic.compwritevalid);
}

/*
 * A default flag says "later": an injected operation has no context for a trigger and is over when
 * its call returns, so it is refused. fi_endpoint(3).
 */
static void install_refuse_injects(struct ep_tables *to)
{
	REFUSE(to, msg.inject, msg.inject);
	REFUSE(to, msg.injectdata, msg.injectdata);
	REFUSE(to, tagged.inject, tagged.inject);
	REFUSE(to, tagged.injectdata, tagged.injectdata);
	REFUSE(to, rma.inject, rma.inject);
	REFUSE(to, rma.injectdata, rma.injectdata);
	REFUSE(to, atomic.inject, atomic.inject);
}

/* May the endpoint join collective groups? Only a reliable datagram endpoint with contexts of its own. */
static bool install_joins(const struct ep *ep)
{
	return ep->fid.fid.fclass == FI_CLASS_EP && ep->info->caps & FI_COLLECTIVE &&
	       ep->info->ep_attr->type == FI_EP_RDM;
}

static void install_point_to(struct fid_ep *fid, struct ep_tables *tables)
{
	fid->msg = &tables->msg;
	fid->tagged = &tables->tagged;
	fid->rma = &tables->rma;
	fid->atomic = &tables->atomic;
	fid->collective = &tables->collective;
}

int xfer_tables(struct ep *ep)
{
	struct ep_tables *tables = malloc(sizeof(*tables));

	if (!tables)
		return -FI_ENOMEM;
	*tables = refuse_state;
	ep->tables = tables;
	install_point_to(&ep->fid, tables);
	return 0;
}

void xfer_tables_free(struct ep *ep)
{
	free(ep->tables);
	install_point_to(&ep->fid, (struct ep_tables *)(uintptr_t)&refuse_state);
}

/*
 * Stores each member at once: a call in another thread finds the one that was there or the new one,
 * and no refusal between.
 */
static void install_replace(struct ep_tables *tables, const struct ep_tables *by)
{
	const word *from = (const word *)by;
	word *to = (word *)tables;

	for (size_t i = 0; i < sizeof(*tables) / sizeof(word); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

void xfer_install(struct ep *ep, const struct xfer_roles *roles)
{
	const struct entry_tables *from = install_performer(ep);
	struct ep_tables tables = {.msg = *from->msg,
				   .tagged = *from->tagged,
				   .rma = *from->rma,
				   .atomic = *from->atomic,
				   .collective = install_joins(ep) ? *ep->worker->groups->entries
								   : refuse_support.collective};

	install_limit(&tables, ep->info->caps, roles);
	if (ep->tx_flags & (FI_FENCE | FI_TRIGGER))
		install_refuse_injects(&tables);
	install_replace(ep->tables, &tables);
}

int xfer_enable(struct ep *ep)
{
	struct offload *n = ep->worker->offload;

	return n ? n->ops->enable(n, ep) : 0;
}

/* A link between RDMA devices fixes at its making whether the peer is notified of accesses. */
bool xfer_notifies_late(const struct worker *worker)
{
	if (worker->conn.opener.counts)
		return true;
	LIST_EACH_OF (const struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		if ((peer->conn.attempt && peer->conn.attempt->pending) ||
		    (peer->conn.real && peer->conn.kind == LINK_DEVICE))
			return false;
	}
	return true;
}

bool xfer_offloaded(const struct worker *worker)
{
	return worker->offload != NULL;
}

void xfer_forget(struct ep *ep, struct ep *successor)
{
	/* Otherwise the worker is closed next, or `successor` keeps the memory valid. */
	if (!successor && ep->base != ep)
		rdma_quiesce(ep->worker, NULL, ep);
	tx_forget(ep->worker, ep, successor);
	if (ep->worker->dgram)
		dgram_forget(ep->worker->dgram, ep, successor);
}

int xfer_cancel(const struct ep *ep, void *context)
{
	struct offload *offload = ep->worker->offload;

	return offload ? offload->ops->cancel(offload, context) : tx_cancel(ep, context);
}

void rx_context_set(struct rx *rx, const struct rx_target *target)
{
	rx->cq = target->cq;
	rx->cntr = target->cntr;
	rx->read_cntr = target->read_cntr;
	rx->write_cntr = target->write_cntr;
	rx->caps = target->caps;
	rx->any_source[false] = rx->caps & FI_DIRECTED_RECV ? 0 : FI_ADDR_UNSPEC;
	rx->any_source[true] =
		rx->caps & (FI_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV) ? 0 : FI_ADDR_UNSPEC;
	rx->addr_mask = target->addr_mask;
	rx->min_multi_recv = target->min_multi_recv;
	rx->complete_all = target->cq && !target->selective;
	rx->plain_cq = rx->cntr || rx->caps & FI_SOURCE_ERR ? NULL : rx->cq;
	if (!target->shared)
		return;
	rx->q = target->shared;
	/* Errors of unmatched receives go to the queue of the first endpoint. */
	if (!rx->q->cq)
		rx->q->cq = rx->cq;
}

int rx_context_cancel(struct rx *rx, void *context)
{
	return rx_cancel(rx, context);
}

void rx_context_min_multi_recv(struct rx *rx, size_t bytes)
{
	rx->min_multi_recv = bytes;
}
