/* SPDX-License-Identifier: BSD-2-Clause */
/* A one-sided request at its target. Domain locked. */
#ifndef WEFT_XFER_RMA_TARGET_H
#define WEFT_XFER_RMA_TARGET_H

#include "core/mr.h"
#include "link/wire.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"

struct rma_request {
	struct peer *peer;
	unsigned int op, flags, index;
	uint32_t seq;
	size_t count;  /* entries of `range` */
	size_t total;  /* bytes of all ranges */
	size_t offset; /* offset of this packet's data among the bytes of all ranges */
	uint64_t cq;   /* remote CQ data, if WIRE_CQ */
	struct wire_amo amo;
	const char *payload; /* the packet's payload not parsed yet, `len` bytes */
	size_t len;
	struct wire_range range[WIRE_IOV_MAX];
	struct mr *mr[WIRE_IOV_MAX]; /* filled in by rma_check */
};

/* Parses a packet. False: the packet contradicts itself. */
bool rma_parse(struct rma_request *r, struct peer *peer, const struct packet *p);
/*
 * Looks up the regions of all ranges and checks that they grant `access` (FI_REMOTE_READ,
 * FI_REMOTE_WRITE). 0 or a negative error; fills in r->mr.
 */
int rma_check(struct rma_request *r, uint64_t access);

/* A place in memory that may consist of several segments. */
struct rma_spot {
	const struct iovec *iov;
	size_t count;
	uint64_t at; /* bytes from the start of the first segment */
};

/* Returns the memory of range i of a checked request. */
struct rma_spot rma_spot(const struct rma_request *r, size_t i);
/*
 * Returns the memory `skip` bytes behind the spot and reduces *len to the bytes in the same segment; 0: beyond the end.
 */
void *rma_fragment(const struct rma_spot *spot, size_t skip, size_t *len);
/* Copies `len` bytes at `offset` of all ranges from `buf` (in) or to `buf`. */
void rma_copy(const struct rma_request *r, size_t offset, char *buf, size_t len, bool in);

/* Ends a write: flushes the memory if WIRE_COMMIT, then rma_event. 0 or a negative error. */
int rma_finish(struct rma_request *r, uint64_t kind, uint64_t more);
/*
 * Counts the access and pushes remote CQ data. `kind`: flags of the completion, and of the
 * endpoint's counter. `more` (FI_REMOTE_WRITE or 0): what counters of regions also count it as.
 */
void rma_event(struct rma_request *r, uint64_t kind, uint64_t more);
/* Marks the request done, and all before it; rma_acknowledge sends WIRE_DONE at the end of the progress call. */
static inline void rma_mark_done(struct peer *peer, uint64_t head)
{
	peer->target.done_seq = wire_id(head);
	peer->target.common &= head;
	if (list_empty(&peer->target.in_acks_pending))
		list_push(&peer_worker(peer)->acks_pending, &peer->target.in_acks_pending);
}
/* The same for a request whose initiator may have disconnected. */
void rma_done(struct rma_request *r);
/* Answers WIRE_FAILED with `err` (negative). */
void rma_refuse(const struct rma_request *r, int err);

/* Answers with the bytes of all ranges, if they are many in fragments. 0 or a negative error. */
int rma_reply(struct rma_request *r);
/* Answers request `seq` with `len` bytes of `buf`, which are copied if they must wait. */
void rma_send_result(struct peer *peer, uint32_t seq, const void *buf, size_t len);
/* The same for a request whose initiator may have disconnected. */
void rma_reply_bytes(const struct rma_request *r, const void *buf, size_t len);

/* Performs and answers a request of any form, or refuses it; rma_serve takes the short form apart. */
void rma_serve_any(struct worker *worker, struct peer *peer, const struct packet *p);

/* Are the figures in the packet of an atomic consistent? */
bool rma_amo_parse(const struct rma_request *r);
/* Returns the rights that an atomic needs at its target. */
uint64_t rma_amo_access(const struct wire_amo *amo);
/* Performs an atomic and answers. 0 or a negative error. */
int rma_amo(struct rma_request *r);

#endif
