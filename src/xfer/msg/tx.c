/* SPDX-License-Identifier: BSD-2-Clause */
/* Slow path of sends: connects first, waits for space, announces long messages, awaits answers. */
#include "xfer/msg/tx.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "base/probe.h"
#include "conn/conn.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma.h"
#include "xfer/rndv/way.h"
#include "xfer/worker.h"

static uint64_t ack_flags(uint64_t flags)
{
	if (flags & FI_DELIVERY_COMPLETE)
		return WIRE_ACK_DELIVER;
	return flags & FI_MATCH_COMPLETE ? WIRE_ACK_MATCH : 0;
}

/*
 * Fills in req->remote for the RTS: addresses, with keys if the device is to read the memory and it can be registered. A
 * registration stays with the request until that ends. Returns the way that the message goes.
 */
static enum way_out prepare_rndv(struct txreq *req, enum way_out way)
{
	struct link *link = req->peer->conn.real;

	if (req->rndv)
		return OUT_RDMA;
	if (way == OUT_RDMA &&
	    !link->memory->reg(link, req->iov, req->count, req->remote, &req->rndv))
		return OUT_RDMA;
	for (size_t i = 0; i < req->count; i++)
		req->remote[i] = (struct fi_rma_iov){.addr = (uintptr_t)req->iov[i].iov_base,
						     .len = req->iov[i].iov_len};
	return OUT_RTS;
}

static int send_rts(struct link *link, struct txreq *req)
{
	struct wire_rts rts = {.len = req->len, .count = req->count};
	uint64_t flags = wire_flags(req->head);

	for (size_t i = 0; i < req->count; i++)
		rts.segment[i] = (struct wire_segment){req->remote[i].addr, req->remote[i].len,
						       req->remote[i].key};
	return link->ops->send(
		link, &rts,
		offsetof(struct wire_rts, segment) + req->count * sizeof(struct wire_segment),
		req->data, WIRE_HEAD(WIRE_RTS, flags, wire_rx(req->head), pool_id(req)), req->tag);
}

static int send_whole(struct txreq *req, uint64_t ack)
{
	struct packet p = {.head = req->head, .tag = req->tag, .data = req->data, .len = req->len};

	if (ack)
		p.head |= WIRE_HEAD(0, ack, 0, pool_id(req));
	return tx_zcopy(req, &p, req->iov, req->count);
}

/* Ends the request, unless the link still reads its memory. */
static void end_sent(struct txreq *req)
{
	tx_end_zcopy(req->peer); /* older zero-copy sends complete first */
	if (tx_zcopy_pending(req))
		tx_req_move(req, TXREQ_ZCOPY);
	else
		tx_req_end(req, 0);
}

/* A short message that the peer answers only for the sake of XOFF has left the process. */
static void report_sent(struct txreq *req)
{
	struct link *link = req->peer->conn.real;

	if (link_holds(link))
		link->zcopy->cork(link, false);
	tx_req_report(req);
}

/*
 * Under XOFF each message asks for an answer when it is matched, and of a longer one only the RTS
 * goes: the peer keeps little, and can match it.
 */
int tx_send(struct txreq *req)
{
	uint64_t asked = ack_flags(req->flags);
	struct peer *peer = req->peer;
	bool paused = peer->tx.xoff_ms && wire_op(req->head) == WIRE_MSG &&
		      !wire_of_group(req->head); /* collectives do not heed XOFF */
	enum way_out way = way_out(peer->conn.real, req->len, paused);
	bool whole = way <= OUT_ZCOPY;
	uint64_t ack = paused && !asked ? WIRE_ACK_MATCH : asked;
	int err;

	if (!whole)
		way = prepare_rndv(req, way);
	err = whole ? send_whole(req, ack) : send_rts(peer->conn.real, req);
	if (err)
		return err;
	PROBE4(send, req, peer, req->tag, req->len);
	peer->counts.sent[way]++;
	if (paused)
		tx_req_unmatched(req);
	if (paused && whole && !asked)
		report_sent(req);
	if (whole && !ack)
		end_sent(req);
	else
		tx_req_move(req, whole ? TXREQ_ACK : TXREQ_RTS);
	return 0;
}

static struct txreq *tx_new_req(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	struct txreq *req = tx_req_new(ep, peer);

	if (!req)
		return NULL;
	req->head = x->head;
	req->flags = x->flags;
	req->tag = x->tag;
	req->data = x->data;
	req->context = x->context;
	req->len = x->len;
	req->work = x->work;
	if (x->iov) {
		req->count = x->count;
		memcpy(req->iov, x->iov, x->count * sizeof(*x->iov));
	} else if (x->len) {
		req->count = 1;
		req->iov[0] = (struct iovec){(void *)(uintptr_t)x->buf, x->len};
	}
	/* The caller may reuse an injected buffer after the call. */
	if (x->flags & FI_INJECT && tx_req_bounce(req, req->iov, req->count)) {
		tx_req_free(req);
		return NULL;
	}
	return req;
}

int tx_queue(struct ep *ep, struct txreq *req)
{
	struct peer *peer = req->peer;

	if (peer->tx.backlog_count >= ep->tx_size)
		return -FI_EAGAIN;
	tx_req_move(req, TXREQ_BACKLOG);
	peer_busy(peer);
	peer_refresh(peer);
	return 0;
}

/* Sends a message by a request, or queues it until what holds it back has ended. 0 or a negative error. */
static int tx_by_request(struct ep *ep, struct peer *peer, const struct xfer *x, bool queue)
{
	struct txreq *req = tx_new_req(ep, peer, x);
	int err;

	if (!req)
		return -FI_ENOMEM;
	err = queue ? tx_queue(ep, req) : tx_send(req);
	if (err)
		tx_req_free(req);
	return err;
}

/*
 * A fence bars an operation. An RDMA operation under way bars it too: a message may tell the peer
 * that the operation is done.
 */
static __attribute__((noinline, cold)) bool barred_by(const struct peer *peer, uint64_t flags)
{
	if (!list_empty(&peer->txreqs[TXREQ_RDMA]))
		return true;
	return flags & FI_FENCE &&
	       (tx_req_first_unreported(peer) || !list_empty(&peer->txreqs[TXREQ_STREAM]) ||
		!list_empty(&peer->txreqs[TXREQ_RMA]));
}

static bool tx_barred(const struct peer *peer, uint64_t flags)
{
	return peer->rma.bulk || (flags & (FI_SEND | FI_FENCE) && barred_by(peer, flags));
}

bool tx_blocked(const struct peer *peer, const struct txreq *req)
{
	return tx_barred(peer, req->flags) || (!(req->flags & FI_SEND) && rma_waits(peer, req));
}

bool tx_must_queue(const struct peer *peer, uint64_t flags)
{
	return tx_barred(peer, flags) || (!list_empty(&peer->txreqs[TXREQ_BACKLOG]) &&
					  tx_blocked(peer, tx_req_first(peer, TXREQ_BACKLOG)));
}

void tx_announce(const struct peer *peer)
{
	if (peer->conn.state == PEER_CONNECTED)
		peer->conn.real->zcopy->cork(peer->conn.real, true);
}

/* Sends to a connected peer without a backlog. 0 or a negative error. */
static int tx_now(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	bool silent = (x->flags & (FI_INJECT | FI_COMPLETION)) == FI_INJECT;
	struct link *link = peer->conn.real;
	int err;

	if (x->flags & FI_MORE)
		tx_announce(peer);
	/* What the link copies is reported at once. */
	if (!peer->tx.xoff_ms && !ack_flags(x->flags) && !x->work &&
	    way_copies(link, x->len, silent)) {
		struct iovec one = {(void *)(uintptr_t)x->buf, x->len};
		struct packet p = {.head = x->head, .tag = x->tag, .data = x->data, .len = x->len};

		err = link->ops->sendv(link, &p, x->iov ? x->iov : &one, x->iov ? x->count : 1);
		if (!err)
			tx_complete(ep, x->flags & TX_KIND, x->flags, x->context);
		if (!err && ep->tx_cntr)
			tx_count(ep, x->len);
		return err;
	}
	return tx_by_request(ep, peer, x, false);
}

int tx_connect(struct peer *peer, const struct work *work)
{
	int err = peer->conn.refused;

	peer->conn.refused = 0;
	return err && !work && !peer->conn.station->cm ? -err : conn_start(&peer->conn);
}

/*
 * This may read messages whose answers the peer waits for, or find that the peer is dead, so that the
 * retry reaches the process that has its address now, or let the transport read its own input. A peer
 * that is not connected may be another endpoint of this domain, whose thread is ours.
 */
struct peer *tx_progress(const struct ep *ep, fi_addr_t entry)
{
	if (worker_peer(ep->worker, entry)->conn.state == PEER_CONNECTED)
		driven_progress(&ep->worker->conn.driven);
	else
		driven_progress_all(ep->dom, ep->worker->conn.driven.shard.shard);
	return worker_peer(ep->worker, entry);
}

static int tx_try(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	int err = peer->conn.state == PEER_IDLE ? tx_connect(peer, x->work) : 0;

	if (err)
		return err;
	if (peer->conn.state != PEER_CONNECTED || tx_must_queue(peer, x->flags)) {
		/* Only deferred work, what is fenced, and what is long: that needs us anyway. */
		bool may = tx_may_queue(peer, x->flags, x->work) &&
			   (x->work || x->flags & FI_FENCE || way_is_long(peer->conn.real, x->len));

		return may && !tx_full(ep, peer) ? tx_by_request(ep, peer, x, true) : -FI_EAGAIN;
	}
	if (peer_behind(peer) || (peer->tx.xoff_ms && tx_full(ep, peer)))
		return -FI_EAGAIN;
	return tx_now(ep, peer, x);
}

int tx_slow(struct ep *ep, struct xfer x)
{
	struct peer *peer;
	int err;

	x.flags &= ep->tx_msg_mask | TX_KIND;
	if (x.flags & FI_TRIGGER)
		return defer_send(ep, &x);
	if (x.flags & FI_MULTICAST)
		return LOG_REFUSE(-FI_EOPNOTSUPP, LOG_EP_DATA,
				  "send with FI_MULTICAST: only datagrams go to groups");
	peer = peer_get(ep->worker, x.addr & ep->addr_mask);
	x.head |= (x.addr >> ep->rx_shift & ep->rx_index_mask) << 16;
	if (!peer)
		return peer_missing(ep, x.addr, "send");
	/* An endpoint that injects by default may exceed inject_size up to what fits one packet. */
	if (x.flags & FI_INJECT && x.len > ep_inject_max(ep, x.flags) &&
	    (!peer->conn.real || way_is_long(peer->conn.real, x.len)))
		return -FI_EMSGSIZE;
	err = tx_try(ep, peer, &x);
	if (err == -FI_EAGAIN) {
		peer = tx_progress(ep, x.addr & ep->addr_mask);
		err = tx_try(ep, peer, &x);
	}
	return err;
}

void tx_ats(struct worker *worker, struct peer *peer, const struct packet *p)
{
	uint32_t id = wire_id(p->head);
	struct txreq *req = pool_find(&worker->tx_pool, id);
	int err = (int)(p->tag & 0xffff);

	if (!req || req->peer != peer || !tx_awaits_ats(req)) {
		LOG_INFO(LOG_EP_DATA, "answer for request %#x, which is not under way", id);
		return;
	}
	if (wire_flags(req->head) & WIRE_MATCH)
		peer->rma.matching -= req->len;
	peer->tx.unmatched_count -= req->unmatched;
	if (!err && !(req->flags & FI_SEND))
		err = rma_result(req, p);
	/* Answered before all was sent: the peer refuses the message, or is faulty. */
	if (tx_zcopy_pending(req))
		tx_take_back(peer, "a message that it has answered");
	tx_req_end(req, err);
	if (!list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
}

void tx_cts(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct txreq *req = pool_find(&worker->tx_pool, wire_id(p->head));

	if (!req || req->peer != peer || req->state != TXREQ_RTS)
		return;
	peer->counts.streamed++;
	tx_req_deregister(req);
	req->remote_id = (uint32_t)p->tag;
	tx_req_move(req, TXREQ_STREAM);
	peer_busy(peer);
}
