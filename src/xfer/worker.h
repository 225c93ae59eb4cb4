/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine's state of an open endpoint: its peers, receive contexts and sockets. Domain locked.
 */
#ifndef WEFT_XFER_WORKER_H
#define WEFT_XFER_WORKER_H

#include "base/pool.h"
#include "base/spare.h"
#include "core/domain.h"
#include "core/driven.h"
#include "xfer/conn/acceptor.h"
#include "xfer/conn/source.h"
#include "xfer/conn/upcalls.h"
#include "xfer/peer.h"
#include "xfer/conn/stall.h"
#include "xfer/msg/answers.h"
#include "xfer/msg/rx.h"
#include "link/engine.h"
#include "link/opener.h"

#define WORKER_RX_MAX        XFER_CTX_MAX
#define WORKER_INTRODUCTIONS 1024u

/*
 * Upper half of the data of an event in the worker's epoll instance, beyond enum acceptor_source.
 */
enum worker_source { WORKER_PEER = ACCEPTOR_SOURCES, WORKER_HW, WORKER_STALL, WORKER_RAIL };

struct av;
struct dgram;
struct group_ops;
struct offload;
struct addresses;
struct conn_option;
struct rails;

struct worker {
	/* A transport as a progress call reads it; that of idle.cursor. */
	struct worker_transport {
		bool (*progress)(void *state);
		void *state;
		bool (*idle)(const void *state);
	} near;
	/* Fields that a send reads. */
	struct peer **peers; /* by fi_addr_t; &peer_nobody: no peer was made for this entry */
	size_t peer_count;
	struct driven driven;
	/* Fields that a progress call reads. */
	struct worker_transport open[LINK_KINDS]; /* the opened transports */
	struct opener opener;                     /* what they see */
	bool in_progress;
	bool closing;
	bool awaited;        /* `armed`, whatever comes before: the caller waits for the sockets */
	uint64_t next_poll;  /* ms: earliest time of the next poll of the sockets */
	uint64_t next_check; /* ms: the same for rxreq_check */
	uint64_t next_stuck; /* ms: the same for conn_stuck_check */
	struct unexpected *collected; /* memory of the packet that is being delivered; or NULL */
	struct spare spare;           /* of collected payloads, and of scratch */
	struct list busy;             /* peers with queued output: struct peer.tx.in_busy */
	/* Peers with unanswered one-sided operations: struct peer.rma.in_awaiting. */
	struct list awaiting;
	/* Peers that a DONE must be sent to: struct peer.target.in_acks_pending. */
	struct list acks_pending;
	unsigned int waits;  /* progress calls made while `awaiting` was not empty */
	unsigned int unread; /* disconnected peers with undelivered messages: peer_conn.unread_ms */
	/* Attempts to connect under way; sockets are polled more often meanwhile. */
	unsigned int handshakes;
	struct {
		const struct transport *transport;
		void *state;
	} via[LINK_KINDS]; /* the transport of each kind; both NULL if there is none */
	struct rx *rx[WORKER_RX_MAX];
	struct dgram *dgram;     /* datagram endpoints, which have no peers; else NULL */
	struct offload *offload; /* connected endpoints of a device; else NULL */
	const struct conn_upcalls *up;
	const struct group_ops *groups;
	struct coll *coll; /* collective groups of `groups`; or NULL */
	/* Fields of slow paths. */
	struct stall stall; /* of the receive ring */
	struct av *av;
	struct addr name;
	struct addr key;            /* `name` unmapped; shares its string */
	const struct worker_cm *cm; /* not NULL: connected endpoint, whose one peer is peers[0] */
	void *cm_arg;               /* argument of `cm`: the struct ep */
	void *cm_data; /* application data of the connection request, owned here; or NULL */
	size_t cm_len;
	bool reaches_out;    /* peers cannot connect to it: see worker_reach_out */
	bool probing;        /* some peer's conn.probing is set */
	unsigned int wanted; /* PROVIDER_ bits of the transports that may be used */
	uint64_t expired_ms; /* ms: when held connections and deadlines were last looked at */
	uint64_t looked_ms;  /* ms: the same of the descriptors that the acceptor lacks */
	int cm_sock;         /* socket of the connection; not owned */
	int timer;           /* of an attempt to connect, in `epfd`: conn_timer.c; -1: none */
	bool cm_named;       /* the port number of `name` was taken from our connecting socket */
	const struct conn_option *const *options; /* of connections; the last one is NULL */
	uint64_t hellos;                          /* number of hellos sent */
	uint16_t hello_flags;                     /* in each, of conn_options.c: WIRE_HELLO_ */
	uint64_t incarnation;                     /* random number of this run of the worker */
	uint64_t probe; /* peers read this word to test whether CMA works */
	/* Peers that the address vector does not hold: conn_unknown.c. */
	struct {
		uint64_t seen_av; /* av_version when they were looked up last */
		uint64_t refused;
	} unknown;
	/* Control messages about groups dropped: over what kept.h allows. */
	uint64_t joins_refused;
	/* Messages about groups dropped: the sender is not the member that it claims to be. */
	uint64_t nonmember_refused;
	/* Idle connections that make room: conn_retire.c. */
	struct {
		uint64_t next;  /* ms: not before, peers are asked again */
		uint64_t heard; /* ms: when a peer's question was last looked at */
		bool possible;  /* there was a connection that could make room */
	} retire;
	/* Introductions: conn_introduce.c. */
	struct {
		uint64_t asked_ms;    /* ms */
		unsigned int asked;   /* peers that others were asked about since `asked_ms` */
		uint64_t followed_ms; /* ms */
		bool followed[WORKER_INTRODUCTIONS]; /* by their hash, since `followed_ms` */
		uint64_t logged; /* log_due, of attempts that they bring about */
	} introduce;
	/* conn_relay.c. */
	struct {
		struct addr name;  /* FI_WEFT_RELAY, unmapped; ADDR_NONE: none */
		struct peer *peer; /* of this name, once it is wanted; or NULL */
		uint64_t next;     /* ms: not before, it is connected to again */
		int err;           /* positive: why the last attempt failed; 0: it did not */
		bool wanted;       /* an operation waits for a peer that alone can connect */
	} relay;
	struct auth_own auth;
	struct acceptor acceptor;
	struct addresses *addresses; /* with `all`, once a hello has told them; or NULL */
	struct rails *rails;         /* its interfaces, once a link may use several; or NULL */
	struct sources sources;
	struct budget budget;   /* of unexpected messages */
	struct answers answers; /* that peers do not read */
	struct pool peer_pool;
	struct pool tx_pool;    /* struct txreq */
	struct pool rxreq_pool; /* struct rxreq */
	struct list peers_list;
	struct list in_av;
	struct list in_stats;    /* open workers that are to be reported: stats.c */
	unsigned int stats_seen; /* signals that the worker has answered */
};

_Static_assert(
	offsetof(struct worker, driven.fd) <= 64,
	"an empty read, a packet of the cursor's transport and a send look at the first cache line");

extern const struct driven_ops worker_driven_ops;

static inline struct worker *worker_of(struct driven *d)
{
	return (struct worker *)((char *)d - offsetof(struct worker, driven));
}

static inline struct worker *worker_opener(struct opener *o)
{
	return (struct worker *)((char *)o - offsetof(struct worker, opener));
}

/* The calls of struct driven_ops, and of engine.h, for a worker. */
bool worker_arm(struct worker *worker);
bool worker_must_nap(const struct worker *worker);
void worker_near(struct driven *d);
driven_read rx_read;
driven_readfrom rx_readfrom;
void quiesce_begin(struct driven *d);
int quiesce_end(struct driven *d);
/* Progress calls have to look for something that wakes no sleeper. */
void worker_look(struct worker *worker);
/* Ends the sleep of all that sleep on the worker. */
static inline void worker_wake(struct worker *worker)
{
	worker->opener.sleepers = false;
	driven_wake(&worker->driven);
}

/* Is this, unmapped, an address of the worker's own endpoint? */
static inline bool worker_goes_by(const struct worker *worker, const struct addr *key)
{
	if (addr_equal(key, &worker->key))
		return true;
	return worker->opener.all && key->port == worker->key.port &&
	       (key->kind == ADDR_IN || key->kind == worker->key.kind) && addr_is_local(key);
}

/* Returns the peer of a fi_addr_t. &peer_nobody: none was made yet, see peer_get. */
static inline struct peer *worker_peer(const struct worker *worker, fi_addr_t addr)
{
	return addr < worker->peer_count ? worker->peers[addr] : &peer_nobody;
}

/* Does the worker make links to peers across the network? */
static inline bool worker_on_network(const struct worker *worker)
{
	return worker->via[LINK_SOCKET].state || worker->via[LINK_DEVICE].state;
}

#endif
