/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/workers.h"

/* Of no worker: is never granted a call. */
static struct link_cursor nowhere;
static struct driven never = {.idle.cursor = &nowhere};

static void set_count(struct workers *p, unsigned int count)
{
	__atomic_store_n(&p->count, count, __ATOMIC_RELAXED);
	p->only = count == 1 ? p->list[0].worker : &never;
}

void workers_init(struct workers *p, struct domain *dom)
{
	shard_enter(dom, &p->shard);
	set_count(p, 0);
}

int workers_add(struct workers *p, struct driven *worker, struct waiter *w)
{
	struct workers_use *list;
	int ret;

	for (unsigned int i = 0; i < p->count; i++) {
		if (p->list[i].worker == worker) {
			p->list[i].uses++;
			return 0;
		}
	}
	list = realloc(p->list, (p->count + 1) * sizeof(*list));
	if (!list)
		return -FI_ENOMEM;
	p->list = list;
	ret = wait_add_fd(w, worker->fd);
	if (!ret)
		ret = driven_add_waiter(worker, w);
	if (ret)
		return ret;
	list[p->count] = (struct workers_use){worker, 1};
	set_count(p, p->count + 1);
	wait_notify(w); /* present sleepers have not armed the worker */
	return 0;
}

static void workers_drop(struct workers *p, unsigned int i, struct waiter *w)
{
	wait_del_fd(w, p->list[i].worker->fd);
	driven_del_waiter(p->list[i].worker, w);
	p->list[i] = p->list[p->count - 1];
	set_count(p, p->count - 1);
}

void workers_del(struct workers *p, struct driven *worker, struct waiter *w)
{
	for (unsigned int i = 0; i < p->count; i++) {
		if (p->list[i].worker != worker)
			continue;
		if (--p->list[i].uses == 0)
			workers_drop(p, i, w);
		return;
	}
}

void workers_leave(struct workers *p, struct waiter *w)
{
	while (p->count)
		workers_drop(p, 0, w);
}

void workers_fini(struct workers *p)
{
	free(p->list);
	p->list = NULL;
	set_count(p, 0);
}

static __attribute__((noinline)) void progress_own(struct workers *p)
{
	for (unsigned int i = 0; i < p->count; i++)
		if (!idle_pass(&p->list[i].worker->idle))
			driven_due(p->list[i].worker);
}

/* Are the domain's other workers due? The next time is so many calls from now. */
static bool others_due(const struct domain *dom, struct shard *shard)
{
	if (shard->calls_left)
		return false;
	shard->calls_left = dom->rarely;
	shard->calls_then += dom->rarely;
	return true;
}

static __attribute__((noinline)) void progress_others(struct domain *dom, struct workers *p)
{
	if (!(shard_calls(p->shard.shard) % WORKERS_RARELY) || domain_defers(dom)) {
		driven_progress_all(dom, p->shard.shard);
		return;
	}
	driven_progress_other(dom, p->shard.shard, p->count ? p->list[0].worker : NULL);
	progress_own(p);
}

void workers_progress_all(struct domain *dom, struct workers *p)
{
	if (__builtin_expect(others_due(dom, p->shard.shard) || domain_defers(dom), 0))
		progress_others(dom, p);
	else
		progress_own(p);
}

void workers_progress_locked(struct domain *dom, struct workers *p)
{
	switch (workers_look(p)) {
	case WORKERS_NONE:
		break;
	case WORKERS_NEWS:
		driven_due(p->list[0].worker);
		break;
	case WORKERS_ALL:
		workers_progress_all(dom, p);
	}
}

void workers_progress_whole(struct domain *dom, struct workers *p)
{
	for (unsigned int i = 0; i < p->count; i++)
		idle_expect_all(&p->list[i].worker->idle);
	workers_progress_locked(dom, p);
}

unsigned int workers_served(const struct workers *p)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < p->count; i++) {
		const struct driven *worker = p->list[i].worker;

		sum += worker->served + (unsigned int)worker->idle.cursor->next;
	}
	return sum;
}

void workers_progress_near(struct workers *p)
{
	for (unsigned int i = 0; i < p->count; i++) {
		struct driven *worker = p->list[i].worker;

		if (link_cursor_came(worker->idle.cursor))
			worker->ops->near(worker);
	}
}

void workers_progress_waiting(struct domain *dom, struct workers *p, const struct waiter *w)
{
	if (!dom->thread) {
		workers_progress_locked(dom, p);
		return;
	}
	p->shard.shard->calls_left--;
	(void)others_due(dom, p->shard.shard);
	if (dom->cover == w)
		driven_progress_all(dom, p->shard.shard);
	else /* the core may be another thread's for long before the next poll */
		progress_others(dom, p);
}

unsigned int workers_progress(struct domain *dom, struct workers *p)
{
	bool locked = !dom->unlocked;
	unsigned int parts;

	if (locked)
		shard_take(&p->shard);
	else
		shard_enter_alone(&p->shard, "a counter's progress");
	parts = p->shard.shard->parts;
	workers_progress_locked(dom, p);
	parts = p->shard.shard->parts - parts;
	if (locked)
		shard_give(&p->shard);
	else
		shard_leave_alone(&p->shard);
	return parts;
}

void workers_run_due(struct domain *dom)
{
	bool locked = !dom->unlocked;

	if (locked)
		domain_lock(dom);
	dom->calls->run_due(dom);
	if (locked)
		domain_unlock(dom);
}

/* Returns whether deferred work may depend on a worker whose descriptor does not wake sleepers on `p`. */
static bool must_poll_others(const struct domain *dom, const struct workers *p)
{
	unsigned int count = 0;

	if (!domain_defers(dom) || dom->thread)
		return false;
	LIST_EACH (node, &dom->workers)
		count++;
	return count > p->count;
}

/*
 * Returns whether `w` covers all workers of the domain; makes it do so if no waiter does. With a
 * thread of progress there is the main shard alone. Shard locked.
 */
static bool workers_covers(struct domain *dom, struct waiter *w)
{
	if (!w || !dom->thread || (dom->cover && dom->cover != w))
		return false;
	dom->cover = w;
	__atomic_store_n(&w->also, progress_fd(dom), __ATOMIC_RELAXED);
	return true;
}

void workers_uncover(struct domain *dom, struct waiter *w)
{
	if (__atomic_load_n(&w->also, __ATOMIC_RELAXED) < 0)
		return;
	domain_lock(dom);
	__atomic_store_n(&w->also, -1, __ATOMIC_RELAXED);
	if (dom->cover == w)
		dom->cover = NULL;
	domain_unlock(dom);
}

/* Arms the queue's workers; *nap as in workers_arm. Shard locked. */
static bool arm_own(struct workers *p, int *nap)
{
	bool quiet = true;

	for (unsigned int i = 0; i < p->count; i++) {
		struct driven *worker = p->list[i].worker;

		quiet &= worker->ops->arm(worker);
		if (worker->ops->must_nap(worker))
			*nap = WORKERS_NAP_MS;
	}
	return quiet;
}

static bool arm_all(struct domain *dom, int *nap)
{
	bool quiet = driven_arm_all(dom);

	if (driven_must_nap_any(dom))
		*nap = WORKERS_NAP_MS;
	return quiet;
}

bool workers_arm(struct domain *dom, struct workers *p, struct waiter *w, int *nap)
{
	bool quiet;

	*nap = 0;
	shard_take(&p->shard);
	quiet = workers_covers(dom, w) ? arm_all(dom, nap) : arm_own(p, nap);
	if (domain_due(dom) || must_poll_others(dom, p))
		*nap = WORKERS_NAP_MS;
	shard_give(&p->shard);
	return quiet;
}
