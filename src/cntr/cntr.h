/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters: two values on their own cache line, read and added to without a lock. fi_cntr(3). */
#ifndef WEFT_CNTR_CNTR_H
#define WEFT_CNTR_CNTR_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "base/lock.h"
#include "core/domain.h"
#include "core/workers.h"
#include "core/wait.h"

/* A snapshot of both values, to detect changes. */
struct cntr_mark {
	uint64_t value, error;
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): keeps the values' cache line free */
struct cntr {
	union {
		struct fid_cntr fid;
		struct waitable waitable;
	};
	struct domain *dom;
	struct waiter wait;
	enum fi_cntr_events events;
	uint64_t op_flags;
	struct workers workers; /* workers that a read or wait progresses; domain's lock */
	int ref;                /* atomic: number of bound endpoints and regions, and poll sets */
	uint64_t added;         /* atomic: the part of `value` that the application added or set */
	uint64_t error_seen;    /* atomic: the value of `error` that the application has read */
	struct lock mark_lock;
	struct cntr_mark reported; /* the values last reported by fi_trywait or a wait set */
	struct list waiting; /* struct work by threshold, waits for this counter; domain's lock */
	struct list in_waiting; /* in domain->waiting while `waiting` is not empty; domain's lock */
	struct list in_joined;  /* in domain->joined: reads drive all workers; domain's lock */
	struct cntr *next_due;  /* in domain->due; written by the thread that set `due` */
	bool due;               /* atomic: entered in domain->due */
	uint64_t value __attribute__((aligned(64))); /* atomic */
	uint64_t error;                              /* atomic */
	uint64_t threshold; /* atomic: lowest of `waiting`; UINT64_MAX: none */
};

static inline struct cntr *cntr_of(struct fid_cntr *fid)
{
	return (struct cntr *)fid;
}

int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
	      void *context);

/* Returns successes plus failures: the sum that thresholds apply to. */
static inline uint64_t cntr_sum(const struct cntr *c)
{
	return __atomic_load_n(&c->value, __ATOMIC_SEQ_CST) +
	       __atomic_load_n(&c->error, __ATOMIC_SEQ_CST);
}

/* To be called after every change. Partner: code that sets the threshold, then reads the values. */
static inline bool cntr_reached(const struct cntr *c)
{
	return cntr_sum(c) >= __atomic_load_n(&c->threshold, __ATOMIC_SEQ_CST);
}

/*
 * Work may start: the domain's next progress call starts it, or at once the thread of automatic
 * progress. Domain locked. Cold.
 */
void cntr_due(struct cntr *c);
/* Enters the counter in domain->due. Returns false if it was there. From any thread. */
bool cntr_enter_due(struct cntr *c);

/* Adds to the successes. Domain locked. */
static inline void cntr_count(struct cntr *c, uint64_t add)
{
	/* Before wait_notify reads `sleeping`: partner cntr_wait. Pairs with a read's acquire, too. */
	__atomic_fetch_add(&c->value, add, __ATOMIC_SEQ_CST);
	wait_notify(&c->wait);
	if (__builtin_expect(cntr_reached(c), 0))
		cntr_due(c);
}

/* Counts one operation, or its `bytes` if the counter has FI_CNTR_EVENTS_BYTES. Domain locked. */
static inline void cntr_done(struct cntr *c, size_t bytes)
{
	cntr_count(c, c->events == FI_CNTR_EVENTS_BYTES ? bytes : 1);
}

/* Counts one failed operation. Domain locked. */
static inline void cntr_fail(struct cntr *c)
{
	__atomic_fetch_add(&c->error, 1, __ATOMIC_SEQ_CST);
	wait_notify(&c->wait);
	if (__builtin_expect(cntr_reached(c), 0))
		cntr_due(c);
}

/* Sets the successes. Domain locked. */
void cntr_put(struct cntr *c, uint64_t value);

/* For enabling and closing endpoints: adds, removes a worker to progress. Domain locked. */
int cntr_add_worker(struct cntr *c, struct driven *worker);
void cntr_del_worker(struct cntr *c, struct driven *worker);
/*
 * From now on, reading or waiting for the counter progresses all workers of its domain, since any
 * of them may change it. Returns 0 or -FI_ENOMEM. Domain locked, as below.
 */
int cntr_join(struct cntr *c);
/* A worker was opened, or is about to be closed. Returns 0 or -FI_ENOMEM. */
int cntr_join_opened(struct driven *worker);
void cntr_join_closing(struct driven *worker);

/* Implements fi_ops_cntr.wait. */
int cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout);

/* For fi_trywait, wait sets and poll sets. Each change is reported once, by `arm` or by `ready`. */
extern const struct waitable_ops cntr_waitable_ops;

/* Makes progress as workers_progress does. Takes the domain's lock if there are workers. */
unsigned int cntr_progress(struct cntr *c);

#endif
