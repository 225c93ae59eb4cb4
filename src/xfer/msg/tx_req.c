/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmit requests: making, moving between states, ending. */
#include <assert.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/copy.h"
#include "base/iov.h"
#include "base/probe.h"
#include "xfer/defer/defer.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/*
 * Clears member by member: clearing the whole struct takes as long as the rest of a short
 * operation. The lists at the end are filled as far as they are used.
 */
static inline void tx_req_clear(struct txreq *req)
{
	req->head = req->flags = req->tag = req->data = 0;
	req->context = req->bounce = req->rndv = NULL;
	req->work = NULL;
	req->len = req->sent = req->got = 0;
	req->remote_id = req->seq = 0;
	req->zcopy = req->place = 0;
	req->amo = (struct wire_amo){0};
	req->whole = req->packets = req->unmatched = req->reported = false;
	req->checks = 0;
	req->count = req->result_count = req->remote_count = 0;
}

#if ENABLE_DEBUG
#define BIT(state) (1u << (state))

void tx_req_check_move(enum txreq_state from, enum txreq_state to)
{
	static const unsigned int next[TXREQ_STATES] = {
		[TXREQ_NEW] = ~(BIT(TXREQ_NEW) | BIT(TXREQ_STREAM)),
		[TXREQ_BACKLOG] = BIT(TXREQ_RTS) | BIT(TXREQ_ACK) | BIT(TXREQ_ZCOPY) |
				  BIT(TXREQ_RMA) | BIT(TXREQ_RDMA),
		[TXREQ_AHEAD] = BIT(TXREQ_RTS) | BIT(TXREQ_ACK) | BIT(TXREQ_ZCOPY),
		[TXREQ_RTS] = BIT(TXREQ_STREAM) | BIT(TXREQ_ACK),
		[TXREQ_STREAM] = BIT(TXREQ_ACK),
		[TXREQ_RDMA] = BIT(TXREQ_BACKLOG),
	};

	assert(next[from] & BIT(to));
}
#endif

void tx_req_requeue(struct txreq *req)
{
	tx_req_check_move(req->state, TXREQ_BACKLOG);
	tx_req_leave(req);
	req->state = TXREQ_BACKLOG;
	list_push_front(&req->peer->txreqs[TXREQ_BACKLOG], &req->link);
	req->peer->tx.backlog_count++;
}

struct txreq *tx_req_new(struct ep *ep, struct peer *peer)
{
	struct txreq *req = pool_get(&peer_worker(peer)->tx_pool);

	if (!req)
		return NULL;
	req->state = TXREQ_NEW;
	req->ep = ep;
	req->peer = peer;
	tx_req_clear(req);
	return req;
}

void tx_req_free(struct txreq *req)
{
	tx_req_deregister(req);
	free(req->bounce); /* NOLINT(clang-analyzer-unix.Malloc): it does not follow the lists */
	pool_put(&peer_worker(req->peer)->tx_pool, req);
}

int tx_req_bounce(struct txreq *req, const struct iovec *iov, size_t count)
{
	size_t len = iov_bytes(iov, count);
	unsigned char *to;

	req->count = 0;
	if (!len)
		return 0;
	to = req->bounce = malloc(len);
	if (!to)
		return -FI_ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len) /* the address of an empty segment may be NULL */
			copy_bytes(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	req->iov[0] = (struct iovec){req->bounce, len};
	req->count = 1;
	return 0;
}

static struct cntr *tx_req_counter_of(const struct ep *ep, uint64_t kind)
{
	if (kind & FI_SEND)
		return ep->tx_cntr;
	return kind & FI_READ ? ep->read_cntr : ep->write_cntr;
}

void tx_count(struct ep *ep, size_t len)
{
	cntr_done(ep->tx_cntr, len);
}

static void tx_req_complete(struct txreq *req)
{
	struct cntr *cntr = tx_req_counter_of(req->ep, req->flags);

	if (req->flags & FI_COMPLETION && req->ep->tx_cq)
		cq_push_done(req->ep->tx_cq, req->context, req->flags & TX_KIND);
	if (cntr && !req->work)
		cntr_done(cntr, req->len);
}

/* Reports an error. For deferred work only if its flags ask for a completion. fi_trigger(3) */
static void complete_error(struct txreq *req, int err, int reason)
{
	struct cq_slot slot = {
		.context = req->context, .flags = req->flags & TX_KIND, .tag = req->tag};
	struct cntr *cntr = tx_req_counter_of(req->ep, req->flags);
	bool reports = !req->work || req->flags & FI_COMPLETION;

	if (req->ep->tx_cq && reports)
		cq_push_error(req->ep->tx_cq, &slot,
			      &(struct cq_error){.err = err, .prov_errno = reason}, NULL);
	if (cntr && !req->work && err != FI_ECANCELED)
		cntr_fail(cntr);
}

void tx_req_fail(struct txreq *req, int err, int reason)
{
	tx_req_leave(req);
	if (req->ep)
		complete_error(req, err, reason);
	if (req->work)
		defer_done(req->work, err);
	tx_req_free(req);
}

static inline void tx_req_report_now(struct txreq *req)
{
	if (req->ep)
		tx_req_complete(req);
	if (req->work)
		defer_done(req->work, 0);
}

void tx_req_report(struct txreq *req)
{
	tx_req_report_now(req);
	req->ep = NULL;
	req->work = NULL;
	req->reported = true;
}

void tx_req_end(struct txreq *req, int err)
{
	PROBE2(sent, req, err);
	if (err) {
		tx_req_fail(req, err, err);
		return;
	}
	tx_req_leave(req);
	tx_req_report_now(req);
	tx_req_free(req);
}

struct txreq *tx_req_first_unreported(const struct peer *peer)
{
	LIST_EACH_OF (struct txreq, req, &peer->txreqs[TXREQ_ACK], link) {
		if (!req->reported)
			return req;
	}
	return NULL;
}

/* States of requests whose end is reported, roughly the oldest requests first. */
static const enum txreq_state reported[] = {TXREQ_RMA,   TXREQ_ACK,     TXREQ_ZCOPY, TXREQ_STREAM,
					    TXREQ_AHEAD, TXREQ_BACKLOG, TXREQ_RDMA};

#define REPORTED (sizeof(reported) / sizeof(reported[0]))

/*
 * Ends the requests that a closed endpoint left in the backlog: its buffers may be freed. Injected
 * requests have copies and still go out.
 */
static void tx_req_discard(struct peer *peer)
{
	LIST_EACH_SAFE_OF (struct txreq, req, &peer->txreqs[TXREQ_BACKLOG], link) {
		if (req->ep || req->flags & FI_INJECT)
			continue;
		tx_req_end(req, FI_ECANCELED);
	}
	peer_refresh(peer);
}

/* Copies a message that the peer may still ask for (CTS): the endpoint's buffers may be freed soon. */
static void copy_out_pending_rts(struct txreq *req)
{
	bool needed = tx_awaits_ats(req) && req->state != TXREQ_ACK;

	if (!needed || req->bounce || !tx_req_bounce(req, req->iov, req->count))
		return;
	contact_starve(&req->peer->conn, "a message of a closed context");
	tx_req_move(req, TXREQ_ACK); /* nothing reads its memory any more */
}

void tx_take_back(struct peer *peer, const char *what)
{
	/* Without memory for the copy the link has failed, and reads the memory no more. */
	if (peer->conn.real->zcopy->copy_out(peer->conn.real))
		contact_starve(&peer->conn, what);
}

/* Hands a request of an endpoint that is being closed to its successor, or reports it as canceled: it may go on. */
static void forget_request(struct txreq *req, struct ep *successor)
{
	const struct ep *ep = req->ep;

	if (!successor && !req->work)
		complete_error(req, FI_ECANCELED, FI_ECANCELED);
	if (!successor)
		req->result_count = 0; /* the memory of the result may be freed */
	req->ep = successor;
	/* Only for contexts of a scalable endpoint: otherwise the worker is closed next. */
	if (!successor && ep->base != ep)
		copy_out_pending_rts(req);
}

void tx_forget(struct worker *worker, struct ep *ep, struct ep *successor)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		/* What only waits for more to send goes out, and completes. */
		if (peer->conn.real && link_holds(peer->conn.real)) {
			peer->conn.real->zcopy->cork(peer->conn.real, false);
			tx_end_zcopy(peer);
		}
		for (unsigned int i = 0; i < REPORTED; i++)
			LIST_EACH_SAFE_OF (struct txreq, req, &peer->txreqs[reported[i]], link) {
				if (req->ep == ep)
					forget_request(req, successor);
			}
		/* The application may free the buffers soon. */
		if (!successor && peer->conn.real && link_holds(peer->conn.real))
			tx_take_back(peer, "a message of a closed endpoint");
		tx_req_discard(peer);
	}
}

/* The endpoint or context that the application opened. */
static const struct ep *tx_req_opened(const struct ep *ep)
{
	return ep->is_alias ? ep->base : ep;
}

int tx_cancel(const struct ep *ep, void *context)
{
	LIST_EACH_OF (struct peer, peer, &ep->worker->conn.peers_list, conn.in_station) {
		LIST_EACH_OF (struct txreq, req, &peer->txreqs[TXREQ_BACKLOG], link) {
			/* Partly sent requests and deferred work cannot be canceled by context. */
			if (req->context != context || !req->ep || req->work || req->sent ||
			    tx_req_opened(req->ep) != tx_req_opened(ep))
				continue;
			tx_req_end(req, FI_ECANCELED);
			return 0;
		}
	}
	return -FI_ENOENT;
}

void tx_drop_answers(struct peer *peer)
{
	struct txreq *req;
	struct list *node;

	while ((node = list_pop(&peer->tx.controls)))
		free(LIST_ENTRY(node, struct control, link));
	while ((req = tx_req_first(peer, TXREQ_REPLY)))
		tx_req_end(req, 0);
	answers_remove(peer, peer->tx.reply_bytes);
	list_remove(&peer->target.in_acks_pending);
}

void tx_fail_all(struct peer *peer, int err, int reason)
{
	struct txreq *req;

	tx_drop_answers(peer);
	for (unsigned int i = 0; i < REPORTED; i++)
		while ((req = tx_req_first(peer, reported[i])))
			tx_req_fail(req, err, reason);
	peer->rma.awaiting_count = peer->rma.rdma_posted_count = 0;
	peer->rma.results = peer->rma.matching = peer->tx.unmatched_count = 0;
	peer->rma.bulk = false;
	list_remove(&peer->tx.in_busy);
	list_remove(&peer->rma.in_awaiting);
}

/* Was the peer told that the message consists of these bytes, among others? */
static bool tx_req_readable(const struct txreq *req, uint64_t at, size_t len)
{
	if (req->state != TXREQ_RTS)
		return false;
	for (size_t i = 0; i < req->count; i++) {
		uint64_t base = (uintptr_t)req->iov[i].iov_base;

		if (at >= base && at - base <= req->iov[i].iov_len &&
		    len <= req->iov[i].iov_len - (at - base))
			return true;
	}
	return false;
}

bool tx_readable(struct opener *o, uint32_t src, uint64_t at, size_t len)
{
	const struct peer *peer = pool_find(&worker_opener(o)->conn.peer_pool, src);

	if (!peer)
		return false;
	LIST_EACH (node, &peer->txreqs[TXREQ_ACK])
		if (tx_req_readable(LIST_ENTRY(node, struct txreq, link), at, len))
			return true;
	return false;
}
