/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/events.h"
#include "xfer/rndv/rdma.h"

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

void rdma_link_failed(struct opener *o, uint32_t src)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	if (!peer || peer->conn.state != PEER_CONNECTED)
		return;
	rxreq_rdma_failed(peer);
	rma_rdma_failed(peer);
}

void rdma_rma_failed(struct opener *o, uint32_t src)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->conn.peer_pool, src);

	if (peer && peer->conn.state == PEER_CONNECTED)
		rma_rdma_failed(peer);
}

static bool moves_of(const struct peer *peer, const struct ep *ep)
{
	LIST_EACH (node, &peer->txreqs[TXREQ_RDMA]) {
		if (LIST_ENTRY(node, struct txreq, link)->ep == ep)
			return true;
	}
	return false;
}

/* Returns a peer with outstanding RDMA operations of the context or endpoint, or NULL. */
static struct peer *rdma_mover(struct worker *worker, const struct rx *rx, const struct ep *ep)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		if (ep ? moves_of(peer, ep) : rxreq_rdma(peer, rx))
			return peer;
	}
	return NULL;
}

static void rdma_quiesce(struct worker *worker, const struct rx *rx, const struct ep *ep)
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

void rdma_quiesce_rx(struct worker *worker, const struct rx *rx)
{
	rdma_quiesce(worker, rx, NULL);
}

void rdma_quiesce_ep(struct worker *worker, const struct ep *ep)
{
	rdma_quiesce(worker, NULL, ep);
}
