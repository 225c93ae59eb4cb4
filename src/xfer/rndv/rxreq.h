/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive requests: messages that matched a receive and have not arrived completely. Domain locked. */
#ifndef WEFT_XFER_RXREQ_H
#define WEFT_XFER_RXREQ_H

#include "xfer/msg/rx.h"

/* Where the bytes of a matched message are. */
enum rxreq_state {
	RXREQ_COMES, /* they come in packets */
	RXREQ_READ   /* a copy of link_memory_ops is under way; fragments are dropped */
};

struct rxreq {
	struct list link; /* peer->rx.rxreqs */
	struct rx *rx;
	struct recv *recv;
	struct message message; /* its payload is gone by now */
	size_t capacity;        /* bytes of the message that fit the receive */
	size_t received;        /* bytes received, including those that do not fit */
	size_t placing;         /* payload bytes of the packet under direct placement */
	size_t placed;          /* of `placing`, when the link asked for a place last */
	bool ack_pending;       /* the sender awaits ATS */
	bool asked;             /* CTS was sent */
	enum rxreq_state state : 8;
	unsigned char *base; /* multi-receive: start of this message in the buffer; else NULL */
};

/* What `copy` reads into the request `id` has ended, as `ret` says. */
void rxreq_copied(struct worker *worker, uint32_t id, int ret);
/* Receives a message announced by RTS into `r`, of which `capacity` bytes are reserved: the request ends it. */
void rxreq_rts(struct rx *rx, struct recv *r, const struct message *m, const struct wire_rts *rts,
	       size_t capacity, void *base);
/* Sends CTS for all messages that the device was to read: RDMA has failed. */
void rxreq_rdma_failed(struct peer *peer);
/* Is a copy of a message of this peer into a receive of the context under way? */
bool rxreq_rdma(const struct peer *peer, const struct rx *rx);
/* Handles WIRE_FRAG. */
void rxreq_frag(struct worker *worker, struct peer *peer, const struct packet *p);
/* Ends all requests of a disconnected peer with `err` (positive). */
void rxreq_fail_peer(struct peer *peer, int err);
/* Ends all requests of a context that is being closed with `err` (positive). */
void rxreq_fail_context(struct worker *worker, struct rx *rx, int err);
/*
 * Waits, a bounded time, until no device accesses the memory of a receive context, or of the one-sided operations of
 * `ep` if that is not NULL: it is being closed. Disconnects the peers whose operations do not end.
 */
void rdma_quiesce(struct worker *worker, const struct rx *rx, const struct ep *ep);

#endif
