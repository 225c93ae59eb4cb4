/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive contexts: posted receives, unexpected messages, and the rules by which they meet. A
 * context belongs to one endpoint, to a scalable endpoint's receive context, or is shared (SRX).
 * Domain locked. fi_msg(3), fi_tagged(3).
 */
#ifndef WEFT_XFER_RX_H
#define WEFT_XFER_RX_H

#include <rdma/fabric.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/pool.h"
#include "link/link.h"
#include "link/recv.h"
#include "link/wire.h"

struct addr;
struct cntr;
struct cq;
struct cq_slot;
struct domain;
struct peer;
struct worker;
struct work;

struct rx {
	struct rx *q; /* whose queues: its own, or those of the shared context it is bound to */
	struct list posted[2];     /* struct recv; [1]: tagged */
	struct list unexpected[2]; /* struct unexpected; [1]: tagged */
	struct cq *cq;             /* NULL: nobody wants completions */
	struct cntr *cntr;
	struct cntr *read_cntr, *write_cntr; /* FI_REMOTE_READ, FI_REMOTE_WRITE */
	bool complete_all;                   /* the queue was not bound selectively */
	uint64_t caps;
	size_t min_multi_recv; /* bytes; less room releases a multi-receive buffer; of q */
	size_t unexpected_bytes;
	size_t unexpected_max; /* FI_WEFT_UNEXPECTED_MAX */
	struct domain *dom;
	struct pool recv_pool;
	struct list claimed; /* struct unexpected: FI_CLAIM took them out of reach of others */
	struct list paused;  /* struct peer.in_xoff: asked to pause until there is room again */
	uint64_t addr_mask;  /* strips the context index off a fi_addr_t */
};

/* An unexpected message: no receive was posted when it came. */
struct unexpected {
	struct list link;
	struct rx *rx;     /* the context it was sent to, which may share queues with others */
	struct peer *peer; /* NULL once the peer is disconnected: the message is still good */
	fi_addr_t src;     /* as known when the message came, or FI_ADDR_NOTAVAIL */
	uint64_t head, tag, data;
	size_t len;              /* of the message */
	size_t kept;             /* bytes below */
	unsigned char payload[]; /* the message, or the RTS */
};

/* A message on its way to a receive. */
struct message {
	struct peer *peer; /* NULL: the sender is disconnected */
	fi_addr_t src;
	uint64_t head, tag, data;
	size_t len;              /* of the message */
	const void *payload;     /* the bytes, or struct wire_rts */
	const struct addr *from; /* who sent it, where there is no peer; or NULL */
};

/* A receive as an entry got it. */
struct recv_args {
	const struct iovec *iov;
	size_t iov_count;
	fi_addr_t src;
	uint64_t tag, ignore;
	uint64_t flags;
	void *context;
	struct work *work; /* deferred work it belongs to, or NULL */
};

void rx_init(struct rx *rx, struct domain *dom);
void rx_fini(struct rx *rx);

/* Posts a receive or does what FI_PEEK, FI_CLAIM, FI_DISCARD say. 0, -FI_EAGAIN: no memory for one more, or another error. */
int rx_post(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args);

/* The message meets the receive `r`, which leaves its list when it is used up. */
void rx_accept(struct rx *rx, struct recv *r, const struct message *m);
/*
 * The same for the common case: a whole message that nobody must be told of, into one segment that
 * holds it. false: not that case, nothing done.
 */
bool rx_place(struct rx *rx, struct recv *r, struct peer *peer, const struct packet *p);
/* Does the sender of a packet with this head await ATS? */
static inline bool rx_wants_ack(uint64_t head)
{
	return wire_op(head) != WIRE_MSG || wire_flags(head) & (WIRE_ACK_MATCH | WIRE_ACK_DELIVER);
}
/* Sends ATS with `err` (positive, or 0) if the message's peer is still there. */
void rx_send_ats(const struct message *m, int err);
/*
 * Takes the room the message needs out of a multi-receive buffer, which leaves the list when too
 * little is left. Other receives leave it at once. The room for this message.
 */
size_t rx_reserve(struct rx *rx, struct recv *r, size_t len);
/* The message is in place (or failed): completes, frees the receive if it is used up. */
void rx_finish(struct rx *rx, struct recv *r, const struct message *m, size_t capacity, void *base,
	       int err);
/*
 * The same without a completion, for an endpoint that is closed; only a used-up multi-receive buffer of a shared
 * context is reported.
 */
void rx_abandon(struct rx *rx, struct recv *r);
/* The oldest receive for a message; it stays on its list. NULL: none. */
struct recv *rx_find_posted(struct rx *rx, bool tagged, fi_addr_t src, uint64_t tag);

/* The context a message is for, or NULL; a group that does not stand yet has none. */
struct rx *rx_context_of(struct worker *worker, struct peer *peer, const struct packet *p);
/* A checked message for this context: meets its receive or is kept. */
void rx_message(struct rx *rx, struct peer *peer, const struct packet *p);
/* The same for an atomic that is to act on a tagged receive. */
void rx_atomic(struct rx *rx, struct peer *peer, const struct packet *p);
/* A posted receive ends with `err` (positive); `flags` is FI_MSG or FI_TAGGED. */
void rx_recv_fail(struct rx *rx, struct recv *r, int err, uint64_t flags);
/* All that wait for `src` alone end with `err`. */
void rx_fail_directed(struct rx *rx, fi_addr_t src, int err);
/* All that wait in queues of its own end with `err`. */
void rx_fail_posted(struct rx *rx, int err);
/* The peer is disconnected: its kept messages stay, those that only it could complete are dropped. */
void rx_forget_peer(struct rx *rx, struct peer *peer);
/* The same of an entry that leaves the address vector. */
void rx_forget_addr(struct rx *rx, fi_addr_t addr);
void rx_complete_error(struct rx *rx, const struct cq_slot *slot, const struct message *m, int err);

/* Keeps an unexpected message; sends XOFF when the context keeps too much. */
void rx_store(struct rx *rx, const struct message *m, size_t payload_len);
/* The oldest message kept that such a receive would match, or NULL. */
struct unexpected *rx_unexpected(struct rx *rx, bool tagged, const struct recv_args *args);
/* Takes it off its list; the caller frees it with rx_drop. */
void rx_take(struct rx *rx, struct unexpected *u);
void rx_drop(struct unexpected *u);
/* Moves a message that was taken off one context's list to another context. */
void rx_give(struct rx *rx, struct unexpected *u);
/* Sends ATS with an error if the sender awaits one. */
void rx_refuse(const struct unexpected *u);
/* Sends XON to paused senders once the context keeps little enough. */
void rx_send_xon(struct rx *rx);
/* The context is closed while its worker lives on: refuses the kept messages whose senders await ATS. */
void rx_refuse_kept(struct rx *rx);
/* The context goes away; its messages in shared queues too. */
void rx_forget_context(struct rx *rx);
/* FI_PEEK, FI_CLAIM, FI_DISCARD. */
int rx_peek(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args);
int rx_claimed(struct rx *rx, bool tagged, const struct recv_args *args);
int rx_discard_claimed(struct rx *rx, bool tagged, const struct recv_args *args);
/* A receive ready to meet a message. NULL: no room for one more, until others end. */
struct recv *rx_recv_new(struct rx *rx, const struct recv_args *args);

/* Ends the first posted receive with this context by -FI_ECANCELED. 0 or -FI_ENOENT. */
int rx_cancel(struct rx *rx, void *context);

#endif
