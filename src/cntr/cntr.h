/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: two values on a cache line of their own, read and added to without a lock. fi_cntr(3). */
#ifndef WEFT_CNTR_CNTR_H
#define WEFT_CNTR_CNTR_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/lock.h"
#include "core/domain.h"
#include "core/workers.h"
#include "core/wait.h"

struct worker;

/* Both values at one time, to see whether anything changed since. */
struct cntr_mark {
	uint64_t value, error;
};

static inline bool cntr_mark_equal(const struct cntr_mark *a, const struct cntr_mark *b)
{
	return a->value == b->value && a->error == b->error;
}

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): it keeps the line of the values free */
struct cntr {
	struct fid_cntr fid;
	struct domain *dom;
	struct waiter wait;
	enum fi_cntr_events events;
	uint64_t op_flags;
	struct workers workers; /* progressed by a read or wait; domain's lock */
	int ref;                /* atomic: endpoints and regions bound, poll sets */
	uint64_t added;         /* atomic: how much of value the application put there itself */
	uint64_t error_seen;    /* atomic: what the application knows of error */
	struct lock mark_lock;
	struct cntr_mark reported; /* the values fi_trywait or a wait set last spoke of */
	struct list waiting;       /* struct work, by threshold: what starts later; domain's lock */
	struct list in_waiting;    /* domain->waiting, while there is some; domain's lock */
	struct list in_joined;     /* domain->joined: driven by all its workers; domain's lock */
	struct cntr *next_due;     /* in domain->due; his who set `due` */
	bool due;                  /* atomic: entered there */
	uint64_t value __attribute__((aligned(64))); /* atomic */
	uint64_t error;                              /* atomic */
	uint64_t threshold; /* atomic: the first of `waiting`; UINT64_MAX: there is none */
};

static inline struct cntr *cntr_of(struct fid_cntr *fid)
{
	return (struct cntr *)fid;
}

int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
	      void *context);

/* Successes and failures together: what thresholds are compared with. */
static inline uint64_t cntr_sum(const struct cntr *c)
{
	return __atomic_load_n(&c->value, __ATOMIC_SEQ_CST) +
	       __atomic_load_n(&c->error, __ATOMIC_SEQ_CST);
}

/* After every change. Partner: who sets the threshold and then looks at the values. */
static inline bool cntr_reached(const struct cntr *c)
{
	return cntr_sum(c) >= __atomic_load_n(&c->threshold, __ATOMIC_SEQ_CST);
}

/*
 * Something that waits for the counter may start: the next progress call of a worker of the domain will see to
 * it, or the thread of automatic progress at once. Domain locked. Cold.
 */
void cntr_due(struct cntr *c);
/* Enters the counter in domain->due; false: it was there. From any thread. */
bool cntr_enter_due(struct cntr *c);

/* Adds to the successes. Domain locked. */
static inline void cntr_count(struct cntr *c, uint64_t add)
{
	/* Before the look at `sleeping`: partner cntr_wait. Also pairs with the acquire of a read. */
	__atomic_fetch_add(&c->value, add, __ATOMIC_SEQ_CST);
	wait_notify(&c->wait);
	if (__builtin_expect(cntr_reached(c), 0))
		cntr_due(c);
}

/*
 * One operation done; `bytes` counts where the counter was opened with FI_CNTR_EVENTS_BYTES. Domain
 * locked.
 */
static inline void cntr_done(struct cntr *c, size_t bytes)
{
	cntr_count(c, c->events == FI_CNTR_EVENTS_BYTES ? bytes : 1);
}

/* One operation failed. Domain locked. */
static inline void cntr_fail(struct cntr *c)
{
	__atomic_fetch_add(&c->error, 1, __ATOMIC_SEQ_CST);
	wait_notify(&c->wait);
	if (__builtin_expect(cntr_reached(c), 0))
		cntr_due(c);
}

/* Sets the successes. Domain locked. */
void cntr_put(struct cntr *c, uint64_t value);

/* Endpoint enable and close, domain locked: which workers a read or wait drives. */
int cntr_add_worker(struct cntr *c, struct worker *worker);
void cntr_del_worker(struct cntr *c, struct worker *worker);

/* fi_ops_cntr.wait */
int cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout);

/*
 * For fi_trywait: 0 when a sleeper would be woken by whatever comes, -FI_EAGAIN: read first. A change
 * is told once, to the first that asks here or through cntr_ready.
 */
int cntr_arm(struct cntr *c);
/* Makes progress; true when a value changed that was not told yet. */
bool cntr_ready(struct cntr *c);

/* Makes progress on the workers: as workers_progress. Takes the domain's lock, if there are any. */
unsigned int cntr_progress(struct cntr *c);
/*
 * The successes that operations counted, without those that the application added or set itself, and all
 * errors. For poll sets.
 */
struct cntr_mark cntr_events(struct cntr *c);

#endif
