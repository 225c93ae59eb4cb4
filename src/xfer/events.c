/* SPDX-License-Identifier: BSD-2-Clause */
/* What transports tell the worker that has opened them. */
#include "xfer/events.h"

#include "conn/conn.h"
#include "xfer/worker.h"

static void *events_successor(struct opener *o, const void *state)
{
	const struct worker *worker = worker_opener(o);
	unsigned int kind = 0;

	while (kind < LINK_KINDS && worker->conn.via[kind].state != state)
		kind++;
	if (kind == LINK_KINDS)
		return NULL;
	LIST_EACH_OF (struct worker, other, &worker->conn.driven.dom->workers,
		      conn.driven.in_domain) {
		if (other->conn.via[kind].state && other != worker && !other->conn.closing &&
		    other->conn.via[kind].transport == worker->conn.via[kind].transport)
			return other->conn.via[kind].state;
	}
	return NULL;
}

static struct link *link_to(struct opener *o, uint32_t src)
{
	const struct peer *peer = pool_find(&worker_opener(o)->conn.peer_pool, src);

	return peer ? peer->conn.real : NULL;
}

const struct link_events worker_events = {
	.deliver = rx_deliver,
	.hold = rx_hold,
	.release = rx_release,
	.payload_new = rx_payload_new,
	.payload_free = rx_payload_free,
	.deliver_collected = rx_deliver_collected,
	.placement_begin = rxreq_placement_begin,
	.placement_iov = rxreq_placement_iov,
	.placement_end = rxreq_placement_end,
	.copied = rma_copied,
	.rdma_failed = rdma_link_failed,
	.rma_failed = rdma_rma_failed,
	.readable = tx_readable,
	.link = link_to,
	.ready = conn_link_ready,
	.ended = conn_link_ended,
	.rail_wanted = conn_rail_wanted,
	.rail_coming = conn_rail_coming,
	.successor = events_successor,
};

static void offload_connected(struct offload *n, const void *data, size_t len)
{
	struct worker *worker = worker_opener(n->opener);

	worker->conn.cm->connected(&worker->conn, data, len);
}

static void offload_ended(struct offload *n, int err, const void *data, size_t len)
{
	struct worker *worker = worker_opener(n->opener);

	worker->conn.cm->ended(&worker->conn, err, data, len);
}

const struct offload_events worker_offload_events = {offload_connected, offload_ended};
