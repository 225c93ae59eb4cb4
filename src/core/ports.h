/* SPDX-License-Identifier: BSD-2-Clause */
/* The ports that reading a queue or counter drives, each counted by how many bindings need it. */
#ifndef WEFT_CORE_PORTS_H
#define WEFT_CORE_PORTS_H

#include <stdbool.h>

#include "core/domain.h"
#include "core/wait.h"

struct port;

/*
 * Once in so many turns (a power of two, less one) the other ports of the domain get theirs. Where progress is
 * automatic nobody need ever read what is bound to them, and the thread leaves them to those who poll.
 */
#define PORTS_RARELY      63
#define PORTS_RARELY_AUTO 1

struct ports {
	struct ports_use *list;
	unsigned int count; /* atomic to read; the rest under the domain's lock */
};

struct ports_use {
	struct port *port;
	unsigned int uses;
};

#define PORTS_NAP_MS 1 /* while something waits for room at a peer, which nobody announces */
/* So often a sleeper tries to arm before it naps: a sender may be stopped in the middle of a packet. */
#define PORTS_ARM_TRIES 64

/* Domain locked. The port becomes a reason to wake `w`, too. 0 or a negative error. */
int ports_add(struct ports *p, struct port *port, struct waiter *w);
void ports_del(struct ports *p, struct port *port, struct waiter *w);
void ports_fini(struct ports *p);

static inline bool ports_any(const struct ports *p)
{
	return __atomic_load_n(&p->count, __ATOMIC_RELAXED) != 0;
}

/* No port drives it any more, whatever they were counted for. Domain locked. */
void ports_leave(struct ports *p, struct waiter *w);

/* Starts what waited for counters and is due. Takes the domain's lock. */
void ports_run_due(struct domain *dom);

/*
 * Makes progress. Takes the domain's lock; the other has it already. The parts of something longer that it brought:
 * see domain_part.
 */
unsigned int ports_progress(struct domain *dom, struct ports *p);
void ports_progress_locked(struct domain *dom, struct ports *p);
/* Counts the one-sided requests that peers have made of them. Domain locked. */
unsigned int ports_served(const struct ports *p);
/* Within a blocking call, whose waiter this is: all ports, while it covers them. Domain locked. */
void ports_progress_waiting(struct domain *dom, struct ports *p, const struct waiter *w);

/*
 * Before a sleep on the waiter: false when a port has something already. *nap is how long at most to
 * sleep (ms), 0: as long as nothing comes. Takes the domain's lock.
 *
 * Where progress is automatic the thread naps while the application makes some, so one sleeper of the library's
 * covers the other ports of the domain: what comes for them wakes it, too, until ports_uncover. `w` is its waiter,
 * NULL: the application sleeps on the descriptor by itself.
 */
bool ports_arm(struct domain *dom, struct ports *p, struct waiter *w, int *nap);
/* The blocking call is over. Cheap where nothing was covered; else takes the domain's lock. */
void ports_uncover(struct domain *dom, struct waiter *w);

#endif
