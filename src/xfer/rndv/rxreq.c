/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages received in fragments after CTS, or by a copy that ends later, and direct placement of payloads by tcp. */
#include "xfer/events.h"
#include "xfer/rndv/rxreq.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"
#include "link/wire.h"
#include "xfer/rndv/way.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Makes a receive request of message `m` for receive `r`, of which `capacity` bytes are reserved. NULL: no memory. */
static struct rxreq *rxreq_begin(struct rx *rx, struct recv *r, const struct message *m,
				 size_t capacity, void *base)
{
	struct rxreq *a = pool_get(&peer_worker(m->peer)->rxreq_pool);

	if (!a)
		return NULL;
	memset(a, 0, sizeof(*a));
	a->rx = rx;
	a->recv = r;
	a->message = *m;
	a->capacity = capacity;
	a->base = base;
	list_push(&m->peer->rx.rxreqs, &a->link);
	return a;
}

/* Ends a request: complete (0), or with `err` (positive). Sends ATS if `ack_pending`. */
static void rxreq_end(struct rxreq *a, int err)
{
	struct worker *worker = peer_worker(a->message.peer);

	list_remove(&a->link);
	a->message.src = contact_addr(&a->message.peer->conn);
	if (a->ack_pending) /* no effect if the peer is disconnected */
		rx_send_ats(&a->message, err);
	if (worker->conn.closing)
		rx_abandon(a->rx, a->recv);
	else
		rx_finish(a->rx, a->recv, &a->message, a->capacity, a->base, err);
	pool_put(&worker->rxreq_pool, a);
}

/* Sends CTS: the sender is to stream the message. */
static void rxreq_ask(struct rxreq *a)
{
	a->asked = true;
	tx_control(a->message.peer, WIRE_HEAD(WIRE_CTS, 0, 0, wire_id(a->message.head)),
		   pool_id(a));
}

/* Fills in the ranges of the first `want` bytes. Returns their number. */
static size_t ranges_of(struct fi_rma_iov *range, const struct wire_rts *rts, size_t want)
{
	size_t count = 0;

	for (size_t i = 0; want && i < rts->count; i++) {
		const struct wire_segment *s = &rts->segment[i];
		size_t len = s->len < want ? s->len : want;

		if (len)
			range[count++] = (struct fi_rma_iov){s->addr, len, s->key};
		want -= len;
	}
	return count;
}

/* Counts a message that has been read, and ends the request. */
static void rxreq_end_read(struct rxreq *a, int copied, uint64_t *alone)
{
	if (copied == LINK_TOGETHER)
		a->message.peer->counts.helped++;
	else
		++*alone;
	rxreq_end(a, 0);
}

/* False: it cannot be read. Else the request has ended, or rxreq_copied ends it. */
static bool rxreq_read_message(struct rxreq *a, const struct fi_rma_iov *remote, size_t count,
			       size_t want)
{
	struct link *link = a->message.peer->conn.real;
	struct iovec whole = {a->base, want}, local[RX_IOV_MAX];
	struct link_copy c = {.id = pool_id(a),
			      .message = true,
			      .at_once = a->message.peer->conn.end != 0,
			      .local = local,
			      .remote = remote,
			      .remote_count = count};
	int ret;

	c.local_count = a->base ? iov_slice(local, &whole, 1, 0, &want)
				: iov_slice(local, a->recv->iov, a->recv->iov_count, 0, &want);
	ret = link->memory->copy(link, &c);
	if (ret < 0)
		return false;
	if (ret != LINK_UNDER_WAY) {
		rxreq_end_read(a, ret, &a->message.peer->counts.read);
		return true;
	}
	a->state = RXREQ_READ;
	if (link->local) /* no packet and no device tells its end */
		worker_look(peer_worker(a->message.peer));
	return true;
}

void rxreq_rts(struct rx *rx, struct recv *r, const struct message *m, const struct wire_rts *rts,
	       size_t capacity, void *base)
{
	struct rxreq *a = rxreq_begin(rx, r, m, capacity, base);
	size_t want = m->len < capacity ? m->len : capacity, count;
	struct fi_rma_iov remote[WIRE_IOV_MAX];

	if (!a) {
		rx_send_ats(m, FI_ENOMEM);
		rx_finish(rx, r, m, capacity, base, FI_ENOMEM);
		return;
	}
	a->ack_pending = true;
	count = ranges_of(remote, rts, want);
	switch (way_in(m->peer->conn.real, remote, count)) {
	case IN_NOTHING:
		rxreq_end_read(a, LINK_DONE, &m->peer->counts.read);
		return;
	case IN_READ:
		if (rxreq_read_message(a, remote, count, want))
			return;
		break;
	case IN_STREAM:
		break;
	}
	rxreq_ask(a);
}

/* It is not read, so all of it is to be sent: fragments that came meanwhile were dropped. */
static void ask_again(struct rxreq *a)
{
	a->state = RXREQ_COMES;
	rxreq_ask(a);
}

void rxreq_copied(struct worker *worker, uint32_t id, int ret)
{
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);

	if (!a || a->state != RXREQ_READ)
		return;
	if (ret < 0)
		ask_again(a);
	else
		rxreq_end_read(a, ret, &a->message.peer->counts.rdma);
}

void rxreq_rdma_failed(struct peer *peer)
{
	LIST_EACH_OF (struct rxreq, a, &peer->rx.rxreqs, link) {
		if (a->state == RXREQ_READ)
			ask_again(a);
	}
}

bool rxreq_rdma(const struct peer *peer, const struct rx *rx)
{
	LIST_EACH_OF (const struct rxreq, a, &peer->rx.rxreqs, link) {
		if (a->rx == rx && a->state == RXREQ_READ)
			return true;
	}
	return false;
}

/* Returns the receive request that expects this fragment next, or NULL. */
static struct rxreq *next_fragment(struct worker *worker, const struct peer *peer,
				   const struct packet *p)
{
	struct rxreq *a = pool_find(&worker->rxreq_pool, wire_id(p->head));

	return a && a->message.peer == peer && a->state == RXREQ_COMES && p->tag == a->received &&
			       p->len <= a->message.len - a->received
		       ? a
		       : NULL;
}

static void rxreq_advance(struct rxreq *a, size_t len)
{
	a->received += len;
	a->message.peer->rx.came++;
	if (a->received != a->message.len) {
		shard_part(&a->message.peer->conn.station->driven.shard);
		return;
	}
	if (a->asked)
		a->message.peer->counts.asked++;
	rxreq_end(a, 0);
}

void rxreq_frag(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct rxreq *a = next_fragment(worker, peer, p);
	size_t keep = p->len, offset = p->tag;

	if (!a) {
		LOG_INFO(LOG_EP_DATA, "fragment of a message that is not being received, dropped");
		return;
	}
	if (offset >= a->capacity)
		keep = 0;
	else if (keep > a->capacity - offset)
		keep = a->capacity - offset;
	if (keep && a->base)
		copy_bytes(a->base + offset, p->payload, keep);
	else if (keep)
		iov_scatter(a->recv->iov, a->recv->iov_count, offset, p->payload, keep);
	rxreq_advance(a, p->len);
}

/* Makes a receive request for a whole message whose receive is posted, or returns NULL. */
static struct rxreq *place_message(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct message m = rx_message_of(peer, p);
	struct rx *rx = rx_context_of(worker, peer, p);
	struct recv *r = NULL;
	struct rxreq *a;

	if (rx && !contact_expelled(&peer->conn)) /* rx_deliver drops later packets */
		r = rx_find_posted(rx, wire_flags(p->head) & WIRE_TAGGED, m.src, m.tag);
	if (!r)
		return NULL;
	a = rxreq_begin(rx, r, &m, 0, r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL);
	if (!a)
		return NULL;
	a->capacity = rx_reserve(rx, r, m.len);
	a->ack_pending = rx_wants_ack(m.head);
	return a;
}

uint32_t rxreq_placement_begin(struct opener *o, uint32_t src, const struct packet *p)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);
	struct rxreq *a = NULL;

	if (peer && wire_op(p->head) == WIRE_MSG)
		a = place_message(worker, peer, p);
	else if (peer && wire_op(p->head) == WIRE_FRAG)
		a = next_fragment(worker, peer, p);
	if (!a)
		return 0;
	a->placing = p->len;
	a->placed = 0;
	return pool_id(a);
}

size_t rxreq_placement_iov(struct opener *o, uint32_t id, size_t offset, struct iovec *iov,
			   size_t max)
{
	struct worker *worker = worker_opener(o);
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);
	size_t at, want;

	if (!a || max < RX_IOV_MAX)
		return 0;
	at = a->received + offset;
	if (offset > a->placed)
		a->message.peer->rx.came++;
	a->placed = offset;
	if (at >= a->capacity)
		return 0;
	want = a->placing - offset;
	if (want > a->capacity - at)
		want = a->capacity - at;
	if (a->base) {
		iov[0] = (struct iovec){a->base + at, want};
		return 1;
	}
	return iov_slice(iov, a->recv->iov, a->recv->iov_count, at, &want);
}

void rxreq_placement_end(struct opener *o, uint32_t id)
{
	struct worker *worker = worker_opener(o);
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);

	if (a)
		rxreq_advance(a, a->placing);
}

void rxreq_fail_peer(struct peer *peer, int err)
{
	while (!list_empty(&peer->rx.rxreqs)) {
		rxreq_end(LIST_ENTRY(peer->rx.rxreqs.next, struct rxreq, link), err);
	}
}

void rxreq_fail_context(struct worker *worker, struct rx *rx, int err)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		LIST_EACH_SAFE_OF (struct rxreq, a, &peer->rx.rxreqs, link) {
			if (a->rx == rx)
				rxreq_end(a, err);
		}
	}
}
