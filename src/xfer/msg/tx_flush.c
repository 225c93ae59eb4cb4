/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends queued output: answers first, then messages of groups, the backlog in order, streams, results
 * of long reads.
 */
#include <stdlib.h>

#include "base/iov.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/way.h"

int tx_zcopy(struct txreq *req, const struct packet *p, const struct iovec *iov, size_t count)
{
	struct link *link = req->peer->conn.real;
	int err;

	if (way_of_packet(link, p->len) == OUT_COPY)
		return link->ops->sendv(link, p, iov, count);
	err = link->zcopy->sendv(link, p, iov, count);
	if (!err && link_holds(link)) {
		req->zcopy = link->zcopy_posted;
		peer_busy(req->peer);
	}
	return err;
}

/* Sends the next fragment, from req->sent on. 0 or a negative error. */
static int tx_flush_send_fragment(struct txreq *req)
{
	struct link *link = req->peer->conn.real;
	struct iovec iov[WIRE_IOV_MAX];
	struct packet p = {.head = WIRE_HEAD(WIRE_FRAG, 0, 0, req->remote_id), .tag = req->sent};
	size_t count, left = req->len - req->sent;
	int err;

	p.len = left < link->packet_max ? left : link->packet_max;
	count = iov_slice(iov, req->iov, req->count, req->sent, &p.len);
	err = tx_zcopy(req, &p, iov, count);
	if (!err)
		req->sent += p.len;
	return err;
}

/* Sends fragments of one request. True: all are sent; the receiver's ATS ends the request. */
static bool flush_stream(struct txreq *req, bool *progressed)
{
	while (req->sent < req->len) {
		if (tx_flush_send_fragment(req))
			return false;
		*progressed = true;
	}
	tx_req_move(req, TXREQ_ACK);
	return true;
}

static bool flush_streams(struct peer *peer)
{
	bool progressed = false;

	LIST_EACH_SAFE (node, &peer->txreqs[TXREQ_STREAM])
		if (!flush_stream(LIST_ENTRY(node, struct txreq, link), &progressed))
			break;
	return progressed;
}

/* Sends fragments of long answers to one-sided reads, each from the memory at that moment. */
static bool flush_replies(struct peer *peer)
{
	bool progressed = false;
	struct txreq *req;

	while ((req = tx_req_first(peer, TXREQ_REPLY)) && !rma_reply_more(req))
		progressed = true;
	return progressed;
}

static bool flush_controls(struct peer *peer)
{
	bool progressed = false;

	LIST_EACH_SAFE_OF (struct control, c, &peer->tx.controls, link) {
		struct packet p = {.head = c->head, .tag = c->tag, .data = c->data, .len = c->len};
		struct iovec iov = {c->payload, c->len};

		if (peer->conn.real->ops->sendv(peer->conn.real, &p, &iov, c->len ? 1 : 0))
			return progressed;
		answers_remove(peer, sizeof(*c) + c->len);
		list_remove(&c->link);
		free(c);
		progressed = true;
	}
	return progressed;
}

/* Are too many results of atomics on tagged receives outstanding? */
static bool tx_flush_is_paused(const struct peer *peer, const struct txreq *req)
{
	return wire_flags(req->head) & WIRE_MATCH && peer->rma.matching > WIRE_RESULTS_MAX;
}

static bool flush_backlog(struct peer *peer)
{
	bool progressed = false;
	struct txreq *req;

	while ((req = tx_req_first(peer, TXREQ_BACKLOG))) {
		size_t before = req->sent;

		if (tx_flush_is_paused(peer, req) || tx_blocked(peer, req))
			break;
		if (req->flags & FI_SEND ? tx_send(req) : rma_send(req)) {
			progressed |= req->sent != before;
			break;
		}
		progressed = true;
	}
	return progressed;
}

/* A peer that is to be disconnected waits for that. */
static bool nothing_waits(const struct peer *peer)
{
	return !contact_expelled(&peer->conn) && list_empty(&peer->tx.controls) &&
	       list_empty(&peer->txreqs[TXREQ_ZCOPY]) && list_empty(&peer->txreqs[TXREQ_AHEAD]) &&
	       list_empty(&peer->txreqs[TXREQ_BACKLOG]) &&
	       list_empty(&peer->txreqs[TXREQ_STREAM]) && list_empty(&peer->txreqs[TXREQ_REPLY]);
}

/* Returns the oldest zero-copy send if its packets are out, else NULL. */
static struct txreq *first_out(const struct peer *peer)
{
	struct txreq *req = tx_req_first(peer, TXREQ_ZCOPY);

	return req && !tx_zcopy_pending(req) ? req : NULL;
}

bool tx_end_zcopy(struct peer *peer)
{
	struct txreq *req;
	bool any = false;

	while ((req = first_out(peer))) {
		tx_req_end(req, 0);
		any = true;
	}
	return any;
}

bool tx_flush(struct peer *peer)
{
	bool progressed;

	if (peer->conn.state == PEER_IDLE && !list_empty(&peer->txreqs[TXREQ_AHEAD]))
		tx_ahead_connect(peer);
	if (peer->conn.state == PEER_RETIRING)
		return flush_controls(peer);
	if (peer->conn.state != PEER_CONNECTED)
		return false;
	progressed = tx_end_zcopy(peer);
	progressed |= flush_controls(peer);
	if (list_empty(&peer->tx.controls)) {
		progressed |= tx_ahead_flush(peer);
		progressed |= flush_backlog(peer);
		progressed |= flush_streams(peer);
		progressed |= flush_replies(peer);
	}
	if (nothing_waits(peer))
		list_remove(&peer->tx.in_busy);
	peer_refresh(peer);
	return progressed;
}
