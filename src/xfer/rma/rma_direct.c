/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations that access the memory of a peer on this host directly. */
#include <rdma/fi_errno.h>

#include "xfer/rma/rma.h"
#include "xfer/rndv/way.h"
#include "xfer/msg/tx.h"
#include "xfer/worker.h"

bool rma_may_go_direct(const struct peer *peer, const struct txreq *req)
{
	return peer->conn.real->local && wire_op(req->head) != WIRE_AMO && !req->sent &&
	       !(wire_flags(req->head) & WIRE_COMMIT);
}

/* What completes once it is sent need not wait until it can access the memory of a peer that does not poll. */
bool rma_wants_direct(const struct peer *peer, const struct txreq *req)
{
	bool spell = peer->rma.direct_spell && !tx_completes_sent(req);

	return (way_is_long(peer->conn.real, req->len) || spell) && rma_may_go_direct(peer, req);
}

bool rma_reaches(const struct txreq *req)
{
	const struct link_copy look = {.write = wire_op(req->head) == WIRE_PUT,
				       .at_once = true,
				       .look = true,
				       .remote = req->remote,
				       .remote_count = req->remote_count};
	struct link *link = req->peer->conn.real;

	return link->memory->copy(link, &look) == LINK_DONE;
}

void rma_notify(const struct txreq *req, bool counts)
{
	uint64_t flags = (wire_op(req->head) == WIRE_GET ? WIRE_LONG : 0) |
			 (wire_flags(req->head) & WIRE_CQ ? WIRE_DATA : 0);

	if (!counts && !(wire_flags(req->head) & WIRE_CQ))
		return;
	tx_control_data(
		req->peer,
		&(struct packet){.head = WIRE_HEAD(WIRE_NOTIFY, flags, wire_rx(req->head), 0),
				 .data = req->data,
				 .payload = req->remote,
				 .len = req->remote_count * sizeof(req->remote[0])});
}

int rma_go_direct(struct txreq *req)
{
	struct peer *peer = req->peer;
	/* What is injected and not ours ends within the call. */
	int ret = rma_begin(req, peer->conn.end || (req->flags & FI_INJECT && !req->bounce));

	if (ret == LINK_UNDER_WAY) {
		worker_look(peer_worker(peer));
		return 0;
	}
	if (ret < 0 && ret != -FI_EFAULT)
		return ret;
	if (peer->rma.direct_spell)
		peer->rma.direct_spell--;
	if (ret >= 0)
		rma_notify(req, ret == LINK_COUNTED);
	tx_req_end(req, ret < 0 ? FI_EFAULT : 0);
	return 0;
}
