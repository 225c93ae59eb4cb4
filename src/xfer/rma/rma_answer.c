/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to our one-sided operations; performing operations in the place of a target that does not poll (rma_help). */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/log.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Operations that access a peer's memory directly after the peer was found not to poll. */
#define DIRECT_SPELL 32

static void rma_answer_unweigh(struct peer *peer, const struct txreq *req)
{
	peer->rma.results -= req->weight;
	if (!peer->rma.bulk || peer->rma.results > WIRE_RESULTS_MAX)
		return;
	peer->rma.bulk = false;
	peer_refresh(peer);
}

static void rma_answer_retire(struct peer *peer, struct txreq *req, int err, int reason)
{
	if (--peer->rma.awaiting_count == 0)
		list_remove(&peer->rma.in_awaiting);
	if (__builtin_expect(tx_brings(req), 0))
		rma_answer_unweigh(peer, req);
	if (err)
		tx_req_fail(req, err, reason);
	else
		tx_req_end(req, 0);
}

/* Does the operation return bytes? */
static bool expects_result(const struct txreq *req)
{
	return wire_op(req->head) == WIRE_GET ||
	       (wire_op(req->head) == WIRE_AMO && req->amo.form != ATOMIC_BASE);
}

/* Ends all operations before `seq`; one whose result is missing ends with FI_EPROTO. */
static void done_before(struct peer *peer, uint32_t seq)
{
	struct txreq *req;

	while ((req = tx_req_first(peer, TXREQ_RMA)) && (int32_t)(req->seq - seq) < 0)
		rma_answer_retire(peer, req, expects_result(req) ? FI_EPROTO : 0, FI_EPROTO);
}

int rma_result(struct txreq *req, const struct packet *p)
{
	if (p->len != (expects_result(req) ? req->len : 0))
		return FI_EPROTO;
	iov_scatter(req->result, req->result_count, req->got, p->payload, p->len);
	return 0;
}

static void take_result(struct peer *peer, struct txreq *req, const struct packet *p)
{
	if (!expects_result(req) || p->tag != req->got || p->len > req->len - req->got) {
		LOG_PEER(LOG_EP_DATA, "%s: unexpected result of %zu bytes dropped",
			 contact_text(&peer->conn), p->len);
		return;
	}
	iov_scatter(req->result, req->result_count, req->got, p->payload, p->len);
	req->got += p->len;
	if (req->got == req->len)
		rma_answer_retire(peer, req, 0, 0);
}

/* Handles WIRE_FAILED with tag `what`. The rest of a long write that was refused in part is not sent. */
static void take_failure(struct peer *peer, uint32_t seq, uint64_t what)
{
	int err = (int)(what & 0xffff) ? (int)(what & 0xffff) : FI_EIO;
	int reason = (int)(what >> 16 & 0xffff);
	struct txreq *req = tx_req_first(peer, TXREQ_RMA);

	if (req && req->seq == seq) {
		if (!req->ep)
			LOG_PEER(
				LOG_EP_DATA,
				"%s refused an operation that nobody waits for (FI_INJECT_COMPLETE, or its endpoint is closed): %s",
				contact_text(&peer->conn), fi_strerror(err));
		rma_answer_retire(peer, req, err, reason);
		return;
	}
	/* Of a long write that was refused in part. */
	req = tx_req_first(peer, TXREQ_BACKLOG);
	if (req && req->sent && req->seq == seq)
		tx_req_fail(req, err, reason);
}

void rma_answer(struct peer *peer, const struct packet *p)
{
	uint32_t seq = wire_id(p->head);
	struct txreq *req;

	if (peer->rma.seq - seq > INT32_MAX) {
		LOG_PEER(LOG_EP_DATA,
			 "%s: answer to operation %u dropped: the last one sent was %u",
			 contact_text(&peer->conn), seq, peer->rma.seq);
		return;
	}
	if (wire_op(p->head) == WIRE_DONE) {
		done_before(peer, seq + 1);
	} else {
		done_before(peer, seq);
		req = tx_req_first(peer, TXREQ_RMA);
		/* An answer without a request is late: rma_help has performed the operation. */
		if (wire_op(p->head) == WIRE_FAILED)
			take_failure(peer, seq, p->tag);
		else if (req && req->seq == seq)
			take_result(peer, req, p);
	}
	if (!list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
}

/*
 * Does a later operation carry CQ data? Then the notification of this one would come after the later operation's data.
 */
static bool tells_later(const struct txreq *req)
{
	for (struct list *at = req->link.next; at != &req->peer->txreqs[TXREQ_RMA]; at = at->next)
		if (wire_flags(LIST_ENTRY(at, struct txreq, link)->head) & WIRE_CQ)
			return true;
	return false;
}

/*
 * Can the operation be performed in the place of a peer that does not poll? Not if its answer has
 * begun, nor if only the peer can perform it.
 */
static bool may_perform(const struct txreq *req)
{
	bool put = wire_op(req->head) == WIRE_PUT;

	if (wire_op(req->head) == WIRE_AMO || (wire_flags(req->head) & WIRE_CQ && tells_later(req)))
		return false;
	return !req->got && (req->whole || !put) && !(wire_flags(req->head) & WIRE_COMMIT) &&
	       rma_reaches(req);
}

/* Performs the operation. False: wait for the peer, and its answer. */
static bool rma_answer_perform(struct peer *peer, struct txreq *req)
{
	bool write = wire_op(req->head) == WIRE_PUT;
	struct link_copy copy = {.write = write,
				 .at_once = true,
				 .remote = req->remote,
				 .remote_count = req->remote_count};
	int ret;

	if (!may_perform(req))
		return false;
	/* The result for a closed endpoint is not needed, and its memory may be freed. */
	if (!write && req->ep) {
		copy.local = req->result;
		copy.local_count = req->result_count;
	}
	ret = peer->conn.real->memory->perform(peer->conn.real, req->place, &copy);
	if (ret < 0 && ret != -FI_EFAULT)
		return false;
	if (ret >= 0)
		rma_notify(req, ret == LINK_COUNTED);
	peer->rma.direct_spell = DIRECT_SPELL;
	rma_answer_retire(peer, req, ret < 0 ? FI_EFAULT : 0, FI_EFAULT);
	return true;
}

static bool help_peer(struct peer *peer)
{
	struct txreq *req;
	bool any = false;

	for (; (req = tx_req_first(peer, TXREQ_RMA)) && rma_answer_perform(peer, req); any = true)
		;
	if (any && !list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
	return any;
}

bool rma_help(struct worker *worker, bool now)
{
	bool any = false;

	LIST_EACH_SAFE_OF (struct peer, peer, &worker->awaiting, rma.in_awaiting) {
		struct txreq *req = tx_req_first(peer, TXREQ_RMA);

		if (!req || !peer->conn.real || !peer->conn.real->local)
			continue;
		if (now || peer->rma.seen_seq == req->seq)
			any |= help_peer(peer);
		else
			peer->rma.seen_seq = req->seq;
	}
	return any;
}
