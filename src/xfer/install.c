/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entries an endpoint's tables hold. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/ep.h"
#include "xfer/entry_tables.h"
#include "xfer/port.h"
#include "xfer/tx.h"
#include "xfer/xfer.h"

/* The receive half of `to` becomes that of `from`; the send half with `sends`. */
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

int xfer_install(struct ep *ep, bool sends, bool receives)
{
	const struct entry_tables *from = ep->dom->unlocked ? &entry_st : &entry_mt;
	uint64_t caps = ep->info->caps;

	if (!ep->tables)
		ep->tables = malloc(sizeof(*ep->tables));
	if (!ep->tables)
		return -FI_ENOMEM;
	ep->tables->msg = refuse_support.msg;
	ep->tables->tagged = refuse_support.tagged;
	if (sends && caps & FI_MSG)
		take_msg(&ep->tables->msg, &from->msg, true);
	if (receives && caps & FI_MSG)
		take_msg(&ep->tables->msg, &from->msg, false);
	if (sends && caps & FI_TAGGED)
		take_tagged(&ep->tables->tagged, &from->tagged, true);
	if (receives && caps & FI_TAGGED)
		take_tagged(&ep->tables->tagged, &from->tagged, false);
	ep->fid.msg = &ep->tables->msg;
	ep->fid.tagged = &ep->tables->tagged;
	ep->fid.rma = (struct fi_ops_rma *)&refuse_support.rma;
	ep->fid.atomic = (struct fi_ops_atomic *)&refuse_support.atomic;
	ep->fid.collective = (struct fi_ops_collective *)&refuse_support.collective;
	return 0;
}

void xfer_refuse(struct ep *ep)
{
	ep->fid.msg = (struct fi_ops_msg *)&refuse_state.msg;
	ep->fid.tagged = (struct fi_ops_tagged *)&refuse_state.tagged;
	ep->fid.rma = (struct fi_ops_rma *)&refuse_state.rma;
	ep->fid.atomic = (struct fi_ops_atomic *)&refuse_state.atomic;
	ep->fid.collective = (struct fi_ops_collective *)&refuse_state.collective;
}

void xfer_forget(struct ep *ep, struct ep *heir)
{
	tx_forget(ep->port, ep, heir);
}

int xfer_cancel(struct port *port, void *context)
{
	return tx_cancel(port, context);
}

void rx_context_set(struct rx *rx, const struct rx_target *target)
{
	rx->cq = target->cq;
	rx->cntr = target->cntr;
	rx->caps = target->caps;
	rx->addr_mask = target->addr_mask;
	rx->min_multi_recv = target->min_multi_recv;
	rx->complete_all = target->cq && !target->selective;
	if (!target->shared)
		return;
	rx->q = target->shared;
	/* What goes wrong with a receive nobody met is told to the first endpoint's queue. */
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
