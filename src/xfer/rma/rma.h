/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations: reads and writes of a peer's registered memory, and atomics on it.
 * fi_rma(3), fi_atomic(3). Domain locked throughout.
 *
 * An operation ends when the target has performed or refused it. Operations for one peer are
 * performed in the order of posting: short ones travel as packets, answered in that order; a long
 * one accesses the peer's memory directly once all earlier ones are answered.
 */
#ifndef WEFT_XFER_RMA_H
#define WEFT_XFER_RMA_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "atomic/atomic.h"
#include "entry/args.h"
#include "link/wire.h"
#include "xfer/peer.h"

struct ep;
struct message;
struct worker;
struct txreq;
struct work;

/* Arguments of a one-sided call. The caller may reuse the lists after the call. */
struct rma {
	unsigned int wire;   /* WIRE_PUT, WIRE_GET or WIRE_AMO */
	struct wire_amo amo; /* for WIRE_AMO */
	uint64_t kind;       /* FI_RMA or FI_ATOMIC, FI_READ or FI_WRITE */
	uint64_t flags;      /* FI_* of this operation */
	fi_addr_t addr;
	void *context;
	uint64_t data;           /* with FI_REMOTE_CQ_DATA */
	size_t len;              /* bytes of all ranges at the target */
	const struct iovec *iov; /* data or operands to send */
	size_t count;
	const struct iovec *compare; /* compare values, as many bytes */
	size_t compare_count;
	const struct iovec *result; /* where the result goes, as many bytes */
	size_t result_count;
	const struct fi_rma_iov *remote;
	size_t remote_count;
	struct work *work; /* deferred work that the operation belongs to, or NULL */
};

/* Storage for the lists of an atomic call, converted from elements to bytes. */
struct rma_store {
	struct iovec iov[WIRE_IOV_MAX], compare[WIRE_IOV_MAX], result[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
};

/* Check the arguments of a call and fill in *o. 0 or a negative error. */
int rma_from_rma(struct rma *o, const struct fi_msg_rma *msg, uint64_t flags, bool write);
int rma_from_atomic(struct rma *o, struct rma_store *store, const struct entry_atomic_msg *m,
		    uint64_t flags);
/*
 * Fills in *o for an atomic on one buffer of each kind and one range, except the lengths of the
 * lists, which the caller fills in. o->amo.form must be set. 0 or a negative error.
 */
int rma_from_plain(struct rma *o, enum fi_datatype type, enum fi_op op, size_t count);
/* fi_*atomicvalid: 0 with the elements that one call may carry in *count, -FI_EINVAL or -FI_EOPNOTSUPP. */
int rma_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op, size_t *count);

/* Posts an operation. 0, -FI_EAGAIN or another negative error. */
int rma_post(struct ep *ep, const struct rma *o);

/* Sends a one-sided request. 0: it has another state, or ended; else -FI_EAGAIN. */
int rma_send(struct txreq *req);
/* Must a request at the head of the backlog wait until all earlier ones are answered? */
bool rma_waits(const struct peer *peer, const struct txreq *req);

/*
 * The same while link->rdma_usable. rma_rdma posts the request to the device: 0, -FI_EAGAIN
 * (later), or 1: the device cannot perform it, send packets.
 */
bool rma_rdma_waits(const struct peer *peer, const struct txreq *req);
int rma_rdma(struct txreq *req);
/* Requeues the operations that the device has not performed, before all others, to go by packets: RDMA has failed. */
void rma_rdma_failed(struct peer *peer);

/* Can the operation access the peer's memory directly? */
bool rma_may_go_direct(const struct peer *peer, const struct txreq *req);
/* And is that faster than packets? */
bool rma_wants_direct(const struct peer *peer, const struct txreq *req);
/* Could we access the memory in the place of the peer right now? */
bool rma_reaches(const struct txreq *req);
/* Performs a direct access. 0: done, the request has ended or will; else it must be sent in packets. */
int rma_go_direct(struct txreq *req);

/*
 * Notifies the peer (WIRE_NOTIFY) after a direct access if the operation carries CQ data, or if
 * `counts`: the peer counts accesses.
 */
void rma_notify(const struct txreq *req, bool counts);

/* Handle a request (rma_serve) or an answer (rma_answer) of the peer. */
void rma_serve(struct worker *worker, struct peer *peer, const struct packet *p);
void rma_answer(struct peer *peer, const struct packet *p);
/* Stores the result of an atomic that matched a tagged receive. 0, or FI_EPROTO: wrong length. */
int rma_result(struct txreq *req, const struct packet *p);

/*
 * Returns an atomic on a tagged receive as a message to be matched. The message's tag is the tag to
 * match; its data is the packet's tag.
 */
struct message rma_match(struct peer *peer, const struct packet *p);
/* Is the packet of such an atomic consistent? All ranges must have the same key, which is the tag. */
bool rma_match_valid(struct peer *peer, const struct packet *p);
/* Returns the bytes from the start of the receive that the atomic reaches to. */
size_t rma_match_len(const struct message *m);
/* Outcome of such an atomic, for the completion of its receive. */
struct rma_matched {
	int err;       /* positive, also sent to the initiator; or 0 */
	bool has_data; /* the atomic carries remote CQ data */
	uint64_t data;
};

/* Performs the atomic on the segments of its receive, and answers the initiator. */
struct rma_matched rma_match_apply(const struct message *m, const struct iovec *iov, size_t count);
/* Refuses such an atomic with FI_ECANCELED: no receive will match it. */
void rma_match_refuse(struct peer *peer, uint64_t head);

/* Sends the next fragment of a long answer; frees the request after the last one. 0 or -FI_EAGAIN. */
int rma_reply_more(struct txreq *req);
/* Sends the pending acknowledgements (WIRE_DONE). */
void rma_acknowledge(struct worker *worker);

/*
 * Performs unanswered operations in the place of peers that do not poll: those that have not
 * answered since the last call; with `now`, all. True: an operation ended.
 */
bool rma_help(struct worker *worker, bool now);

#endif
