/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short path of one-sided requests at their target: one range in one segment, nothing to count, no remote CQ data.
 * All else, and all that has to be refused, takes rma_serve_any. And answers with bytes of the target's memory.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/once.h"
#include "xfer/rma/rma_target.h"
#include "xfer/worker.h"
#include "xfer/msg/rx.h"
#include "xfer/msg/tx.h"

/* Returns the memory of the range that the packet names; NULL: it takes rma_serve_any. */
static void *rma_serve_memory(const struct worker *worker, const struct packet *p, size_t len,
			      uint64_t access)
{
	const struct mr *mr = mr_granted(worker->conn.driven.dom, p->data, p->tag, len, access);

	if (!mr || mr->iov_count != 1 || mr->cntr)
		return NULL;
	return (char *)mr->iov->iov_base + (p->tag - mr->offset);
}

static bool rma_serve_put(struct worker *worker, struct peer *peer, const struct packet *p)
{
	void *at = rma_serve_memory(worker, p, p->len, FI_REMOTE_WRITE);

	if (!at)
		return false;
	if (p->len == 8)
		memcpy(at, p->payload, 8);
	else
		copy_bytes(at, p->payload, p->len);
	rma_mark_done(peer, p->head);
	return true;
}

static bool rma_serve_get(struct worker *worker, struct peer *peer, const struct packet *p)
{
	uint64_t len;
	const void *at;

	if (p->len != sizeof(len) || !peer->conn.real)
		return false;
	once_copy(&len, p->payload, sizeof(len));
	if (len > peer->conn.real->packet_max)
		return false;
	at = rma_serve_memory(worker, p, len, FI_REMOTE_READ);
	if (!at)
		return false;
	rma_send_result(peer, wire_id(p->head), at, len);
	return true;
}

/* Performs an atomic on one aligned element of four or eight bytes. */
static bool rma_serve_amo(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct {
		struct wire_amo amo;
		char value[16];
	} own;
	const size_t heads = sizeof(own.amo);
	atomic_kernel *kernel;
	char result[8];
	void *at;

	if (p->len <= heads || p->len > sizeof(own))
		return false;
	once_copy(&own, p->payload, p->len);
	kernel = atomic_find(own.amo.form, own.amo.op, own.amo.type);
	if (!kernel || (own.amo.len != 8 && own.amo.len != 4) ||
	    own.amo.len != atomic_size(own.amo.type) || own.amo.op == FI_ATOMIC_READ ||
	    p->len - heads != (size_t)own.amo.len << (own.amo.form == ATOMIC_COMPARE))
		return false;
	at = rma_serve_memory(worker, p, own.amo.len, rma_amo_access(&own.amo));
	if (!at || (uintptr_t)at % own.amo.len)
		return false;
	kernel(&(struct atomic_args){.target = at,
				     .operand = own.value,
				     .compare = own.value + own.amo.len,
				     .result = own.amo.form == ATOMIC_BASE ? NULL : result,
				     .count = 1});
	if (own.amo.form == ATOMIC_BASE)
		rma_mark_done(peer, p->head);
	else
		rma_send_result(peer, wire_id(p->head), result, own.amo.len);
	return true;
}

/* Does the context count accesses? One that does not exist counts nothing. */
static bool rma_serve_counts(const struct worker *worker, unsigned int index)
{
	const struct rx *rx = index < WORKER_RX_MAX ? worker->rx[index] : NULL;

	return rx && (rx->read_cntr || rx->write_cntr);
}

/* Performs and answers a request of the short form that asks for nothing special. False: nothing was done. */
static inline bool serve_short(struct worker *worker, struct peer *peer, const struct packet *p)
{
	if ((wire_flags(p->head) & ~WIRE_LATER) != WIRE_DATA ||
	    rma_serve_counts(worker, wire_rx(p->head)))
		return false;
	switch (wire_op(p->head)) {
	case WIRE_PUT:
		return rma_serve_put(worker, peer, p);
	case WIRE_GET:
		return rma_serve_get(worker, peer, p);
	case WIRE_AMO:
		return rma_serve_amo(worker, peer, p);
	default:
		return false;
	}
}

void rma_serve(struct worker *worker, struct peer *peer, const struct packet *p)
{
	if (!serve_short(worker, peer, p))
		rma_serve_any(worker, peer, p);
}

/* ---- Answers ---------------------------------------------------------------------------------------- */

static struct packet rma_reply_result(uint32_t seq, size_t offset, const void *buf, size_t len)
{
	return (struct packet){.head = WIRE_HEAD(WIRE_RESULT, 0, 0, seq),
			       .tag = offset,
			       .payload = buf,
			       .len = len};
}

void rma_send_result(struct peer *peer, uint32_t seq, const void *buf, size_t len)
{
	struct packet p = rma_reply_result(seq, 0, buf, len);

	if (len <= 24 && peer->conn.real && list_empty(&peer->tx.controls) &&
	    !peer->conn.real->ops->send(peer->conn.real, buf, len, 0, p.head, 0))
		return;
	tx_control_data(peer, &p);
}

void rma_reply_bytes(const struct rma_request *r, const void *buf, size_t len)
{
	if (!(r->flags & WIRE_ORPHAN))
		rma_send_result(r->peer, r->seq, buf, len);
}

/* Answers with more than one packet: a request in TXREQ_REPLY sends fragments. 0 or -FI_ENOMEM. */
static int reply_long(struct rma_request *r)
{
	struct txreq *req = tx_req_new(NULL, r->peer);

	if (!req)
		return -FI_ENOMEM;
	if (!answers_add(r->peer, sizeof(*req))) {
		tx_req_free(req);
		return 0; /* the peer is about to be disconnected */
	}
	req->seq = r->seq;
	req->len = r->total;
	req->head = (uint64_t)r->flags << 8 | (uint64_t)r->index << 16;
	req->data = r->cq;
	req->remote_count = r->count;
	for (size_t i = 0; i < r->count; i++)
		req->remote[i] = (struct fi_rma_iov){
			.addr = r->range[i].addr, .len = r->range[i].len, .key = r->range[i].key};
	tx_req_move(req, TXREQ_REPLY);
	peer_busy(r->peer);
	return 0;
}

static void reply_flat(struct rma_request *r, char *buf)
{
	rma_copy(r, 0, buf, r->total, false);
	rma_reply_bytes(r, buf, r->total);
}

int rma_reply(struct rma_request *r)
{
	struct link *link = r->peer->conn.real;
	char small[64], *buf;
	size_t fragment = r->total;
	void *at = NULL;

	if (!link)
		return 0; /* the peer is disconnected */
	if (r->total > link->packet_max)
		return reply_long(r);
	if (r->count == 1 && r->total) {
		struct rma_spot spot = rma_spot(r, 0);

		at = rma_fragment(&spot, 0, &fragment);
	}
	if (at && fragment == r->total) {
		rma_reply_bytes(r, at, r->total);
	} else if (r->total <= sizeof(small)) {
		reply_flat(r, small);
	} else {
		buf = malloc(r->total);
		if (!buf)
			return -FI_ENOMEM;
		reply_flat(r, buf);
		free(buf);
	}
	rma_event(r, FI_RMA | FI_REMOTE_READ, 0);
	return 0;
}

/*
 * Restores the request from its answer in TXREQ_REPLY. Checks the regions again: one may have been
 * closed. 0 or a negative error.
 */
static int rma_reply_revive(struct rma_request *r, const struct txreq *req)
{
	*r = (struct rma_request){.peer = req->peer,
				  .op = WIRE_GET,
				  .flags = wire_flags(req->head),
				  .index = wire_rx(req->head),
				  .seq = req->seq,
				  .count = req->remote_count,
				  .total = req->len,
				  .cq = req->data};
	for (size_t i = 0; i < r->count; i++)
		r->range[i] = (struct wire_range){req->remote[i].addr, req->remote[i].len,
						  req->remote[i].key};
	return rma_check(r, FI_REMOTE_READ);
}

/* 0 or a negative error; -FI_EAGAIN: there is no space now. */
static int rma_reply_send_fragment(struct txreq *req, const struct rma_request *r)
{
	struct link *link = req->peer->conn.real;
	size_t want = req->len - req->sent;
	struct packet p;
	struct iovec iov;
	char *buf;
	int err;

	if (want > link->packet_max)
		want = link->packet_max;
	buf = malloc(want);
	if (!buf)
		return -FI_ENOMEM;
	rma_copy(r, req->sent, buf, want, false);
	p = rma_reply_result(req->seq, req->sent, buf, want);
	iov = (struct iovec){buf, want};
	err = link->ops->sendv(link, &p, &iov, 1);
	if (!err)
		req->sent += want;
	free(buf);
	return err;
}

int rma_reply_more(struct txreq *req)
{
	struct rma_request r;
	int err = rma_reply_revive(&r, req);

	if (!err)
		err = rma_reply_send_fragment(req, &r);
	if (err == -FI_EAGAIN)
		return err;
	if (err)
		rma_refuse(&r, err);
	else if (req->sent < req->len)
		return 0;
	else
		rma_event(&r, FI_RMA | FI_REMOTE_READ, 0);
	answers_remove(req->peer, sizeof(*req));
	tx_req_end(req, 0);
	return 0;
}
