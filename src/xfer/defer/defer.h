/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that start later: triggered operations (FI_TRIGGER in the flags of a call) and deferred work (queued on a
 * domain). Both wait for a counter, in the order of their thresholds. Domain locked throughout. fi_trigger(3).
 *
 * A counter that reaches its lowest threshold is entered in domain->due (cntr_due of cntr/cntr.h); defer_run starts the
 * due operations. An operation that finds no space stays in its counter's list, and the counter stays due. Of those
 * whose threshold was reached by then, what goes to the same endpoint, and changes of counters, start after it, even if
 * the counter is set back; all others do not wait: what would make space may be among them.
 */
#ifndef WEFT_XFER_DEFER_H
#define WEFT_XFER_DEFER_H

#include "base/list.h"
#include "cntr/cntr.h"
#include "xfer/engine.h"

struct rma;
struct recv_args;
struct work;
struct xfer;

/*
 * Handle a call with FI_TRIGGER. Start the operation at once if its threshold is reached and no due
 * operation precedes it; else keep it with a copy of the caller's lists and injected data. Once
 * started it is an ordinary operation of the endpoint. 0 or a negative error.
 */
int defer_send(struct ep *ep, const struct xfer *x);
int defer_recv(struct ep *ep, bool tagged, const struct recv_args *args);
int defer_rma(struct ep *ep, const struct rma *o);

/* ---- For defer*.c and the collectives, whose work has only a `done` and is never entered -------- */

/* The operations of a kind of work. */
struct work_kind {
	/*
	 * Posts the work. 0: `done` is called at its end; -FI_EAGAIN: no space, try again; else `fail` is called next.
	 */
	int (*start)(struct work *work);
	/* Frees work that could not be posted, with `err` (positive). */
	void (*fail)(struct work *work, int err);
	/* Frees work whose endpoint is being closed, and reports it as canceled. */
	void (*orphan)(struct work *work);
	/* Called when the posted operation has ended, with `err` (positive or 0). Frees deferred work. */
	void (*done)(struct work *work, int err);
};

struct work {
	struct list link; /* cntr->waiting */
	const struct work_kind *kind;
	uint64_t threshold; /* 0 once it has been reached */
	struct cntr *cntr;  /* counter that the work waits for; a reference is held meanwhile */
	struct domain *dom;
	struct ep *ep; /* NULL: an operation on a counter */
	fi_addr_t to;  /* where it goes; of a receive FI_ADDR_NOTAVAIL */
	size_t got;    /* of a receive, set before `done`: bytes of the message */
	uint64_t tag;  /* likewise: its tag */
	/* A message of a collective that has been sent when the receiver has it. */
	bool delivered;
};

/*
 * Reports the end of an operation that belongs to deferred work or a collective, with `err`
 * (positive or 0). Called once for each posted operation, even if its endpoint was closed.
 */
static inline void defer_done(struct work *work, int err)
{
	work->kind->done(work, err);
}

/* The flags of a receive that begins now: its connection may have ended since they were given. */
uint64_t defer_recv_flags(const struct ep *ep, uint64_t flags);

/* Counts a further work of the domain: until it ends, each progress call is a whole one. */
void defer_count(struct domain *dom);
/* Enters work to wait for its counter; starts it if it is due. All members but `link` are set. */
void defer_enter(struct work *work);
/* Takes waiting work off its counter; the caller frees it. */
void defer_remove(struct work *work);
/* Must an operation with this threshold wait: is the threshold not reached, or do due ones precede it? */
bool defer_must_wait(const struct cntr *c, uint64_t threshold);
/* Marks all work whose threshold is reached as due for good. Called before the counter is set. */
void defer_due(struct cntr *c);
/* Calls `visit` for all waiting work of the domain; `visit` may remove the work. */
void defer_each(struct domain *dom, void (*visit)(struct work *work, const void *arg),
		const void *arg);
/* Returns the first waiting work that `match` accepts, or NULL. */
struct work *defer_find(struct domain *dom, bool (*match)(const struct work *work, const void *arg),
			const void *arg);

#endif
