/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that start later: triggered operations (FI_TRIGGER in the flags of a call) and deferred
 * work (queued on a domain). Both wait on a counter, in the order of their thresholds. Domain locked
 * throughout. fi_trigger(3).
 *
 * A counter that reaches the first of its thresholds is entered in domain->due (cntr_due of
 * cntr/cntr.h); defer_run starts what is due. What finds no room stays where it is, the first of its
 * counter, and the counter stays due; all whose threshold was reached by then start after it, even
 * if the counter should be set back.
 */
#ifndef WEFT_XFER_DEFER_H
#define WEFT_XFER_DEFER_H

#include "base/list.h"
#include "cntr/cntr.h"
#include "link/engine.h"

struct rma;
struct recv_args;
struct work;
struct xfer;

/*
 * An entry got FI_TRIGGER: starts the operation at once if its threshold is reached and nothing that
 * is due stands before it, else keeps it with a copy of all that is the caller's again after the
 * call. 0 or a negative error. From the start on it is an ordinary operation of the endpoint.
 */
int defer_send(struct ep *ep, const struct xfer *x);
int defer_recv(struct ep *ep, bool tagged, const struct recv_args *args);
int defer_rma(struct ep *ep, const struct rma *o);

/* ---- For the files defer*.c, and collectives: what has only a `done` is never entered ----------- */

/* What the sorts of work differ in. */
struct work_kind {
	/* Posts it. 0: it ends by `done`. -FI_EAGAIN: no space, try again. Else `failed` is next. */
	int (*start)(struct work *work);
	/* It could not be posted; `err` is positive. Frees it. */
	void (*fail)(struct work *work, int err);
	/* Its endpoint is being closed: says that it was canceled. Frees it. */
	void (*orphan)(struct work *work);
	/* What it had posted has ended: err is positive or 0. Deferred work is gone afterwards. */
	void (*done)(struct work *work, int err);
};

struct work {
	struct list link; /* cntr->waiting */
	const struct work_kind *kind;
	uint64_t threshold; /* 0 once it was reached */
	struct cntr *cntr;  /* waited for; counted in its ref as long as it waits */
	struct domain *dom;
	struct ep *ep; /* NULL: an operation on a counter */
	size_t got;    /* bytes of the message, */
	uint64_t tag;  /* and its tag, set before a receive is done */
	/*
	 * Not NULL: sender and receivers share processors, so they should not copy at the same time. A long
	 * message then goes without speculative fragments; each receiver copies it out by itself. Receivers of the
	 * same memory in the same batch share one copy.
	 */
	const void *batch;
};

/*
 * An operation that belongs to some work, deferred or a collective's, has ended (err positive or 0): to
 * be called once for each that was posted, whatever becomes of its endpoint.
 */
static inline void defer_done(struct work *work, int err)
{
	work->kind->done(work, err);
}

/* Enters it to wait for its counter, starts it if it is due. Members but `link` are filled. */
void defer_enter(struct work *work);
/* Takes it off; the caller frees it. */
void defer_remove(struct work *work);
/* Must an operation with this threshold wait behind others? */
bool defer_must_wait(const struct cntr *c, uint64_t threshold);
/* The counter is about to be set: whatever it has reached by now stays due. */
void defer_due(struct cntr *c);
/* Calls `visit`, which may take the work off, for all that waits. */
void defer_each(struct domain *dom, void (*visit)(struct work *work, const void *arg),
		const void *arg);
/* The first for which `match` says yes, or NULL. */
struct work *defer_find(struct domain *dom, bool (*match)(const struct work *work, const void *arg),
			const void *arg);

#endif
