/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations: reads and writes of a peer's registered memory, and atomics on it.
 * fi_rma(3), fi_atomic(3). Domain locked throughout.
 *
 * An operation ends when the target has performed it, or refused. Those for one peer are performed
 * in the order they were posted: short ones travel as packets, answered in that order; a long one
 * goes straight to the peer's memory once all before it are answered.
 */
#ifndef WEFT_XFER_RMA_H
#define WEFT_XFER_RMA_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "atomic/atomic.h"
#include "link/entry_args.h"
#include "link/wire.h"
#include "xfer/peer.h"

struct ep;
struct message;
struct packet;
struct worker;
struct txreq;
struct work;

/* One operation as an entry got it. What it points to is the caller's again after the call. */
struct rma {
	unsigned int wire;   /* WIRE_PUT, WIRE_GET or WIRE_AMO */
	struct wire_amo amo; /* of WIRE_AMO */
	uint64_t kind;       /* FI_RMA or FI_ATOMIC, FI_READ or FI_WRITE */
	uint64_t flags;      /* FI_* of this operation */
	fi_addr_t addr;
	void *context;
	uint64_t data;           /* with FI_REMOTE_CQ_DATA */
	size_t len;              /* bytes at the target */
	const struct iovec *iov; /* what goes there: data, or operands */
	size_t count;
	const struct iovec *compare; /* values to compare with, of the same length */
	size_t compare_count;
	const struct iovec *result; /* what comes back, of the same length */
	size_t result_count;
	const struct fi_rma_iov *remote;
	size_t remote_count;
	struct work *work; /* deferred work it belongs to, or NULL */
};

/* Storage for lists that an entry converts. */
struct rma_store {
	struct iovec iov[WIRE_IOV_MAX], compare[WIRE_IOV_MAX], result[WIRE_IOV_MAX];
	struct fi_rma_iov remote[WIRE_IOV_MAX];
};

/* Check what a call was given and fill *o. 0 or a negative error. */
int rma_from_rma(struct rma *o, const struct fi_msg_rma *msg, uint64_t flags, bool write);
int rma_from_atomic(struct rma *o, struct rma_store *store, const struct entry_atomic_msg *m,
		    uint64_t flags);
/*
 * An atomic on one buffer of each kind and one range: fills *o but for the lengths of the lists, which the caller
 * fills. o->amo.form is set.
 */
int rma_from_plain(struct rma *o, enum fi_datatype type, enum fi_op op, size_t count);
/* fi_*atomicvalid: 0 and the elements one call may carry, -FI_EINVAL or -FI_EOPNOTSUPP. */
int rma_atomic_valid(enum atomic_form form, enum fi_datatype type, enum fi_op op, size_t *count);

/* Posts it. 0, -FI_EAGAIN or another negative error. */
int rma_post(struct ep *ep, const struct rma *o);

/* Sends a request of the backlog. 0 (it has another state, or ended) or -FI_EAGAIN. */
int rma_send(struct txreq *req);
/* Must the request, at the head of the backlog, wait until all before it are answered? */
bool rma_waits(const struct peer *peer, const struct txreq *req);

/* The same while link->rdma_usable. rma_rdma: 0, -FI_EAGAIN, or 1: not by the devices, send packets. */
bool rma_rdma_waits(const struct peer *peer, const struct txreq *req);
int rma_rdma(struct txreq *req);
/* RDMA has failed: operations that the device has not performed go by packets, before all others. */
void rma_rdma_failed(struct peer *peer);

/* After a direct access: notifies the peer if the operation carries CQ data, or if the peer `counts` accesses. */
void rma_tell(const struct txreq *req, bool counts);

/* A request, or an answer, of the peer. */
void rma_serve(struct worker *worker, struct peer *peer, const struct packet *p);
void rma_answer(struct peer *peer, const struct packet *p);
/* Stores the result of an atomic that was matched like a message. 0, or FI_EPROTO: its length is wrong. */
int rma_result(struct txreq *req, const struct packet *p);

/*
 * An atomic whose target is a tagged receive: as a message its tag is what it is matched by, its data
 * are the packet's tag.
 */
struct message rma_match(struct peer *peer, const struct packet *p);
/* Does the packet make sense? All its ranges have the same key, the tag. */
bool rma_match_valid(struct peer *peer, const struct packet *p);
/* How far into the receive it reaches, in bytes. */
size_t rma_match_len(const struct message *m);
/* What became of it: how its receive ends. */
struct rma_matched {
	int err;       /* positive: the initiator got it, too */
	bool has_data; /* remote CQ data came along */
	uint64_t data;
};

/* Performs it on the receive's segments and answers. */
struct rma_matched rma_match_apply(const struct message *m, const struct iovec *iov, size_t count);
/* No receive will match it: refuses it. */
void rma_match_refuse(struct peer *peer, uint64_t head);

/* The next fragment of a long answer, which is freed with the last one. 0 or -FI_EAGAIN. */
int rma_reply_more(struct txreq *req);
/* Sends the pending acknowledgements (WIRE_DONE). */
void rma_acknowledge(struct worker *worker);

/*
 * For peers that have not answered since the last call, with `now` for all: performs in their place the operations
 * they have not begun. True: an operation ended.
 */
bool rma_help(struct worker *worker, bool now);

#endif
