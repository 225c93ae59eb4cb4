/* SPDX-License-Identifier: BSD-2-Clause */
/* The engine's state of an open endpoint: its peers, receive contexts and sockets. Domain locked. */
#ifndef WEFT_XFER_WORKER_H
#define WEFT_XFER_WORKER_H

#include "conn/station.h"
#include "base/pool.h"
#include "xfer/peer.h"
#include "xfer/msg/answers.h"
#include "xfer/msg/rx.h"
#include "xfer/engine.h"

#define WORKER_RX_MAX XFER_CTX_MAX

struct dgram;
struct group_ops;
struct offload;

struct worker {
	/* A transport as a progress call reads it; that of idle.cursor. */
	struct worker_transport {
		bool (*progress)(void *state);
		void *state;
		bool (*idle)(const void *state);
	} near;
	struct station conn;
	/* Fields that a progress call reads. */
	struct worker_transport open[LINK_KINDS]; /* the opened transports */
	bool awaited;        /* `armed`, whatever comes before: the caller waits for the sockets */
	uint64_t next_poll;  /* ms: earliest time of the next poll of the sockets */
	uint64_t next_check; /* ms: the same for rxreq_check */
	uint64_t next_stuck; /* ms: the same for worker_stuck_check */
	struct unexpected *collected; /* memory of the packet that is being delivered; or NULL */
	struct spare spare;           /* of collected payloads, and of scratch */
	struct list busy;             /* peers with queued output: struct peer.tx.in_busy */
	/* Peers with unanswered one-sided operations: struct peer.rma.in_awaiting. */
	struct list awaiting;
	/* Peers that a DONE must be sent to: struct peer.target.in_acks_pending. */
	struct list acks_pending;
	unsigned int waits; /* progress calls made while `awaiting` was not empty */
	struct rx *rx[WORKER_RX_MAX];
	struct dgram *dgram;     /* datagram endpoints, which have no peers; else NULL */
	struct offload *offload; /* connected endpoints of a device; else NULL */
	const struct group_ops *groups;
	struct coll *coll;   /* collective groups of `groups`; or NULL */
	void *cm_arg;        /* argument of `cm`: the struct ep */
	unsigned int wanted; /* PROVIDER_ bits of the transports that may be used */
	/* Control messages about groups dropped: over what coll/group/group.h allows. */
	uint64_t joins_refused;
	/* Messages about groups dropped: the sender is not the member that it claims to be. */
	uint64_t nonmember_refused;
	struct budget budget;   /* of unexpected messages */
	struct answers answers; /* that peers do not read */
	struct pool tx_pool;    /* struct txreq */
	struct pool rxreq_pool; /* struct rxreq */
	struct list in_av;
	struct list in_stats;    /* open workers that are to be reported: stats.c */
	unsigned int stats_seen; /* signals that the worker has answered */
};

_Static_assert(
	offsetof(struct worker, conn.driven.fd) <= 64,
	"an empty read, a packet of the cursor's transport and a send look at the first cache line");

extern const struct driven_ops worker_driven_ops;

static inline struct worker *worker_of(struct driven *d)
{
	return (struct worker *)((char *)d - offsetof(struct worker, conn.driven));
}

static inline struct worker *worker_station(struct station *s)
{
	return (struct worker *)((char *)s - offsetof(struct worker, conn));
}

static inline struct worker *worker_opener(struct opener *o)
{
	return worker_station(station_opener(o));
}

/* The calls of struct driven_ops, and of engine.h, for a worker. */
bool worker_arm(struct worker *worker);
bool worker_must_nap(const struct worker *worker);
void worker_near(struct driven *d);
driven_read rx_read;
driven_readfrom rx_readfrom;
void quiesce_begin(struct driven *d);
int quiesce_end(struct driven *d);
/*
 * Gives up peers with which operations stand still (FI_WEFT_OPERATION_TIMEOUT); to be called often. A peer in no entry
 * may be freed.
 */
void worker_stuck_check(struct worker *worker, uint64_t now);
/* Progress calls have to look for something that wakes no sleeper. */
void worker_look(struct worker *worker);

static inline struct worker *peer_worker(const struct peer *peer)
{
	return worker_station(peer->conn.station);
}

/* Returns the peer of entry `addr`, making it on first use. NULL: no such entry, or no memory. */
static inline struct peer *peer_get(struct worker *worker, fi_addr_t addr)
{
	return peer_of(contact_get(&worker->conn, addr));
}

/* Returns the peer of a fi_addr_t. &peer_nobody: none was made yet, see peer_get. */
static inline struct peer *worker_peer(const struct worker *worker, fi_addr_t addr)
{
	return addr < worker->conn.peer_count ? peer_of(worker->conn.peers[addr]) : &peer_nobody;
}

#endif
