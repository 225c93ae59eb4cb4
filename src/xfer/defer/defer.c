/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits for counters: ordered, started when due, detached from a closed endpoint. */
#include "xfer/defer/defer.h"

#include <rdma/fi_errno.h>

#include "core/ep.h"
#include "xfer/worker.h"

/* Returns the work behind `at`, or NULL. */
static struct work *next_of(const struct cntr *c, const struct list *at)
{
	return at->next == &c->waiting ? NULL : LIST_ENTRY(at->next, struct work, link);
}

static struct work *first_of(const struct cntr *c)
{
	return next_of(c, &c->waiting);
}

/* Updates the counter's lowest threshold. Called whenever the first work in the list may have changed. */
static void defer_refresh(struct cntr *c)
{
	const struct work *first = first_of(c);

	/* Stored before the caller reads the counter's values; pairs with cntr_reached. */
	__atomic_store_n(&c->threshold, first ? first->threshold : UINT64_MAX, __ATOMIC_SEQ_CST);
	if (!first)
		list_remove(&c->in_waiting);
	else if (list_empty(&c->in_waiting))
		list_push(&c->dom->waiting, &c->in_waiting);
}

/* Inserts work behind all with the same or a lower threshold. */
static void defer_insert(struct cntr *c, struct work *work)
{
	const struct work *first = first_of(c);
	struct list *after = c->waiting.prev;

	if (first && first->threshold > work->threshold)
		after = &c->waiting;
	while (after != &c->waiting &&
	       LIST_ENTRY(after, struct work, link)->threshold > work->threshold)
		after = after->prev;
	list_push_front(after, &work->link);
	defer_refresh(c);
}

bool defer_must_wait(const struct cntr *c, uint64_t threshold)
{
	return cntr_sum(c) < threshold || cntr_reached(c);
}

void defer_due(struct cntr *c)
{
	uint64_t sum = cntr_sum(c);

	LIST_EACH_OF (struct work, work, &c->waiting, link) {
		if (work->threshold > sum)
			break;
		work->threshold = 0;
	}
	defer_refresh(c);
}

void defer_count(struct domain *dom)
{
	__atomic_fetch_add(&dom->deferred, 1, __ATOMIC_RELAXED);
	LIST_EACH (node, &dom->workers)
		idle_end(&LIST_ENTRY(node, struct driven, in_domain)->idle);
}

uint64_t defer_recv_flags(const struct ep *ep, uint64_t flags)
{
	return (flags & ~EP_ENDED) | (ep_rx_msg_flags(ep) & EP_ENDED);
}

void defer_enter(struct work *work)
{
	struct cntr *c = work->cntr;
	struct domain *dom = work->dom;

	ref_get(&c->ref);
	defer_count(dom);
	if (cntr_reached(c))
		defer_due(c); /* the new work starts after all that is due */
	defer_insert(c, work);
	if (!cntr_reached(c))
		return;
	cntr_enter_due(c);
	defer_run(dom);
}

void defer_remove(struct work *work)
{
	list_remove(&work->link);
	defer_refresh(work->cntr);
	ref_put(&work->cntr->ref);
	__atomic_fetch_sub(&work->dom->deferred, 1, __ATOMIC_RELAXED);
}

/* Does earlier work of the counter, which found no space, hold this one back? */
static bool defer_held(const struct cntr *c, const struct work *work)
{
	for (const struct list *at = c->waiting.next; at != &work->link; at = at->next) {
		const struct work *earlier = LIST_ENTRY(at, struct work, link);

		if (!work->ep || (earlier->to == work->to && earlier->ep->base == work->ep->base))
			return true;
	}
	return false;
}

/* Starts work of a counter. False: no space, the work stays in its place. */
static bool defer_start(struct cntr *c, struct work *work)
{
	struct list *before = work->link.prev;
	struct domain *dom = work->dom;
	int err;

	/* Taken off the list first: the work may be done and freed once it is posted. */
	list_remove(&work->link);
	err = work->kind->start(work);
	if (err == -FI_EAGAIN) {
		list_push_front(before, &work->link);
		return false;
	}
	if (err)
		work->kind->fail(work, -err);
	defer_refresh(c);
	ref_put(&c->ref);
	__atomic_fetch_sub(&dom->deferred, 1, __ATOMIC_RELAXED);
	return true;
}

/* Starts all due work of one counter. False: some found no space. */
static bool defer_run_of(struct cntr *c)
{
	struct list *last = &c->waiting; /* of those that stay */
	struct work *work;

	while ((work = next_of(c, last)) && work->threshold <= cntr_sum(c))
		if (defer_held(c, work) || !defer_start(c, work))
			last = &work->link;
	if (last == &c->waiting)
		return true;
	defer_due(c);
	return false;
}

/* Takes the counters that became due, oldest first, linked by next_due. */
static struct cntr *take_due(struct domain *dom)
{
	/* Pairs with the release of cntr_enter_due. */
	struct cntr *c = __atomic_exchange_n(&dom->due, NULL, __ATOMIC_ACQUIRE), *turned = NULL;

	while (c) {
		struct cntr *next = c->next_due;

		c->next_due = turned;
		turned = c;
		c = next;
	}
	return turned;
}

/* Runs a list of counters; adds those whose work found no space to *stuck. */
static void run_all(struct cntr *c, struct cntr **stuck)
{
	while (c) {
		struct cntr *next = c->next_due;

		/* Cleared before reading the counter's values: a later change enters the counter again. */
		__atomic_store_n(&c->due, false, __ATOMIC_SEQ_CST);
		if (!defer_run_of(c) && !__atomic_exchange_n(&c->due, true, __ATOMIC_SEQ_CST)) {
			c->next_due = *stuck;
			*stuck = c;
		}
		c = next;
	}
}

/*
 * Makes the counters due again, for the next progress call. Wakes the progress thread, as a sleeper
 * does not know that a call is needed.
 */
static void try_again(struct domain *dom, struct cntr *c)
{
	if (c && !dom->stuck)
		progress_wake(dom);
	dom->stuck = c != NULL;
	while (c) {
		struct cntr *next = c->next_due;

		__atomic_store_n(&c->due, false, __ATOMIC_SEQ_CST);
		cntr_enter_due(c);
		c = next;
	}
}

void defer_run(struct domain *dom)
{
	struct cntr *stuck = NULL, *c;

	if (dom->starting || !domain_due(dom))
		return;
	dom->starting = true;
	while ((c = take_due(dom)))
		run_all(c, &stuck);
	try_again(dom, stuck);
	dom->starting = false;
}

void defer_each(struct domain *dom, void (*visit)(struct work *work, const void *arg),
		const void *arg)
{
	LIST_EACH_SAFE_OF (struct cntr, c, &dom->waiting, in_waiting) {
		LIST_EACH_SAFE (node, &c->waiting)
			visit(LIST_ENTRY(node, struct work, link), arg);
	}
}

/* An endpoint that is being closed, and its successor or NULL. */
struct closing {
	const struct ep *ep;
	struct ep *successor;
};

static void defer_forget_work(struct work *work, const void *arg)
{
	const struct closing *closing = arg;

	if (work->ep != closing->ep)
		return;
	if (closing->successor) {
		work->ep = closing->successor;
		return;
	}
	defer_remove(work);
	work->kind->orphan(work);
}

void defer_forget(struct ep *ep, struct ep *successor)
{
	defer_each(ep->dom, defer_forget_work, &(struct closing){ep, successor});
}

struct work *defer_find(struct domain *dom, bool (*match)(const struct work *work, const void *arg),
			const void *arg)
{
	LIST_EACH_OF (const struct cntr, c, &dom->waiting, in_waiting) {
		LIST_EACH_OF (struct work, work, &c->waiting, link) {
			if (match(work, arg))
				return work;
		}
	}
	return NULL;
}
