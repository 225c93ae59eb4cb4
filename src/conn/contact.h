/* SPDX-License-Identifier: BSD-2-Clause */
/* One other endpoint, as connecting knows it: embedded in the engine's struct peer. Domain locked. */
#ifndef WEFT_CONN_CONTACT_H
#define WEFT_CONN_CONTACT_H

#include <rdma/fabric.h>

#include "base/addr.h"
#include "base/list.h"
#include "link/link.h"
#include "link/wire.h"
#include "conn/conn_end.h"

struct attempt;
struct peer_rails;
struct station;

enum peer_state {
	PEER_IDLE, /* no connection, and no attempt under way */
	/* An attempt is under way: contact_attempts. */
	PEER_RETRYING,   /* without a socket: connects again after a pause */
	PEER_AWAITED,    /* without a socket: only the peer can connect, and has to come */
	PEER_CONNECTING, /* connect() is under way */
	PEER_HANDSHAKE,  /* hello sent; waits for the answer */
	PEER_CROSSED,    /* crossing connects: the peer's attempt won; waits for it */
	/* There is a link: contact_linked. */
	PEER_SECURING, /* the link is made, but takes no packet yet: struct link.securing */
	PEER_CONNECTED,
	PEER_RETIRING, /* connected, but we have agreed to close: sends no operation. conn_retire.c */
	PEER_STATES
};

/*
 * The addresses of a peer that is reached by all those of its host, as its hello told them; while it is connected. One of
 * the loopback stands for all of this host.
 */
struct peer_also {
	unsigned int count;
	struct addr at[WIRE_ADDRESSES_MAX]; /* unmapped */
};

/*
 * The connection and the attempts to make it. Fields in the order of use: a send or a message reads the first cache line.
 */
struct contact {
	struct link *link;     /* never NULL; contact_full_link unless messages may be sent now */
	struct link *real;     /* the transport's link, or NULL */
	fi_addr_t addr;        /* address vector entry, or FI_ADDR_NOTAVAIL */
	unsigned int named;    /* entries of station.peers, and station.relay, that point here */
	enum peer_state state; /* conn_event alone changes it */
	struct station *station;
	/* Source that completions report; FI_ADDR_NOTAVAIL: not looked up yet. See worker_forget_id. */
	fi_addr_t reported;
	/* Why the connection ends; END_NONE: it goes on. While the peer is expelled, `reported` stays FI_ADDR_NOTAVAIL. */
	enum conn_end end;
	struct attempt *attempt; /* owned; NULL unless an attempt of ours is under way */
	bool asked;              /* we asked to close the idle connection, and had no answer yet */
	bool wrong_key;          /* the peer has used an unknown key */
	bool socket_lost;        /* the link goes on without its bootstrap socket: conn.c */
	bool pinging;            /* connect_ping is on for the link's socket */
	enum link_kind
		kind; /* of `real`; before it is made, LINK_HOST or LINK_SOCKET as the bootstrap socket is */
	uint16_t hello_flags; /* WIRE_HELLO_, of the hello that made the link */
	int sock;             /* bootstrap socket; -1: none, or owned by the link */
	/* Where the link sends wake-ups: `sock`, or one end of a socket pair for a link to ourselves. */
	int wake;
	/* While unread: error for receives that name this peer alone; 0: such receives stay posted. */
	int directed_err;
	unsigned int asks, tells; /* introductions that the peer has sent since `heard_ms` */
	uint64_t heard_ms;        /* ms */
	unsigned int
		renewals; /* connections made again because the last one broke, as conn_reach.c counts them */
	/* Positive error of the last attempt, if an operation asked for it and none that is queued could report it; else 0. */
	int refused;
	int last_error; /* positive: of the last connection or attempt that ended; 0: none has */
	int device_error; /* positive: why a LINK_DEVICE to the peer failed, which is not proposed again; or 0 */
	int host_error; /* positive: why the last attempt did not connect within the host; or 0 */
	uint64_t
		unread_ms; /* ms: when it was disconnected with undelivered messages, so that it keeps its id; 0: it was not */
	uint64_t source;      /* source_id of the network address it connects from; 0: this host */
	uint64_t incarnation; /* of the peer; in PEER_CROSSED: of the attempt that won */
	uint64_t serial;      /* serial of the hello that made the link */
	uint64_t attempt_ms;  /* ms: start of the last attempt */
	struct addr name;     /* from the address vector or the hello; owned */
	struct addr key;      /* lookup key: `name` unmapped, shares its string */
	struct peer_also *also; /* owned; NULL: none, or we have connected */
	/* What the peer proves: slot in station.auth. One name under two keys is two peers. */
	unsigned int key_slot;
	/* av_version when the address vector did not hold it, and 1; 0: not looked up so far. */
	uint64_t unknown_at;
	struct list in_station; /* station.peers_list */
	struct peer_rails
		*rails; /* of conn_rails.c: a link with rails, or the offer of them; or NULL */
	uint64_t connections; /* made so far */
};

fi_addr_t contact_addr_lookup(struct contact *peer);

/* Returns the peer's fi_addr_t now: the address may have been inserted after the peer connected. */
static inline fi_addr_t contact_addr(struct contact *peer)
{
	return __builtin_expect(peer->addr != FI_ADDR_NOTAVAIL, 1) ? peer->addr
								   : contact_addr_lookup(peer);
}

fi_addr_t contact_reported_lookup(struct contact *peer);

/* Returns the source address for completions: the user's id if one was given. */
static inline fi_addr_t contact_reported(struct contact *peer)
{
	return __builtin_expect(peer->reported != FI_ADDR_NOTAVAIL, 1)
		       ? peer->reported
		       : contact_reported_lookup(peer);
}
/* Returns what names the key of a peer that is in no entry (FI_AV_AUTH_KEY), or FI_ADDR_NOTAVAIL. */
fi_addr_t contact_reported_key(const struct contact *peer);

/* Returns the peer's address as text, for the log; valid until this thread's next call. */
const char *contact_text(const struct contact *peer);

/* Returns the peer of entry `addr`, making it on first use. NULL: no such entry, or no memory. */
struct contact *contact_get(struct station *station, fi_addr_t addr);
/* Calls the peer by another name. 0 or -FI_ENOMEM. */
int contact_rename(struct contact *peer, const struct addr *name);
/* Returns the peer of this unmapped name and key, or NULL. */
struct contact *contact_find(struct station *station, const struct addr *key,
			     unsigned int key_slot);
/* Returns the peer of this name and key, making it if there is none. NULL: no memory. */
struct contact *contact_by_name(struct station *station, const struct addr *name,
				unsigned int key_slot);
/* Makes a new peer of this name, even if another peer has the name. NULL: no memory. */
struct contact *contact_new(struct station *station, const struct addr *name);
/* Frees the peer, which must be idle and in no entry of station->peers. */
void contact_free(struct contact *peer);

/* peer->real is made. A link that is `securing` comes here again when it is ready. */
void contact_connected(struct contact *peer);
/* Messages may be sent now: sends what is queued. */
void contact_open(struct contact *peer);
/* Disconnects the peer in the next progress call: it made us keep more than `max` bytes `of_what` (log text). */
void contact_over_budget(struct contact *peer, const char *of_what, size_t max);
/* Disconnects the peer in the next progress call, for one of the ends that expel it; what it sends is dropped. */
void contact_expel(struct contact *peer, enum conn_end why);
/* Disconnects the peer in the next progress call: there is no memory for `what` (log text), which must not be lost. */
void contact_starve(struct contact *peer, const char *what);
/* The same of all peers that are connected: memory for a completion ran out. */
void contact_starve_all(struct station *station);
/* Disconnects the peer in the next progress call: nothing has come of a message for `ms`. */
void contact_overdue(struct contact *peer, int ms);
/*
 * Ends all operations with the peer: the connection ended or could not be made, as peer->end says, else by `found`
 * (positive). The next operation connects anew.
 */
void contact_failed(struct contact *peer, int found);
/* Returns true once all messages of an unread peer have been delivered. The peer may be freed then. */
bool contact_reads_out(struct contact *peer);
/*
 * Like contact_failed for a connection that the peer ended before the hellos were exchanged, or that both ends close while
 * nothing is under way (END_RETIRED). No receive fails; if output is queued for the peer, connects anew.
 */
void contact_not_taken(struct contact *peer, int found);
/* Is this, unmapped, one of those addresses? `also` may be NULL. */
bool contact_also_has(const struct peer_also *also, const struct addr *key);
/* Grows station->peers to hold entry `addr`. 0 or -FI_ENOMEM. */
int contact_reserve(struct station *station, fi_addr_t addr);
/*
 * Returns the address vector's entry of a peer of this name or one of `also`, which may be NULL, under this key; or
 * FI_ADDR_NOTAVAIL.
 */
fi_addr_t contact_entry(struct station *station, const struct addr *name,
			const struct peer_also *also, unsigned int key_slot);

/* All entries of `peer` are those of `other` now. */
void contact_hand_over(struct contact *peer, struct contact *other);

/* Is there a link to the peer? */
static inline bool contact_linked(const struct contact *peer)
{
	return peer->state >= PEER_SECURING;
}

/* Is an attempt of ours to connect under way? */
static inline bool contact_attempts(const struct contact *peer)
{
	return peer->state > PEER_IDLE && peer->state < PEER_SECURING;
}

/* Does nothing count any more that the peer sends? The next progress call ends its connection. */
static inline bool contact_expelled(const struct contact *peer)
{
	return peer->end >= END_BUDGET;
}

/* Is the peer on this host, as its connection or the attempt shows? */
static inline bool contact_inside(const struct contact *peer)
{
	return peer->kind == LINK_HOST;
}

/* Link of peers that messages cannot be sent to now: refuses each send with -FI_EAGAIN. */
extern struct link contact_full_link;

#endif
