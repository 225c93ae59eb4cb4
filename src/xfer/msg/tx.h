/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends that the entries cannot hand to the link at once. Domain locked. */
#ifndef WEFT_XFER_TX_H
#define WEFT_XFER_TX_H

#include <rdma/fi_rma.h>

#include "atomic/atomic.h"
#include "core/ep.h"
#include "link/wire.h"
#include "xfer/peer.h"

struct packet;
struct work;

/* One message as an entry got it. Passed by value, so that it stays in registers on the fast path. */
struct xfer {
	uint64_t head;  /* wire op and flags; receive context and id are added on the way */
	uint64_t flags; /* FI_* of this operation */
	uint64_t tag;
	uint64_t data;
	const void *buf; /* single buffer when iov is NULL */
	const struct iovec *iov;
	size_t count; /* of iov */
	size_t len;   /* bytes in all */
	void *context;
	fi_addr_t addr;
	struct work *work; /* deferred work it belongs to, or NULL */
};

/* An operation that outlives its call. */
struct txreq {
	struct list link; /* peer->txreqs[state], unless TXREQ_NEW */
	struct ep *ep;    /* NULL: its end is not reported */
	struct peer *peer;
	uint64_t head, flags, tag, data;
	void *context;
	struct work *work;
	void *bounce; /* our copy of memory that the caller gets back at once, or NULL */
	void *rndv;   /* the link's, while the peer may read the message by itself; or NULL */
	size_t len;
	size_t sent;        /* of a stream, or of a long one-sided operation */
	size_t limit;       /* of a stream: where it stops unless asked to go on */
	uint32_t remote_id; /* receive request, of a stream */
	uint32_t seq;       /* of a one-sided operation, and of the answer to one */
	uint64_t
		zcopy; /* its last packet's number, if it was sent zero-copy: link->zcopy_posted; or 0 */
	uint64_t place; /* of its packet: link->last */
	struct wire_amo amo;
	enum txreq_state state : 8;
	enum proto proto : 8; /* while `rndv` */
	bool whole;           /* one-sided, and one packet holds it */
	bool packets;         /* no device takes it */
	size_t count;
	size_t got;    /* bytes of the result that came */
	size_t weight; /* of that result in peer->rma.results, if it has one: tx_brings */
	size_t result_count, remote_count;
	struct iovec iov[WIRE_IOV_MAX];
	struct iovec result[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
};

/* In debug builds: aborts if no request goes from one state to the other. */
#if ENABLE_DEBUG
void tx_req_check_move(enum txreq_state from, enum txreq_state to);
#else
static inline void tx_req_check_move(enum txreq_state from, enum txreq_state to)
{
	(void)from, (void)to;
}
#endif

/* A control packet that found no room. */
struct control {
	struct list link; /* peer->tx.controls */
	uint64_t head, tag, data;
	size_t len;
	unsigned char payload[];
};

/* Does its answer bring back more than a few bytes? */
static inline bool tx_brings(const struct txreq *req)
{
	return req->len > WIRE_RESULT_INLINE && wire_op(req->head) != WIRE_PUT &&
	       !(wire_op(req->head) == WIRE_AMO && req->amo.form == ATOMIC_BASE) &&
	       !(wire_flags(req->head) & WIRE_MATCH);
}

/*
 * Sends a message of a collective group (`work`), or a control message about one (no work: copied if it has to
 * wait). It waits only for a connection and for space, in order. p->payload stays until work->done. 1: sent,
 * `work` is not called; 0: `work` is or was called; negative: it can never be sent.
 */
int tx_ahead(struct peer *peer, const struct packet *p, struct work *work);
/* Ends the sent and waiting messages whose work `match` accepts by `err` (positive). */
void tx_cancel_posted(struct worker *worker, int err,
		      bool (*match)(const struct work *work, const void *arg), const void *arg);

/* Sends what the fast path of the entries does not. 0 or a negative error. */
int tx_slow(struct ep *ep, struct xfer x);

/*
 * An injected operation may have no completion, and its sender may end as soon as the call has returned. So
 * it is accepted only if it leaves the process within the call: where it would have to wait for a connection
 * or behind a fence it is -FI_EAGAIN. Deferred work has a counter that tells of its end, and may wait.
 */
static inline bool tx_never_queues(uint64_t flags, const struct work *work)
{
	return flags & FI_INJECT && !work;
}

/*
 * Begins to connect to an idle peer. 0, or a negative error: -FI_EAGAIN, why it cannot be reached, or, for an
 * operation that never queues, how the last attempt failed, which no completion has told.
 */
int tx_connect(struct peer *peer, uint64_t flags, const struct work *work);

/* What a peer's packets say about our requests. */
void tx_ats(struct worker *worker, struct peer *peer, const struct packet *p);
void tx_cts(struct worker *worker, struct peer *peer, const struct packet *p);

/* For tx_flush: what of peer->txreqs[TXREQ_AHEAD] finds room; and another attempt to connect. */
bool tx_ahead_flush(struct peer *peer);
void tx_ahead_connect(struct peer *peer);
/* Sends what can be sent of the peer's backlog and streams; true when anything was sent. */
bool tx_flush(struct peer *peer);
/* The thread is about to sleep: speculative fragments no longer wait for space. */
void tx_release_idle(struct worker *worker);
/* Sends a packet whose payload, the request's, stays where it is while tx_zcopy_pending. */
int tx_zcopy(struct txreq *req, const struct packet *p, const struct iovec *iov, size_t count);
/* Is some of it not out yet? */
static inline bool tx_zcopy_pending(const struct txreq *req)
{
	return req->peer->real && req->zcopy > req->peer->real->zcopy_done;
}
/* Ends the peer's messages that are out by now; true when there are any. */
bool tx_end_zcopy(struct peer *peer);
/*
 * Copies what the link has not sent yet of zero-copy memory; without memory disconnects the peer, `what` says why.
 */
void tx_take_back(struct peer *peer, const char *what);
/* Sends the message and moves it to its next state. 0 or -FI_EAGAIN: it stays where it is. */
int tx_send(struct txreq *req);
/* Must it wait until all before it have ended? By a fence, peer->rma.bulk, or rma_waits. */
bool tx_blocked(const struct peer *peer, const struct txreq *req);
/* The same for an operation not posted yet, or because the head of the backlog is blocked. */
bool tx_must_queue(const struct peer *peer, uint64_t flags);
/* Sends fragments of what an RTS announced, up to req->limit. False: there is no room for more. */
bool tx_fragments(struct txreq *req);
/* Puts it at the end of the backlog. 0 or -FI_EAGAIN: that is full. */
int tx_queue(struct ep *ep, struct txreq *req);

/* A control packet that must not be lost: sent now or queued. */
void tx_control(struct peer *peer, uint64_t head, uint64_t tag);
/* The same with bytes behind it, which are copied. */
void tx_control_data(struct peer *peer, const struct packet *p);
/*
 * Counts an answer of so many bytes that has to wait. False: over WIRE_ANSWERS_MAX, or the peer is about to be
 * disconnected.
 */
bool tx_owe(struct peer *peer, size_t bytes);

/* Takes a request off the list of its state, before it gets another one or is freed. */
static inline void tx_req_leave(struct txreq *req)
{
	if (req->state == TXREQ_NEW)
		return;
	list_remove(&req->link);
	if (req->state == TXREQ_BACKLOG)
		req->peer->tx.backlog_count--;
}
/* Moves a request to the end of the list of its new state. */
static inline void tx_req_move(struct txreq *req, enum txreq_state to)
{
	tx_req_check_move(req->state, to);
	tx_req_leave(req);
	req->state = to;
	list_push(&req->peer->txreqs[to == TXREQ_RTS ? TXREQ_ACK : to], &req->link);
	if (to == TXREQ_BACKLOG)
		req->peer->tx.backlog_count++;
}
/* The oldest request of a state, or NULL. */
static inline struct txreq *tx_req_first(const struct peer *peer, enum txreq_state state)
{
	const struct list *list = &peer->txreqs[state];

	return list_empty(list) ? NULL : LIST_ENTRY(list->next, struct txreq, link);
}
/* Back to the head of the backlog: the device did not perform it, packets are to. */
void tx_req_requeue(struct txreq *req);
/* May the peer end it by an ATS? */
static inline bool tx_awaits_ats(const struct txreq *req)
{
	return req->state == TXREQ_ACK || req->state == TXREQ_RTS || req->state == TXREQ_SPEC ||
	       req->state == TXREQ_STREAM;
}

/* Requests: made empty, ended (err positive or 0) and freed. One that ends leaves its list. */
struct txreq *tx_req_new(struct ep *ep, struct peer *peer);
void tx_req_end(struct txreq *req, int err);
void tx_req_fail(struct txreq *req, int err, int reason);
void tx_req_free(struct txreq *req);
/* The peer no longer reads the request's memory: ends its registration. */
static inline void tx_req_deregister(struct txreq *req)
{
	if (__builtin_expect(!req->rndv, 1))
		return;
	req->peer->real->rndv->dereg(req->peer->real, req->rndv);
	req->rndv = NULL;
}
/* A copy of `count` segments in memory of the request's own. 0 or -FI_ENOMEM. */
int tx_req_bounce(struct txreq *req, const struct iovec *iov, size_t count);

/* Drops all answers and control messages for the peer. */
void tx_drop_answers(struct peer *peer);
/* Ends all of the peer's requests with `err` (positive), and `reason` as their prov_errno. */
void tx_fail_all(struct peer *peer, int err, int reason);
/*
 * The endpoint is being closed: its requests complete on `successor`. Without one they end by FI_ECANCELED, and
 * those not sent yet are discarded.
 */
void tx_forget(struct worker *worker, struct ep *ep, struct ep *successor);

/* Ends an operation that waits in a backlog. 0 or -FI_ENOENT. */
int tx_cancel(struct worker *worker, void *context);

/* The flags that say what an operation is. */
#define TX_KIND (FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

/* One more of `len` bytes on the endpoint's counter of sends, which it has. */
void tx_count(struct ep *ep, size_t len);

/* Ends a send of this kind well, as its flags ask; the counter is the caller's. */
static inline void tx_complete(struct ep *ep, uint64_t kind, uint64_t flags, void *context)
{
	if (__builtin_expect((flags & FI_COMPLETION) != 0, 1))
		cq_push_done(ep->tx_cq, context, kind);
}

#endif
