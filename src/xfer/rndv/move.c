/* SPDX-License-Identifier: BSD-2-Clause */
#include "link/upcall.h"
#include "xfer/rndv/move.h"

#include <rdma/fi_errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/conn/conn_own.h"
#include "xfer/worker.h"
#include "xfer/rma/rma.h"
#include "xfer/msg/tx.h"

#define SETTLE_MS 1000

void rx_stalled(struct worker *worker, uint32_t src)
{
	struct peer *peer = pool_find(&worker->peer_pool, src);

	if (!peer || peer->state != PEER_CONNECTED)
		return;
	rxreq_stalled(peer);
	rma_stalled(peer);
}

static bool moves_of(const struct peer *peer, const struct ep *ep)
{
	LIST_EACH (node, &peer->moving) {
		if (LIST_ENTRY(node, struct txreq, link)->ep == ep)
			return true;
	}
	return false;
}

/* A peer whose moves are about one of them, or NULL. */
static struct peer *mover(struct worker *worker, const struct rx *rx, const struct ep *ep)
{
	LIST_EACH (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		if (ep ? moves_of(peer, ep) : rxreq_moves(peer, rx))
			return peer;
	}
	return NULL;
}

static void settle(struct worker *worker, const struct rx *rx, const struct ep *ep)
{
	uint64_t until = clock_coarse_ms() + SETTLE_MS;
	struct peer *peer;

	while (mover(worker, rx, ep) && clock_coarse_ms() < until) {
		worker_progress(worker);
		sched_yield();
	}
	while ((peer = mover(worker, rx, ep))) {
		LOG_WARN(LOG_EP_DATA, "close: a transfer does not end, nor does it go on");
		conn_lose(peer, FI_ETIMEDOUT, NULL);
	}
}

void move_settle_rx(struct worker *worker, const struct rx *rx)
{
	settle(worker, rx, NULL);
}

void move_settle_ep(struct worker *worker, const struct ep *ep)
{
	settle(worker, NULL, ep);
}
