/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages matched to a receive whose bytes have not all come. Domain locked. */
#ifndef WEFT_XFER_RXREQ_H
#define WEFT_XFER_RXREQ_H

#include "xfer/msg/rx.h"

struct rxreq {
	struct list link; /* peer->rx.rxreqs */
	struct rx *rx;
	struct recv *recv;
	struct peer *peer;
	uint64_t head, tag, data; /* of the message */
	size_t len;               /* of the message */
	size_t capacity;          /* what of it fits */
	size_t received;          /* so far, the part that does not fit included */
	size_t placing;           /* bytes of the packet that is being read into its place */
	bool ack_pending;         /* its sender awaits ATS */
	bool spec;                /* speculative fragments of it come, or came */
	bool asked;               /* its sender was asked to send all of it */
	bool rdma_posted;         /* a device reads it; fragments are dropped */
	unsigned char *base;      /* multi-receive: where this message lies; else NULL */
	/* Of one in worker->spec or worker->spec_only. */
	struct list in_spec;
	struct wire_rts rts;
};

/* Begins to receive a message in fragments into `r`, of which `capacity` bytes are for it. NULL: no memory. */
struct rxreq *rxreq_begin(struct rx *rx, struct recv *r, const struct message *m, size_t capacity,
			  void *base);
/* Ends it: complete, or with `err` (positive). */
void rxreq_end(struct rxreq *a, int err);
/*
 * Copies `want` bytes of the message, from `offset` on, straight out of the sender's memory into the segments. 0,
 * or negative: not possible.
 */
int rxreq_fetch(const struct peer *peer, const struct wire_rts *rts, size_t offset,
		const struct iovec *iov, size_t count, size_t want);
/* Asks the sender (CTS) to stream the bytes that have not come. */
void rxreq_ask(struct rxreq *a);

/*
 * Receives a message announced by RTS into `r`: by the RDMA read `op` if that is not NULL and the link can, else
 * by CTS. Fills op->id.
 */
void rxreq_send_cts(struct rx *rx, struct recv *r, const struct message *m, size_t capacity,
		    void *base, struct link_rdma *op);
/* RDMA has failed: asks the sender (CTS) for all messages that the device was to read. */
void rxreq_rdma_failed(struct peer *peer);
/* Does a device write to a receive of the context, for a message of this peer? */
bool rxreq_rdma(const struct peer *peer, const struct rx *rx);
/* A fragment has come. */
void rxreq_frag(struct worker *worker, struct peer *peer, const struct packet *p);
/* The peer is disconnected: messages it had begun to send end with `err` (positive). */
void rxreq_fail_peer(struct peer *peer, int err);
/* The context is being closed: what it is receiving ends with `err`. */
void rxreq_fail_context(struct worker *worker, struct rx *rx, int err);

#endif
