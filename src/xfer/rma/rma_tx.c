/* SPDX-License-Identifier: BSD-2-Clause */
/* Initiator of one-sided operations: posting and sending them. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"
#include "xfer/defer/defer.h"
#include "xfer/rma/rma_short.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Maximum bytes of a request besides its data: struct wire_ranges, CQ data, struct wire_amo. */
#define HEADS (sizeof(struct wire_ranges) + sizeof(uint64_t) + sizeof(struct wire_amo))

/* The payload of a request as a list of segments, and storage for its heads. */
struct fragments {
	struct wire_ranges ranges;
	uint64_t word; /* remote CQ data */
	uint64_t len;  /* for WIRE_GET */
	size_t count, total;
	struct iovec iov[4 + 2 * WIRE_IOV_MAX];
};

static void rma_tx_add(struct fragments *s, const void *at, size_t len)
{
	s->iov[s->count++] = (struct iovec){(void *)(uintptr_t)at, len};
	s->total += len;
}

static void add_ranges(struct fragments *s, const struct txreq *req)
{
	s->ranges.offset = req->sent;
	s->ranges.count = req->remote_count;
	for (size_t i = 0; i < req->remote_count; i++)
		s->ranges.range[i] = (struct wire_range){req->remote[i].addr, req->remote[i].len,
							 req->remote[i].key};
	rma_tx_add(s, &s->ranges,
		   offsetof(struct wire_ranges, range) +
			   req->remote_count * sizeof(struct wire_range));
}

/* Adds the heads that precede the data in the payload. */
static void add_heads(struct fragments *s, const struct txreq *req, bool long_form)
{
	if (long_form)
		add_ranges(s, req);
	if (wire_flags(req->head) & WIRE_CQ) {
		s->word = req->data;
		rma_tx_add(s, &s->word, sizeof(s->word));
	}
	if (wire_op(req->head) == WIRE_AMO)
		rma_tx_add(s, &req->amo, sizeof(req->amo));
	if (wire_op(req->head) == WIRE_GET && !long_form) {
		s->len = req->len;
		rma_tx_add(s, &s->len, sizeof(s->len));
	}
}

/* Can send_inline send it: does the short form fit a cache line, with data in one segment? */
static bool is_inline(const struct txreq *req)
{
	if (req->remote_count != 1 || wire_flags(req->head) & WIRE_CQ || !req->whole)
		return false;
	switch (wire_op(req->head)) {
	case WIRE_GET:
		return true;
	case WIRE_PUT:
		return req->count == 1 && req->len <= RMA_SHORT_MAX;
	/* Operands, perhaps compare values: send_inline copies both into one buffer. */
	default:
		return req->count <= 2 && iov_bytes(req->iov, req->count) <= RMA_SHORT_MAX;
	}
}

/* Sends the short form by link_ops.send. 0 or -FI_EAGAIN. */
static int send_inline(const struct txreq *req)
{
	struct link *link = req->peer->conn.real;
	struct {
		struct wire_amo amo;
		unsigned char operand[RMA_SHORT_MAX];
	} flat;
	uint64_t head = req->head | WIRE_HEAD(0, WIRE_DATA, 0, req->seq);
	uint64_t key = req->remote[0].key, addr = req->remote[0].addr;
	size_t len = 0;

	switch (wire_op(req->head)) {
	case WIRE_GET:
		return link->ops->send(link, &req->len, sizeof(uint64_t), key, head, addr);
	case WIRE_PUT:
		return link->ops->send(link, req->iov[0].iov_base, req->len, key, head, addr);
	default:
		flat.amo = req->amo;
		for (size_t i = 0; i < req->count; i++) {
			copy_few(flat.operand + len, req->iov[i].iov_base, req->iov[i].iov_len);
			len += req->iov[i].iov_len;
		}
		return link->ops->send(link, &flat, sizeof(flat.amo) + len, key, head, addr);
	}
}

/* Sends one packet: the whole request or the next fragment of a long write. 0 or -FI_EAGAIN. */
static int rma_tx_send_packet(struct txreq *req)
{
	struct link *link = req->peer->conn.real;
	bool long_form = !req->whole || req->remote_count != 1;
	struct packet p = {.head = req->head | (uint64_t)req->seq << 32};
	struct fragments s;
	size_t left, room;
	int err;

	s.count = s.total = 0;
	add_heads(&s, req, long_form);
	left = wire_op(req->head) == WIRE_GET ? 0 : req->len - req->sent;
	room = link->packet_max - s.total;
	if (left > room)
		left = room;
	if (req->whole) {
		for (size_t i = 0; i < req->count; i++)
			rma_tx_add(&s, req->iov[i].iov_base, req->iov[i].iov_len);
	} else {
		s.count += iov_slice(s.iov + s.count, req->iov, req->count, req->sent, &left);
		s.total += left;
	}
	p.len = s.total;
	if (long_form) {
		p.head |= WIRE_HEAD(0, WIRE_LONG, 0, 0);
	} else {
		p.head |= WIRE_HEAD(0, WIRE_DATA, 0, 0);
		p.tag = req->remote[0].addr;
		p.data = req->remote[0].key;
	}
	err = link->ops->sendv(link, &p, s.iov, s.count);
	if (!err && !req->whole)
		req->sent += left;
	return err;
}

/* The peer will answer: in order, except an atomic on a tagged receive, once it matches. */
static void rma_tx_await(struct txreq *req)
{
	if (wire_flags(req->head) & WIRE_MATCH) {
		req->peer->rma.matching += req->len;
		if (req->peer->tx.xoff_ms)
			tx_req_unmatched(req);
		tx_req_move(req, TXREQ_ACK);
		return;
	}
	tx_req_leave(req);
	if (tx_completes_sent(req))
		tx_req_report(req);
	rma_await(req->peer, req);
}

/* Counts an expected answer; beyond WIRE_RESULTS_MAX or if it is long, later operations wait. */
static __attribute__((noinline, cold)) void rma_tx_weigh(struct txreq *req, bool is_long)
{
	struct peer *peer = req->peer;

	req->weight = is_long ? WIRE_RESULTS_MAX + 1 : req->len;
	peer->rma.results += req->weight;
	if (peer->rma.results <= WIRE_RESULTS_MAX)
		return;
	peer->rma.bulk = true;
	peer_refresh(peer);
}

static int send_packets(struct txreq *req)
{
	struct peer *peer = req->peer;
	size_t max = peer->conn.real->packet_max - HEADS;
	unsigned int op = wire_op(req->head);

	if (wire_flags(req->head) & WIRE_MATCH)
		req->seq = pool_id(req);
	else if (!req->sent)
		req->seq = peer->rma.seq + 1;
	req->whole = op == WIRE_AMO || (op == WIRE_GET ? req->remote_count == 1 : req->len <= max);
	do {
		if (is_inline(req) ? send_inline(req) : rma_tx_send_packet(req))
			return -FI_EAGAIN;
		if (!(wire_flags(req->head) & WIRE_MATCH))
			peer->rma.seq = req->seq;
	} while (op == WIRE_PUT && !req->whole && req->sent < req->len);
	if (op != WIRE_PUT && __builtin_expect(tx_brings(req), 0))
		rma_tx_weigh(req, req->len > max);
	rma_tx_await(req);
	return 0;
}

bool rma_waits(const struct peer *peer, const struct txreq *req)
{
	if (__builtin_expect(peer->conn.real->rdma_usable, 0))
		return rma_rdma_waits(peer, req);
	if (peer->rma.rdma_posted_count)
		return true; /* the peer copies a part of one */
	if (list_empty(&peer->txreqs[TXREQ_RMA]) || req->sent)
		return false;
	return rma_wants_direct(peer, req) && rma_reaches(req);
}

int rma_send(struct txreq *req)
{
	struct peer *peer = req->peer;
	bool first = list_empty(&peer->txreqs[TXREQ_RMA]);
	int err;

	if (__builtin_expect(peer->conn.real->rdma_usable, 0)) {
		err = rma_rdma(req);
		if (err <= 0)
			return err;
	}
	if (first && rma_wants_direct(peer, req) && !rma_go_direct(req))
		return 0;
	err = send_packets(req);
	/* The ring of a peer that does not poll is full; its memory can still be accessed. */
	if (err == -FI_EAGAIN && first && rma_may_go_direct(peer, req) && !rma_go_direct(req))
		return 0;
	return err;
}

static uint64_t head_of(const struct ep *ep, const struct rma *o)
{
	uint64_t flags = (o->flags & FI_REMOTE_CQ_DATA ? WIRE_CQ : 0) |
			 (o->flags & FI_COMMIT_COMPLETE ? WIRE_COMMIT : 0) |
			 (o->kind & FI_ATOMIC && o->flags & FI_TAGGED ? WIRE_MATCH : 0) |
			 (o->result_count || o->work ? 0 : rma_later(ep, o->flags));

	return WIRE_HEAD(o->wire, flags, o->addr >> ep->rx_shift & ep->rx_index_mask, 0);
}

static struct txreq *rma_tx_req_new(struct ep *ep, struct peer *peer, const struct rma *o)
{
	struct txreq *req = tx_req_new(ep, peer);

	if (!req)
		return NULL;
	req->head = head_of(ep, o);
	req->flags = (o->flags & ~(TX_KIND & ~FI_TAGGED)) | o->kind;
	req->data = o->data;
	req->context = o->context;
	req->work = o->work;
	req->len = o->len;
	req->amo = o->amo;
	req->count = o->count;
	req->result_count = o->result_count;
	req->remote_count = o->remote_count;
	for (size_t i = 0; i < o->count; i++)
		req->iov[i] = o->iov[i];
	for (size_t i = 0; i < o->result_count; i++)
		req->result[i] = o->result[i];
	for (size_t i = 0; i < o->remote_count; i++)
		req->remote[i] = o->remote[i];
	return req;
}

/* Copies operands and compare values into one buffer, which is sent. 0 or -FI_ENOMEM. */
static int rma_tx_flatten(struct txreq *req, const struct rma *o)
{
	struct iovec all[2 * WIRE_IOV_MAX];
	size_t count = o->count;

	memcpy(all, o->iov, count * sizeof(all[0]));
	for (size_t i = 0; i < o->compare_count; i++)
		all[count++] = o->compare[i];
	return tx_req_bounce(req, all, count);
}

/* Appends compare values to the operands; copies both if the lists are long. 0 or -FI_ENOMEM. */
static int add_compare(struct txreq *req, const struct rma *o)
{
	if (o->count + o->compare_count > WIRE_IOV_MAX)
		return rma_tx_flatten(req, o);
	for (size_t i = 0; i < o->compare_count; i++)
		req->iov[req->count++] = o->compare[i];
	return 0;
}

/* Appends to the backlog; copies memory that the caller may change. 0 or a negative error. */
static int rma_tx_enqueue(struct ep *ep, struct txreq *req, const struct rma *o)
{
	int err = 0;

	if (!req->bounce && (o->compare_count || o->wire == WIRE_AMO))
		err = rma_tx_flatten(req, o);
	else if (!req->bounce && o->flags & FI_INJECT)
		err = tx_req_bounce(req, o->iov, o->count);
	return err ? err : tx_queue(ep, req);
}

/* Sends to a connected peer without a backlog. 0 or a negative error. */
static int rma_tx_send_now(struct ep *ep, struct txreq *req, const struct rma *o)
{
	int err;

	if (rma_waits(req->peer, req))
		return tx_may_queue(req->peer, o->flags, o->work) ? rma_tx_enqueue(ep, req, o)
								  : -FI_EAGAIN;
	err = add_compare(req, o);
	if (!err)
		err = rma_send(req);
	/* A partly sent long write: the rest is sent as space permits. */
	if (err == -FI_EAGAIN && !req->whole && wire_op(req->head) == WIRE_PUT)
		return rma_tx_enqueue(ep, req, o);
	return err;
}

static int rma_tx_post(struct ep *ep, struct peer *peer, const struct rma *o)
{
	int err = peer->conn.state == PEER_IDLE ? tx_connect(peer, o->work) : 0;
	bool ready = peer->conn.state == PEER_CONNECTED && !tx_must_queue(peer, o->flags);
	/* The target keeps an unmatched atomic on a tagged receive like a message. */
	bool kept = o->kind & FI_ATOMIC && o->flags & FI_TAGGED;
	struct txreq *req;

	if (err)
		return err;
	if (peer->rma.awaiting_count + peer->rma.rdma_posted_count >= ep->tx_size ||
	    (ready && peer_behind(peer)) ||
	    (ready && kept && (tx_full(ep, peer) || peer->rma.matching > WIRE_RESULTS_MAX)) ||
	    (!ready && !tx_may_queue(peer, o->flags, o->work)))
		return -FI_EAGAIN;
	req = rma_tx_req_new(ep, peer, o);
	if (!req)
		return -FI_ENOMEM;
	err = ready ? rma_tx_send_now(ep, req, o) : rma_tx_enqueue(ep, req, o);
	if (err)
		tx_req_free(req);
	return err;
}

int rma_post(struct ep *ep, const struct rma *o)
{
	struct peer *peer;
	int err;

	if (o->flags & FI_INJECT && o->len > ep->inject_least &&
	    o->len > ep_inject_max(ep, o->kind))
		return -FI_EMSGSIZE;
	if (__builtin_expect(o->flags & (FI_TRIGGER | FI_MORE), 0)) {
		if (o->flags & FI_TRIGGER)
			return defer_rma(ep, o);
		tx_announce(worker_peer(ep->worker, o->addr & ep->addr_mask));
	}
	peer = peer_get(ep->worker, o->addr & ep->addr_mask);
	if (!peer)
		return peer_missing(ep, o->addr, "one-sided");
	err = rma_tx_post(ep, peer, o);
	if (err == -FI_EAGAIN) {
		peer = tx_progress(ep, o->addr & ep->addr_mask);
		err = rma_tx_post(ep, peer, o);
	}
	return err;
}
