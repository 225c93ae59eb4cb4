/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The last progress before connections are closed in good order: what their peers' requests ask for has been done and
 * answered, if the request had come, so that nobody hears of the end instead.
 */
#include "xfer/worker.h"

#define CALLS_MAX 4096 /* progress calls: a peer may send without pause */

/* Does an answer to the peer wait for space? */
static bool worker_last_owes(const struct peer *peer)
{
	return peer->conn.state == PEER_CONNECTED && !contact_expelled(&peer->conn) &&
	       (!list_empty(&peer->tx.controls) || !list_empty(&peer->txreqs[TXREQ_REPLY]));
}

bool worker_serve_last(struct worker *worker)
{
	for (unsigned int i = 0; i < CALLS_MAX; i++)
		if (!worker_progress(worker) && worker_arm(worker))
			break;
	LIST_EACH (node, &worker->busy)
		if (worker_last_owes(LIST_ENTRY(node, struct peer, tx.in_busy)))
			return false;
	return true;
}
