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
	size_t room;              /* what of it fits */
	size_t received;          /* so far, the part that does not fit included */
	size_t placing;           /* bytes of the packet that is being read into its place */
	bool ack_pending;         /* its sender waits to hear of its end */
	bool spec;                /* speculative fragments of it come, or came */
	bool asked;               /* its sender was asked to send all of it */
	bool rdma_posted;         /* a device brings it; no fragments of it are taken */
	unsigned char *base;      /* multi-receive: where this message lies; else NULL */
	/* Of one in worker->spec or worker->spec_only. */
	struct list in_spec;
	struct wire_rts offer;
};

/* A message that meets `r`, for which there is this much room, comes in fragments. NULL: no memory. */
struct rxreq *rxreq_begin(struct rx *rx, struct recv *r, const struct message *m, size_t room,
			  void *base);
/* It has come, or ends with `err` (positive). */
void rxreq_end(struct rxreq *a, int err);
/*
 * One copy straight out of the sender's memory, from an offset on: 0 or a negative error, not possible.
 * `want` bytes in all fit the segments.
 */
int rxreq_fetch(const struct peer *peer, const struct wire_rts *offer, size_t offset,
		const struct iovec *iov, size_t count, size_t want);
/* Its sender is asked to stream what has not come. */
void rxreq_ask(struct rxreq *a);

/*
 * Gets an offered message that meets `r`, for which there is this much room: by `rdma_post` if that is not NULL
 * and the link can do it, else its sender is asked to stream it. The id of the operation is filled in.
 */
void rxreq_send_cts(struct rx *rx, struct recv *r, const struct message *m, size_t room, void *base,
		    struct link_rdma *op);
/* No device brings what the peer has offered: its sender is asked. */
void rxreq_rdma_failed(struct peer *peer);
/* Is a device writing to what the context receives from this peer? */
bool rxreq_rdma(const struct peer *peer, const struct rx *rx);
/* A fragment of a message that was asked for. */
void rxreq_frag(struct worker *worker, struct peer *peer, const struct packet *p);
/* The peer is gone: what it had begun to send ends with `err` (positive). */
void rxreq_fail_peer(struct peer *peer, int err);
/* The context is being closed: what it is receiving ends with `err`. */
void rxreq_fail_context(struct worker *worker, struct rx *rx, int err);

#endif
