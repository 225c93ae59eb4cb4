/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on a worker's descriptor: what arming does, and waking up. */
#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"

void worker_look(struct worker *worker)
{
	idle_end(&worker->driven.idle);
	if (worker->opener.sleepers)
		worker_wake(worker);
}

bool worker_arm(struct worker *worker)
{
	bool quiet = true;

	worker->opener.armed = worker->opener.sleepers = true;
	idle_end(&worker->driven.idle);
	if (!list_empty(&worker->awaiting))
		quiet &= !rma_help(worker, true);
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->via[i].state)
			quiet &= worker->via[i].transport->arm(worker->via[i].state);
	return quiet;
}

bool worker_must_nap(const struct worker *worker)
{
	return !list_empty(&worker->busy) || !list_empty(&worker->awaiting) ||
	       (worker->near.idle && !worker->near.idle(worker->near.state)) ||
	       (worker->coll && worker->groups->waits(worker->coll));
}
