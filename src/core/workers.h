/* SPDX-License-Identifier: BSD-2-Clause */
/* The workers that reading a queue or counter drives, each counted by how many bindings need it. */
#ifndef WEFT_CORE_WORKERS_H
#define WEFT_CORE_WORKERS_H

#include <stdbool.h>

#include "core/domain.h"
#include "core/wait.h"

struct worker;

/*
 * Once in so many progress calls (a power of two, less one) the other workers of the domain get one. Where progress is
 * automatic nobody need ever read what is bound to them, and the thread leaves them to those who poll.
 */
#define WORKERS_RARELY      63
#define WORKERS_RARELY_AUTO 1

struct workers {
	struct workers_use *list;
	unsigned int count; /* atomic to read; the rest under the domain's lock */
};

struct workers_use {
	struct worker *worker;
	unsigned int uses;
};

#define WORKERS_NAP_MS 1 /* while something waits for room at a peer, which nobody announces */
/* So often a sleeper tries to arm before it naps: a sender may be stopped in the middle of a packet. */
#define WORKERS_ARM_TRIES 64

/* Domain locked. The worker becomes a reason to wake `w`, too. 0 or a negative error. */
int workers_add(struct workers *p, struct worker *worker, struct waiter *w);
void workers_del(struct workers *p, struct worker *worker, struct waiter *w);
void workers_fini(struct workers *p);

static inline bool workers_any(const struct workers *p)
{
	return __atomic_load_n(&p->count, __ATOMIC_RELAXED) != 0;
}

/* No worker drives it any more, whatever they were counted for. Domain locked. */
void workers_leave(struct workers *p, struct waiter *w);

/* Starts what waited for counters and is due. Takes the domain's lock. */
void workers_run_due(struct domain *dom);

/*
 * Makes progress. Takes the domain's lock; the other has it already. The parts of something longer that it brought:
 * see domain_part.
 */
unsigned int workers_progress(struct domain *dom, struct workers *p);
void workers_progress_locked(struct domain *dom, struct workers *p);
/* Counts the one-sided requests that peers have made of them. Domain locked. */
unsigned int workers_served(const struct workers *p);
/* Within a blocking call, whose waiter this is: all workers, while it covers them. Domain locked. */
void workers_progress_waiting(struct domain *dom, struct workers *p, const struct waiter *w);

/*
 * Before a sleep on the waiter: false when a worker has something already. *nap is how long at most to
 * sleep (ms), 0: as long as nothing comes. Takes the domain's lock.
 *
 * Where progress is automatic the thread naps while the application makes some, so one sleeper of the library's
 * covers the other workers of the domain: what comes for them wakes it, too, until workers_uncover. `w` is its waiter,
 * NULL: the application sleeps on the descriptor by itself.
 */
bool workers_arm(struct domain *dom, struct workers *p, struct waiter *w, int *nap);
/* The blocking call is over. Cheap where nothing was covered; else takes the domain's lock. */
void workers_uncover(struct domain *dom, struct waiter *w);

#endif
