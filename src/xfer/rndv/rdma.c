/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA operations that devices perform between our memory and a peer's: those that fail, those under way at a close. */
#include "xfer/events.h"

#include <rdma/fi_errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/rndv/rxreq.h"
#include "conn/conn.h"
#include "xfer/worker.h"
#include "xfer/rma/rma.h"
#include "xfer/msg/tx.h"

#define QUIESCE_MS 1000 /* to wait before peers are disconnected */

static struct peer *rdma_peer(struct opener *o, uint32_t src)
{
	struct peer *peer = pool_find(&worker_opener(o)->conn.peer_pool, src);

	return peer && peer->conn.state == PEER_CONNECTED ? peer : NULL;
}

void rdma_link_failed(struct opener *o, uint32_t src)
{
	struct peer *peer = rdma_peer(o, src);

	if (peer) {
		rxreq_rdma_failed(peer);
		rma_rdma_failed(peer);
	}
}

void rdma_rma_failed(struct opener *o, uint32_t src)
{
	struct peer *peer = rdma_peer(o, src);

	if (peer)
		rma_rdma_failed(peer);
}

/* Returns a peer with outstanding RDMA operations of the context or endpoint, or NULL. */
static struct peer *rdma_mover(struct worker *worker, const struct rx *rx, const struct ep *ep)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		if (!ep && rxreq_rdma(peer, rx))
			return peer;
		LIST_EACH_OF (struct txreq, req, &peer->txreqs[TXREQ_RDMA], link) {
			if (ep && req->ep == ep)
				return peer;
		}
	}
	return NULL;
}

void rdma_quiesce(struct worker *worker, const struct rx *rx, const struct ep *ep)
{
	uint64_t until = clock_coarse_ms() + QUIESCE_MS;
	struct peer *peer;

	while ((peer = rdma_mover(worker, rx, ep))) {
		if (clock_coarse_ms() < until) {
			driven_progress(&worker->conn.driven);
			sched_yield();
			continue;
		}
		LOG_WARN(
			LOG_EP_DATA,
			"close: an RDMA operation with %s has not ended within %d ms: disconnecting it",
			contact_text(&peer->conn), (int)QUIESCE_MS);
		conn_fail(&peer->conn, FI_ETIMEDOUT, NULL);
	}
}
