/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/driven.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/domain.h"
#include "core/wait.h"

static struct driven *driven_at(struct list *node)
{
	return LIST_ENTRY(node, struct driven, in_domain);
}

void driven_init(struct driven *d, struct domain *dom, const struct driven_ops *ops)
{
	d->dom = dom;
	d->ops = ops;
	list_init(&d->in_domain);
}

void driven_enter(struct driven *d)
{
	shard_enter(d->dom, &d->shard);
	list_push(&d->dom->workers, &d->in_domain);
	progress_watch(d->dom, d->fd);
}

void driven_leave(struct driven *d)
{
	shard_leave(&d->shard);
	shard_skip(d->dom, &d->in_domain);
	list_remove(&d->in_domain);
	free(d->waiters);
}

int driven_add_waiter(struct driven *d, struct waiter *w)
{
	struct waiter **waiters;

	waiters = realloc(d->waiters, (d->waiter_count + 1) * sizeof(struct waiter *));
	if (!waiters)
		return -FI_ENOMEM;
	d->waiters = waiters;
	waiters[d->waiter_count++] = w;
	return 0;
}

void driven_del_waiter(struct driven *d, struct waiter *w)
{
	for (unsigned int i = 0; i < d->waiter_count; i++)
		if (d->waiters[i] == w) {
			d->waiters[i] = d->waiters[--d->waiter_count];
			return;
		}
}

void driven_wake(struct driven *d)
{
	for (unsigned int i = 0; i < d->waiter_count; i++)
		wait_notify(d->waiters[i]);
	if (d->dom->cover)
		wait_notify(d->dom->cover);
	progress_rearm(d->dom);
}

/* Workers of other shards are only tried: their threads make progress themselves. */
static bool progress_from(struct driven *d, const struct shard *mine)
{
	struct shard *shard = d->shard.shard;
	bool progressed;

	if (shard == mine)
		return driven_progress(d);
	if (!lock_try(&shard->lock))
		return false;
	progressed = driven_progress(d);
	lock_give(&shard->lock);
	return progressed;
}

bool driven_progress_all(struct domain *dom, struct shard *mine)
{
	bool progressed = false;

	LIST_EACH (node, &dom->workers)
		progressed |= progress_from(driven_at(node), mine);
	return progressed;
}

void driven_progress_other(struct domain *dom, struct shard *mine, const struct driven *d)
{
	struct list *first = mine->next_other ? mine->next_other : dom->workers.next, *node = first;

	if (first == &dom->workers)
		return;
	do {
		struct driven *next = driven_at(node);

		node = node->next == &dom->workers ? dom->workers.next : node->next;
		mine->next_other = node;
		if (next != d) {
			progress_from(next, mine);
			return;
		}
	} while (node != first);
}

bool driven_arm_all(struct domain *dom)
{
	bool quiet = true;

	LIST_EACH (node, &dom->workers)
		quiet &= driven_at(node)->ops->arm(driven_at(node));
	return quiet;
}

bool driven_must_nap_any(const struct domain *dom)
{
	LIST_EACH (node, &dom->workers)
		if (driven_at(node)->ops->must_nap(driven_at(node)))
			return true;
	return false;
}

void driven_watch_all(struct domain *dom)
{
	LIST_EACH (node, &dom->workers)
		progress_watch(dom, driven_at(node)->fd);
}

int driven_quiesce_all(struct domain *dom)
{
	int err = 0;

	if (domain_foreign(dom))
		return 0;
	LIST_EACH (node, &dom->workers)
		driven_at(node)->ops->quiesce_begin(driven_at(node));
	LIST_EACH (node, &dom->workers)
		if (!err)
			err = driven_at(node)->ops->quiesce(driven_at(node));
	return err;
}
