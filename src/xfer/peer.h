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

struct peer {
	struct link *link;  /* never NULL: a link without room unless messages may go out now */
	struct link *real;  /* the transport's link, or NULL */
	fi_addr_t addr;     /* entry of the address vector, or FI_ADDR_NOTAVAIL */
	unsigned int named; /* entries of worker->peers that are this one */
	struct worker *worker;
	enum peer_state state;
	bool xoff_received; /* it asked us to send no more messages */
	bool xoff_sent;     /* we asked it */
	bool disconnect_received;
	bool losing; /* peer_failed is at it */
	bool inside; /* its bootstrap socket is one of this host's own */
	bool over_budget; /* over its budget, or starved: nothing more is taken, the next progress call disconnects it */
	bool starved; /* there was no memory for something of it, which is lost with the connection */
	bool unread; /* lost, but messages of it are still to be delivered: its id stays */
	int sock;    /* bootstrap socket, or -1: there is none, or it is the link's */
	int wake;    /* where its link sends wake-ups: sock, or a pair's end for ourselves */
	enum link_kind kind; /* of the link */
	void *pending; /* of a link between RDMA devices, from our hello until the answer; or NULL */
	bool plain;    /* such a link could not be made: not offered again */
	uint64_t incarnation;
	uint64_t serial;  /* of the hello its link was made by */
	uint64_t lost_at; /* ms; while unread */
	int end;          /* while unread: what receives for it alone end with then; 0: they stay */
	uint64_t deadline;    /* ms; of PEER_CONNECTING and PEER_CROSSED */
	uint64_t attempt_ms;  /* when the last connect attempt began */
	unsigned int retries; /* of this attempt */
	int refused; /* positive: how the last attempt failed, with nothing queued to tell it; or 0 */
	bool late;   /* our hello went out long after we had begun to connect */
	struct addr name;    /* as the vector or its hello says; ours */
	struct addr key;     /* what it is found by: the name unmapped, whose string it shares */
	struct list in_port; /* worker->peers_list */
	struct list in_busy; /* worker->busy, while a progress call has something to send */
	struct list in_xoff; /* rx->paused, while xoff_sent */
	size_t unheard;      /* bytes of messages that came while holding */
	size_t kept; /* of messages of groups that were not wanted yet: they know no pause */
	unsigned int words[2]; /* of it that src/coll keeps: of joins, of ends of groups */
	struct list controls;  /* struct control */
	size_t reply_bytes;    /* bytes kept in controls and replies */
	struct list ahead;     /* struct txreq of groups: they wait for nothing but room */
	struct list backlog;   /* struct txreq not sent yet, or not all of it, in order */
	struct list requests;  /* struct txreq sent, an answer awaited */
	struct list streams;   /* struct txreq being streamed */
	struct list spec_tx;   /* struct txreq offered, whose first fragments wait for room */
	struct list zcopy;     /* struct txreq: sent, but for what the link still holds of them */
	struct list rxreqs;    /* struct rxreq: messages being received */
	size_t backlog_count;
	/* Of offers, [1]: of those longer than WIRE_SPEC_MAX. */
	struct {
		unsigned int misses; /* in a row: fragments that went along were of no use */
		unsigned int skip;   /* so many go without any */
	} spec[2];
	uint64_t fragment_us; /* when one of its own last came; 0: since the last progress call */
	/* One-sided operations on its memory, see xfer/rma/rma.h. */
	struct list awaiting;    /* struct txreq: sent, in order, no answer yet */
	struct list in_awaiting; /* worker->awaiting, while there are any */
	size_t awaiting_count;
	struct list rdma_posted; /* struct txreq: begun, in order, with none in awaiting */
	size_t rdma_posted_count;
	size_t results;            /* bytes that answers to them bring back: struct txreq.weight */
	size_t matching;           /* bytes that atomics on its tagged receives bring back */
	uint32_t seq;              /* number of the last one sent */
	uint32_t seen_seq;         /* of the oldest without an answer, when last looked at */
	unsigned int direct_spell; /* so many go straight to its memory: it reads no packets */
	bool bulk; /* too much of that, or a long answer, is coming: what follows waits */
	/* Those of the peer on ours. */
	uint32_t done_seq;           /* number of the last one done */
	struct list in_acks_pending; /* worker->acks_pending, until that is told */
	struct list replies;         /* struct txreq: long answers on their way */
};

fi_addr_t peer_addr_lookup(struct peer *peer);

/* Where it stands in the address vector now; it may have been inserted after it connected. */
static inline fi_addr_t peer_addr(struct peer *peer)
{
	return __builtin_expect(peer->addr != FI_ADDR_NOTAVAIL, 1) ? peer->addr
								   : peer_addr_lookup(peer);
}

/* What completions say of it: the user's id where one was given. */
fi_addr_t peer_reported(struct peer *peer);

/* The next progress calls send what waits; sleeping waiters make one. */
void peer_busy(struct peer *peer);

/* The peer of an entry, made when it is first talked to; NULL: no such entry, or no memory. */
struct peer *peer_get(struct worker *worker, fi_addr_t addr);
/* The peer of this name, made when it is not there; NULL: no memory. */
struct peer *peer_by_name(struct worker *worker, const struct addr *name);
/* A new one of this name, even if another peer has it. */
struct peer *peer_new(struct worker *worker, const struct addr *name);
/* Forgets everything about it. It must be idle, and no entry of worker->peers. */
void peer_free(struct peer *peer);

/* Its link works from now on. What waited goes out. */
void peer_connected(struct peer *peer);
/* It makes us keep more than `max` bytes of that, which no peer of ours does: it is ended. */
void peer_over_budget(struct peer *peer, const char *of_what, size_t max);
/* There is no memory for `what` of it, which cannot be left out: it is disconnected. */
void peer_starve(struct peer *peer, const char *what);
/*
 * The connection is gone or never came: everything under way with it ends with error `err`
 * (positive), the next operation connects anew.
 */
void peer_failed(struct peer *peer, int err);
/* One that is unread: true once all that it sent has been delivered. It may be freed then. */
bool peer_reads_out(struct peer *peer);
/*
 * The peer came to connect and was gone before that was done. Nothing of it is lost: no receive fails, and what
 * waits here to be sent to it connects by itself.
 */
void peer_not_taken(struct peer *peer, int err);
/* Opens or shuts the fast road: messages go straight to the link only when nothing waits. */
void peer_refresh(struct peer *peer);
/* Is there an attempt of ours to connect? */
static inline bool peer_attempts(const struct peer *peer)
{
	return peer->state == PEER_CONNECTING || peer->state == PEER_HANDSHAKE ||
	       peer->state == PEER_CROSSED;
}

/* Something must go out first, whatever it is: what is posted now has no room. */
static inline bool peer_behind(const struct peer *peer)
{
	return !list_empty(&peer->backlog) || !list_empty(&peer->controls);
}

/* The link of a peer that cannot be sent to right now: every send is refused with -FI_EAGAIN. */
extern struct link peer_full_link;
/* Stands in the table where no peer is, so that the table holds no NULL. */
extern struct peer peer_nobody;

#endif
