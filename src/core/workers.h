/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers that reads of a queue or counter drive. Each counts the bindings that need it. */
#ifndef WEFT_CORE_WORKERS_H
#define WEFT_CORE_WORKERS_H

#include <stdbool.h>

#include "core/domain.h"
#include "core/wait.h"
#include "core/driven.h"

/*
 * Reads drive the domain's other workers once in 64 calls. With automatic progress (_AUTO) once in two: applications
 * need not read the queues of other workers, and the thread leaves the workers to a polling application.
 */
#define WORKERS_RARELY      64u
#define WORKERS_RARELY_AUTO 2u

/*
 * Bounds of what an application can put off by calls that always find something, so that who waits for this process is
 * served within a number of its calls, whatever these find. In calls of one object, by one or several threads:
 *
 *   WORKERS_FINDS    calls that find entries of a queue, of which the last makes a whole progress call all the same:
 *                    fi_cq_read, fi_cq_sread, fi_poll, fi_trywait, fi_wait. It looks at the sockets, too, unless that was
 *                    done less than a millisecond ago. Calls that find none, and all of counters, make progress each. The
 *                    price: packets that hw/tcp has gathered leave with it, so who sends without ever waiting, as the root
 *                    of many small broadcasts, makes one system call for fewer of them
 *   WORKERS_UNREAD   while more than so many times their number of entries are unread there may be more such calls: what
 *                    arrives must not make the queue longer for ever. So their number is at most WORKERS_FINDS, or
 *                    unread / WORKERS_UNREAD, rounded up to a multiple of WORKERS_FINDS
 *   IDLE_CALLS_MAX   calls that look at memory alone, or take messages from there, before a whole progress call
 *                    (link/cursor.h). While operations wait for a connection there are none, and each call looks at the
 *                    sockets
 *
 * Of whole calls each 16th reads TCP where there is another transport, too, and TCP had nothing for 64 (hw/tcp/tcp_progress.c).
 */
#define WORKERS_FINDS  16u
#define WORKERS_UNREAD 8u

struct workers {
	struct workers_use *list;
	struct sharded shard; /* of the queue or counter, which its workers share */
	struct driven *only;  /* list[0], if it is the only worker; else one without a grant */
	unsigned int count;   /* atomic to read; all else guarded by all shards */
};

struct workers_use {
	struct driven *worker;
	unsigned int uses;
};

/* Limit (ms) of a sleep while a send is blocked on credits: peers do not signal their return. */
#define WORKERS_NAP_MS 1
/* Attempts to arm before a sleeper naps: a sender may be stopped in the middle of a packet. */
#define WORKERS_ARM_TRIES 64

/* The object is new, and in the main shard. */
void workers_init(struct workers *p, struct domain *dom);
/* Adds a use of the worker; its descriptor then wakes `w`. 0 or a negative error. Domain locked. */
int workers_add(struct workers *p, struct driven *worker, struct waiter *w);
void workers_del(struct workers *p, struct driven *worker, struct waiter *w);
void workers_fini(struct workers *p);

static inline bool workers_any(const struct workers *p)
{
	return __atomic_load_n(&p->count, __ATOMIC_RELAXED) != 0;
}

/* Removes all workers, however many uses they have. Domain locked. */
void workers_leave(struct workers *p, struct waiter *w);

/* Starts waiting work that is due. Locks the domain. */
void workers_run_due(struct domain *dom);

/*
 * Drives the workers. workers_progress takes the shard's lock and returns how often shard_part was
 * called; the others: shard locked.
 */
unsigned int workers_progress(struct domain *dom, struct workers *p);
void workers_progress_locked(struct domain *dom, struct workers *p);

/* What a progress call has to do. */
enum workers_due {
	WORKERS_NONE, /* nothing: it would find nothing */
	WORKERS_NEWS, /* to deliver what has come to the only worker: driven_ops.read, driven_due */
	WORKERS_ALL   /* workers_progress_all */
};

/* Counts a progress call. */
static inline enum workers_due workers_look(const struct workers *p)
{
	if (__builtin_expect(!--p->shard.shard->calls_left || !p->only->idle.calls, 0))
		return WORKERS_ALL;
	return idle_pass(&p->only->idle) ? WORKERS_NONE : WORKERS_NEWS;
}

void workers_progress_all(struct domain *dom, struct workers *p);
/* Leaves out nothing that progress calls may leave out. Shard locked. */
void workers_progress_whole(struct domain *dom, struct workers *p);

/* Returns a number that grows with what the workers have served past queues. Shard locked. */
unsigned int workers_served(const struct workers *p);
/* Delivers what the workers can have without a system call: a sleeper was mostly woken for that. Shard locked. */
void workers_progress_near(struct workers *p);
/* Drives the workers in a blocking call on `w`; all workers of the domain if `w` covers them. Shard locked. */
void workers_progress_waiting(struct domain *dom, struct workers *p, const struct waiter *w);

/*
 * Arms the workers before a sleep on the waiter. false: a worker has an event already. *nap: limit
 * (ms) of the sleep; 0: none. Takes the shard's lock.
 *
 * With automatic progress the thread naps while the application polls, so one sleeper of the
 * library covers the domain's other workers: their events wake it too, until workers_uncover. `w`
 * is its waiter; NULL: the application sleeps on the descriptor by itself.
 */
bool workers_arm(struct domain *dom, struct workers *p, struct waiter *w, int *nap);
/* Ends the cover by `w` after a blocking call. Takes the domain's lock only if there was one. */
void workers_uncover(struct domain *dom, struct waiter *w);

#endif
