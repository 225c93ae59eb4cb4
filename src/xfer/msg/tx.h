/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends that leave the fast path of the entry functions. Domain locked. */
#ifndef WEFT_XFER_TX_H
#define WEFT_XFER_TX_H

#include <rdma/fi_rma.h>

#include "atomic/atomic.h"
#include "core/ep.h"
#include "link/wire.h"
#include "xfer/peer.h"

struct work;

/* Arguments of a send call. Passed by value, so that the fast path keeps them in registers. */
struct xfer {
	/* Wire op and flags; the slow path adds the receive context and the id. */
	uint64_t head;
	uint64_t flags; /* FI_* of this operation */
	uint64_t tag;
	uint64_t data;
	const void *buf; /* the buffer, if `iov` is NULL */
	const struct iovec *iov;
	size_t count; /* segments in `iov` */
	size_t len;   /* bytes of all segments */
	void *context;
	fi_addr_t addr;
	/* Deferred work, or a collective's, that the message belongs to; or NULL. */
	struct work *work;
};

/* A transmit request: an operation that outlives its call. */
struct txreq {
	struct list link; /* peer->txreqs[state], unless TXREQ_NEW */
	struct ep *ep;    /* NULL: the end is not reported, or was before it came */
	struct peer *peer;
	uint64_t head, flags, tag, data;
	void *context;
	struct work *work;
	void *bounce; /* owned copy of memory that the caller may reuse, or NULL */
	/* Registration by link_memory_ops.reg while the peer may read the message; or NULL. */
	void *rndv;
	size_t len;
	size_t sent;        /* bytes sent, of a stream or a long one-sided operation */
	uint32_t remote_id; /* of a stream: id of the receive request */
	uint32_t seq;       /* sequence number of a one-sided operation, or of the answer to one */
	/* Zero-copy: value of link->zcopy_posted after the last packet; or 0. */
	uint64_t zcopy;
	uint64_t place; /* link->last after its packet was sent */
	struct wire_amo amo;
	enum txreq_state state : 8;
	bool whole;     /* one-sided, and one packet holds all data */
	bool packets;   /* no device can perform the operation: send packets */
	bool unmatched; /* sent under XOFF and not answered: in peer->tx.unmatched_count */
	bool reported;  /* in TXREQ_ACK or TXREQ_RMA, as done: nobody waits for its answer */
	uint8_t checks; /* of worker_stuck.c in a row that found it as it was; 0: none has seen it */
	size_t count;
	size_t got;    /* bytes of the result received */
	size_t seen;   /* `sent` and `got` at the last check, if there was one */
	size_t weight; /* bytes counted in peer->rma.results, if tx_brings */
	size_t result_count, remote_count;
	struct iovec iov[WIRE_IOV_MAX];
	struct iovec result[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
};

/* In debug builds: aborts if a request may not go from state `from` to state `to`. */
#if ENABLE_DEBUG
void tx_req_check_move(enum txreq_state from, enum txreq_state to);
#else
static inline void tx_req_check_move(enum txreq_state from, enum txreq_state to)
{
	(void)from, (void)to;
}
#endif

/* A control message that waits for space. */
struct control {
	struct list link; /* peer->tx.controls */
	uint64_t head, tag, data;
	size_t len;
	unsigned char payload[];
};

/* Does the answer bring back more than WIRE_RESULT_INLINE bytes? */
static inline bool tx_brings(const struct txreq *req)
{
	return req->len > WIRE_RESULT_INLINE && wire_op(req->head) != WIRE_PUT &&
	       !(wire_op(req->head) == WIRE_AMO && req->amo.form == ATOMIC_BASE) &&
	       !(wire_flags(req->head) & WIRE_MATCH);
}

/*
 * Does the one-sided operation complete as soon as its memory is free? Then the target's answer, or the end of the
 * connection, is not reported any more; fences and the order of operations wait for it as ever.
 */
static inline bool tx_completes_sent(const struct txreq *req)
{
	const uint64_t more = FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE |
			      FI_COMMIT_COMPLETE;

	return (req->flags & (FI_INJECT_COMPLETE | more)) == FI_INJECT_COMPLETE &&
	       req->flags & FI_WRITE && !req->work;
}

/*
 * Sends a message of a collective group (with `work`), or a control message about one (without: `p` is copied if it
 * must wait). The message waits only for a connection and for space, in order. p->payload must stay valid until
 * work->done. 1: sent, `work` is not called; 0: `work` is or was called; negative: it can never be sent.
 */
int tx_ahead(struct peer *peer, const struct packet *p, struct work *work);
/* Ends sent and waiting messages whose work `match` accepts, with `err` (positive). */
void tx_cancel_posted(struct worker *worker, int err,
		      bool (*match)(const struct work *work, const void *arg), const void *arg);

/* Sends a message that the fast path cannot. 0 or a negative error; -FI_EAGAIN: no space now. */
int tx_slow(struct ep *ep, struct xfer x);

/* Tells the link to the peer, if there is one, that more follows right after the next packet. */
void tx_announce(const struct peer *peer);

/*
 * May the operation wait in the backlog, if earlier ones hold it back? Never for a connection, as its process may not
 * call the library again, and never if it is injected: then the call returns -FI_EAGAIN. Deferred work always may.
 */
static inline bool tx_may_queue(const struct peer *peer, uint64_t flags, const struct work *work)
{
	return work || (peer->conn.state == PEER_CONNECTED && !(flags & FI_INJECT));
}

/*
 * Begins to connect to an idle peer. 0 or a negative error: -FI_EAGAIN, or why the peer cannot be reached; but for
 * deferred work also the error of the last attempt, which no completion has reported.
 */
int tx_connect(struct peer *peer, const struct work *work);
/*
 * Makes progress before a call that found no space, or no connection, tries again. Returns the peer of the entry then: it
 * may have turned out to be one that another entry has, too.
 */
struct peer *tx_progress(const struct ep *ep, fi_addr_t entry);

/* Handle ATS and CTS for our requests. */
void tx_ats(struct worker *worker, struct peer *peer, const struct packet *p);
void tx_cts(struct worker *worker, struct peer *peer, const struct packet *p);

/* Sends queued output of the peer as space permits. True: something was sent. */
bool tx_flush(struct peer *peer);
/* Sends a packet of the request; the link may read its payload later, while tx_zcopy_pending. 0 or a negative error. */
int tx_zcopy(struct txreq *req, const struct packet *p, const struct iovec *iov, size_t count);
/* Does the link still read the request's memory? */
static inline bool tx_zcopy_pending(const struct txreq *req)
{
	return req->peer->conn.real && req->zcopy > req->peer->conn.real->zcopy_done;
}
/* Ends requests in TXREQ_ZCOPY whose packets are out. True: there was one. */
bool tx_end_zcopy(struct peer *peer);
/*
 * Copies zero-copy memory that the link has not sent yet. Without memory disconnects the peer; `what` is for the log.
 */
void tx_take_back(struct peer *peer, const char *what);
/* Sends the message and moves the request to its next state. 0 or -FI_EAGAIN: the request stays where it is. */
int tx_send(struct txreq *req);
/* Must the request wait until all earlier ones have ended, by a fence, peer->rma.bulk or rma_waits? */
bool tx_blocked(const struct peer *peer, const struct txreq *req);
/* Must a new operation be queued: for the same reasons, or because the head of the backlog is blocked? */
bool tx_must_queue(const struct peer *peer, uint64_t flags);
/*
 * Has the peer as many messages of ours as may wait in the backlog, or at the peer under XOFF? There it counts them by
 * number alone.
 */
static inline bool tx_full(const struct ep *ep, const struct peer *peer)
{
	return peer->tx.backlog_count + peer->tx.unmatched_count >= ep->tx_size;
}
/* Counts a message, or an atomic on a tagged receive, that is sent under XOFF. */
static inline void tx_req_unmatched(struct txreq *req)
{
	req->unmatched = true;
	req->peer->tx.unmatched_count++;
}
/* Appends the request to the backlog. 0 or -FI_EAGAIN: the backlog is full. */
int tx_queue(struct ep *ep, struct txreq *req);

/* Sends a control message, or queues it: it is never lost. */
void tx_control(struct peer *peer, uint64_t head, uint64_t tag);
/* The same with a payload, which is copied if it must wait. */
void tx_control_data(struct peer *peer, const struct packet *p);

/* Takes a request off the list of its state, before the state changes or the request is freed. */
static inline void tx_req_leave(struct txreq *req)
{
	if (req->state == TXREQ_NEW)
		return;
	list_remove(&req->link);
	if (req->state == TXREQ_BACKLOG)
		req->peer->tx.backlog_count--;
}
/* Enters a request to `peer` that is on no list at the end of the list of its state. */
static inline void tx_req_enter(struct peer *peer, struct txreq *req, enum txreq_state to)
{
	req->state = to;
	list_push(&peer->txreqs[to == TXREQ_RTS ? TXREQ_ACK : to], &req->link);
	if (to == TXREQ_BACKLOG)
		peer->tx.backlog_count++;
}
/* Moves a request to the end of the list of its new state. */
static inline void tx_req_move(struct txreq *req, enum txreq_state to)
{
	tx_req_check_move(req->state, to);
	tx_req_leave(req);
	tx_req_enter(req->peer, req, to);
}
/* Returns the oldest request of a state, or NULL. */
static inline struct txreq *tx_req_first(const struct peer *peer, enum txreq_state state)
{
	const struct list *list = &peer->txreqs[state];

	return list_empty(list) ? NULL : LIST_ENTRY(list->next, struct txreq, link);
}
/* Returns the oldest request in TXREQ_RTS or TXREQ_ACK whose end is not reported yet, or NULL. */
struct txreq *tx_req_first_unreported(const struct peer *peer);
/* Moves a request to the head of the backlog: the device did not perform it, packets must. */
void tx_req_requeue(struct txreq *req);
/* May the peer end the request by ATS? */
static inline bool tx_awaits_ats(const struct txreq *req)
{
	return req->state == TXREQ_ACK || req->state == TXREQ_RTS || req->state == TXREQ_STREAM;
}

/*
 * Make an empty request (NULL: no memory), end one with `err` (positive or 0) and prov_errno
 * `reason`, free one. A request that ends leaves its list.
 */
struct txreq *tx_req_new(struct ep *ep, struct peer *peer);
void tx_req_end(struct txreq *req, int err);
void tx_req_fail(struct txreq *req, int err, int reason);
/* Reports the success of a request that lives on, for nobody. */
void tx_req_report(struct txreq *req);
void tx_req_free(struct txreq *req);
/* Ends the registration of the request's memory: the peer no longer reads it. */
static inline void tx_req_deregister(struct txreq *req)
{
	if (__builtin_expect(!req->rndv, 1))
		return;
	req->peer->conn.real->memory->dereg(req->peer->conn.real, req->rndv);
	req->rndv = NULL;
}
/* Copies `count` segments into memory owned by the request. 0 or -FI_ENOMEM. */
int tx_req_bounce(struct txreq *req, const struct iovec *iov, size_t count);

/* Drops all queued answers and control messages for the peer. */
void tx_drop_answers(struct peer *peer);
/* Ends all of the peer's requests with `err` (positive) and prov_errno `reason`. */
void tx_fail_all(struct peer *peer, int err, int reason);
/*
 * Detaches the requests of an endpoint that is being closed: they complete on `successor`. If that
 * is NULL, they end with FI_ECANCELED, and unsent ones are discarded.
 */
void tx_forget(struct worker *worker, struct ep *ep, struct ep *successor);

/*
 * Ends an operation of the endpoint or its aliases with this context that waits in a backlog, by
 * FI_ECANCELED. 0 or -FI_ENOENT.
 */
int tx_cancel(const struct ep *ep, void *context);

/* Flags that name the kind of an operation. */
#define TX_KIND (FI_MSG | FI_TAGGED | FI_SEND | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

/* Counts a send of `len` bytes on the endpoint's transmit counter, which must exist. */
void tx_count(struct ep *ep, size_t len);

/* Reports a successful send of this kind if its flags ask for a completion; the caller counts it. */
static inline void tx_complete(struct ep *ep, uint64_t kind, uint64_t flags, void *context)
{
	if (__builtin_expect((flags & FI_COMPLETION) != 0, 1))
		cq_push_done(ep->tx_cq, context, kind);
}

#endif
