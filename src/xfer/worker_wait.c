/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on a worker's descriptor: what arming does, and waking up. */
#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"

void worker_look(struct worker *worker)
{
	idle_end(&worker->conn.driven.idle);
	if (worker->conn.opener.sleepers)
		station_wake(&worker->conn);
}

bool worker_arm(struct worker *worker)
{
	bool quiet = true;

	worker->conn.opener.armed = worker->conn.opener.sleepers = true;
	idle_end(&worker->conn.driven.idle);
	if (!list_empty(&worker->awaiting))
		quiet &= !rma_help(worker, true);
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (worker->conn.via[i].state)
			quiet &= worker->conn.via[i].transport->arm(worker->conn.via[i].state);
	return quiet;
}

bool worker_must_nap(const struct worker *worker)
{
	return !list_empty(&worker->busy) || !list_empty(&worker->awaiting) ||
	       (worker->near.idle && !worker->near.idle(worker->near.state)) ||
	       (worker->coll && worker->groups->waits(worker->coll));
}
