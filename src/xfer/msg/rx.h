/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive contexts: posted receives, unexpected messages and the rules by which they match. A context belongs to one
 * endpoint, to a scalable endpoint's receive context, or is shared (SRX). Domain locked. fi_msg(3), fi_tagged(3).
 */
#ifndef WEFT_XFER_RX_H
#define WEFT_XFER_RX_H

#include "base/addr.h"
#include "core/ep.h"
#include <rdma/fabric.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/pool.h"
#include "xfer/engine.h"
#include "link/link.h"
#include "link/opener.h"
#include "link/wire.h"
#include "xfer/msg/rx_index.h"

struct account;
struct addr;
struct budget;
struct cntr;
struct cq;
struct cq_slot;
struct domain;
struct peer;
struct worker;
struct work;

/* A receive call and a message that is only placed touch the fields up to `recv_pool.free`. */
struct rx {
	struct rx *q;          /* context whose queues are used: itself, or the shared context */
	struct list posted[2]; /* struct recv; [1]: tagged */
	struct list unexpected[2]; /* struct unexpected; [1]: tagged */
	/* `cq`, if a message causes a completion at most: no counter, no FI_SOURCE_ERR. Or NULL. */
	struct cq *plain_cq;
	bool complete_all; /* `cq` was bound without FI_SELECTIVE_COMPLETION */
	uint64_t caps;
	uint64_t addr_mask; /* strips the context index off a fi_addr_t */
	struct pool recv_pool;
	uint64_t any_source[2]; /* all bits: receives (tagged ones: [1]) match any peer; else 0 */
	struct domain *dom;
	struct cq *cq; /* NULL: no completions */
	struct cntr *cntr;
	struct cntr *read_cntr, *write_cntr; /* count FI_REMOTE_READ, FI_REMOTE_WRITE; or NULL */
	/* Bytes; less free space releases a multi-receive buffer. Of `q`. */
	size_t min_multi_recv;
	size_t unexpected_bytes, unexpected_count; /* claimed ones included */
	size_t unexpected_max;                     /* FI_WEFT_UNEXPECTED_MAX */
	struct rx_index *index; /* of `unexpected`, while they are many; or NULL */
	struct budget *budget;  /* of the worker; NULL: shared context, or not bound yet */
	struct list claimed;    /* struct unexpected, claimed by FI_CLAIM */
	struct list paused;     /* struct peer.rx.in_xoff: peers that were sent XOFF and no XON */
};

_Static_assert(offsetof(struct rx, recv_pool.items) <= 128,
	       "a received message looks at two cache lines");

/* Who sent a message, where no peer tells it: FI_SOURCE_ERR reports this of a source in no entry. */
struct sender {
	struct addr name;
	fi_addr_t key; /* of the sender's key (FI_AV_AUTH_KEY), or FI_ADDR_NOTAVAIL */
};

/* An unexpected message: no posted receive matched when it came. */
struct unexpected {
	struct list link;
	struct rx *rx; /* the context that the message was sent to; may share queues with others */
	struct peer *peer; /* NULL once the peer is disconnected; the message stays valid */
	fi_addr_t src;     /* fi_addr_t of the sender when the message came, or FI_ADDR_NOTAVAIL */
	struct sender *sender; /* owned; for FI_SOURCE_ERR, once the peer is gone; else NULL */
	uint64_t head, tag, data;
	size_t len;              /* of the message */
	size_t kept;             /* bytes in `payload` */
	fi_addr_t indexed_src;   /* source that the index has it by */
	bool indexed;            /* is in rx->q->index */
	bool lost;               /* there was no memory for its bytes */
	struct account *account; /* which it is charged to, see budget.h; or NULL */
	struct list in_account;
	struct rx_equal equal[RX_KEYS];
	_Alignas(16) unsigned char payload[]; /* the message, or the RTS */
};

/* A message to be matched, or matched, with a receive. */
struct message {
	struct peer *peer; /* NULL: the sender is disconnected */
	fi_addr_t src;
	uint64_t head, tag, data;
	size_t len;                /* of the message */
	const void *payload;       /* the bytes of the message, or struct wire_rts */
	const struct sender *from; /* for FI_SOURCE_ERR where `peer` is NULL; NULL: unknown */
};

/* Arguments of a receive call. */
struct recv_args {
	const struct iovec *iov;
	size_t iov_count;
	fi_addr_t src;
	uint64_t tag, ignore;
	uint64_t flags;
	void *context;
	struct work *work; /* deferred work that the receive belongs to, or NULL */
};

void rx_init(struct rx *rx, struct domain *dom);
void rx_fini(struct rx *rx);

/*
 * Posts a receive, or handles FI_PEEK, FI_CLAIM and FI_DISCARD. 0, -FI_EAGAIN (no memory for a
 * further receive) or another error.
 */
int rx_post(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args);

/* Flags of receive calls that do more than post; those with FI_TRIGGER do not come here. */
#define RX_SPECIAL (FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MULTI_RECV | FI_AUTH_KEY | EP_ENDED)

/* Returns the source to match: any, without FI_DIRECTED_RECV. */
static inline fi_addr_t rx_only_from(const struct rx *rx, bool tagged, fi_addr_t src)
{
	return (src | rx->any_source[tagged]) == FI_ADDR_UNSPEC ? FI_ADDR_UNSPEC
								: src & rx->addr_mask;
}

/* Fills in a new receive, but for its place in a list, its segments and its work. */
static inline void rx_recv_fill(struct recv *r, fi_addr_t src, uint64_t tag, uint64_t ignore,
				uint64_t flags, void *context)
{
	r->src = src;
	r->tag = tag;
	r->ignore = ignore;
	r->flags = flags;
	r->context = context;
	r->work = NULL;
	r->arriving = 0;
	r->exhausted = 0;
}

/* Arguments of a receive call with one segment. */
struct recv_one {
	void *buf;
	size_t len;
	fi_addr_t src;
	uint64_t tag, ignore;
	uint64_t flags;
	void *context;
};

/*
 * Fast path of rx_post: no message waits for the receive, there is memory for it, neither a flag nor a context index in
 * its source asks for more. False: not that case, nothing was done.
 */
static inline __attribute__((always_inline)) bool rx_post_one(struct rx *rx, bool tagged,
							      struct recv_one one)
{
	struct recv *r;

	if (one.flags & (RX_SPECIAL | FI_TRIGGER) || !list_empty(&rx->unexpected[tagged]) ||
	    !rx->recv_pool.free || rx->addr_mask != UINT64_MAX)
		return false;
	r = pool_get(&rx->recv_pool);
	rx_recv_fill(r, one.src | rx->any_source[tagged], one.tag, one.ignore, one.flags,
		     one.context);
	r->plain = (ssize_t)one.len;
	r->len = one.len;
	r->iov_count = 1;
	r->iov[0] = (struct iovec){one.buf, one.len};
	list_push(&rx->posted[tagged], &r->link);
	return true;
}

/* Receives message `m` into `r`: copies it, or begins a rendezvous. `r` leaves its list when it is used up. */
void rx_accept(struct rx *rx, struct recv *r, const struct message *m);
/* Ends the receive with FI_ENOMEM: the bytes of its message were lost. */
void rx_accept_lost(struct rx *rx, struct recv *r, const struct message *m);
/* Does the sender of a packet with this head await ATS? */
static inline bool rx_wants_ack(uint64_t head)
{
	return wire_op(head) != WIRE_MSG || wire_flags(head) & (WIRE_ACK_MATCH | WIRE_ACK_DELIVER);
}
/* Sends ATS with `err` (positive or 0), unless the sender is disconnected. */
void rx_send_ats(const struct message *m, int err);
/*
 * Reserves space for a message of `len` bytes and returns the capacity for it. Any receive leaves
 * its list, except a multi-receive buffer with enough space left.
 */
size_t rx_reserve(struct rx *rx, struct recv *r, size_t len);
/* Completes a message that is in place or failed with `err` (positive); frees the receive if it is used up. */
void rx_finish(struct rx *rx, struct recv *r, const struct message *m, size_t capacity, void *base,
	       int err);
/*
 * Like rx_finish without a completion, for a closed endpoint. Only a used-up multi-receive buffer
 * of a shared context is reported.
 */
void rx_abandon(struct rx *rx, struct recv *r);
/* Does a receive take a message of `src` whose tag differs in these bits? */
static inline bool rx_fits(fi_addr_t want, fi_addr_t src, uint64_t differing, uint64_t ignore)
{
	return !(differing & ~ignore) && (want == FI_ADDR_UNSPEC || want == src);
}

/* Returns the oldest posted receive that matches, which stays on its list; or NULL. */
static inline struct recv *rx_find_posted(const struct rx *rx, bool tagged, fi_addr_t src,
					  uint64_t tag)
{
	const struct list *posted = rx->q->posted + tagged;

	LIST_EACH (node, posted) {
		struct recv *r = LIST_ENTRY(node, struct recv, link);

		if (rx_fits(r->src, src, r->tag ^ tag, r->ignore))
			return r;
	}
	return NULL;
}

/*
 * Does the receive want a completion? Decided only now: a receive of a shared context does not know
 * its queue when posted.
 */
static inline bool rx_wants_completion(const struct rx *rx, const struct recv *r)
{
	return (rx->complete_all && !r->work) || (r->flags & FI_COMPLETION && rx->cq);
}

/* Returns the context that a message is for. NULL: no such context, or its group does not exist yet. */
struct rx *rx_context_of(struct worker *worker, struct peer *peer, const struct packet *p);
/* The message that a packet begins; its payload is not taken. */
struct message rx_message_of(struct peer *peer, const struct packet *p);
/* Matches a checked message with a receive, or keeps it. */
void rx_message(struct rx *rx, struct peer *peer, const struct packet *p);
/* The same for one whose bytes were lost for want of memory. */
void rx_message_lost(struct rx *rx, struct peer *peer, const struct packet *p);
/* Bytes of the peer are lost, of which nobody knows to which packets they belong: its connection ends, all queues tell. */
void rx_lost(struct peer *peer);
/* The same for an atomic on a tagged receive. */
void rx_atomic(struct rx *rx, struct peer *peer, const struct packet *p);
/* Ends a posted receive with `err` (positive). `flags`: FI_MSG or FI_TAGGED. */
void rx_recv_fail(struct rx *rx, struct recv *r, int err, uint64_t flags);
/* Is a receive posted that names `src` alone? */
bool rx_awaits(const struct rx *rx, fi_addr_t src);
/* Ends all receives that name `src` alone with `err` (positive). */
void rx_fail_directed(struct rx *rx, fi_addr_t src, int err);
/* Ends all receives in the context's own queues with `err` (positive). */
void rx_fail_posted(struct rx *rx, int err);
/* Handles a disconnected peer: its kept whole messages stay; kept RTS and atomics are dropped. */
void rx_forget_peer(struct rx *rx, struct peer *peer);
/* Handles the removal of an address vector entry: kept messages from `addr` lose their source. */
void rx_forget_addr(struct rx *rx, fi_addr_t addr);
/* Pushes an error completion with `err` (positive). 0: FI_EADDRNOTAVAIL, source unknown. */
void rx_complete_error(struct rx *rx, const struct cq_slot *slot, const struct message *m, int err);

/* Bytes that a kept message occupies. */
static inline size_t rx_cost(const struct unexpected *u)
{
	return sizeof(*u) + u->kept;
}
/*
 * Returns the source for completions of a message from entry `src`: the user's id if one was given. `peer`: NULL if the
 * sender is disconnected.
 */
fi_addr_t rx_reported(const struct rx *rx, struct peer *peer, fi_addr_t src);
/* Returns the source of a kept message by now: the address vector may have got its sender since. */
fi_addr_t rx_source(const struct unexpected *u);
/*
 * Keeps an unexpected message; sends XOFF if the context keeps too many bytes. Where memory is out, its place in the queue is
 * kept, or else the completion queue overruns; and the sender is disconnected.
 */
void rx_store(struct rx *rx, const struct message *m, size_t payload_len);
/* Returns the oldest kept message that matches the receive, or NULL. */
struct unexpected *rx_unexpected(struct rx *rx, bool tagged, const struct recv_args *args);
/* Takes a kept message off its list; the caller frees it with rx_drop. */
void rx_take(struct rx *rx, struct unexpected *u);
void rx_drop(struct unexpected *u);
/* Moves a kept message to the claimed ones. */
void rx_claim(struct rx *rx, struct unexpected *u);
/* Moves a message that was taken off another context's list to context `rx`. */
void rx_give(struct rx *rx, struct unexpected *u);
/* Sends ATS with FI_ECANCELED if the sender awaits one. */
void rx_refuse(const struct unexpected *u);
/* Sends XON to all paused senders. */
void rx_send_xon(struct rx *rx);
/* Refuses and drops kept messages to a context that is closed while its worker stays open. */
void rx_refuse_kept(struct rx *rx);
/* Drops the messages of a context that is being closed from the shared queues. */
void rx_forget_context(struct rx *rx);
/* Calls with FI_PEEK, FI_CLAIM, FI_DISCARD. 0 or a negative error. */
int rx_peek(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args);
int rx_discard_claimed(struct rx *rx, bool tagged, const struct recv_args *args);
/* Makes a receive, on no list. 0, -FI_EAGAIN (no memory for a further one until others end), or the segments' fault. */
int rx_recv_new(struct rx *rx, const struct recv_args *args, struct recv **recv);

/* Ends the oldest posted receive with this context by FI_ECANCELED. 0 or -FI_ENOENT. */
int rx_cancel(struct rx *rx, void *context);

#endif
