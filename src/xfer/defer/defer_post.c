/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts the structures of deferred work to operations of the engine, and changes counters. */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "xfer/defer/defer_work.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Flags of receives that act at once, or complete more than once: cannot be deferred. */
#define NOT_LATER (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV)

/* Returns the arguments of a message call, and its flags. */
static struct fi_msg_tagged defer_post_message_of(const struct deferred *d, uint64_t *flags)
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
	uint64_t flags;
	struct fi_msg_tagged msg = defer_post_message_of(d, &flags);
	size_t len;
	int err = IOV_ADD_UP(msg.msg_iov, iov_len, msg.iov_count, WIRE_IOV_MAX, &len);

	if (err)
		return err;
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
		.len = len,
		.context = msg.context,
		.addr = msg.addr,
		.work = &d->work,
	};
	d->work.to = msg.addr;
	return flags & FI_INJECT && len > ep_inject_max(d->work.ep, x->flags) ? -FI_EMSGSIZE : 0;
}

static int as_recv(struct deferred *d, struct recv_args *args)
{
	uint64_t flags;
	struct fi_msg_tagged msg = defer_post_message_of(d, &flags);
	size_t len;
	int err = IOV_ADD_UP(msg.msg_iov, iov_len, msg.iov_count, RX_IOV_MAX, &len);

	if (err)
		return err;
	if (flags & NOT_LATER)
		return -FI_ENOSYS;
	d->work.to = FI_ADDR_NOTAVAIL;
	*args = (struct recv_args){.iov = msg.msg_iov,
				   .iov_count = msg.iov_count,
				   .src = msg.addr,
				   .tag = msg.tag,
				   .ignore = msg.ignore,
				   .flags = defer_recv_flags(d->work.ep, flags),
				   .context = msg.context,
				   .work = &d->work};
	return 0;
}

static uint64_t atomic_args(const struct deferred *d, struct entry_atomic_msg *m)
{
	const struct fi_op_atomic *base = d->op;
	const struct fi_op_fetch_atomic *fetch = d->op;
	const struct fi_op_compare_atomic *compare = d->op;

	switch (d->type) {
	case FI_OP_ATOMIC:
		*m = (struct entry_atomic_msg){.form = ATOMIC_BASE, .msg = &base->msg};
		return base->flags;
	case FI_OP_FETCH_ATOMIC:
		*m = (struct entry_atomic_msg){.form = ATOMIC_FETCH,
					       .msg = &fetch->msg,
					       .result = fetch->fetch.msg_iov,
					       .result_count = fetch->fetch.iov_count};
		return fetch->flags;
	default:
		*m = (struct entry_atomic_msg){.form = ATOMIC_COMPARE,
					       .msg = &compare->msg,
					       .result = compare->fetch.msg_iov,
					       .result_count = compare->fetch.iov_count,
					       .compare = compare->compare.msg_iov,
					       .compare_count = compare->compare.iov_count};
		return compare->flags;
	}
}

/* Reads the arguments of a one-sided operation; `store` keeps some of them. */
static int as_one_sided(struct deferred *d, struct rma *o, struct rma_store *store)
{
	const struct fi_op_rma *op = d->op;
	struct entry_atomic_msg m;
	uint64_t flags;
	int err;

	if (d->type == FI_OP_READ || d->type == FI_OP_WRITE) {
		err = rma_from_rma(o, &op->msg, op->flags, d->type == FI_OP_WRITE);
	} else {
		flags = atomic_args(d, &m);
		err = rma_from_atomic(o, store, &m, flags);
	}
	if (err)
		return err;
	o->work = &d->work;
	d->work.to = o->addr;
	return 0;
}

/* Sets the counter or adds to it, which may make other work due. The work itself ends first. */
static int change_counter(struct deferred *d)
{
	const struct fi_op_cntr *op = d->op;
	bool set = d->type == FI_OP_CNTR_SET;
	uint64_t value = op->value;
	struct cntr *c = d->reports_to;

	d->reports_to = NULL;
	defer_done(&d->work, 0);
	if (set) {
		defer_due(c);
		cntr_put(c, value);
	} else {
		cntr_count(c, value);
	}
	ref_put(&c->ref);
	return 0;
}

/* Fills in the completion entry of a failed operation; returns the flags that it was queued with. */
static uint64_t defer_post_describe(const struct deferred *d, struct cq_slot *slot)
{
	bool tagged = d->type == FI_OP_TSEND || d->type == FI_OP_TRECV;
	bool sends = d->type == FI_OP_SEND || d->type == FI_OP_TSEND;
	const struct fi_op_rma *rma = d->op;
	struct fi_msg_tagged msg;
	struct entry_atomic_msg m;
	uint64_t flags;

	if (d->type == FI_OP_READ || d->type == FI_OP_WRITE) {
		slot->context = rma->msg.context;
		slot->flags = FI_RMA | (d->type == FI_OP_READ ? FI_READ : FI_WRITE);
		return rma->flags;
	}
	if (tagged || sends || d->type == FI_OP_RECV) {
		msg = defer_post_message_of(d, &flags);
		slot->context = msg.context;
		slot->tag = msg.tag;
		slot->flags = (sends ? FI_SEND : FI_RECV) | (tagged ? FI_TAGGED : FI_MSG);
		return flags;
	}
	flags = atomic_args(d, &m);
	slot->context = m.msg->context;
	slot->flags = FI_ATOMIC | (m.form == ATOMIC_BASE ? FI_WRITE : FI_READ);
	return flags;
}

int defer_post(struct deferred *d, bool post)
{
	bool counts = d->type == FI_OP_CNTR_SET || d->type == FI_OP_CNTR_ADD;
	struct ep *ep = d->work.ep;
	struct rma_store store;
	struct recv_args args;
	struct cq_slot slot;
	struct rma o;
	struct xfer x;
	int err;

	if (!counts && defer_post_describe(d, &slot) & FI_TRIGGER)
		return -FI_EINVAL;
	switch (d->type) {
	case FI_OP_SEND:
	case FI_OP_TSEND:
		err = as_send(d, &x);
		return err || !post ? err : tx_slow(ep, x);
	case FI_OP_RECV:
	case FI_OP_TRECV:
		err = as_recv(d, &args);
		return err || !post ? err
				    : rx_post(ep->rx, ep->worker, d->type == FI_OP_TRECV, &args);
	case FI_OP_CNTR_SET:
	case FI_OP_CNTR_ADD:
		return post ? change_counter(d) : 0;
	default:
		err = as_one_sided(d, &o, &store);
		return err || !post ? err : rma_post(ep, &o);
	}
}

void defer_post_error(const struct deferred *d, int err)
{
	struct cq_slot slot = {0};
	uint64_t flags = defer_post_describe(d, &slot);
	struct cq *cq = slot.flags & FI_RECV ? d->work.ep->rx->cq : d->work.ep->tx_cq;

	if (cq && flags & FI_COMPLETION)
		cq_push_error(cq, &slot, &(struct cq_error){.err = err, .prov_errno = err}, NULL);
}
