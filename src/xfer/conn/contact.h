/* SPDX-License-Identifier: BSD-2-Clause */
/* One other endpoint, as connecting knows it: embedded in the engine's struct peer. Domain locked. */
#ifndef WEFT_XFER_CONN_CONTACT_H
#define WEFT_XFER_CONN_CONTACT_H

#include <rdma/fabric.h>

#include "base/addr.h"
#include "base/list.h"
#include "link/link.h"
#include "link/wire.h"
#include "xfer/conn/conn_end.h"

struct attempt;
struct peer_rails;
struct worker;

enum peer_state {
	PEER_IDLE, /* no connection, and no attempt under way */
	/* An attempt is under way: peer_attempts. */
	PEER_RETRYING,   /* without a socket: connects again after a pause */
	PEER_AWAITED,    /* without a socket: only the peer can connect, and has to come */
	PEER_CONNECTING, /* connect() is under way */
	PEER_HANDSHAKE,  /* hello sent; waits for the answer */
	PEER_CROSSED,    /* crossing connects: the peer's attempt won; waits for it */
	/* There is a link: peer_linked. */
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
	struct link *link;     /* never NULL; peer_full_link unless messages may be sent now */
	struct link *real;     /* the transport's link, or NULL */
	fi_addr_t addr;        /* address vector entry, or FI_ADDR_NOTAVAIL */
	unsigned int named;    /* entries of station.peers, and station.relay, that point here */
	enum peer_state state; /* conn_event alone changes it */
	struct worker *worker;
	/* Source that completions report; FI_ADDR_NOTAVAIL: not looked up yet. See worker_forget_id. */
	fi_addr_t reported;
	/* Why the connection ends; END_NONE: it goes on. While the peer is expelled, `reported` stays FI_ADDR_NOTAVAIL. */
	enum conn_end end;
	struct attempt *attempt; /* owned; NULL unless an attempt of ours is under way */
	bool asked;              /* we asked to close the idle connection, and had no answer yet */
	bool wrong_key;          /* the peer has used an unknown key */
	bool socket_lost;        /* the link goes on without its bootstrap socket: conn_socket.c */
	bool probing;            /* connect_probe is on for the link's socket */
	enum link_kind
		kind; /* of `real`; before it is made, LINK_HOST or LINK_SOCKET as the bootstrap socket is */
	uint16_t hello_flags; /* WIRE_HELLO_, of the hello that made the link */
	int sock;             /* bootstrap socket; -1: none, or owned by the link */
	/*
	 * Where the link sends wake-ups: `sock`, or one end of a socket pair for a link to
	 * ourselves.
	 */
	int wake;
	/*
	 * While unread: error for receives that name this peer alone; 0: such receives stay posted.
	 */
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
	struct list in_worker; /* station.peers_list */
	struct peer_rails
		*rails; /* of conn_rails.c: a link with rails, or the offer of them; or NULL */
	uint64_t connections; /* made so far */
};

#endif
