/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: what the event queue's calls and sleepers look at. */
#include "base/env.h"
#include "conn/conn.h"
#include "link/offload.h"
#include "xfer/worker.h"

#define POLLS 4 /* polls of a peer within the peer timeout */

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
