/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collective groups of one endpoint and their operations. Domain locked throughout. A message of a collective is a
 * tagged message to the context WIRE_RX_GROUP. Its data is the group's number; its tag holds the number of the
 * collective, a hash of the call (WIRE_GROUP_WHAT_MASK) and the sender's rank. A short message goes directly to the
 * operation that waits for it (exchange.c); others are matched in their group's queues. A message for a group not
 * joined here yet waits in `early`. Upcalls only note ready operations and broken groups; coll_run handles them.
 */
#ifndef WEFT_COLL_COLL_H
#define WEFT_COLL_COLL_H

#include <pthread.h>
#include <rdma/fi_errno.h>

#include "base/list.h"
#include "base/pool.h"
#include "core/eq.h"
#include "xfer/group.h"
#include "xfer/worker.h"
#include "xfer/msg/rx.h"

struct ep;

#define COLL_BUCKETS 64
#define COLL_LEFT    256

struct coll {
	struct worker *worker;
	struct ep *ep;      /* endpoint of the first join; NULL before */
	struct list groups; /* struct group.in_coll: all open groups */
	/* struct group.in_bucket: formed groups, hashed by number */
	struct list bucket[COLL_BUCKETS];
	struct rx early;
	struct list joins;    /* struct group.in_joins: pending joins, oldest first */
	struct list kept;     /* struct kept_message: about joins that have not begun here */
	struct list leaves;   /* struct kept_message: about the end of groups not formed here yet */
	size_t kept_count[2]; /* lengths of `kept` and of `leaves` */
	struct list failures; /* struct join_failure, oldest first */
	size_t failure_count;
	struct list ready;  /* struct op.in_ready: the messages of a round are complete */
	struct list broken; /* struct group.in_broken: groups to be ended */
	struct pool group_pool;
	struct list idle;            /* struct op.in_ready: unused operations */
	uint64_t *managed;           /* hash table of managed.c */
	size_t managed_capacity;     /* slots of the table; a power of two or 0 */
	size_t managed_count;        /* slots in use */
	uint64_t left[COLL_LEFT];    /* ring of numbers of the groups closed last */
	unsigned int left_count;     /* groups closed in all, modulo 2^32 */
	uint64_t serials;            /* groups created */
	uint64_t wake_at;            /* ms: next poll of the groups; 0: none is due */
	unsigned int progress_calls; /* counts progress calls while a poll is due */
	bool running;                /* coll_run is active */
	/* While joins are pending, readers of the event queue progress the worker. */
	struct eq_driver driver;
	/* Readers of the event queue progress the worker regularly, even if nothing arrives */
	bool rushes;
	pthread_mutex_t watching; /* guards driver.fd and rushes; taken before the domain's lock */
	pthread_mutex_t joining;  /* guards driven; taken before the event queue's lock */
	bool driven;
};

#define COLL_LATER_MS 200ul /* by then all that a member sent before it left has arrived */

/* Returns the worker's groups, created at the first call; NULL: no memory. */
struct coll *coll_of(struct worker *worker);
/* Is an operation ready, or a group broken? */
static inline bool coll_ready(const struct coll *coll)
{
	return !list_empty(&coll->ready) || !list_empty(&coll->broken);
}
/* Runs ready operations and ends broken groups; does nothing if called recursively. Returns true if there were any. */
bool coll_run(struct coll *coll);
/* The progress call `ms` from now, or an earlier one, polls the groups again. */
void coll_wake_in(struct coll *coll, unsigned int ms);
/* Connects to the peer. Returns 0 (connected, or tried later), 1 (under way), or an error. */
int coll_connect(struct coll *coll, struct peer *peer);
/* Connects to an entry of the address vector. Returns as coll_connect does. */
static inline int coll_reach(struct coll *coll, fi_addr_t addr)
{
	struct peer *peer = peer_get(coll->worker, addr);

	if (__builtin_expect(peer && peer->conn.state == PEER_CONNECTED, 1))
		return 0;
	return peer ? coll_connect(coll, peer) : -FI_EADDRNOTAVAIL;
}
/* Sends a control message to that endpoint; connects to it. Returns 0 or a negative error: unreachable. */
int coll_say(struct coll *coll, fi_addr_t addr, const struct wire_group *msg);
/*
 * Answers a control message of that peer, within its budget. Never connects: the peer may be no member, and chose its
 * address itself. One whose connection has ended knows, or need not, what the answer says.
 */
void coll_answer(struct peer *peer, const struct wire_group *msg);

extern const struct fi_ops_collective coll_entries;
/* What the engine calls: struct domain_calls. */
extern const struct group_ops coll_groups;

#endif
