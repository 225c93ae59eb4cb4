/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages and their receives: copies, reads or asks for the bytes, then completes. */
#include "xfer/msg/rx.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"
#include "base/probe.h"
#include "cntr/cntr.h"
#include "core/cq.h"
#include "info/providers.h"
#include "link/wire.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma.h"
#include "xfer/msg/tx.h"

void rx_send_ats(const struct message *m, int err)
{
	if (m->peer)
		tx_control(m->peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(m->head)), (uint64_t)err);
}

/* Reports a received message: completion, counter, deferred work. */
static void rx_complete(struct rx *rx, struct recv *r, const struct message *m, size_t capacity,
			void *base, int err)
{
	uint32_t flags = wire_flags(m->head);
	struct cq_slot slot = {
		.context = r->context,
		.flags = FI_RECV | (flags & WIRE_TAGGED ? FI_TAGGED : FI_MSG) |
			 (flags & WIRE_DATA ? FI_REMOTE_CQ_DATA : 0) |
			 (wire_op(m->head) == WIRE_AMO ? FI_ATOMIC : 0),
		.len = m->len < capacity ? m->len : capacity,
		.buf = base,
		.data = m->data,
		.tag = m->tag,
		.src = rx_reported(rx, m->peer, m->src),
	};

	PROBE4(deliver, r, m->peer, m->tag, m->len);
	/* The release of a multi-receive buffer is reported even if completions are selective. */
	if (r->flags & FI_MULTI_RECV && r->exhausted && !r->arriving) {
		slot.flags |= FI_MULTI_RECV;
		r->flags |= FI_COMPLETION;
	}
	if (!err && m->len > capacity)
		err = FI_ETRUNC;
	if (__builtin_expect(!err && !(rx->caps & FI_SOURCE_ERR && slot.src == FI_ADDR_NOTAVAIL),
			     1)) {
		if (rx_wants_completion(rx, r))
			cq_push(rx->cq, slot);
		if (rx->cntr && !r->work)
			cntr_done(rx->cntr, slot.len);
	} else {
		if (!r->work || r->flags & FI_COMPLETION)
			rx_complete_error(rx, &slot, m, err);
		if (rx->cntr && !r->work)
			cntr_fail(rx->cntr);
	}
	if (r->work) {
		r->work->got = slot.len;
		r->work->tag = slot.tag;
		defer_done(r->work, err);
	}
}

/* Reports a failed message, or one whose source is not in the address vector (FI_SOURCE_ERR). */
void rx_complete_error(struct rx *rx, const struct cq_slot *slot, const struct message *m, int err)
{
	struct cq_error why = {.err = err ? err : FI_EADDRNOTAVAIL};
	const struct sender peer =
		m->peer ? (struct sender){m->peer->conn.name, contact_reported_key(&m->peer->conn)}
			: (struct sender){.key = FI_ADDR_NOTAVAIL};
	const struct sender *from = m->peer ? &peer : m->from;
	struct cq_slot from_key = *slot;
	unsigned char name[ADDR_STR_MAX];
	size_t len = sizeof(name);

	why.prov_errno = why.err;
	if (err == FI_ETRUNC)
		why.olen = m->len - slot->len;
	if (!err && from) {
		from_key.src = from->key;
		if (!addr_to_format(&from->name, provider_format(rx->dom->info), name, &len))
			why.data_size = len;
	}
	if (rx->cq)
		cq_push_error(rx->cq, &from_key, &why, name);
}

void rx_finish(struct rx *rx, struct recv *r, const struct message *m, size_t capacity, void *base,
	       int err)
{
	r->arriving--;
	rx_complete(rx, r, m, capacity, base, err);
	if (!r->arriving && (r->exhausted || !(r->flags & FI_MULTI_RECV)))
		pool_put(&rx->q->recv_pool, r);
}

/* Reports the release of a used-up multi-receive buffer of a shared context, which outlives the endpoint. */
static void give_back(struct rx *rx, const struct recv *r)
{
	struct cq_slot slot = {.context = r->context,
			       .flags = FI_RECV | FI_MULTI_RECV,
			       .tag = r->tag,
			       .src = FI_ADDR_NOTAVAIL};
	struct cq_error why = {.err = FI_ECANCELED, .prov_errno = FI_ECANCELED};

	if (rx->q != rx && rx->cq)
		cq_push_error(rx->cq, &slot, &why, NULL);
}

void rx_abandon(struct rx *rx, struct recv *r)
{
	if (--r->arriving)
		return;
	if (r->work)
		defer_done(r->work, FI_ECANCELED);
	if (r->flags & FI_MULTI_RECV) {
		if (!r->exhausted)
			return;
		give_back(rx, r);
	}
	pool_put(&rx->q->recv_pool, r);
}

size_t rx_reserve(struct rx *rx, struct recv *r, size_t len)
{
	size_t capacity = r->len, take = len < capacity ? len : capacity;

	r->arriving++;
	if (!(r->flags & FI_MULTI_RECV)) {
		list_remove(&r->link);
		return capacity;
	}
	r->len -= take;
	r->iov[0].iov_base = (char *)r->iov[0].iov_base + take;
	r->iov[0].iov_len = r->len;
	if (r->len == 0 || r->len < rx->q->min_multi_recv) {
		r->exhausted = 1;
		list_remove(&r->link);
	}
	return capacity;
}

static void accept_rts(struct rx *rx, struct recv *r, struct message *m)
{
	void *base = r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL;
	struct wire_rts rts;

	memcpy(&rts, m->payload, offsetof(struct wire_rts, segment));
	memcpy(rts.segment, (const char *)m->payload + offsetof(struct wire_rts, segment),
	       rts.count * sizeof(rts.segment[0]));
	m->len = rts.len;
	rxreq_rts(rx, r, m, &rts, rx_reserve(rx, r, m->len), base);
}

/* Applies an atomic message to the receive's buffer. */
static void accept_atomic(struct rx *rx, struct recv *r, const struct message *m)
{
	struct message seen = *m;
	void *base = r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL;
	struct rma_matched end = rma_match_apply(m, r->iov, r->iov_count);
	size_t capacity;

	seen.head = WIRE_HEAD(WIRE_AMO, WIRE_TAGGED | (end.has_data ? WIRE_DATA : 0), 0, 0);
	seen.data = end.data;
	seen.len = rma_match_len(m);
	capacity = rx_reserve(rx, r, seen.len);
	/* An atomic beyond the end of the receive: rx_finish reports FI_ETRUNC. */
	rx_finish(rx, r, &seen, capacity, base, seen.len > capacity ? 0 : end.err);
}

void rx_accept(struct rx *rx, struct recv *r, const struct message *m)
{
	struct peer *peer = m->peer; /* NULL: a whole message whose sender has gone */
	void *base = NULL;
	size_t capacity;

	PROBE4(match, r, peer, m->tag, wire_op(m->head));
	if (wire_op(m->head) == WIRE_AMO) {
		accept_atomic(rx, r, m);
		return;
	}
	if (peer && wire_op(m->head) == WIRE_RTS) {
		accept_rts(rx, r,
			   &(struct message){peer, m->src, m->head, m->tag, m->data, 0, m->payload,
					     NULL});
		return;
	}
	if (r->iov_count == 1 && m->len <= r->iov[0].iov_len) {
		if (m->len)
			copy_bytes(r->iov[0].iov_base, m->payload, m->len);
	} else {
		iov_scatter(r->iov, r->iov_count, 0, m->payload, m->len);
	}
	if (r->flags & FI_MULTI_RECV)
		base = r->iov[0].iov_base;
	capacity = rx_reserve(rx, r, m->len);
	if (rx_wants_ack(m->head))
		rx_send_ats(m, 0);
	rx_finish(rx, r, m, capacity, base, 0);
}

void rx_accept_lost(struct rx *rx, struct recv *r, const struct message *m)
{
	void *base = r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL;

	rx_finish(rx, r, m, rx_reserve(rx, r, 0), base, FI_ENOMEM);
}

/*
 * Ends a posted receive; frees it unless messages are arriving in it. A multi-receive buffer is
 * released by this completion, or by that of the last arriving message.
 */
void rx_recv_fail(struct rx *rx, struct recv *r, int err, uint64_t flags)
{
	struct cq_slot slot = {.context = r->context,
			       .flags = FI_RECV | flags | (r->flags & FI_MULTI_RECV),
			       .tag = r->tag,
			       .src = FI_ADDR_NOTAVAIL};

	list_remove(&r->link);
	if (r->arriving) {
		r->exhausted = 1;
		return;
	}
	if (rx->cq && (!r->work || r->flags & FI_COMPLETION))
		cq_push_error(rx->cq, &slot, &(struct cq_error){.err = err, .prov_errno = err},
			      NULL);
	if (rx->cntr && err != FI_ECANCELED && !r->work)
		cntr_fail(rx->cntr);
	if (r->work)
		defer_done(r->work, err);
	pool_put(&rx->q->recv_pool, r);
}
