/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on a worker's descriptor: who may sleep, what arming does, and waking up. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "core/wait.h"
#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/rndv/spec.h"
#include "xfer/worker.h"

int worker_add_waiter(struct worker *worker, struct waiter *w)
{
	struct waiter **waiters;

	waiters = realloc(worker->waiters, (worker->waiter_count + 1) * sizeof(struct waiter *));
	if (!waiters)
		return -FI_ENOMEM;
	worker->waiters = waiters;
	waiters[worker->waiter_count++] = w;
	return 0;
}

void worker_del_waiter(struct worker *worker, struct waiter *w)
{
	for (unsigned int i = 0; i < worker->waiter_count; i++)
		if (worker->waiters[i] == w) {
			worker->waiters[i] = worker->waiters[--worker->waiter_count];
			return;
		}
}

/*
 * The calling thread may have read the byte that was to wake a sleeper. The sleeper must arm again,
 * or it would miss the next event.
 */
__attribute__((noinline, cold)) void worker_wake(struct worker *worker)
{
	worker->sleepers = false;
	for (unsigned int i = 0; i < worker->waiter_count; i++)
		wait_notify(worker->waiters[i]);
	if (worker->dom->cover)
		wait_notify(worker->dom->cover);
	progress_rearm(worker->dom);
}

bool worker_arm(struct worker *worker)
{
	bool quiet;

	worker->armed = worker->sleepers = true;
	idle_end(&worker->idle);
	quiet = !spec_release_idle(worker);
	tx_release_idle(worker);
	if (!list_empty(&worker->awaiting))
		quiet &= !rma_help(worker, true);
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->via[i].state)
			quiet &= worker->via[i].transport->arm(worker->via[i].state);
	return quiet;
}

bool worker_waits_for_room(const struct worker *worker)
{
	return !list_empty(&worker->busy) || !list_empty(&worker->awaiting) || worker->joint.peer ||
	       (worker->coll && coll_waits(worker->coll));
}
