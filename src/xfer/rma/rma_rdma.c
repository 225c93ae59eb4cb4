/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided operations that devices perform, or the peer in part, and those that access the memory of a peer on this
 * host directly. While one is under way for a peer, only further ones of this kind are begun, so that no later
 * operation overtakes it. Operations that the device refuses are sent in packets, whose answers give the reason.
 */
#include <rdma/fi_errno.h>

#include "core/mr_table.h"
#include "xfer/events.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/rma/rma.h"
#include "xfer/rndv/way.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

#define OF_REQUEST                                                                                 \
	(UINT64_C(1) << 32) /* in link_copy.id: of a transmit request; else of a receive request */

static bool rma_rdma_suits(const struct peer *peer, const struct txreq *req)
{
	const struct link *link = peer->conn.real;

	if (!link->reaches || req->packets || req->sent || !req->len)
		return false;
	if (wire_op(req->head) == WIRE_AMO || wire_flags(req->head) & WIRE_COMMIT ||
	    req->flags & FI_DELIVERY_COMPLETE)
		return false;
	/* The notification with the CQ data must wait until the operation is done, so a packet is quicker. */
	if (wire_flags(req->head) & WIRE_CQ && !way_is_long(link, req->len))
		return false;
	/* Does the peer's device know the regions of all ranges? */
	for (size_t i = 0; i < req->remote_count; i++)
		if (!mr_key_in_nic(req->remote[i].key))
			return false;
	return true;
}

bool rma_rdma_waits(const struct peer *peer, const struct txreq *req)
{
	if (peer->rma.rdma_posted_count)
		return !rma_rdma_suits(peer, req);
	return !list_empty(&peer->txreqs[TXREQ_RMA]) && rma_rdma_suits(peer, req);
}

/*
 * Starts the link's copy for the operation; `at_once`: as in link_copy. Returns its result; after LINK_UNDER_WAY the request is
 * in TXREQ_RDMA.
 */
static int rma_begin(struct txreq *req, bool at_once)
{
	struct link *link = req->peer->conn.real;
	bool write = wire_op(req->head) == WIRE_PUT;
	struct link_copy copy = {.id = OF_REQUEST | pool_id(req),
				 .write = write,
				 .at_once = at_once,
				 .now = req->flags & FI_INJECT && !req->work,
				 .local = write ? req->iov : req->result,
				 .local_count = write ? req->count : req->result_count,
				 .remote = req->remote,
				 .remote_count = req->remote_count};
	int ret = link->memory->copy(link, &copy);

	if (ret == LINK_UNDER_WAY) {
		tx_req_move(req, TXREQ_RDMA);
		req->peer->rma.rdma_posted_count++;
		peer_refresh(req->peer);
	}
	return ret;
}

/* Gives the operation to the device. 0: the request is in TXREQ_RDMA; or a negative error. */
static int rma_rdma_begin(struct txreq *req)
{
	int ret = 0;

	if (req->flags & FI_INJECT && !req->bounce)
		ret = tx_req_bounce(req, req->iov, req->count);
	if (!ret)
		ret = rma_begin(req, false);
	if (ret == LINK_UNDER_WAY)
		return 0;
	req->packets = true;
	return ret;
}

int rma_rdma(struct txreq *req)
{
	struct peer *peer = req->peer;

	if (list_empty(&peer->txreqs[TXREQ_RMA]) && rma_rdma_suits(peer, req) &&
	    !rma_rdma_begin(req))
		return 0;
	return peer->rma.rdma_posted_count ? -FI_EAGAIN : 1;
}

static void rma_rdma_leave(struct peer *peer)
{
	if (--peer->rma.rdma_posted_count)
		return;
	peer_refresh(peer);
	if (!list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
}

void rma_copied(struct opener *o, uint64_t id, int ret)
{
	struct worker *worker = worker_opener(o);
	struct txreq *req;
	struct peer *peer;

	if (!(id & OF_REQUEST)) {
		rxreq_copied(worker, (uint32_t)id, ret);
		return;
	}
	req = pool_find(&worker->tx_pool, (uint32_t)id);
	if (!req || req->state != TXREQ_RDMA)
		return;
	peer = req->peer;
	if (ret >= 0)
		rma_notify(req, ret == LINK_COUNTED);
	if (ret < 0 && ret != -FI_EFAULT)
		tx_req_requeue(req);
	else
		tx_req_end(req, ret < 0 ? FI_EFAULT : 0);
	rma_rdma_leave(peer);
}

void rma_rdma_failed(struct peer *peer)
{
	while (!list_empty(&peer->txreqs[TXREQ_RDMA])) {
		struct txreq *req = LIST_ENTRY(peer->txreqs[TXREQ_RDMA].prev, struct txreq, link);

		req->packets = true;
		if (!req->ep && !(req->flags & FI_INJECT))
			tx_req_end(req, FI_ECANCELED); /* its buffers may be freed */
		else
			tx_req_requeue(req);
	}
	peer->rma.rdma_posted_count = 0;
	peer_refresh(peer);
	if (!list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
}

/* ---- Directly, in the memory of a peer on this host ---------------------------------------------- */

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
