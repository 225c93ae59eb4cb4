/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending beyond the fast road of entry.h. Domain locked. */
#ifndef WEFT_XFER_TX_H
#define WEFT_XFER_TX_H

#include "core/ep.h"
#include "hw/wire.h"
#include "xfer/peer.h"

/* One operation as an entry got it. Passed by value: it must not escape on the fast road. */
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
};

/* An operation that outlives its call. */
struct txreq {
	struct list link; /* peer->backlog, requests or streams */
	struct ep *ep;
	struct peer *peer;
	uint64_t head, flags, tag, data;
	void *context;
	void *bounce; /* our copy of an injected buffer, or NULL */
	size_t len;
	size_t sent;        /* of a stream */
	uint32_t remote_id; /* receiver's arrival, of a stream */
	bool awaited;       /* sent: the peer may say that it ended */
	bool offered;       /* sent as an offer: the peer may pull it, once */
	size_t count;
	struct iovec iov[WIRE_IOV_MAX];
};

/* Everything the fast road does not do. 0 or a negative error. */
int tx_slow(struct ep *ep, struct xfer x);

/* What a peer's packets say about our requests. */
void tx_fin(struct port *port, struct peer *peer, uint32_t id, int err);
void tx_pull(struct port *port, struct peer *peer, uint32_t id, uint32_t remote_id);

/* Sends what can be sent of the peer's backlog and streams; true when anything moved. */
bool tx_flush(struct peer *peer);
/* Ends all of the peer's requests with `err` (positive). */
void tx_fail_all(struct peer *peer, int err);
/* The endpoint is being closed: its requests complete on `heir`, or nowhere when that is NULL. */
void tx_forget(struct port *port, struct ep *ep, struct ep *heir);

/* Ends a send that waits in a backlog. 0 or -FI_ENOENT. */
int tx_cancel(struct port *port, void *context);

/* A control packet that must not be lost: sent now or queued. */
void tx_control(struct peer *peer, uint64_t head, uint64_t tag);

/* The flags that say what an operation is. */
#define TX_KIND (FI_MSG | FI_TAGGED | FI_SEND)

/* One more on the endpoint's counter of sends, which it has. */
void tx_count(struct ep *ep);

/* Ends an operation of this kind well: completion and counter as its flags ask. */
static inline void tx_complete(struct ep *ep, uint64_t kind, uint64_t flags, void *context)
{
	if (__builtin_expect((flags & FI_COMPLETION) != 0, 1))
		cq_push_done(ep->tx_cq, context, kind);
	if (__builtin_expect(ep->tx_cntr != NULL, 0))
		tx_count(ep);
}
void tx_complete_error(struct ep *ep, const struct txreq *req, int err);

#endif
