/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeping on a worker's descriptor: what arming does, and waking up; what event queues of FI_EP_MSG look at. */
#include "base/env.h"
#include "link/offload.h"
#include "conn/conn.h"
#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"

#define POLLS 4 /* polls of a peer within the peer timeout */

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

/* ---- Connected endpoints ----------------------------------------------------------------------- */

int cm_news_fd(const struct worker *worker)
{
	return worker->offload ? worker->offload->ops->fd(worker->offload) : -1;
}

int cm_sock(const struct worker *worker)
{
	return worker->conn.cm_sock;
}

int cm_poll_ms(const struct worker *worker)
{
	int ms = env_get()->peer_timeout;

	if (worker->offload || contact_inside(conn_peer(&worker->conn)) || ms <= 0)
		return 0;
	return ms > POLLS ? ms / POLLS : 1;
}

/* Arming lets the transport check its peers. */
void cm_poll(struct worker *worker)
{
	worker_arm(worker);
	cm_progress(worker);
}

void cm_progress(struct worker *worker)
{
	worker->conn.opener.armed = worker->awaited = true;
	driven_progress(&worker->conn.driven);
}
