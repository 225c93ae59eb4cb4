/* SPDX-License-Identifier: BSD-2-Clause */
/* Triggered operations: calls with FI_TRIGGER in their flags. */
#include <rdma/fi_errno.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "base/log.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

enum form { FORM_SEND, FORM_RECV, FORM_ONESIDED };

struct triggered {
	struct work work;
	enum form form;
	bool tagged; /* for a receive */
	union {
		struct xfer send;
		struct recv_args recv;
		struct rma onesided;
	} op;
	/* Copies of what `op` points to: lists of segments, then injected data. */
	unsigned char kept[] __attribute__((aligned(16)));
};

static struct triggered *triggered_of(const struct work *work)
{
	return LIST_ENTRY(work, struct triggered, work);
}

/* Where an error of the operation is reported, and as what. */
struct report {
	struct cq *cq;
	struct cntr *cntr;
	struct cq_slot slot;
};

static struct report report_of(const struct triggered *t)
{
	const struct ep *ep = t->work.ep;
	const struct rma *o = &t->op.onesided;

	switch (t->form) {
	case FORM_SEND:
		return (struct report){ep->tx_cq,
				       ep->tx_cntr,
				       {.context = t->op.send.context,
					.flags = t->op.send.flags & TX_KIND,
					.tag = t->op.send.tag}};
	case FORM_RECV:
		return (struct report){ep->rx->cq,
				       ep->rx->cntr,
				       {.context = t->op.recv.context,
					.flags = FI_RECV | (t->tagged ? FI_TAGGED : FI_MSG),
					.tag = t->op.recv.tag,
					.src = FI_ADDR_NOTAVAIL}};
	default:
		return (struct report){ep->tx_cq,
				       o->kind & FI_READ ? ep->read_cntr : ep->write_cntr,
				       {.context = o->context, .flags = o->kind}};
	}
}

static void defer_op_report(const struct triggered *t, int err)
{
	struct report to = report_of(t);

	if (to.cq)
		cq_push_error(to.cq, &to.slot, &(struct cq_error){.err = err, .prov_errno = err},
			      NULL);
	if (to.cntr && err != FI_ECANCELED)
		cntr_fail(to.cntr);
}

static int defer_op_start(struct work *work)
{
	struct triggered *t = triggered_of(work);
	struct ep *ep = work->ep;
	int err;

	if (t->form == FORM_SEND) {
		err = tx_slow(ep, t->op.send);
	} else if (t->form == FORM_RECV) {
		t->op.recv.flags = defer_recv_flags(ep, t->op.recv.flags);
		err = rx_post(ep->rx, ep->worker, t->tagged, &t->op.recv);
	} else {
		err = rma_post(ep, &t->op.onesided);
	}
	if (!err)
		free(t);
	return err;
}

static void defer_op_fail(struct work *work, int err)
{
	defer_op_report(triggered_of(work), err);
	free(triggered_of(work));
}

static void defer_op_orphan(struct work *work)
{
	defer_op_fail(work, FI_ECANCELED);
}

static const struct work_kind kind = {
	.start = defer_op_start, .fail = defer_op_fail, .orphan = defer_op_orphan};

/* Returns the trigger of a call's context in *trigger. 0 or a negative error. */
static int trigger_of(const struct ep *ep, const struct fi_triggered_context *context,
		      struct fi_trigger_threshold *trigger)
{
	const struct cntr *c;

	if (!(ep->info->caps & FI_TRIGGER))
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_EP_DATA,
			"FI_TRIGGER is no capability of the endpoint: ask for it in hints->caps");
	if (!context)
		return -FI_EINVAL;
	if (context->event_type == FI_TRIGGER_XPU)
		return -FI_ENOSYS;
	*trigger = context->trigger.threshold;
	c = context->event_type == FI_TRIGGER_THRESHOLD ? cntr_of(trigger->cntr) : NULL;
	if (c && c->fid.fid.fclass == FI_CLASS_CNTR && c->dom == ep->dom)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
			  "trigger of type %d: no counter of the endpoint's domain",
			  (int)context->event_type);
}

/* Allocates an operation with `size` bytes for copies; all members but `op` are set. NULL: no memory. */
static struct triggered *new (struct ep *ep, enum form form, fi_addr_t to,
			      const struct fi_trigger_threshold *trigger, size_t size)
{
	struct triggered *t = malloc(sizeof(*t) + size);

	if (!t)
		return NULL;
	t->form = form;
	t->work = (struct work){.kind = &kind,
				.threshold = trigger->threshold,
				.cntr = cntr_of(trigger->cntr),
				.dom = ep->dom,
				.ep = ep,
				.to = to};
	list_init(&t->work.link);
	return t;
}

/* Copies `len` bytes to *at and advances it; returns the copy. */
static void *defer_op_keep(unsigned char **at, const void *from, size_t len)
{
	void *to = *at;

	if (len) /* `from` may be NULL if there are none */
		memcpy(to, from, len);
	*at += len;
	return to;
}

/* Copies a list of segments; with `data` also their contents, to which the copied list then points. */
static const struct iovec *keep_iov(unsigned char **lists, unsigned char **data,
				    const struct iovec *iov, size_t count)
{
	struct iovec *to = defer_op_keep(lists, iov, count * sizeof(*iov));

	for (size_t i = 0; data && i < count; i++)
		to[i].iov_base = defer_op_keep(data, iov[i].iov_base, iov[i].iov_len);
	return to;
}

int defer_send(struct ep *ep, const struct xfer *x)
{
	const struct iovec one = {(void *)(uintptr_t)x->buf, x->len};
	const struct iovec *iov = x->iov ? x->iov : &one;
	size_t count = x->iov ? x->count : 1, lists = count * sizeof(*iov);
	struct fi_trigger_threshold trigger;
	unsigned char *at, *data;
	struct xfer now = *x;
	struct triggered *t;
	int err = trigger_of(ep, x->context, &trigger);

	if (err)
		return err;
	if (x->flags & FI_INJECT && x->len > ep_inject_max(ep, x->flags))
		return -FI_EMSGSIZE;
	now.flags &= ~FI_TRIGGER;
	if (!defer_must_wait(cntr_of(trigger.cntr), trigger.threshold))
		return tx_slow(ep, now);
	t = new (ep, FORM_SEND, x->addr, &trigger, lists + (x->flags & FI_INJECT ? x->len : 0));
	if (!t)
		return -FI_ENOMEM;
	at = t->kept;
	data = at + lists;
	now.iov = keep_iov(&at, x->flags & FI_INJECT ? &data : NULL, iov, count);
	now.count = count;
	t->op.send = now;
	defer_enter(&t->work);
	return 0;
}

int defer_recv(struct ep *ep, bool tagged, const struct recv_args *args)
{
	struct fi_trigger_threshold trigger;
	struct recv_args now = *args;
	struct triggered *t;
	unsigned char *at;
	size_t len;
	int err = trigger_of(ep, args->context, &trigger);

	if (!err)
		err = IOV_ADD_UP(args->iov, iov_len, args->iov_count, RX_IOV_MAX, &len);
	if (err)
		return err;
	/* Calls with FI_PEEK and the like act at once and use the context themselves, so they cannot be triggered. */
	if (args->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))
		return -FI_EOPNOTSUPP;
	now.flags &= ~FI_TRIGGER;
	if (!defer_must_wait(cntr_of(trigger.cntr), trigger.threshold))
		return rx_post(ep->rx, ep->worker, tagged, &now);
	t = new (ep, FORM_RECV, FI_ADDR_NOTAVAIL, &trigger, args->iov_count * sizeof(*args->iov));
	if (!t)
		return -FI_ENOMEM;
	at = t->kept;
	now.iov = keep_iov(&at, NULL, args->iov, args->iov_count);
	t->tagged = tagged;
	t->op.recv = now;
	defer_enter(&t->work);
	return 0;
}

/* Returns the bytes of all lists of the operation. */
static size_t lists_of(const struct rma *o)
{
	return (o->count + o->compare_count + o->result_count) * sizeof(struct iovec) +
	       o->remote_count * sizeof(struct fi_rma_iov);
}

int defer_rma(struct ep *ep, const struct rma *o)
{
	struct fi_trigger_threshold trigger;
	struct rma now = *o;
	unsigned char *at, *data = NULL, **inject = o->flags & FI_INJECT ? &data : NULL;
	struct triggered *t;
	size_t size = lists_of(o);
	int err = trigger_of(ep, o->context, &trigger);

	if (err)
		return err;
	now.flags &= ~FI_TRIGGER;
	if (!defer_must_wait(cntr_of(trigger.cntr), trigger.threshold))
		return rma_post(ep, &now);
	if (inject)
		size += iov_bytes(o->iov, o->count) + iov_bytes(o->compare, o->compare_count);
	t = new (ep, FORM_ONESIDED, o->addr, &trigger, size);
	if (!t)
		return -FI_ENOMEM;
	at = t->kept;
	data = at + lists_of(o);
	now.iov = keep_iov(&at, inject, o->iov, o->count);
	now.compare = keep_iov(&at, inject, o->compare, o->compare_count);
	now.result = keep_iov(&at, NULL, o->result, o->result_count);
	now.remote = defer_op_keep(&at, o->remote, o->remote_count * sizeof(*o->remote));
	t->op.onesided = now;
	defer_enter(&t->work);
	return 0;
}

/* Arguments of fi_cancel. */
struct wanted {
	const struct ep *ep;
	const void *context;
};

static bool defer_op_matches(const struct work *work, const void *arg)
{
	const struct wanted *wanted = arg;

	return work->kind == &kind && work->ep->base == wanted->ep->base &&
	       report_of(triggered_of(work)).slot.context == wanted->context;
}

int defer_cancel(struct ep *ep, void *context)
{
	struct work *work = defer_find(ep->dom, defer_op_matches, &(struct wanted){ep, context});

	if (!work)
		return -FI_ENOENT;
	defer_remove(work);
	defer_op_fail(work, FI_ECANCELED);
	return 0;
}
