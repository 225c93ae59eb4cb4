/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done with all workers of a domain. */
#include "core/domain.h"
#include "xfer/worker.h"

/* Workers of other shards are only tried: their threads make progress themselves. */
static bool progress_from(struct worker *worker, const struct shard *mine)
{
	struct shard *shard = worker->shard.shard;
	bool progressed;

	if (shard == mine)
		return worker_progress(worker);
	if (!lock_try(&shard->lock))
		return false;
	progressed = worker_progress(worker);
	lock_give(&shard->lock);
	return progressed;
}

bool xfer_progress(struct domain *dom, struct shard *mine)
{
	bool progressed = false;

	LIST_EACH (node, &dom->workers)
		progressed |= progress_from(LIST_ENTRY(node, struct worker, in_domain), mine);
	return progressed;
}

void xfer_progress_other(struct domain *dom, struct shard *mine, const struct worker *worker)
{
	struct list *first = mine->next_other ? mine->next_other : dom->workers.next, *node = first;

	if (first == &dom->workers)
		return;
	do {
		struct worker *next = LIST_ENTRY(node, struct worker, in_domain);

		node = node->next == &dom->workers ? dom->workers.next : node->next;
		mine->next_other = node;
		if (next != worker) {
			progress_from(next, mine);
			return;
		}
	} while (node != first);
}

bool xfer_arm(struct domain *dom)
{
	bool quiet = true;

	LIST_EACH (node, &dom->workers)
		quiet &= worker_arm(LIST_ENTRY(node, struct worker, in_domain));
	return quiet;
}

bool xfer_waits_for_room(struct domain *dom)
{
	LIST_EACH (node, &dom->workers)
		if (worker_waits_for_room(LIST_ENTRY(node, struct worker, in_domain)))
			return true;
	return false;
}

void xfer_watch_all(struct domain *dom)
{
	LIST_EACH (node, &dom->workers)
		progress_watch(dom, LIST_ENTRY(node, struct worker, in_domain)->epfd);
}
