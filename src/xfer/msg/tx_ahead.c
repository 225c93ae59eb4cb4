/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of collective groups, which ignore fences, XOFF and the backlog. */
#include <rdma/fi_errno.h>

#include "conn/conn.h"
#include "xfer/defer/defer.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/way.h"

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

void tx_ahead_connect(struct peer *peer)
{
	int err = conn_start(&peer->conn);

	if (err)
		contact_failed(&peer->conn, -err);
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
