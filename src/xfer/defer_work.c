/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: requests queued on a domain. What the application handed over stays its own and is
 * looked at twice: checked when it is queued, posted when it is due. What is kept here beside it is
 * ours, so that nothing it does to its structures harms the lists.
 */
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>

#include "base/log.h"
#include "xfer/defer.h"
#include "xfer/entry_tables.h"
#include "xfer/os.h"
#include "xfer/port.h"
#include "xfer/tx.h"

struct deferred {
	struct work work;
	const struct fi_deferred_work *of; /* what names it; not followed once it is queued */
	enum fi_op_type type;
	const void *op;    /* struct fi_op_*, as the type says */
	struct cntr *told; /* counts its end, or is the counter to change; in its ref; or NULL */
};

static struct deferred *deferred_of(const struct work *work)
{
	return LIST_ENTRY(work, struct deferred, work);
}

/* Receives that ask for what is there, or end more than once. */
#define NOT_LATER (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV)

/* The arguments of a message, and its flags. */
static struct fi_msg_tagged message_of(const struct deferred *d, uint64_t *flags)
{
	const struct fi_op_tagged *tagged = d->op;
	const struct fi_op_msg *plain = d->op;

	if (d->type == FI_OP_TSEND || d->type == FI_OP_TRECV) {
		*flags = tagged->flags;
		return tagged->msg;
	}
	*flags = plain->flags;
	return (struct fi_msg_tagged){.msg_iov = plain->msg.msg_iov,
				      .iov_count = plain->msg.iov_count,
				      .addr = plain->msg.addr,
				      .context = plain->msg.context,
				      .data = plain->msg.data};
}

static int as_send(struct deferred *d, struct xfer *x)
{
	bool tagged = d->type == FI_OP_TSEND;
	struct fi_msg_tagged msg;
	uint64_t flags;

	msg = message_of(d, &flags);
	if (msg.iov_count > WIRE_IOV_MAX || (msg.iov_count && !msg.msg_iov) || flags & FI_TRIGGER)
		return -FI_EINVAL;
	*x = (struct xfer){
		.head = WIRE_HEAD(WIRE_MSG,
				  (tagged ? WIRE_TAGGED : 0) |
					  (flags & FI_REMOTE_CQ_DATA ? WIRE_DATA : 0),
				  0, 0),
		.flags = (flags & ~TX_KIND) | FI_SEND | (tagged ? FI_TAGGED : FI_MSG),
		.tag = msg.tag,
		.data = msg.data,
		.iov = msg.msg_iov,
		.count = msg.iov_count,
		.context = msg.context,
		.addr = msg.addr,
		.work = &d->work,
	};
	for (size_t i = 0; i < msg.iov_count; i++)
		x->len += msg.msg_iov[i].iov_len;
	return flags & FI_INJECT && x->len > d->work.ep->inject_max ? -FI_EMSGSIZE : 0;
}

static int as_recv(struct deferred *d, struct recv_args *args)
{
	struct fi_msg_tagged msg;
	uint64_t flags;

	msg = message_of(d, &flags);
	if (msg.iov_count > RX_IOV_MAX || (msg.iov_count && !msg.msg_iov) || flags & FI_TRIGGER)
		return -FI_EINVAL;
	if (flags & NOT_LATER)
		return -FI_ENOSYS;
	*args = (struct recv_args){.iov = msg.msg_iov,
				   .iov_count = msg.iov_count,
				   .src = msg.addr,
				   .tag = msg.tag,
				   .ignore = msg.ignore,
				   .flags = flags,
				   .context = msg.context,
				   .work = &d->work};
	return 0;
}

static int as_rma(struct deferred *d, struct onesided *o)
{
	const struct fi_op_rma *op = d->op;
	int err = op->flags & FI_TRIGGER
			  ? -FI_EINVAL
			  : os_from_rma(o, &op->msg, op->flags, d->type == FI_OP_WRITE);

	if (!err)
		o->work = &d->work;
	return err;
}

static uint64_t atomic_args(const struct deferred *d, struct os_atomic_msg *m)
{
	const struct fi_op_atomic *base = d->op;
	const struct fi_op_fetch_atomic *fetch = d->op;
	const struct fi_op_compare_atomic *compare = d->op;

	switch (d->type) {
	case FI_OP_ATOMIC:
		*m = (struct os_atomic_msg){.form = ATOMIC_BASE, .msg = &base->msg};
		return base->flags;
	case FI_OP_FETCH_ATOMIC:
		*m = (struct os_atomic_msg){.form = ATOMIC_FETCH,
					    .msg = &fetch->msg,
					    .result = fetch->fetch.msg_iov,
					    .result_count = fetch->fetch.iov_count};
		return fetch->flags;
	default:
		*m = (struct os_atomic_msg){.form = ATOMIC_COMPARE,
					    .msg = &compare->msg,
					    .result = compare->fetch.msg_iov,
					    .result_count = compare->fetch.iov_count,
					    .compare = compare->compare.msg_iov,
					    .compare_count = compare->compare.iov_count};
		return compare->flags;
	}
}

static int as_atomic(struct deferred *d, struct onesided *o, struct os_store *store)
{
	struct os_atomic_msg m;
	uint64_t flags = atomic_args(d, &m);
	int err = flags & FI_TRIGGER ? -FI_EINVAL : os_from_atomic(o, store, &m, flags);

	if (!err)
		o->work = &d->work;
	return err;
}

/* Sets or adds, which may make other work due; then it is done. */
static int change_counter(struct deferred *d)
{
	const struct fi_op_cntr *op = d->op;
	bool set = d->type == FI_OP_CNTR_SET;
	uint64_t value = op->value;
	struct cntr *c = d->told;

	d->told = NULL;
	defer_done(&d->work, 0);
	if (set) {
		defer_settle(c);
		cntr_put(c, value);
	} else {
		cntr_count(c, value);
	}
	ref_put(&c->ref);
	return 0;
}

/* Checks the arguments and, with `post`, posts the operation. */
static int take(struct deferred *d, bool post)
{
	struct ep *ep = d->work.ep;
	struct os_store store;
	struct recv_args args;
	struct onesided o;
	struct xfer x;
	int err;

	switch (d->type) {
	case FI_OP_SEND:
	case FI_OP_TSEND:
		err = as_send(d, &x);
		return err || !post ? err : tx_slow(ep, x);
	case FI_OP_RECV:
	case FI_OP_TRECV:
		err = as_recv(d, &args);
		return err || !post ? err
				    : rx_post(ep->rx, ep->port, d->type == FI_OP_TRECV, &args);
	case FI_OP_READ:
	case FI_OP_WRITE:
		err = as_rma(d, &o);
		return err || !post ? err : os_post(ep, &o);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return post ? change_counter(d) : 0;
	default:
		err = as_atomic(d, &o, &store);
		return err || !post ? err : os_post(ep, &o);
	}
}

static int start(struct work *work)
{
	return take(deferred_of(work), true);
}

/* Where its flags ask for it, the endpoint's queue has a failure as well. */
static void complete_error(struct deferred *d, int err)
{
	bool tagged = d->type == FI_OP_TSEND || d->type == FI_OP_TRECV;
	bool receives = d->type == FI_OP_RECV || d->type == FI_OP_TRECV;
	const struct ep *ep = d->work.ep;
	struct cq *cq = receives ? ep->rx->cq : ep->tx_cq;
	struct os_atomic_msg m;
	struct cq_slot slot = {0};
	uint64_t flags;

	if (receives || d->type == FI_OP_SEND || d->type == FI_OP_TSEND) {
		struct fi_msg_tagged msg = message_of(d, &flags);

		slot.context = msg.context;
		slot.tag = msg.tag;
		slot.flags = (receives ? FI_RECV : FI_SEND) | (tagged ? FI_TAGGED : FI_MSG);
	} else if (d->type == FI_OP_READ || d->type == FI_OP_WRITE) {
		const struct fi_op_rma *op = d->op;

		flags = op->flags;
		slot.context = op->msg.context;
		slot.flags = FI_RMA | (d->type == FI_OP_READ ? FI_READ : FI_WRITE);
	} else {
		flags = atomic_args(d, &m);
		slot.context = m.msg->context;
		slot.flags = FI_ATOMIC | (m.form == ATOMIC_BASE ? FI_WRITE : FI_READ);
	}
	if (cq && flags & FI_COMPLETION)
		cq_push_error(cq, &slot, &(struct cq_error){.err = err, .prov_errno = err}, NULL);
}

static void fail(struct work *work, int err)
{
	complete_error(deferred_of(work), err);
	defer_done(work, err);
}

static void orphan(struct work *work)
{
	defer_done(work, FI_ECANCELED);
}

static const struct work_kind kind = {.start = start, .fail = fail, .orphan = orphan};

/* Frees it without a word; the counter to be told if there is one. */
static struct cntr *end(struct deferred *d)
{
	struct cntr *told = d->told;

	__atomic_fetch_sub(&d->work.dom->deferred, 1, __ATOMIC_RELAXED);
	free(d);
	return told;
}

void defer_done(struct work *work, int err)
{
	struct cntr *told = end(deferred_of(work));

	if (!told)
		return;
	if (err)
		cntr_fail(told);
	else
		cntr_count(told, 1);
	ref_put(&told->ref);
}

/* ---- Queueing -------------------------------------------------------------------------------- */

static bool counter_in(const struct domain *dom, const struct fid_cntr *fid)
{
	return fid && fid->fid.fclass == FI_CLASS_CNTR &&
	       cntr_of((struct fid_cntr *)fid)->dom == dom;
}

/* Every struct fi_op_* but that of counters begins with its endpoint. */
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

/* Does the endpoint have the call this work stands for? */
static bool has_call(const struct ep *ep, enum fi_op_type type)
{
	const struct refuse_tables *no = &refuse_support;

	switch (type) {
	case FI_OP_RECV:
		return ep->rx && ep->fid.msg->recvmsg != no->msg.recvmsg;
	case FI_OP_SEND:
		return ep->fid.msg->sendmsg != no->msg.sendmsg;
	case FI_OP_TRECV:
		return ep->rx && ep->fid.tagged->recvmsg != no->tagged.recvmsg;
	case FI_OP_TSEND:
		return ep->fid.tagged->sendmsg != no->tagged.sendmsg;
	case FI_OP_READ:
		return ep->fid.rma->readmsg != no->rma.readmsg;
	case FI_OP_WRITE:
		return ep->fid.rma->writemsg != no->rma.writemsg;
	case FI_OP_ATOMIC:
		return ep->fid.atomic->writemsg != no->atomic.writemsg;
	case FI_OP_FETCH_ATOMIC:
		return ep->fid.atomic->readwritemsg != no->atomic.readwritemsg;
	default:
		return ep->fid.atomic->compwritemsg != no->atomic.compwritemsg;
	}
}

static int check_operation(struct deferred *d)
{
	d->work.ep = endpoint_of(d->work.dom, d->op);
	if (!d->work.ep) {
		LOG_WARN(LOG_DOMAIN, "deferred work: its endpoint is none of this domain");
		return -FI_EINVAL;
	}
	if (!d->work.ep->enabled)
		return -FI_EOPBADSTATE;
	if (!has_call(d->work.ep, d->type)) {
		LOG_WARN(LOG_DOMAIN, "deferred work: its endpoint has no call for operation %d",
			 (int)d->type);
		return -FI_ENOSYS;
	}
	return take(d, false);
}

static int check(struct deferred *d, const struct fi_deferred_work *dw)
{
	struct domain *dom = d->work.dom;

	if (!counter_in(dom, dw->triggering_cntr) || !dw->op.msg ||
	    (dw->completion_cntr && !counter_in(dom, dw->completion_cntr)) ||
	    (unsigned int)dw->op_type > FI_OP_CNTR_ADD) {
		LOG_WARN(LOG_DOMAIN, "deferred work: operation %d, or a counter not of this domain",
			 (int)dw->op_type);
		return -FI_EINVAL;
	}
	if (dw->op_type != FI_OP_CNTR_SET && dw->op_type != FI_OP_CNTR_ADD) {
		d->told = dw->completion_cntr ? cntr_of(dw->completion_cntr) : NULL;
		return check_operation(d);
	}
	if (dw->completion_cntr || !counter_in(dom, dw->op.cntr->cntr))
		return -FI_EINVAL;
	d->told = cntr_of(dw->op.cntr->cntr);
	return 0;
}

static int queue(struct domain *dom, const struct fi_deferred_work *dw)
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
	err = check(d, dw);
	if (!err && d->told)
		err = defer_join(d->told);
	if (err) {
		free(d);
		return err;
	}
	d->work.cntr = cntr_of(dw->triggering_cntr);
	if (d->told) {
		ref_get(&d->told->ref);
		wait_notify(&d->told->wait); /* who sleeps on it has more to look at now */
	}
	__atomic_fetch_add(&dom->deferred, 1, __ATOMIC_RELAXED);
	defer_enter(&d->work);
	return 0;
}

int defer_queue(struct domain *dom, struct fi_deferred_work *dw)
{
	int err;

	if (!dw)
		return -FI_EINVAL;
	lock_take(&dom->lock);
	err = queue(dom, dw);
	lock_give(&dom->lock);
	return err;
}

/* ---- Taking back ----------------------------------------------------------------------------- */

static void drop(struct work *work)
{
	struct cntr *told;

	defer_remove(work);
	told = end(deferred_of(work));
	if (told)
		ref_put(&told->ref);
}

static bool is_of(const struct work *work, const void *dw)
{
	return work->kind == &kind && deferred_of(work)->of == dw;
}

static void flush(struct work *work, const void *cntr)
{
	if (work->kind == &kind && (!cntr || work->cntr == cntr))
		drop(work);
}

int defer_cancel_work(struct domain *dom, const struct fi_deferred_work *dw)
{
	struct work *work;

	if (!dw)
		return -FI_EINVAL;
	lock_take(&dom->lock);
	work = defer_find(dom, is_of, dw);
	if (work)
		drop(work);
	lock_give(&dom->lock);
	return work ? 0 : -FI_ENOENT;
}

int defer_flush(struct domain *dom, const struct fi_deferred_work *dw)
{
	const struct fid_cntr *fid = dw ? dw->triggering_cntr : NULL;

	if (fid && !counter_in(dom, fid))
		return -FI_EINVAL;
	lock_take(&dom->lock);
	defer_each(dom, flush, fid);
	lock_give(&dom->lock);
	return 0;
}
