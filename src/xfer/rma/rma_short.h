/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short path of one-sided posts: one range, one packet, to a connected peer that nothing bars. It is inlined into
 * the entries, so that what is constant there costs nothing. All other posts take rma_post. Domain locked.
 */
#ifndef WEFT_XFER_RMA_SHORT_H
#define WEFT_XFER_RMA_SHORT_H

#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Bytes that a packet of the short form may carry, any heads besides. */
#define RMA_SHORT_MAX 16u
/* Flags of operations that take rma_post. */
#define RMA_SLOW                                                                                   \
	(FI_TRIGGER | FI_FENCE | FI_REMOTE_CQ_DATA | FI_INJECT_COMPLETE | FI_COMMIT_COMPLETE |     \
	 FI_TAGGED | FI_MORE)

/* A post on one range. Passed by value, so that its members stay in registers. */
struct rma_short {
	unsigned int wire;    /* WIRE_PUT, WIRE_GET or WIRE_AMO */
	uint64_t kind, flags; /* as in struct rma */
	fi_addr_t addr;
	uint64_t remote, key;  /* the range */
	size_t len;            /* bytes of the range */
	const void *payload;   /* of the packet */
	size_t payload_len;    /* bytes */
	void *result;          /* where `len` bytes go, or NULL */
	enum atomic_form form; /* for WIRE_AMO */
	void *context;
};

/* WIRE_LATER if nothing reports the end of a write, or of an atomic without a result; else 0. */
static inline __attribute__((always_inline)) unsigned int rma_later(const struct ep *ep,
								    uint64_t flags)
{
	bool silent = (flags & (FI_INJECT | FI_COMPLETION)) == FI_INJECT && !ep->write_cntr;

	return silent ? WIRE_LATER : 0;
}

/* A request that was sent, and is on no list, awaits its answer, behind the earlier ones. */
static inline __attribute__((always_inline)) void rma_await(struct peer *peer, struct txreq *req)
{
	req->place = peer->conn.real->last;
	tx_req_enter(peer, req, TXREQ_RMA);
	peer->rma.awaiting_count++;
	if (list_empty(&peer->rma.in_awaiting))
		list_push(&peer_worker(peer)->awaiting, &peer->rma.in_awaiting);
	/* If the peer sleeps too, no answer comes: our sleeper must wake and call rma_help. */
	if (__builtin_expect(peer->conn.station->opener.sleepers, 0) && peer->conn.real->local)
		station_wake(peer->conn.station);
}

/* Fills in what outlives the packet. The operands are not kept: only the packet is ever taken back or sent again. */
static inline __attribute__((always_inline)) void
rma_short_fill(struct txreq *req, struct ep *ep, struct peer *peer, struct rma_short s)
{
	req->ep = ep;
	req->peer = peer;
	req->head = WIRE_HEAD(s.wire, 0, 0, 0);
	req->flags = (s.flags & ~TX_KIND) | s.kind;
	req->tag = 0;
	req->context = s.context;
	req->work = NULL;
	req->bounce = NULL;
	req->rndv = NULL;
	req->len = s.len;
	req->got = 0;
	req->seq = peer->rma.seq + 1;
	req->amo.form = (uint8_t)s.form;
	req->whole = true;
	req->count = 0;
	req->result_count = s.result != NULL;
	if (s.result)
		req->result[0] = (struct iovec){s.result, s.len};
	req->remote_count = 1;
	req->remote[0] = (struct fi_rma_iov){s.remote, s.len, s.key};
}

/* Posts the operation. False: not done, rma_post has to; the reasons are told there. */
static inline __attribute__((always_inline)) bool rma_short_post(struct ep *ep, struct rma_short s)
{
	struct worker *worker = ep->worker;
	struct peer *peer = worker_peer(worker, s.addr);
	struct link *link = peer->conn.link;
	const bool brings = s.wire == WIRE_GET || s.form != ATOMIC_BASE;
	/* Reads inject nothing, and atomics with a result hardly ever. */
	const uint64_t slow = RMA_SLOW | (brings ? FI_INJECT : 0);
	struct txreq *req;
	uint64_t head;

	if (__builtin_expect(s.len > RMA_SHORT_MAX || s.flags & slow ||
				     (!brings && s.flags & FI_INJECT && s.len > ep->inject_least) ||
				     link == &contact_full_link || link->rdma_usable ||
				     (s.wire != WIRE_AMO && peer->rma.direct_spell) ||
				     peer->rma.awaiting_count >= ep->tx_size,
			     0))
		return false;
	req = pool_get(&worker->tx_pool);
	if (__builtin_expect(!req, 0))
		return false;
	rma_short_fill(req, ep, peer, s);
	head = WIRE_HEAD(s.wire, WIRE_DATA | (brings ? 0 : rma_later(ep, s.flags)), 0, req->seq);
	if (__builtin_expect(link->ops->send(link, s.payload, s.payload_len, s.key, head, s.remote),
			     0)) {
		pool_put(&ep->worker->tx_pool, req); /* as `worker` need not be kept so long */
		return false;
	}
	peer->rma.seq++;
	rma_await(peer, req);
	return true;
}

#endif
