/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: requests queued on a domain. The application owns its structures, and they are
 * read twice: checked when the work is queued, posted when it is due. The lists consist of our own
 * memory, so later changes to those structures cannot harm them.
 */
#include "xfer/defer/defer_work.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/ep.h"
#include "entry/tables.h"
#include "xfer/worker.h"

/* Frees the work without reporting; returns the counter that is to count its end, or NULL. */
static struct cntr *defer_work_end(struct deferred *d)
{
	struct cntr *reports_to = d->reports_to;

	__atomic_fetch_sub(&d->work.dom->deferred, 1, __ATOMIC_RELAXED);
	free(d);
	return reports_to;
}

static void defer_work_done(struct work *work, int err)
{
	struct cntr *reports_to = defer_work_end(deferred_of(work));

	if (!reports_to)
		return;
	if (err)
		cntr_fail(reports_to);
	else
		cntr_count(reports_to, 1);
	ref_put(&reports_to->ref);
}

static int defer_work_start(struct work *work)
{
	return defer_post(deferred_of(work), true);
}

static void defer_work_fail(struct work *work, int err)
{
	defer_post_error(deferred_of(work), err);
	defer_work_done(work, err);
}

static void defer_work_orphan(struct work *work)
{
	defer_work_done(work, FI_ECANCELED);
}

static const struct work_kind kind = {.start = defer_work_start,
				      .fail = defer_work_fail,
				      .orphan = defer_work_orphan,
				      .done = defer_work_done};

/* ---- Queueing -------------------------------------------------------------------------------- */

static bool counter_in(const struct domain *dom, const struct fid_cntr *fid)
{
	return fid && fid->fid.fclass == FI_CLASS_CNTR &&
	       cntr_of((struct fid_cntr *)fid)->dom == dom;
}

/* Returns the endpoint of an operation, or NULL. Each struct fi_op_* but that of counters begins with the endpoint. */
static struct ep *endpoint_of(const struct domain *dom, const void *op)
{
	struct ep *ep = ep_of(((const struct fi_op_msg *)op)->ep);

	if (!ep ||
	    (ep->fid.fid.fclass != FI_CLASS_EP && ep->fid.fid.fclass != FI_CLASS_TX_CTX &&
	     ep->fid.fid.fclass != FI_CLASS_RX_CTX && ep->fid.fid.fclass != FI_CLASS_SRX_CTX))
		return NULL;
	return ep->dom == dom ? ep : NULL;
}

_Static_assert(offsetof(struct fi_op_msg, ep) == 0 && offsetof(struct fi_op_tagged, ep) == 0 &&
		       offsetof(struct fi_op_rma, ep) == 0 &&
		       offsetof(struct fi_op_atomic, ep) == 0 &&
		       offsetof(struct fi_op_fetch_atomic, ep) == 0 &&
		       offsetof(struct fi_op_compare_atomic, ep) == 0,
	       "the endpoint comes first");

/* Does the endpoint have the call for this work? */
static bool has_call(const struct ep *ep, enum fi_op_type type)
{
	const struct ep_tables *has = ep->tables, *no = &refuse_support;

	switch (type) {
	case FI_OP_RECV:
		return ep->rx && has->msg.recvmsg != no->msg.recvmsg;
	case FI_OP_SEND:
		return has->msg.sendmsg != no->msg.sendmsg;
	case FI_OP_TRECV:
		return ep->rx && has->tagged.recvmsg != no->tagged.recvmsg;
	case FI_OP_TSEND:
		return has->tagged.sendmsg != no->tagged.sendmsg;
	case FI_OP_READ:
		return has->rma.readmsg != no->rma.readmsg;
	case FI_OP_WRITE:
		return has->rma.writemsg != no->rma.writemsg;
	case FI_OP_ATOMIC:
		return has->atomic.writemsg != no->atomic.writemsg;
	case FI_OP_FETCH_ATOMIC:
		return has->atomic.readwritemsg != no->atomic.readwritemsg;
	default:
		return has->atomic.compwritemsg != no->atomic.compwritemsg;
	}
}

static int check_operation(struct deferred *d)
{
	d->work.ep = endpoint_of(d->work.dom, d->op);
	if (!d->work.ep)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "deferred work of type %d: no endpoint, or one of another domain",
				  (int)d->type);
	if (!d->work.ep->enabled)
		return -FI_EOPBADSTATE;
	if (!has_call(d->work.ep, d->type) || (d->work.ep->worker && d->work.ep->worker->dgram))
		return LOG_REFUSE(-FI_ENOSYS, LOG_DOMAIN,
				  "deferred work: its endpoint has no call for operation %d",
				  (int)d->type);
	return defer_post(d, false);
}

static int defer_work_check(struct deferred *d, const struct fi_deferred_work *dw)
{
	struct domain *dom = d->work.dom;

	if (!counter_in(dom, dw->triggering_cntr) || !dw->op.msg ||
	    (dw->completion_cntr && !counter_in(dom, dw->completion_cntr)) ||
	    (unsigned int)dw->op_type > FI_OP_CNTR_ADD)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "deferred work: operation %d, or a counter not of this domain",
				  (int)dw->op_type);
	if (dw->op_type != FI_OP_CNTR_SET && dw->op_type != FI_OP_CNTR_ADD) {
		d->reports_to = dw->completion_cntr ? cntr_of(dw->completion_cntr) : NULL;
		return check_operation(d);
	}
	if (dw->completion_cntr || !counter_in(dom, dw->op.cntr->cntr))
		return -FI_EINVAL;
	d->reports_to = cntr_of(dw->op.cntr->cntr);
	return 0;
}

static int defer_work_queue(struct domain *dom, const struct fi_deferred_work *dw)
{
	struct deferred *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -FI_ENOMEM;
	d->of = dw;
	d->type = dw->op_type;
	d->op = dw->op.msg;
	d->work.kind = &kind;
	d->work.dom = dom;
	d->work.threshold = dw->threshold;
	err = defer_work_check(d, dw);
	if (!err && d->reports_to)
		err = cntr_join(d->reports_to);
	if (err) {
		free(d);
		return err;
	}
	d->work.cntr = cntr_of(dw->triggering_cntr);
	if (d->reports_to) {
		ref_get(&d->reports_to->ref);
		/* A sleeper on the counter must now also poll the workers. */
		wait_notify(&d->reports_to->wait);
	}
	defer_count(dom);
	defer_enter(&d->work);
	return 0;
}

int defer_queue(struct domain *dom, struct fi_deferred_work *dw)
{
	int err;

	if (!dw)
		return -FI_EINVAL;
	domain_lock(dom);
	shard_unite(dom);
	err = defer_work_queue(dom, dw);
	domain_unlock(dom);
	return err;
}

/* ---- Taking back ----------------------------------------------------------------------------- */

static void defer_work_drop(struct work *work)
{
	struct cntr *reports_to;

	defer_remove(work);
	reports_to = defer_work_end(deferred_of(work));
	if (reports_to)
		ref_put(&reports_to->ref);
}

static bool defer_work_is_of(const struct work *work, const void *dw)
{
	return work->kind == &kind && deferred_of(work)->of == dw;
}

static void defer_work_flush(struct work *work, const void *cntr)
{
	if (work->kind == &kind && (!cntr || work->cntr == cntr))
		defer_work_drop(work);
}

int defer_cancel_work(struct domain *dom, const struct fi_deferred_work *dw)
{
	struct work *work;

	if (!dw)
		return -FI_EINVAL;
	domain_lock(dom);
	work = defer_find(dom, defer_work_is_of, dw);
	if (work)
		defer_work_drop(work);
	domain_unlock(dom);
	return work ? 0 : -FI_ENOENT;
}

int defer_flush(struct domain *dom, const struct fi_deferred_work *dw)
{
	const struct fid_cntr *fid = dw ? dw->triggering_cntr : NULL;

	if (fid && !counter_in(dom, fid))
		return -FI_EINVAL;
	domain_lock(dom);
	defer_each(dom, defer_work_flush, fid);
	domain_unlock(dom);
	return 0;
}
