/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collective groups of one endpoint and their operations. Domain locked throughout. A message of a collective
 * is an ordinary tagged message to the context WIRE_RX_GROUP. Its data is the group's number; its tag has the
 * number of the collective, a summary of the call (WIRE_GROUP_WHAT_MASK) and the sender's rank. A short message
 * goes to the operation that waits for it (exchange.c); all others are matched in queues of their group. A message
 * for a group that has not been joined here waits in `early`. Upcalls only note what is ready or broken; coll_run
 * acts on it.
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
struct group;

#define COLL_BUCKETS 64
#define COLL_LEFT    256

struct coll {
	struct worker *worker;
	struct ep *ep;                    /* of the first join; NULL before it */
	struct list groups;               /* struct group.in_coll: all open groups */
	struct list bucket[COLL_BUCKETS]; /* struct group.in_bucket: formed groups, by number */
	struct rx early;
	struct list joins;    /* struct group.in_joins: pending ones, oldest first */
	struct list kept;     /* struct join_message: about joins that have not begun here, */
	struct list leaves;   /* and about ends of groups that are not formed here yet */
	size_t kept_count[2]; /* of `kept` and of `leaves` */
	struct list failures; /* struct join_failure, oldest first */
	size_t failure_count;
	struct list ready;  /* struct op.in_ready: the messages of a round are complete */
	struct list broken; /* struct group.in_broken: to be ended */
	struct pool group_pool;
	struct list idle;            /* struct op.in_ready: not in use */
	uint64_t *managed;           /* table of managed.c, */
	size_t managed_capacity;     /* its places, a power of two or 0, */
	size_t managed_count;        /* and those in use */
	uint64_t left[COLL_LEFT];    /* numbers of the groups closed here last; */
	unsigned int left_count;     /* of all, modulo 2^32 */
	uint64_t serials;            /* groups there have been */
	uint64_t made;               /* groups we gave a number */
	uint64_t wake_at;            /* ms: next poll of the groups; 0: none is due */
	unsigned int progress_calls; /* while one is due */
	bool running;                /* in coll_run */
	/* A reader of the event queue progresses the worker while joins are pending. */
	struct eq_driver driver;
	bool rushes;              /* the event queue progresses the worker regularly, even if nothing arrives */
	pthread_mutex_t watching; /* guards these two of it; taken before the domain's lock */
	pthread_mutex_t joining;  /* guards driven; taken before the event queue's */
	bool driven;
};

#define COLL_LATER_MS 200 /* after this time everything that a member sent before it left has arrived */

/* The worker's, made at the first call; NULL: no memory. */
struct coll *coll_of(struct worker *worker);
/* Is any operation ready, or any group broken? */
static inline bool coll_ready(const struct coll *coll)
{
	return !list_empty(&coll->ready) || !list_empty(&coll->broken);
}
/*
 * Runs ready operations and ends broken groups; does nothing when called from within itself. True: there was one.
 */
bool coll_run(struct coll *coll);
/* A progress call is to poll the groups again in so many ms, if not earlier. */
void coll_wake_in(struct coll *coll, unsigned int ms);
/* Connects to the peer unless that is under way: 0: connected, 1: not yet, or a negative error. */
int coll_connect(struct coll *coll, struct peer *peer);
/* Connects to an entry of the vector: 0: it is connected, 1: not yet, or a negative error. */
static inline int coll_reach(struct coll *coll, fi_addr_t addr)
{
	struct peer *peer = peer_get(coll->worker, addr);

	if (__builtin_expect(peer && peer->state == PEER_CONNECTED, 1))
		return 0;
	return peer ? coll_connect(coll, peer) : -FI_EADDRNOTAVAIL;
}
/* Sends a control message to the endpoint of that entry. 0, or a negative error: it cannot be reached. */
int coll_say(struct coll *coll, fi_addr_t addr, const struct wire_group *msg);
int coll_answer(struct peer *peer, const struct wire_group *msg);

#endif
