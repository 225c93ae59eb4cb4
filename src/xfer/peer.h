/* SPDX-License-Identifier: BSD-2-Clause */
/* One other endpoint, as a worker knows it. Domain locked. */
#ifndef WEFT_XFER_PEER_H
#define WEFT_XFER_PEER_H

#include <rdma/fabric.h>

#include "base/addr.h"
#include "base/list.h"
#include "link/link.h"

struct worker;

enum peer_state {
	PEER_IDLE,       /* known by name, never connected or lost since */
	PEER_CONNECTING, /* the network is asked for a connection */
	PEER_HANDSHAKE,  /* our hello is on its way */
	PEER_CROSSED,    /* the other side's connect won: waiting for it */
	PEER_CONNECTED,
};

/*
 * Where a transmit request stands: it is on the list of its state, peer->txreqs[state]. tx_req_move alone moves
 * it, along the edges that tx_req.c lists.
 */
enum txreq_state {
	TXREQ_RMA, /* one-sided, sent in packets: awaits DONE, RESULT or FAILED */
	TXREQ_BACKLOG, /* not sent, or not all of a long write: waits for a connection, a fence or space */
	TXREQ_RDMA,   /* one-sided, a device performs it */
	TXREQ_ACK,    /* all is sent: awaits ATS */
	TXREQ_STREAM, /* CTS received: fragments are going out */
	TXREQ_SPEC,   /* RTS sent; speculative fragments are going out */
	TXREQ_ZCOPY,  /* sent, but the link still reads its memory */
	TXREQ_AHEAD,  /* message of a collective group: waits for a connection or space alone */
	TXREQ_REPLY,  /* at the target of a long read: fragments of the result are going out */
	TXREQ_LISTS,
	/* RTS and its speculative fragments are sent: awaits CTS or ATS. On the list of TXREQ_ACK, in order. */
	TXREQ_RTS = TXREQ_LISTS,
	TXREQ_NEW, /* on no list: it is being made, or ends */
	TXREQ_STATES
};

/* The connection and what leads to it. Owned by xfer/conn/ and peer.c. */
struct peer_conn {
	bool over_budget; /* the peer exceeded a budget, or `starved`: the next progress call disconnects it */
	bool starved; /* there was no memory for something of the peer, which is lost with the connection */
	bool inside; /* the bootstrap socket is one of this host's own */
	bool plain;  /* a LINK_DEVICE to it could not be made: not proposed again */
	bool late;   /* our hello went out long after we had begun to connect */
	bool losing; /* peer_failed is under way */
	bool disconnect_received;
	bool unread; /* disconnected, but messages of the peer are still to be delivered: its id stays */
	enum link_kind kind; /* of peer->real */
	int sock;            /* bootstrap socket, or -1: there is none, or it is the link's */
	int wake; /* where its link sends wake-ups: sock, or a pair's end for ourselves */
	int end; /* while unread: error for receives that name this peer alone; 0: they stay posted */
	unsigned int retries; /* of this attempt */
	int refused; /* positive: how the last attempt failed, with nothing queued to tell it; or 0 */
	uint64_t lost_at; /* ms; while unread */
	void *pending;    /* our end of a LINK_DEVICE, from our hello until the answer; or NULL */
	uint64_t incarnation;
	uint64_t serial;     /* of the hello its link was made by */
	uint64_t deadline;   /* ms; of PEER_CONNECTING and PEER_CROSSED */
	uint64_t attempt_ms; /* when the last connect attempt began */
};

/* What goes out to the peer. Owned by msg/tx*.c. */
struct peer_tx {
	struct list in_busy;  /* worker->busy, while a progress call has something to send */
	struct list controls; /* struct control */
	size_t reply_bytes;   /* bytes kept in controls and in replies */
	size_t backlog_count; /* of TXREQ_BACKLOG */
	bool xoff_received;   /* the peer asked us to send no more messages */
	/* Of RTS, [1]: of messages longer than WIRE_SPEC_MAX. */
	struct {
		unsigned int misses; /* in a row: speculative fragments were of no use */
		unsigned int skip;   /* so many RTS go without any */
	} spec[2];
};

/* Messages of the peer. Owned by msg/rx*.c, `fragment_us` by rndv/spec.c. */
struct peer_rx {
	struct list in_xoff; /* rx->paused, while xoff_sent */
	bool xoff_sent;      /* we asked the peer to send no more */
	size_t unheard;      /* bytes of messages that came since */
	size_t kept; /* bytes of early messages of collective groups: XOFF does not stop those */
	struct list rxreqs; /* struct rxreq: messages being received */
	uint64_t
		fragment_us; /* when its last speculative fragment came; 0: since the last progress call */
};

/* One-sided operations of ours on the peer's memory. Owned by rma/rma_tx.c, rma_answer.c and rma_rdma.c. */
struct peer_rma {
	struct list in_awaiting;  /* worker->awaiting, while there are any in TXREQ_RMA */
	size_t awaiting_count;    /* of TXREQ_RMA */
	size_t rdma_posted_count; /* of TXREQ_RDMA */
	uint32_t seq;             /* number of the last one sent */
	uint32_t seen_seq;        /* of the oldest without an answer, at the last check */
	unsigned int
		direct_spell; /* so many go straight to the peer's memory: it reads no packets */
	bool bulk; /* `results` exceeds its limit, or a long answer is coming: what follows waits */
	size_t results; /* bytes that answers to those in TXREQ_RMA bring back: struct txreq.weight */
	size_t matching; /* bytes that atomics on the peer's tagged receives bring back */
};

/* One-sided operations of the peer on our memory. Owned by rma/rma_rx.c. */
struct peer_target {
	uint32_t done_seq;           /* number of the last one done */
	struct list in_acks_pending; /* worker->acks_pending, until the peer was sent that number */
};

/* In the order of use: a send reads the first line, a one-sided operation also `rma` and the lists after it. */
struct peer {
	struct link *link;  /* never NULL: peer_full_link unless messages may go out now */
	struct link *real;  /* the transport's link, or NULL */
	fi_addr_t addr;     /* entry of the address vector, or FI_ADDR_NOTAVAIL */
	unsigned int named; /* entries of worker->peers that are this one */
	enum peer_state state;
	struct worker *worker;
	struct peer_target target;
	struct peer_rma rma;
	struct list txreqs[TXREQ_LISTS]; /* struct txreq by its state, in the order of posting */
	struct peer_tx tx;
	struct peer_conn conn;
	struct peer_rx rx;
	struct addr name;      /* as the vector or its hello says; ours */
	struct addr key;       /* what it is found by: the name unmapped, whose string it shares */
	struct list in_worker; /* worker->peers_list */
	unsigned int kept_controls
		[2]; /* control messages that src/coll keeps: of joins, of ends of groups */
};

fi_addr_t peer_addr_lookup(struct peer *peer);

/* Its entry in the address vector now; it may have been inserted after it connected. */
static inline fi_addr_t peer_addr(struct peer *peer)
{
	return __builtin_expect(peer->addr != FI_ADDR_NOTAVAIL, 1) ? peer->addr
								   : peer_addr_lookup(peer);
}

/* The source that completions report: the user's id if one was given. */
fi_addr_t peer_reported(struct peer *peer);

/* Something waits to be sent: the next progress calls send it, and sleeping waiters wake to make one. */
void peer_busy(struct peer *peer);

/* The peer of an entry, made when it is first talked to; NULL: no such entry, or no memory. */
struct peer *peer_get(struct worker *worker, fi_addr_t addr);
/* The peer of this name, made when it is not there; NULL: no memory. */
struct peer *peer_by_name(struct worker *worker, const struct addr *name);
/* A new one of this name, even if another peer has it. */
struct peer *peer_new(struct worker *worker, const struct addr *name);
/* Forgets everything about it. It must be idle, and no entry of worker->peers. */
void peer_free(struct peer *peer);

/* The link is made: sends what waits. */
void peer_connected(struct peer *peer);
/* The peer makes us keep more than `max` bytes of `of_what`: the next progress call disconnects it. */
void peer_over_budget(struct peer *peer, const char *of_what, size_t max);
/* There is no memory for `what` of the peer, which must not be lost: the next progress call disconnects it. */
void peer_starve(struct peer *peer, const char *what);
/*
 * The connection is gone or never came: everything under way with it ends with error `err`
 * (positive), the next operation connects anew.
 */
void peer_failed(struct peer *peer, int err);
/* For an unread peer: true once all that it sent has been delivered. It may be freed then. */
bool peer_reads_out(struct peer *peer);
/*
 * The peer ended its connection before the hellos were exchanged. No receive fails; if something waits to be sent
 * to it, connects anew.
 */
void peer_not_taken(struct peer *peer, int err);
/* Sets peer->link: entries use the link directly only while nothing waits. */
void peer_refresh(struct peer *peer);
/* Is there an attempt of ours to connect? */
static inline bool peer_attempts(const struct peer *peer)
{
	return peer->state == PEER_CONNECTING || peer->state == PEER_HANDSHAKE ||
	       peer->state == PEER_CROSSED;
}

/* Does anything wait to be sent? A new operation must not pass it. */
static inline bool peer_behind(const struct peer *peer)
{
	return !list_empty(&peer->txreqs[TXREQ_BACKLOG]) || !list_empty(&peer->tx.controls);
}

/* The link of a peer that cannot be sent to right now: every send is refused with -FI_EAGAIN. */
extern struct link peer_full_link;
/* Stands in the table where no peer is, so that the table holds no NULL. */
extern struct peer peer_nobody;

#endif
