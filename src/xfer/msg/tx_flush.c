/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control messages are sent at once, or kept until there is space for them. Sends queued output: answers first, then
 * messages of groups, the backlog in order, streams, results of long reads.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "conn/conn.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/way.h"

static void keep_control(struct peer *peer, const struct packet *p)
{
	struct control *c = malloc(sizeof(*c) + p->len);

	if (!c || !answers_add(peer, sizeof(*c) + p->len)) {
		if (!c)
			contact_starve(&peer->conn, "an answer to it");
		free(c);
		return;
	}
	c->head = p->head;
	c->tag = p->tag;
	c->data = p->data;
	c->len = p->len;
	if (p->len)
		memcpy(c->payload, p->payload, p->len);
	list_push(&peer->tx.controls, &c->link);
	peer_busy(peer);
	peer_refresh(peer);
}

void tx_control_data(struct peer *peer, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	/*
	 * A peer that has accepted us may send before we have read its hello: the link comes later,
	 * so the message is kept.
	 */
	if (peer->conn.state == PEER_IDLE)
		return;
	if (!peer->conn.real || !list_empty(&peer->tx.controls) ||
	    peer->conn.real->ops->sendv(peer->conn.real, p, &iov, p->len ? 1 : 0))
		keep_control(peer, p);
}

void tx_control(struct peer *peer, uint64_t head, uint64_t tag)
{
	tx_control_data(peer, &(struct packet){.head = head, .tag = tag});
}

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

/* Sends fragments of streams. The receiver's ATS ends a request of which all are sent. */
static bool flush_streams(struct peer *peer)
{
	bool progressed = false;

	LIST_EACH_SAFE_OF (struct txreq, req, &peer->txreqs[TXREQ_STREAM], link) {
		for (; req->sent < req->len; progressed = true)
			if (tx_flush_send_fragment(req))
				return progressed;
		tx_req_move(req, TXREQ_ACK);
	}
	return progressed;
}

/* Sends, in order, what `send` takes out of the list of its state. */
static bool flush_state(struct peer *peer, enum txreq_state state, int (*send)(struct txreq *req))
{
	bool progressed = false;
	struct txreq *req;

	while ((req = tx_req_first(peer, state)) && !send(req))
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

static bool flush_backlog(struct peer *peer)
{
	bool progressed = false;
	struct txreq *req;

	while ((req = tx_req_first(peer, TXREQ_BACKLOG))) {
		bool matched = wire_flags(req->head) & WIRE_MATCH;
		size_t before = req->sent;

		/* Of atomics on tagged receives not too many results may be outstanding. */
		if ((matched && peer->rma.matching > WIRE_RESULTS_MAX) || tx_blocked(peer, req))
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

bool tx_end_zcopy(struct peer *peer)
{
	struct txreq *req;
	bool any = false;

	while ((req = tx_req_first(peer, TXREQ_ZCOPY)) && !tx_zcopy_pending(req)) {
		tx_req_end(req, 0);
		any = true;
	}
	return any;
}

bool tx_flush(struct peer *peer)
{
	bool progressed;
	int err;

	if (peer->conn.state == PEER_IDLE && !list_empty(&peer->txreqs[TXREQ_AHEAD])) {
		err = conn_start(&peer->conn);
		if (err)
			contact_failed(&peer->conn, -err);
	}
	if (peer->conn.state == PEER_RETIRING)
		return flush_controls(peer);
	if (peer->conn.state != PEER_CONNECTED)
		return false;
	progressed = tx_end_zcopy(peer);
	progressed |= flush_controls(peer);
	if (list_empty(&peer->tx.controls)) {
		progressed |= flush_state(peer, TXREQ_AHEAD, tx_send);
		progressed |= flush_backlog(peer);
		progressed |= flush_streams(peer);
		/* Each fragment of a long answer to a read is of the memory at that moment. */
		progressed |= flush_state(peer, TXREQ_REPLY, rma_reply_more);
	}
	if (nothing_waits(peer))
		list_remove(&peer->tx.in_busy);
	peer_refresh(peer);
	return progressed;
}

/* ---- Messages of collective groups, which ignore fences, XOFF and the backlog ------------------------ */

static struct txreq *tx_ahead_make(struct peer *peer, const struct packet *p, struct work *work)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};
	struct txreq *req = tx_req_new(NULL, peer);

	if (!req)
		return NULL;
	req->head = p->head;
	req->flags = FI_SEND | (work && work->delivered ? FI_DELIVERY_COMPLETE : 0);
	req->tag = p->tag;
	req->data = p->data;
	req->len = p->len;
	req->work = work;
	if (!work && tx_req_bounce(req, &iov, 1)) {
		tx_req_free(req);
		return NULL;
	}
	if (work && p->len) {
		req->iov[0] = iov;
		req->count = 1;
	}
	return req;
}

/*
 * Sends a message that the link copies, at once or within a stream soon: members wait for its bytes,
 * nobody for the report that they are out. Returns 0, or a negative error: it takes a request.
 */
static int send_copy(struct link *link, const struct packet *p)
{
	struct iovec iov = {(void *)(uintptr_t)p->payload, p->len};

	if (way_out(link, p->len, false) == OUT_COPY)
		return link->ops->send(link, p->payload, p->len, p->data, p->head, p->tag);
	return way_gathers(link, p->len) ? link->ops->sendv(link, p, &iov, 1) : -FI_EAGAIN;
}

int tx_ahead(struct peer *peer, const struct packet *p, struct work *work)
{
	bool room = peer->conn.state == PEER_CONNECTED && peer->conn.real &&
		    list_empty(&peer->txreqs[TXREQ_AHEAD]) && list_empty(&peer->tx.controls);
	struct txreq *req;
	int err;

	if (room && !(work && work->delivered) && !send_copy(peer->conn.real, p))
		return 1;
	if (peer->conn.state == PEER_IDLE) {
		err = conn_start(&peer->conn);
		if (err)
			return err;
	}
	req = tx_ahead_make(peer, p, work);
	if (!req)
		return -FI_ENOMEM;
	if (room && !tx_send(req))
		return 0;
	tx_req_move(req, TXREQ_AHEAD);
	peer_busy(peer);
	return 0;
}

void tx_cancel_posted(struct worker *worker, int err,
		      bool (*match)(const struct work *work, const void *arg), const void *arg)
{
	static const enum txreq_state states[] = {TXREQ_ACK, TXREQ_ZCOPY, TXREQ_STREAM,
						  TXREQ_AHEAD};

	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		for (unsigned int i = 0; i < sizeof(states) / sizeof(states[0]); i++)
			LIST_EACH_SAFE_OF (struct txreq, req, &peer->txreqs[states[i]], link) {
				if (!req->work || !match(req->work, arg))
					continue;
				if (tx_zcopy_pending(req))
					tx_take_back(peer,
						     "a message of a collective that has ended");
				tx_req_end(req, err);
			}
	}
}
