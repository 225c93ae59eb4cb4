/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending beyond the fast road: connect first, wait for room, offer long messages, await answers. */
#include "xfer/tx.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "xfer/conn.h"
#include "xfer/port.h"

static void req_free(struct txreq *req)
{
	free(req->bounce); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow the lists */
	pool_put(&req->peer->port->tx_pool, req);
}

void tx_complete_error(struct ep *ep, const struct txreq *req, int err)
{
	struct cq_slot slot = {
		.context = req->context, .flags = req->flags & TX_KIND, .tag = req->tag};

	if (ep->tx_cq)
		cq_push_error(ep->tx_cq, &slot, &(struct cq_error){.err = err, .prov_errno = err},
			      NULL);
	if (ep->tx_cntr)
		cntr_fail(ep->tx_cntr);
}

void tx_count(struct ep *ep)
{
	cntr_done(ep->tx_cntr, 0);
}

/* Ends a request, well or with a positive error, and frees it. It is on no list any more. */
static void req_end(struct txreq *req, int err)
{
	if (req->ep && err)
		tx_complete_error(req->ep, req, err);
	else if (req->ep)
		tx_complete(req->ep, req->flags & TX_KIND, req->flags, req->context);
	req_free(req);
}

static uint64_t ack_flags(uint64_t flags)
{
	if (flags & FI_DELIVERY_COMPLETE)
		return WIRE_ACK_DELIVER;
	return flags & FI_MATCH_COMPLETE ? WIRE_ACK_MATCH : 0;
}

static int send_offer(struct link *link, struct txreq *req)
{
	struct wire_offer offer = {.len = req->len, .count = req->count};
	uint64_t flags = wire_flags(req->head);

	for (size_t i = 0; i < req->count; i++)
		offer.segment[i] =
			(struct wire_segment){(uintptr_t)req->iov[i].iov_base, req->iov[i].iov_len};
	return link->ops->send(
		link, &offer,
		offsetof(struct wire_offer, segment) + req->count * sizeof(struct wire_segment),
		req->data, WIRE_HEAD(WIRE_OFFER, flags, wire_rx(req->head), pool_id(req)),
		req->tag);
}

static int send_whole(struct link *link, struct txreq *req, uint64_t ack)
{
	struct packet p = {.head = req->head, .tag = req->tag, .data = req->data, .len = req->len};

	if (ack)
		p.head |= WIRE_HEAD(0, ack, 0, pool_id(req));
	return link->ops->sendv(link, &p, req->iov, req->count);
}

/* Sends the request, on no list, and puts it where its answer finds it. 0 or -FI_EAGAIN. */
static int req_send(struct txreq *req)
{
	struct link *link = req->peer->real;
	uint64_t ack = ack_flags(req->flags);
	bool whole = req->len <= link->eager_max;
	int err = whole ? send_whole(link, req, ack) : send_offer(link, req);

	if (err)
		return err;
	if (whole && !ack) {
		req_end(req, 0);
		return 0;
	}
	req->awaited = true;
	req->offered = !whole;
	list_push(&req->peer->requests, &req->link);
	return 0;
}

static struct txreq *req_new(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	struct txreq *req = pool_get(&peer->port->tx_pool);

	if (!req)
		return NULL;
	*req = (struct txreq){.ep = ep,
			      .peer = peer,
			      .head = x->head,
			      .flags = x->flags,
			      .tag = x->tag,
			      .data = x->data,
			      .context = x->context,
			      .len = x->len};
	list_init(&req->link);
	if (x->iov) {
		req->count = x->count;
		memcpy(req->iov, x->iov, x->count * sizeof(*x->iov));
	} else if (x->len) {
		req->count = 1;
		req->iov[0] = (struct iovec){(void *)(uintptr_t)x->buf, x->len};
	}
	return req;
}

/* An injected buffer is the caller's again when the call returns: keep a copy. */
static int req_bounce(struct txreq *req)
{
	unsigned char *to;

	if (!(req->flags & FI_INJECT) || !req->len)
		return 0;
	to = req->bounce = malloc(req->len);
	if (!to)
		return -FI_ENOMEM;
	for (size_t i = 0; i < req->count; i++) {
		if (req->iov[i].iov_len) /* else the address may be NULL */
			memcpy(to, req->iov[i].iov_base, req->iov[i].iov_len);
		to += req->iov[i].iov_len;
	}
	req->iov[0] = (struct iovec){req->bounce, req->len};
	req->count = 1;
	return 0;
}

/* To be sent, in order, once the peer is connected or a fence has opened. */
static int tx_queue(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	struct txreq *req;
	int err;

	if (peer->backlog_count >= ep->tx_size)
		return -FI_EAGAIN;
	req = req_new(ep, peer, x);
	if (!req)
		return -FI_ENOMEM;
	err = req_bounce(req);
	if (err) {
		req_free(req);
		return err;
	}
	list_push(&peer->backlog, &req->link);
	peer->backlog_count++;
	peer_busy(peer, &peer->port->busy);
	peer_refresh(peer);
	return 0;
}

static bool fenced(const struct peer *peer, uint64_t flags)
{
	return flags & FI_FENCE && !(list_empty(&peer->requests) && list_empty(&peer->streams));
}

/* Whatever is posted after a fence waits for what the fence waits for. */
static bool behind_fence(const struct peer *peer)
{
	return !list_empty(&peer->backlog) &&
	       fenced(peer, LIST_ENTRY(peer->backlog.next, struct txreq, link)->flags);
}

/* The peer is connected and nothing waits before us. */
static int tx_now(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	struct link *link = peer->real;
	struct txreq *req;
	int err;

	if (x->len <= link->eager_max && !ack_flags(x->flags)) {
		struct iovec one = {(void *)(uintptr_t)x->buf, x->len};
		struct packet p = {.head = x->head, .tag = x->tag, .data = x->data, .len = x->len};

		err = link->ops->sendv(link, &p, x->iov ? x->iov : &one, x->iov ? x->count : 1);
		if (!err)
			tx_complete(ep, x->flags & TX_KIND, x->flags, x->context);
		return err;
	}
	req = req_new(ep, peer, x);
	if (!req)
		return -FI_ENOMEM;
	err = req_send(req);
	if (err)
		req_free(req);
	return err;
}

static int tx_try(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	if (peer->state != PEER_CONNECTED || fenced(peer, x->flags) || behind_fence(peer))
		return tx_queue(ep, peer, x);
	if (peer->held || !list_empty(&peer->backlog))
		return -FI_EAGAIN;
	return tx_now(ep, peer, x);
}

static int tx_begin(struct ep *ep, struct peer *peer, const struct xfer *x)
{
	int err = peer->state == PEER_IDLE ? conn_start(peer) : 0;

	return err ? err : tx_try(ep, peer, x);
}

int tx_slow(struct ep *ep, struct xfer x)
{
	struct peer *peer = peer_get(ep->port, x.addr & ep->addr_mask);
	int err;

	x.head |= (x.addr >> ep->rx_shift & ep->rx_index_mask) << 16;
	if (!peer) {
		LOG_WARN(LOG_EP_DATA, "send: fi_addr %#llx is not in the address vector",
			 (unsigned long long)x.addr);
		return -FI_EINVAL;
	}
	if (x.flags & FI_TRIGGER)
		return -FI_EOPNOTSUPP;
	/* By default of the endpoint; only what the fast road copies may be longer. */
	if (x.flags & FI_INJECT && x.len > ep->inject_max)
		return -FI_EMSGSIZE;
	err = tx_begin(ep, peer, &x);
	/*
	 * No room: what we have received may be what the peer is waiting to be rid of. Or that it is
	 * dead: then this one goes to whoever has its address now. Or the transport only wants its
	 * own side looked after.
	 */
	if (err == -FI_EAGAIN) {
		port_turn(ep->port);
		err = tx_begin(ep, peer, &x);
	}
	return err;
}

void tx_control(struct peer *peer, uint64_t head, uint64_t tag)
{
	struct txreq *req;

	/* A peer that has accepted us may send before we have read that it did. */
	if (peer->state == PEER_IDLE)
		return;
	if (peer->real && list_empty(&peer->controls) &&
	    !peer->real->ops->send(peer->real, NULL, 0, 0, head, tag))
		return;
	req = pool_get(&peer->port->tx_pool);
	if (!req) {
		LOG_WARN(LOG_EP_DATA, "out of memory: an answer to a peer is lost");
		return;
	}
	*req = (struct txreq){.peer = peer, .head = head, .tag = tag};
	list_push(&peer->controls, &req->link);
	peer_busy(peer, &peer->port->busy);
}

void tx_fin(struct port *port, struct peer *peer, uint32_t id, int err)
{
	struct txreq *req = pool_find(&port->tx_pool, id);

	if (!req || req->peer != peer || !req->awaited) {
		LOG_INFO(LOG_EP_DATA, "answer for request %#x, which is not under way", id);
		return;
	}
	list_remove(&req->link);
	req_end(req, err);
	if (!list_empty(&peer->backlog))
		peer_busy(peer, &port->busy);
}

void tx_pull(struct port *port, struct peer *peer, uint32_t id, uint32_t remote_id)
{
	struct txreq *req = pool_find(&port->tx_pool, id);

	if (!req || req->peer != peer || !req->offered)
		return;
	req->offered = false;
	req->remote_id = remote_id;
	list_remove(&req->link);
	list_push(&peer->streams, &req->link);
	peer_busy(peer, &port->busy);
}

void tx_forget(struct port *port, struct ep *ep, struct ep *heir)
{
	LIST_EACH (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);
		struct list *lists[] = {&peer->backlog, &peer->requests, &peer->streams};

		for (unsigned int i = 0; i < 3; i++)
			LIST_EACH (at, lists[i]) {
				struct txreq *req = LIST_ENTRY(at, struct txreq, link);

				if (req->ep == ep)
					req->ep = heir;
			}
	}
}

int tx_cancel(struct port *port, void *context)
{
	LIST_EACH (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		LIST_EACH (at, &peer->backlog) {
			struct txreq *req = LIST_ENTRY(at, struct txreq, link);

			if (req->context != context || !req->ep)
				continue;
			list_remove(&req->link);
			peer->backlog_count--;
			req_end(req, FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}

static void fail_list(struct list *head, int err)
{
	struct list *node;

	while ((node = list_pop(head)))
		req_end(LIST_ENTRY(node, struct txreq, link), err);
}

void tx_fail_all(struct peer *peer, int err)
{
	fail_list(&peer->controls, 0);
	fail_list(&peer->requests, err);
	fail_list(&peer->streams, err);
	fail_list(&peer->backlog, err);
	peer->backlog_count = 0;
	list_remove(&peer->in_busy);
}

/* The next piece of a stream: at most eager_max bytes from where it stands. */
static int send_frag(struct txreq *req)
{
	struct link *link = req->peer->real;
	struct iovec iov[WIRE_IOV_MAX];
	struct packet p = {.head = WIRE_HEAD(WIRE_FRAG, 0, 0, req->remote_id), .tag = req->sent};
	size_t skip = req->sent, count = 0;
	int err;

	for (size_t i = 0; i < req->count && p.len < link->eager_max; i++) {
		size_t len = req->iov[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len -= skip;
		if (len > link->eager_max - p.len)
			len = link->eager_max - p.len;
		iov[count++] = (struct iovec){(char *)req->iov[i].iov_base + skip, len};
		p.len += len;
		skip = 0;
	}
	err = link->ops->sendv(link, &p, iov, count);
	if (!err)
		req->sent += p.len;
	return err;
}

static bool flush_streams(struct peer *peer)
{
	bool moved = false;

	LIST_EACH_SAFE (node, &peer->streams) {
		struct txreq *req = LIST_ENTRY(node, struct txreq, link);

		while (req->sent < req->len) {
			if (send_frag(req))
				return moved;
			moved = true;
		}
		/* All is on its way: the receiver's answer ends it. */
		list_remove(&req->link);
		list_push(&peer->requests, &req->link);
	}
	return moved;
}

static bool flush_controls(struct peer *peer)
{
	bool moved = false;

	LIST_EACH_SAFE (node, &peer->controls) {
		struct txreq *req = LIST_ENTRY(node, struct txreq, link);

		if (peer->real->ops->send(peer->real, NULL, 0, 0, req->head, req->tag))
			return moved;
		list_remove(&req->link);
		req_free(req);
		moved = true;
	}
	return moved;
}

static bool flush_backlog(struct peer *peer)
{
	bool moved = false;

	while (!peer->held && !list_empty(&peer->backlog)) {
		struct txreq *req = LIST_ENTRY(peer->backlog.next, struct txreq, link);

		if (fenced(peer, req->flags))
			break;
		list_remove(&req->link);
		if (req_send(req)) {
			list_push_front(&peer->backlog, &req->link);
			break;
		}
		peer->backlog_count--;
		moved = true;
	}
	return moved;
}

bool tx_flush(struct peer *peer)
{
	bool moved;

	if (peer->state != PEER_CONNECTED)
		return false;
	moved = flush_controls(peer);
	if (list_empty(&peer->controls)) {
		moved |= flush_backlog(peer);
		moved |= flush_streams(peer);
	}
	if (list_empty(&peer->controls) && list_empty(&peer->backlog) && list_empty(&peer->streams))
		list_remove(&peer->in_busy);
	peer_refresh(peer);
	return moved;
}
