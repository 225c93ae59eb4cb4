/* SPDX-License-Identifier: BSD-2-Clause */
/* One other endpoint, as a worker knows it. Domain locked. */
#ifndef WEFT_XFER_PEER_H
#define WEFT_XFER_PEER_H

#include <rdma/fabric.h>

#include "xfer/conn/contact.h"
#include "xfer/msg/budget.h"
#include "xfer/rndv/way.h"

struct ep;
struct fi_weft_peer;
struct worker;

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

/*
 * Our one-sided operations on the peer's memory. Owned by rma/rma_tx.c, rma_answer.c and
 * rma_rdma.c.
 */
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

fi_addr_t peer_addr_lookup(struct peer *peer);

/* Returns the peer's fi_addr_t now: the address may have been inserted after the peer connected. */
static inline fi_addr_t peer_addr(struct peer *peer)
{
	return __builtin_expect(peer->conn.addr != FI_ADDR_NOTAVAIL, 1) ? peer->conn.addr
									: peer_addr_lookup(peer);
}

fi_addr_t peer_reported_lookup(struct peer *peer);

/* Returns the source address for completions: the user's id if one was given. */
static inline fi_addr_t peer_reported(struct peer *peer)
{
	return __builtin_expect(peer->conn.reported != FI_ADDR_NOTAVAIL, 1)
		       ? peer->conn.reported
		       : peer_reported_lookup(peer);
}
/* Returns what names the key of a peer that is in no entry (FI_AV_AUTH_KEY), or FI_ADDR_NOTAVAIL. */
fi_addr_t peer_reported_key(const struct peer *peer);

/* Fills in all members but `size`, which are 0 before. peer_state.c */
void peer_describe(const struct peer *peer, struct fi_weft_peer *state);

/* Returns the peer's address as text, for the log; valid until this thread's next call. */
const char *peer_text(const struct peer *peer);
/* Queues the peer for output by the next progress calls, and wakes sleeping waiters to make one. */
void peer_busy(struct peer *peer);

/* Returns the peer of entry `addr`, making it on first use. NULL: no such entry, or no memory. */
struct peer *peer_get(struct worker *worker, fi_addr_t addr);
/* Logs why peer_get has found none for this call to `addr`, and returns it: -FI_EINVAL or -FI_ENOMEM. */
int peer_missing(const struct ep *ep, fi_addr_t addr, const char *call);
/* Calls the peer by another name. 0 or -FI_ENOMEM. */
int peer_rename(struct peer *peer, const struct addr *name);
/* Returns the peer of this unmapped name and key, or NULL. */
struct peer *peer_find(struct worker *worker, const struct addr *key, unsigned int key_slot);
/* Returns the peer of this name and key, making it if there is none. NULL: no memory. */
struct peer *peer_by_name(struct worker *worker, const struct addr *name, unsigned int key_slot);
/* Makes a new peer of this name, even if another peer has the name. NULL: no memory. */
struct peer *peer_new(struct worker *worker, const struct addr *name);
/* Frees the peer, which must be idle and in no entry of worker->conn.peers. */
void peer_free(struct peer *peer);

/* What the engine does about a peer whose connection changes. peer_upcalls.c */
extern const struct conn_upcalls peer_upcalls;

/* peer->real is made. A link that is `securing` comes here again when it is ready. */
void peer_connected(struct peer *peer);
/* Messages may be sent now: sends what is queued. */
void peer_open(struct peer *peer);
/*
 * Disconnects the peer in the next progress call: it made us keep more than `max` bytes `of_what`
 * (log text).
 */
void peer_over_budget(struct peer *peer, const char *of_what, size_t max);
/* Disconnects the peer in the next progress call, for one of the ends that expel it; what it sends is dropped. */
void peer_expel(struct peer *peer, enum conn_end why);
/*
 * Disconnects the peer in the next progress call: there is no memory for `what` (log text), which
 * must not be lost.
 */
void peer_starve(struct peer *peer, const char *what);
/* The same of all peers that are connected: memory for a completion ran out. */
void peer_starve_all(struct worker *worker);
/* Disconnects the peer in the next progress call: nothing has come of a message for `ms`. */
void peer_overdue(struct peer *peer, int ms);
/*
 * Ends all operations with the peer: the connection ended or could not be made, as peer->conn.end says, else by `found`
 * (positive). The next operation connects anew.
 */
void peer_failed(struct peer *peer, int found);
/*
 * Returns true once all messages of an unread peer have been delivered. The peer may be freed then.
 */
bool peer_reads_out(struct peer *peer);
/*
 * Like peer_failed for a connection that the peer ended before the hellos were exchanged, or that both ends close while
 * nothing is under way (END_RETIRED). No receive fails; if output is queued for the peer, connects anew.
 */
void peer_not_taken(struct peer *peer, int found);
/* Counts the time of the pause that the peer asked for, if there is one, and ends it. */
void peer_pause_end(struct peer *peer);
/* The peer has sent XOFF (`pause`) or XON. */
void peer_pause(struct peer *peer, bool pause);
/* Sets peer->link to peer->real if messages may be sent now, else to peer_full_link. */
void peer_refresh(struct peer *peer);
/* Is this, unmapped, one of those addresses? `also` may be NULL. */
bool peer_also_has(const struct peer_also *also, const struct addr *key);
/* Grows `worker->conn.peers` to hold entry `addr`. 0 or -FI_ENOMEM. */
int peer_reserve(struct worker *worker, fi_addr_t addr);
/*
 * Returns the address vector's entry of a peer of this name or one of `also`, which may be NULL, under this key; or
 * FI_ADDR_NOTAVAIL.
 */
fi_addr_t peer_entry(struct worker *worker, const struct addr *name, const struct peer_also *also,
		     unsigned int key_slot);

/* All entries of `peer` are those of `other` now. */
void peer_hand_over(struct peer *peer, struct peer *other);

/* Is there a link to the peer? */
static inline bool peer_linked(const struct peer *peer)
{
	return peer->conn.state >= PEER_SECURING;
}

/* Is an attempt of ours to connect under way? */
static inline bool peer_attempts(const struct peer *peer)
{
	return peer->conn.state > PEER_IDLE && peer->conn.state < PEER_SECURING;
}

/* Does nothing count any more that the peer sends? The next progress call ends its connection. */
static inline bool peer_expelled(const struct peer *peer)
{
	return peer->conn.end >= END_BUDGET;
}

/* Is the peer on this host, as its connection or the attempt shows? */
static inline bool peer_inside(const struct peer *peer)
{
	return peer->conn.kind == LINK_HOST;
}

/* Is output queued? A new operation must not overtake it. */
static inline bool peer_behind(const struct peer *peer)
{
	return !list_empty(&peer->txreqs[TXREQ_BACKLOG]) || !list_empty(&peer->tx.controls);
}

/* Link of peers that messages cannot be sent to now: refuses each send with -FI_EAGAIN. */
extern struct link peer_full_link;
/* Placeholder for entries of worker->conn.peers without a peer, so that the table holds no NULL. */
extern struct peer peer_nobody;

#endif
