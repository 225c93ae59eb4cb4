/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations that access the memory of a peer on this host directly. */
#include <rdma/fi_errno.h>

#include "xfer/rma/rma.h"
#include "xfer/rndv/proto.h"
#include "xfer/msg/tx.h"

bool rma_may_go_direct(const struct peer *peer, const struct txreq *req)
{
	return link_has_local(peer->real) && wire_op(req->head) != WIRE_AMO && !req->sent &&
	       !(wire_flags(req->head) & WIRE_COMMIT);
}

/* What completes once it is sent need not wait until it can access the memory of a peer that does not poll. */
bool rma_wants_direct(const struct peer *peer, const struct txreq *req)
{
	bool spell = peer->rma.direct_spell && !tx_completes_sent(req);

	return (proto_is_long(peer->real, req->len) || spell) && rma_may_go_direct(peer, req);
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

static int access_alone(struct link *link, const struct txreq *req)
{
	if (wire_op(req->head) == WIRE_GET)
		return link->local->get(link, req->result, req->result_count, req->remote,
					req->remote_count);
	return link->local->put(link, req->iov, req->count, req->remote, req->remote_count);
}

int rma_go_direct(struct txreq *req)
{
	struct link *link = req->peer->real;
	int ret;

	ret = rma_joint(req);
	if (ret == -FI_EINPROGRESS)
		return 0;
	if (ret < 0 && ret != -FI_EFAULT)
		ret = access_alone(link, req);
	if (ret < 0 && ret != -FI_EFAULT)
		return ret;
	if (req->peer->rma.direct_spell)
		req->peer->rma.direct_spell--;
	if (ret >= 0)
		rma_notify(req, ret > 0);
	tx_req_end(req, ret < 0 ? FI_EFAULT : 0);
	return 0;
}
