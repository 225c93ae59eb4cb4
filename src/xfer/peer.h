/* SPDX-License-Identifier: BSD-2-Clause */
/* One other endpoint, as a worker knows it. Domain locked. */
#ifndef WEFT_XFER_PEER_H
#define WEFT_XFER_PEER_H

#include <rdma/fabric.h>

#include "conn/contact.h"
#include "xfer/msg/budget.h"
#include "xfer/rndv/way.h"

struct ep;
struct fi_weft_peer;

/*
 * State of a transmit request. A request is on the list of its state, peer->txreqs[state]. Only
 * tx_req_move and tx_req_requeue change the state, along the edges listed in tx_req.c.
 */
enum txreq_state {
	TXREQ_RMA, /* one-sided, sent in packets; awaits DONE, RESULT or FAILED */
	/* Not sent, or a partly sent long write. Waits for earlier operations or space. */
	TXREQ_BACKLOG,
	TXREQ_RDMA,   /* one-sided, a device performs the operation */
	TXREQ_ACK,    /* completely sent; awaits ATS */
	TXREQ_STREAM, /* CTS received; fragments are being sent */
	TXREQ_ZCOPY,  /* sent, but the link still reads the request's memory */
	TXREQ_AHEAD,  /* message of a collective group; waits only for a connection or space */
	TXREQ_REPLY,  /* at the target of a long read; fragments of the result are being sent */
	TXREQ_LISTS,
	/* RTS sent; awaits CTS or ATS. Shares the list of TXREQ_ACK, in order. */
	TXREQ_RTS = TXREQ_LISTS,
	TXREQ_NEW, /* on no list: being made, or ending */
	TXREQ_STATES
};

/* What became of long messages and connections, for reports. Counted on slow paths alone. */
struct peer_counts {
	uint64_t sent[OUT_RTS + 1];         /* by enum way_out; of OUT_COPY few */
	uint64_t streamed;                  /* of those, asked for by CTS */
	uint64_t read, helped, rdma, asked; /* received, by how the bytes came */
	uint64_t xoff_sent, xoff_received;
	uint64_t
		paused_ms; /* between XOFF and XON, or disconnect; up to the last pause that ended */
};

/* Output to the peer. Owned by msg/tx*.c. */
struct peer_tx {
	struct list in_busy;    /* worker->busy, while output is queued */
	struct list controls;   /* struct control */
	size_t reply_bytes;     /* bytes of `controls` and of requests in TXREQ_REPLY */
	size_t backlog_count;   /* requests in TXREQ_BACKLOG */
	size_t unmatched_count; /* messages sent under XOFF that the peer has not matched */
	uint64_t
		xoff_ms; /* ms: when the peer asked us to pause (XOFF), so that of a message it takes little: tx_send; 0: it did not */
	bool reply_known; /* reply_bytes are of a peer in the address vector: answers.h */
};

/* Messages from the peer. Owned by msg/rx*.c. */
struct peer_rx {
	struct list in_xoff; /* rx->paused, while xoff_sent */
	bool xoff_sent;      /* we sent XOFF and no XON yet */
	/* Bytes of messages received since XOFF, by this connection or an earlier one. */
	size_t unheard;
	struct account account; /* of messages kept */
	/* Bytes of kept early messages of collective groups, which XOFF does not stop. */
	size_t kept;
	struct list rxreqs; /* struct rxreq */
	size_t came, seen; /* differ if a part of a message of `rxreqs` came since the last check */
	unsigned int stalls; /* checks, one after the other, that found none */
};

/* Our one-sided operations on the peer's memory. Owned by rma/rma_tx.c, rma_answer.c and rma_rdma.c. */
struct peer_rma {
	struct list in_awaiting;  /* worker->awaiting, while TXREQ_RMA is not empty */
	size_t awaiting_count;    /* requests in TXREQ_RMA */
	size_t rdma_posted_count; /* requests in TXREQ_RDMA */
	uint32_t seq;             /* sequence number of the last packet request sent */
	uint32_t seen_seq;        /* `seq` of the oldest unanswered request at the last rma_help */
	/* The peer does not poll: so many further operations access its memory directly. */
	unsigned int direct_spell;
	/* `results` exceeds WIRE_RESULTS_MAX, or a long answer is coming: later operations wait. */
	bool bulk;
	/* bytes that the answers to TXREQ_RMA requests will bring: sum of txreq.weight */
	size_t results;
	size_t matching; /* bytes that answers to atomics on tagged receives will bring */
};

/* The peer's one-sided operations on our memory. Owned by rma/rma_rx.c. */
struct peer_target {
	uint32_t done_seq;  /* sequence number of the last one done */
	uint32_t acked_seq; /* of the last one that a DONE said */
	uint64_t common;    /* bits that the heads of all have that were done since the last DONE */
	struct list in_acks_pending; /* worker->acks_pending, until DONE with `done_seq` is sent */
};

/*
 * Fields in the order of use: a send or a message reads the first cache line, a one-sided operation also `target`, `rma`
 * and the lists after them.
 */
struct peer {
	struct contact conn;
	struct peer_target target;
	struct peer_rma rma;
	struct list txreqs[TXREQ_LISTS]; /* struct txreq by state, in the order of posting */
	struct peer_tx tx;
	struct peer_rx rx;
	/* Early control messages about groups, owned by src/coll: struct kept_message.of_peer. */
	struct list kept_controls;
	unsigned int kept_count; /* length of kept_controls */
	struct peer_counts counts;
};

_Static_assert(offsetof(struct peer, conn.reported) < 64,
	       "a send and a message look at the first cache line");
_Static_assert(offsetof(struct peer, conn) == 0, "a contact is the begin of its peer: peer_of");

static inline struct peer *peer_of(struct contact *c)
{
	return (struct peer *)c;
}

/* Fills in all members but `size`, which are 0 before. peer_state.c */
void peer_describe(const struct peer *peer, struct fi_weft_peer *state);
/* Queues the peer for output by the next progress calls, and wakes sleeping waiters to make one. */
void peer_busy(struct peer *peer);
/* Logs why peer_get has found none for this call to `addr`, and returns it: -FI_EINVAL or -FI_ENOMEM. */
int peer_missing(const struct ep *ep, fi_addr_t addr, const char *call);

/* What the engine does about a peer whose connection changes. peer_upcalls.c */
extern const struct conn_upcalls peer_upcalls;

/* Counts the time of the pause that the peer asked for, if there is one, and ends it. */
void peer_pause_end(struct peer *peer);
/* The peer has sent XOFF (`pause`) or XON. */
void peer_pause(struct peer *peer, bool pause);
/* Sets peer->conn.link to peer->conn.real if messages may be sent now, else to contact_full_link. */
void peer_refresh(struct peer *peer);

/* Is output queued? A new operation must not overtake it. */
static inline bool peer_behind(const struct peer *peer)
{
	return !list_empty(&peer->txreqs[TXREQ_BACKLOG]) || !list_empty(&peer->tx.controls);
}

/* Placeholder for entries of worker->conn.peers without a peer, so that the table holds no NULL. */
extern struct peer peer_nobody;

#endif
