/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/move.h"

#include <rdma/fi_errno.h>
#include <sched.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/arrival.h"
#include "xfer/conn_own.h"
#include "xfer/port.h"

#define SETTLE_MS 1000

void rx_stalled(struct port *port, uint32_t src)
{
	struct peer *peer = pool_find(&port->peer_pool, src);

	if (peer && peer->state == PEER_CONNECTED)
		arrival_stalled(peer);
}

/* A peer whose moves are about the context, or NULL. */
static struct peer *mover(struct port *port, const struct rx *rx)
{
	LIST_EACH (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		if (arrival_moves(peer, rx))
			return peer;
	}
	return NULL;
}

void move_settle(struct port *port, const struct rx *rx)
{
	uint64_t until = clock_coarse_ms() + SETTLE_MS;
	struct peer *peer;

	while (mover(port, rx) && clock_coarse_ms() < until) {
		port_turn(port);
		sched_yield();
	}
	while ((peer = mover(port, rx))) {
		LOG_WARN(LOG_EP_DATA, "close: a transfer does not end, nor does it go on");
		conn_lose(peer, FI_ETIMEDOUT, NULL);
	}
}
