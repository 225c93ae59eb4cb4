/* SPDX-License-Identifier: BSD-2-Clause */
/* Fills the tables of an endpoint, and other calls of link/engine.h. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/ep.h"
#include "link/link.h"
#include "xfer/dgram/dgram.h"
#include "xfer/entry/entry_tables.h"
#include "xfer/group.h"
#include "xfer/rndv/rdma.h"
#include "link/offload.h"
#include "xfer/peer.h"
#include "conn/attempt.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "link/engine.h"

/* Copies the send half (`sends`) or the receive half of `from` to `to`. */
static void take_msg(struct fi_ops_msg *to, const struct fi_ops_msg *from, bool sends)
{
	if (sends) {
		to->send = from->send;
		to->sendv = from->sendv;
		to->sendmsg = from->sendmsg;
		to->inject = from->inject;
		to->senddata = from->senddata;
		to->injectdata = from->injectdata;
	} else {
		to->recv = from->recv;
		to->recvv = from->recvv;
		to->recvmsg = from->recvmsg;
	}
}

static void take_tagged(struct fi_ops_tagged *to, const struct fi_ops_tagged *from, bool sends)
{
	if (sends) {
		to->send = from->send;
		to->sendv = from->sendv;
		to->sendmsg = from->sendmsg;
		to->inject = from->inject;
		to->senddata = from->senddata;
		to->injectdata = from->injectdata;
	} else {
		to->recv = from->recv;
		to->recvv = from->recvv;
		to->recvmsg = from->recvmsg;
	}
}

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

static void choose_messages(const struct ep *ep, struct ep_tables *to,
			    const struct entry_tables *from, const struct xfer_roles *roles)
{
	uint64_t caps = ep->info->caps;

	to->msg = refuse_support.msg;
	to->tagged = refuse_support.tagged;
	if (roles->sends && caps & (FI_MSG | FI_MULTICAST))
		take_msg(&to->msg, from->msg, true);
	if (roles->receives && caps & (FI_MSG | FI_MULTICAST))
		take_msg(&to->msg, from->msg, false);
	if (roles->sends && caps & FI_TAGGED)
		take_tagged(&to->tagged, from->tagged, true);
	if (roles->receives && caps & FI_TAGGED)
		take_tagged(&to->tagged, from->tagged, false);
}

static void take_writes(struct fi_ops_rma *to, const struct fi_ops_rma *from)
{
	to->write = from->write;
	to->writev = from->writev;
	to->writemsg = from->writemsg;
	to->inject = from->inject;
	to->writedata = from->writedata;
	to->injectdata = from->injectdata;
}

static void take_reads(struct fi_ops_rma *to, const struct fi_ops_rma *from)
{
	to->read = from->read;
	to->readv = from->readv;
	to->readmsg = from->readmsg;
}

/*
 * Copies the atomic calls that `caps` permits: those that return a value need FI_READ. Each
 * endpoint with FI_ATOMIC has the *valid calls.
 */
static void take_atomics(struct fi_ops_atomic *to, const struct fi_ops_atomic *from, uint64_t caps)
{
	*to = *from;
	if (!(caps & FI_WRITE)) {
		to->write = refuse_support.atomic.write;
		to->writev = refuse_support.atomic.writev;
		to->writemsg = refuse_support.atomic.writemsg;
		to->inject = refuse_support.atomic.inject;
	}
	if (!(caps & FI_READ)) {
		to->readwrite = refuse_support.atomic.readwrite;
		to->readwritev = refuse_support.atomic.readwritev;
		to->readwritemsg = refuse_support.atomic.readwritemsg;
		to->compwrite = refuse_support.atomic.compwrite;
		to->compwritev = refuse_support.atomic.compwritev;
		to->compwritemsg = refuse_support.atomic.compwritemsg;
	}
}

static void choose_rma(uint64_t caps, struct ep_tables *to, const struct entry_tables *from)
{
	to->rma = refuse_support.rma;
	to->atomic = refuse_support.atomic;
	if (caps & FI_RMA && caps & FI_WRITE)
		take_writes(&to->rma, from->rma);
	if (caps & FI_RMA && caps & FI_READ)
		take_reads(&to->rma, from->rma);
	if (caps & FI_ATOMIC)
		take_atomics(&to->atomic, from->atomic, caps);
}

/*
 * A default flag says "later": an injected operation has no context for a trigger and is over when
 * its call returns, so it is refused. fi_endpoint(3).
 */
static void refuse_injects(struct ep_tables *to)
{
	to->msg.inject = refuse_support.msg.inject;
	to->msg.injectdata = refuse_support.msg.injectdata;
	to->tagged.inject = refuse_support.tagged.inject;
	to->tagged.injectdata = refuse_support.tagged.injectdata;
	to->rma.inject = refuse_support.rma.inject;
	to->rma.injectdata = refuse_support.rma.injectdata;
	to->atomic.inject = refuse_support.atomic.inject;
}

/*
 * May the endpoint join collective groups? Only a reliable datagram endpoint with contexts of its
 * own.
 */
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

typedef uintptr_t word __attribute__((may_alias));

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
	struct ep_tables tables;

	choose_messages(ep, &tables, from, roles);
	choose_rma(roles->initiates ? ep->info->caps : 0, &tables, from);
	if (ep->tx_flags & (FI_FENCE | FI_TRIGGER))
		refuse_injects(&tables);
	tables.collective =
		install_joins(ep) ? *ep->worker->groups->entries : refuse_support.collective;
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
		rdma_quiesce_ep(ep->worker, ep);
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
