/* SPDX-License-Identifier: BSD-2-Clause */
/* A one-sided request at its target: shared by the files that perform it. Domain locked. */
#ifndef WEFT_XFER_RMA_TARGET_H
#define WEFT_XFER_RMA_TARGET_H

#include "core/mr.h"
#include "link/wire.h"
#include "xfer/rma/rma.h"

struct rma_request {
	struct peer *peer;
	unsigned int op, flags, index;
	uint32_t seq;
	size_t count;  /* of range */
	size_t total;  /* bytes of all ranges */
	size_t offset; /* where the data of this packet belong among them */
	uint64_t cq;   /* remote CQ data, with WIRE_CQ */
	struct wire_amo amo;
	const char *payload; /* what is left of it */
	size_t len;
	struct wire_range range[WIRE_IOV_MAX];
	struct mr *mr[WIRE_IOV_MAX]; /* once checked */
};

/* Takes a packet apart; false: it contradicts itself. */
bool rma_parse(struct rma_request *r, struct peer *peer, const struct packet *p);
/* All ranges grant `access` (FI_REMOTE_READ, FI_REMOTE_WRITE)? 0 or a negative error; fills mr. */
int rma_check(struct rma_request *r, uint64_t access);

/* A place in memory that may consist of several segments. */
struct rma_spot {
	const struct iovec *iov;
	size_t count;
	uint64_t at; /* bytes from the start of the first one */
};

/* Where range i of a checked request is. */
struct rma_spot rma_spot(const struct rma_request *r, size_t i);
/* What lies `skip` bytes behind the spot; *len becomes how much of it in one fragment, 0: nothing. */
void *rma_fragment(const struct rma_spot *spot, size_t skip, size_t *len);
/* Copies bytes at `offset` of all ranges from (in) or to `buf`. */
void rma_copy(const struct rma_request *r, size_t offset, char *buf, size_t len, bool in);

/* The memory is written: flushes it if asked, then counts and tells as rma_event. 0 or a negative error. */
int rma_finish(struct rma_request *r, uint64_t kind, uint64_t more);
/*
 * Counts the access and pushes CQ data; `kind` as completions and the endpoint's counters say it, `more`
 * (FI_REMOTE_WRITE or 0) what counters of regions count besides.
 */
void rma_event(struct rma_request *r, uint64_t kind, uint64_t more);
/* Done: acknowledged with others at the end of the progress call. */
void rma_done(struct rma_request *r);
/* Tells the initiator that it failed. */
void rma_refuse(const struct rma_request *r, int err);

/* Sends the bytes of all ranges back, of a long one fragment by fragment. 0 or a negative error. */
int rma_reply(struct rma_request *r);
/* Sends these bytes, which are copied if they must wait. */
void rma_reply_bytes(const struct rma_request *r, const void *buf, size_t len);

/* Are the figures in the packet of an atomic consistent? */
bool rma_amo_parse(const struct rma_request *r);
/* Performs it and answers. 0 or a negative error. */
int rma_amo(struct rma_request *r);

#endif
