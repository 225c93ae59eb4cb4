/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What reads, waits and the thread of automatic progress drive: the part of a worker of the engine that queues and counters
 * know. Domain locked.
 */
#ifndef WEFT_CORE_DRIVEN_H
#define WEFT_CORE_DRIVEN_H

#include <rdma/fi_eq.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/list.h"
#include "core/shard.h"
#include "link/cursor.h"

struct cq;
struct domain;
struct driven;
struct waiter;

/*
 * fi_cq_read and fi_cq_readfrom of a queue that is empty, when a packet has come to its only `d`, which has been granted
 * calls: messages that only have to be copied go past the queue; if there is none, return cq_read_due. `at`: that
 * packet. Shard locked.
 */
typedef ssize_t driven_read(struct cq *cq, void *buf, size_t count, struct driven *d,
			    link_place at);
typedef ssize_t driven_readfrom(struct cq *cq, void *buf, size_t count, fi_addr_t *src,
				struct driven *d);

struct driven_ops {
	driven_read *read;
	driven_readfrom *readfrom;
	/* Makes progress, never blocks. Returns true if anything came, went or completed. */
	bool (*progress)(struct driven *d);
	/* Delivers what has come to the cursor, without a system call, and no more. */
	void (*near)(struct driven *d);
	/*
	 * To be called before sleeping on `fd`. True: anything that arrives from now on makes the descriptor readable. False:
	 * something has arrived already.
	 */
	bool (*arm)(struct driven *d);
	/*
	 * True while a request waits for a peer's credits, or for an answer that may need rma_help. No event announces either,
	 * so the caller must nap and poll.
	 */
	bool (*must_nap)(const struct driven *d);
	/*
	 * Direct accesses by peers. quiesce_begin notes those under way; quiesce waits until these have ended: 0, or -FI_EBUSY:
	 * one may still be under way after FI_WEFT_ACCESS_TIMEOUT.
	 */
	void (*quiesce_begin)(struct driven *d);
	int (*quiesce)(struct driven *d);
	/* Memory for a completion ran out: the next progress call disconnects all peers. */
	void (*starve)(struct driven *d);
};

struct driven {
	struct idle idle; /* what an empty read of a queue looks at */
	const struct driven_ops *ops;
	int fd;              /* once armed, readable when a progress call would find something */
	unsigned int served; /* one-sided requests received from peers */
	struct waiter **waiters; /* that may sleep on `fd` */
	unsigned int waiter_count;
	struct sharded shard;
	struct domain *dom;
	struct list in_domain; /* dom->workers */
};

void driven_init(struct driven *d, struct domain *dom, const struct driven_ops *ops);
/* It is open: all that drive the domain's workers drive it from now on. */
void driven_enter(struct driven *d);
/* It is closed, and drops its waiters. */
void driven_leave(struct driven *d);

/* Lets the waiter sleep on the descriptor. Returns 0 or -FI_ENOMEM. */
int driven_add_waiter(struct driven *d, struct waiter *w);
void driven_del_waiter(struct driven *d, struct waiter *w);
/*
 * The calling thread may have read the byte that was to wake a sleeper: wakes all that sleep on the descriptor. They make a
 * progress call and arm again, or would miss the next event.
 */
void driven_wake(struct driven *d);

/* Makes progress on one worker, as `progress` of struct driven_ops says. */
static inline bool driven_progress(struct driven *d)
{
	return d->ops->progress(d);
}

/* A progress call that idle_pass did not leave out. If all else would find nothing, only what is near makes progress. */
static inline void driven_due(struct driven *d)
{
	if (d->idle.calls) {
		idle_use(&d->idle);
		d->ops->near(d);
	}
	if (!d->idle.calls)
		driven_progress(d);
}

/*
 * Makes progress on all workers of the domain; passes by those of other shards that are locked.
 * `mine`: the shard that the caller has locked.
 */
bool driven_progress_all(struct domain *dom, struct shard *mine);
/* The same for one worker other than this one, in turn. */
void driven_progress_other(struct domain *dom, struct shard *mine, const struct driven *d);
/* For all workers of the domain. driven_watch_all calls progress_watch for each. */
bool driven_arm_all(struct domain *dom);
bool driven_must_nap_any(const struct domain *dom);
void driven_watch_all(struct domain *dom);
/* Waits until all direct accesses by peers that began before the call have ended. 0 or -FI_EBUSY. */
int driven_quiesce_all(struct domain *dom);

#endif
