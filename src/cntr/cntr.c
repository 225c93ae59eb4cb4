/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/fid.h"
#include "base/log.h"
#include "cntr/cntr.h"
#include "core/driven.h"

static uint64_t cntr_read(struct fid_cntr *fid)
{
	struct cntr *c = cntr_of(fid);

	cntr_progress(c);
	return __atomic_load_n(&c->value, __ATOMIC_ACQUIRE); /* pairs with cntr_done */
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	struct cntr *c = cntr_of(fid);
	uint64_t error;

	cntr_progress(c);
	error = __atomic_load_n(&c->error, __ATOMIC_ACQUIRE); /* pairs with cntr_fail */
	__atomic_store_n(&c->error_seen, error, __ATOMIC_RELAXED);
	return error;
}

bool cntr_enter_due(struct cntr *c)
{
	struct cntr *first;

	if (__atomic_exchange_n(&c->due, true, __ATOMIC_SEQ_CST))
		return false;
	first = __atomic_load_n(&c->dom->due, __ATOMIC_RELAXED);
	do { /* the release pairs with the acquire in defer_run */
		c->next_due = first;
	} while (!__atomic_compare_exchange_n(&c->dom->due, &first, c, true, __ATOMIC_RELEASE,
					      __ATOMIC_RELAXED));
	return true;
}

void cntr_due(struct cntr *c)
{
	if (cntr_enter_due(c) && !c->dom->starting)
		progress_wake(c->dom);
}

void cntr_put(struct cntr *c, uint64_t value)
{
	__atomic_store_n(&c->value, value, __ATOMIC_SEQ_CST);
	wait_notify(&c->wait);
	if (cntr_reached(c))
		cntr_due(c);
}

/* Starts work whose threshold is reached, within the application's call. */
static void start_due(struct cntr *c)
{
	if (__builtin_expect(!cntr_reached(c), 1))
		return;
	cntr_enter_due(c);
	workers_run_due(c->dom);
}

static void cntr_changed(struct cntr *c)
{
	wait_notify(&c->wait);
	start_due(c);
}

/*
 * A success that the application adds or sets is no event for a poll set, so `added` counts it.
 * `added` changes first: in the other order a poll set could miss an event that comes between the
 * two. A changed error value is always an event. fi_poll(3).
 */
static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	struct cntr *c = cntr_of(fid);

	__atomic_fetch_add(&c->added, value, __ATOMIC_RELAXED);
	__atomic_fetch_add(&c->value, value, __ATOMIC_SEQ_CST); /* partner: mark_now */
	cntr_changed(c);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	struct cntr *c = cntr_of(fid);

	__atomic_fetch_add(&c->error, value, __ATOMIC_SEQ_CST); /* partner: mark_now */
	cntr_changed(c);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	struct cntr *c = cntr_of(fid);
	uint64_t old;

	start_due(c); /* work that is due stays due */
	old = __atomic_exchange_n(&c->value, value, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&c->added, value - old, __ATOMIC_RELAXED);
	cntr_changed(c);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	struct cntr *c = cntr_of(fid);

	start_due(c);
	__atomic_store_n(&c->error, value, __ATOMIC_SEQ_CST); /* partner: mark_now */
	__atomic_store_n(&c->error_seen, value, __ATOMIC_RELAXED);
	cntr_changed(c);
	return 0;
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
	.export_xpu = fid_no_call_2_7,
};

/* Removes the counter from the domain's lists and its workers. Returns false if it is in use. */
static bool cntr_leave(struct cntr *c)
{
	bool busy;

	/* Locked: the application may close when the last operation is counted, before its work ends. */
	domain_lock(c->dom);
	busy = ref_busy(&c->ref);
	if (!busy) {
		list_remove(&c->in_joined);
		workers_leave(&c->workers, &c->wait);
		shard_leave(&c->workers.shard);
	}
	domain_unlock(c->dom);
	return !busy;
}

static int cntr_close(struct fid *fid)
{
	struct cntr *c = cntr_of((struct fid_cntr *)fid);

	if (domain_foreign(c->dom))
		return 0;
	if (__atomic_load_n(&c->due, __ATOMIC_SEQ_CST))
		workers_run_due(c->dom);
	if (!cntr_leave(c))
		return LOG_REFUSE(
			-FI_EBUSY, LOG_CNTR,
			"a counter with %d bindings cannot be closed: close the endpoints that use it first",
			c->ref);
	wait_fini(&c->wait);
	workers_fini(&c->workers);
	ref_put(&c->dom->ref);
	fid_free(fid);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct cntr *c = cntr_of((struct fid_cntr *)fid);

	switch (command) {
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		if (!arg)
			return -FI_EINVAL;
		if (command == FI_GETOPSFLAG)
			*(uint64_t *)arg = c->op_flags;
		else
			c->op_flags = *(uint64_t *)arg;
		return 0;
	case FI_GETWAIT:
	case FI_GETWAITOBJ:
		return wait_control(&c->wait, command, arg);
	default:
		return fid_no_control(fid, command, arg);
	}
}

static struct fi_ops fid_ops = FID_OPS(cntr_close, fid_no_bind, cntr_control);

static int cntr_check_attr(const struct domain *dom, const struct fi_cntr_attr *attr)
{
	if (attr->flags == 0 &&
	    (attr->events == FI_CNTR_EVENTS_COMP || attr->events == FI_CNTR_EVENTS_BYTES))
		return domain_refuse_xpu(dom, &attr->xpu_ctx, "fi_cntr_open");
	return LOG_REFUSE(-FI_EINVAL, LOG_CNTR, "no counter of events %d with flags %#llx",
			  (int)attr->events, (unsigned long long)attr->flags);
}

int cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **fid,
	      void *context)
{
	static const struct fi_cntr_attr none; /* FI_CNTR_EVENTS_COMP, FI_WAIT_NONE */
	const struct fi_cntr_attr *a = attr ? attr : &none;
	struct domain *dom = domain_of(domain);
	struct cntr *c;
	int ret = fid ? cntr_check_attr(dom, a) : -FI_EINVAL;

	if (ret)
		return ret;
	c = apart_alloc(sizeof(*c));
	if (!c)
		return -FI_ENOMEM;
	ret = wait_init(&c->wait, a->wait_obj, a->wait_set);
	if (ret)
		goto free_cntr;
	c->dom = dom;
	workers_init(&c->workers, dom);
	ref_get(&dom->ref);
	c->events = a->events;
	c->threshold = UINT64_MAX;
	list_init(&c->waiting);
	list_init(&c->in_waiting);
	list_init(&c->in_joined);
	lock_init(&c->mark_lock);
	c->fid.fid = (struct fid){FI_CLASS_CNTR, context, &fid_ops};
	c->fid.ops = &cntr_ops;
	wait_own(&c->wait, &c->waitable, &cntr_waitable_ops);
	*fid = &c->fid;
	return 0;
free_cntr:
	free(c);
	return ret;
}

int cntr_add_worker(struct cntr *c, struct driven *worker)
{
	return workers_add(&c->workers, worker, &c->wait);
}

void cntr_del_worker(struct cntr *c, struct driven *worker)
{
	workers_del(&c->workers, worker, &c->wait);
}

/* ---- Counters that any worker of their domain may change ---- */

int cntr_join(struct cntr *c)
{
	if (!list_empty(&c->in_joined))
		return 0;
	LIST_EACH (node, &c->dom->workers) {
		int err = cntr_add_worker(c, LIST_ENTRY(node, struct driven, in_domain));

		if (!err)
			continue;
		while ((node = node->prev) != &c->dom->workers)
			cntr_del_worker(c, LIST_ENTRY(node, struct driven, in_domain));
		return err;
	}
	shard_unite(c->dom);
	list_push(&c->dom->joined, &c->in_joined);
	return 0;
}

int cntr_join_opened(struct driven *worker)
{
	LIST_EACH (node, &worker->dom->joined) {
		int err = cntr_add_worker(LIST_ENTRY(node, struct cntr, in_joined), worker);

		if (err) {
			cntr_join_closing(worker);
			return err;
		}
	}
	return 0;
}

void cntr_join_closing(struct driven *worker)
{
	LIST_EACH (node, &worker->dom->joined)
		cntr_del_worker(LIST_ENTRY(node, struct cntr, in_joined), worker);
}
