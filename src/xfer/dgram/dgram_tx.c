/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends datagrams: at once, or in a batch with those that FI_MORE announces, until it is full. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/av.h"
#include "xfer/dgram/dgram.h"
#include "xfer/msg/tx.h"

/* Flags that datagrams cannot honor. */
#define IMPOSSIBLE                                                                                 \
	(FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_COMMIT_COMPLETE |       \
	 FI_TRIGGER)

/* Returns the destination of a send; NULL: none, and *err is the reason. */
static const struct addr *dgram_tx_destination(struct ep *ep, const struct xfer *x, int *err)
{
	fi_addr_t addr = x->addr & ep->addr_mask;
	const struct dgram_group *g = NULL;
	const struct addr *to = NULL;

	if (__builtin_expect(addr >> 32 == DGRAM_GROUP >> 32, 0)) {
		g = dgram_group_find(ep->worker->dgram, addr);
		to = g && g->sends ? &g->addr : NULL;
	} else if (!(x->flags & FI_MULTICAST)) {
		to = av_addr(ep->worker->conn.av, addr);
	}
	if (__builtin_expect(to != NULL, 1))
		return to;
	*err = g ? -FI_EACCES : -FI_EINVAL;
	LOG_WARN(LOG_EP_DATA, "send: fi_addr %#llx is %s", (unsigned long long)x->addr,
		 g                         ? "a group joined to receive only"
		 : x->flags & FI_MULTICAST ? "no group this endpoint joined"
					   : "not in the address vector");
	return NULL;
}

static void dgram_tx_sent(struct ep *ep, uint64_t flags, void *context, size_t len)
{
	tx_complete(ep, FI_MSG | FI_SEND, flags, context);
	if (ep->tx_cntr)
		tx_count(ep, len);
}

static void dgram_tx_failed(const struct dgram_out *out, int err)
{
	struct cq_slot slot = {.context = out->context, .flags = FI_MSG | FI_SEND};

	if (out->ep->tx_cq)
		cq_push_error(out->ep->tx_cq, &slot,
			      &(struct cq_error){.err = err, .prov_errno = err}, NULL);
	if (out->ep->tx_cntr)
		cntr_fail(out->ep->tx_cntr);
}

/* Completes the first `count` datagrams: sent, or failed with `err` (negative). */
static void complete_many(struct dgram_out *outs, unsigned int count, int err)
{
	for (unsigned int i = 0; i < count; i++)
		if (err)
			dgram_tx_failed(&outs[i], -err);
		else
			dgram_tx_sent(outs[i].ep, outs[i].flags, outs[i].context, outs[i].len);
}

bool dgram_flush(struct dgram *d)
{
	unsigned int done = 0, left;

	while (done < d->batch_count) {
		int n = d->ops->send_many(d, d->batch + done, d->batch_count - done);

		if (n == -FI_EAGAIN)
			break;
		complete_many(d->batch + done, n < 0 ? 1 : (unsigned int)n, n < 0 ? n : 0);
		done += n < 0 ? 1 : (unsigned int)n;
	}
	left = d->batch_count - done;
	if (left && done)
		memmove(d->batch, d->batch + done, left * sizeof(*d->batch));
	d->batch_count = left;
	if (!left)
		d->batch_bytes = 0;
	return done;
}

/* Appends a datagram to the batch, which has space. The caller's memory must not change until the datagram is sent. */
static void dgram_tx_hold(struct dgram *d, struct ep *ep, const struct xfer *x,
			  const struct addr *to)
{
	const struct iovec one = {(void *)(uintptr_t)x->buf, x->len};
	struct dgram_out *out = &d->batch[d->batch_count++];

	out->ep = ep;
	out->to = *to;
	out->flags = x->flags;
	out->context = x->context;
	out->len = x->len;
	d->batch_bytes += x->len;
	out->count = x->iov ? x->count : 1;
	memcpy(out->iov, x->iov ? x->iov : &one, out->count * sizeof(one));
}

/*
 * Reports an unreachable destination (`err`, positive) by a completion, as for datagrams of a
 * batch. An injected send has none and returns the error.
 */
static __attribute__((noinline, cold)) int no_way(struct ep *ep, const struct xfer *x, int err)
{
	if (x->flags & FI_INJECT)
		return -err;
	dgram_tx_failed(&(struct dgram_out){.ep = ep, .context = x->context}, err);
	return 0;
}

static int dgram_tx_send_now(struct ep *ep, const struct xfer *x, const struct addr *to)
{
	const struct iovec one = {(void *)(uintptr_t)x->buf, x->len};
	struct dgram *d = ep->worker->dgram;
	int err = d->ops->send(d, to, x->iov ? x->iov : &one, x->iov ? x->count : 1);

	if (__builtin_expect(!err, 1))
		dgram_tx_sent(ep, x->flags, x->context, x->len);
	return __builtin_expect(err > 0, 0) ? no_way(ep, x, err) : err;
}

/*
 * Sends by the batch: the call has FI_MORE, or the batch is not empty. An injected datagram is sent
 * at once, behind the batch.
 */
static __attribute__((noinline, cold)) int send_together(struct ep *ep, const struct xfer *x,
							 const struct addr *to)
{
	struct dgram *d = ep->worker->dgram;

	if (!d->batch)
		d->batch = malloc(DGRAM_BATCH_MAX * sizeof(*d->batch));
	if (!d->batch)
		return dgram_tx_send_now(ep, x, to);
	if (x->flags & FI_INJECT || d->batch_count == DGRAM_BATCH_MAX)
		dgram_flush(d);
	if (x->flags & FI_INJECT)
		return d->batch_count ? -FI_EAGAIN : dgram_tx_send_now(ep, x, to);
	if (d->batch_count == DGRAM_BATCH_MAX)
		return -FI_EAGAIN;
	dgram_tx_hold(d, ep, x, to);
	if (!(x->flags & FI_MORE) || d->batch_count == DGRAM_BATCH_MAX ||
	    d->batch_bytes >= DGRAM_BATCH_BYTES)
		dgram_flush(d);
	return 0;
}

__attribute__((noinline, cold)) int dgram_refuse(struct ep *ep, uint64_t flags, int err)
{
	struct dgram *d = ep->worker->dgram;

	if (d->batch_count && !(flags & FI_MORE))
		dgram_flush(d);
	return err;
}

int dgram_send(struct ep *ep, const struct xfer *x)
{
	struct dgram *d = ep->worker->dgram;
	const struct addr *to;
	int err;

	if (__builtin_expect((x->flags & IMPOSSIBLE) != 0, 0))
		return dgram_refuse(ep, x->flags, -FI_EOPNOTSUPP);
	if (__builtin_expect(x->len > d->max, 0) ||
	    (x->flags & FI_INJECT && x->len > ep->inject_max))
		return dgram_refuse(ep, x->flags, -FI_EMSGSIZE);
	to = dgram_tx_destination(ep, x, &err);
	if (__builtin_expect(!to, 0))
		return dgram_refuse(ep, x->flags, err);
	if (__builtin_expect(x->flags & FI_MORE || d->batch_count, 0))
		return send_together(ep, x, to);
	return dgram_tx_send_now(ep, x, to);
}

void dgram_forget(struct dgram *d, struct ep *ep, struct ep *successor)
{
	unsigned int kept = 0;

	dgram_flush(d);
	for (unsigned int i = 0; i < d->batch_count; i++) {
		if (d->batch[i].ep == ep && !successor)
			continue;
		d->batch[kept] = d->batch[i];
		if (d->batch[kept].ep == ep)
			d->batch[kept].ep = successor;
		kept++;
	}
	d->batch_count = kept;
}
