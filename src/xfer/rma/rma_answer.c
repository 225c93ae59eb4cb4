/* SPDX-License-Identifier: BSD-2-Clause */
/* What the target says of one-sided operations; and doing without it where it says nothing. */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/iov.h"
#include "base/log.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* A peer that does not look at its packets is spared this many operations. */
#define DIRECT_SPELL 32

static struct txreq *oldest(struct peer *peer)
{
	return tx_req_first(peer, TXREQ_RMA);
}

static void unweigh(struct peer *peer, const struct txreq *req)
{
	peer->rma.results -= req->weight;
	if (!peer->rma.bulk || peer->rma.results > WIRE_RESULTS_MAX)
		return;
	peer->rma.bulk = false;
	peer_refresh(peer);
}

static void retire(struct peer *peer, struct txreq *req, int err, int reason)
{
	if (--peer->rma.awaiting_count == 0)
		list_remove(&peer->rma.in_awaiting);
	if (__builtin_expect(tx_brings(req), 0))
		unweigh(peer, req);
	if (err)
		tx_req_fail(req, err, reason);
	else
		tx_req_end(req, 0);
}

/* Does it end with bytes that come back? */
static bool expects_result(const struct txreq *req)
{
	return wire_op(req->head) == WIRE_GET ||
	       (wire_op(req->head) == WIRE_AMO && req->amo.form != ATOMIC_BASE);
}

/* All before `seq` are done; one that lacks its result can only be a fault of the peer's. */
static void done_before(struct peer *peer, uint32_t seq)
{
	struct txreq *req;

	while ((req = oldest(peer)) && (int32_t)(req->seq - seq) < 0)
		retire(peer, req, expects_result(req) ? FI_EPROTO : 0, FI_EPROTO);
}

static void scatter(const struct txreq *req, const struct packet *p)
{
	iov_scatter(req->result, req->result_count, req->got, p->payload, p->len);
}

int rma_result(struct txreq *req, const struct packet *p)
{
	if (p->len != (expects_result(req) ? req->len : 0))
		return FI_EPROTO;
	scatter(req, p);
	return 0;
}

static void take_result(struct peer *peer, struct txreq *req, const struct packet *p)
{
	if (!expects_result(req) || p->tag != req->got || p->len > req->len - req->got) {
		LOG_WARN(LOG_EP_DATA, "a result of %zu bytes that was not asked for", p->len);
		return;
	}
	scatter(req, p);
	req->got += p->len;
	if (req->got == req->len)
		retire(peer, req, 0, 0);
}

/* The long write of that number of which not all has been sent, or NULL. */
static struct txreq *unfinished(struct peer *peer, uint32_t seq)
{
	struct txreq *req = tx_req_first(peer, TXREQ_BACKLOG);

	return req && req->sent && req->seq == seq ? req : NULL;
}

/* `what` is the tag of WIRE_FAILED. The rest of a long write, part of which was refused, stays here. */
static void take_failure(struct peer *peer, uint32_t seq, uint64_t what)
{
	int err = (int)(what & 0xffff) ? (int)(what & 0xffff) : FI_EIO;
	int reason = (int)(what >> 16 & 0xffff);
	struct txreq *req = oldest(peer);

	if (req && req->seq == seq) {
		retire(peer, req, err, reason);
		return;
	}
	req = unfinished(peer, seq);
	if (req)
		tx_req_fail(req, err, reason);
}

void rma_answer(struct peer *peer, const struct packet *p)
{
	uint32_t seq = wire_id(p->head);
	struct txreq *req;

	if (peer->rma.seq - seq > INT32_MAX) {
		LOG_WARN(LOG_EP_DATA, "answer to operation %u, the last one was %u", seq,
			 peer->rma.seq);
		return;
	}
	if (wire_op(p->head) == WIRE_DONE) {
		done_before(peer, seq + 1);
	} else {
		done_before(peer, seq);
		req = oldest(peer);
		/* An answer that comes too late is to one we have helped ourselves to. */
		if (wire_op(p->head) == WIRE_FAILED)
			take_failure(peer, seq, p->tag);
		else if (req && req->seq == seq)
			take_result(peer, req, p);
	}
	if (!list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
}

/* What we would tell the peer of this one comes behind all that it has of us: is there such a one? */
static bool tells_later(const struct txreq *req)
{
	for (struct list *at = req->link.next; at != &req->peer->txreqs[TXREQ_RMA]; at = at->next)
		if (wire_flags(LIST_ENTRY(at, struct txreq, link)->head) & WIRE_CQ)
			return true;
	return false;
}

/*
 * The peer sleeps over it: in its place, as it would have done. What it has begun to answer it is not
 * asleep over, and some of it only the peer can do.
 */
static bool reachable(struct link *link, const struct txreq *req)
{
	bool put = wire_op(req->head) == WIRE_PUT;

	if (wire_flags(req->head) & WIRE_CQ && tells_later(req))
		return false;
	return !req->got && (req->whole || !put) && !(wire_flags(req->head) & WIRE_COMMIT) &&
	       link->local->reach(link, req->remote, req->remote_count, put);
}

/* Takes a write out of the peer's hands; its data are in req->bounce then. */
static bool take_back(struct link *link, struct txreq *req)
{
	const char *payload;
	size_t len;

	if (wire_op(req->head) != WIRE_PUT || !reachable(link, req))
		return false;
	if (!req->bounce && req->len)
		req->bounce = malloc(req->len);
	if (!req->bounce && req->len)
		return false;
	payload = link->local->cancel_posted(link, req->place, &len);
	/* The data end the payload, whatever leads it. */
	if (payload && len >= req->len && req->len)
		memcpy(req->bounce, payload + len - req->len, req->len);
	return payload != NULL;
}

static int write_for(struct link *link, const struct txreq *req)
{
	struct iovec iov = {req->bounce, req->len};

	return link->local->put(link, &iov, req->len ? 1 : 0, req->remote, req->remote_count);
}

static void end(struct peer *peer, struct txreq *req, int err, int reason)
{
	peer->rma.direct_spell = DIRECT_SPELL;
	retire(peer, req, err, reason);
}

/* False: it cannot be done from here, the peer has the packet again. */
static bool perform_write(struct peer *peer, struct txreq *req)
{
	int ret = write_for(peer->real, req);
	bool done = ret >= 0 || ret == -FI_EFAULT;

	if (ret >= 0)
		rma_tell(req, ret > 0);
	peer->real->local->release(peer->real, req->place, done);
	if (done)
		end(peer, req, ret < 0 ? FI_EFAULT : 0, FI_EFAULT);
	return done;
}

/*
 * A read must not see what was sent after it, which the peer may be at while we read: what was read
 * counts if the packet could still be taken back afterwards. False: the answer has to come. Else the
 * peer never sees the packet: the memory may be gone by then.
 */
static bool perform_read(struct peer *peer, struct txreq *req)
{
	struct link *link = peer->real;
	int ret = 0;

	if (wire_op(req->head) != WIRE_GET || !reachable(link, req))
		return false;
	/* Of an endpoint that was closed meanwhile nobody wants it any more. */
	if (req->ep)
		ret = link->local->get(link, req->result, req->result_count, req->remote,
				       req->remote_count);
	if ((ret < 0 && ret != -FI_EFAULT) || !link->local->recall_posted(link, req->place))
		return false;
	if (ret >= 0)
		rma_tell(req, ret > 0);
	end(peer, req, ret < 0 ? FI_EFAULT : 0, FI_EFAULT);
	return true;
}

static bool help_peer(struct peer *peer)
{
	struct txreq *req;
	bool any = false;

	for (; (req = oldest(peer)); any = true) {
		if (perform_read(peer, req))
			continue;
		if (!take_back(peer->real, req) || !perform_write(peer, req))
			break;
	}
	if (any && !list_empty(&peer->txreqs[TXREQ_BACKLOG]))
		peer_busy(peer);
	return any;
}

bool rma_help(struct worker *worker, bool now)
{
	bool any = false;

	LIST_EACH_SAFE (node, &worker->awaiting) {
		struct peer *peer = LIST_ENTRY(node, struct peer, rma.in_awaiting);
		struct txreq *req = oldest(peer);

		if (!req || !peer->real || !link_has_local(peer->real))
			continue;
		if (now || peer->rma.seen_seq == req->seq)
			any |= help_peer(peer);
		else
			peer->rma.seen_seq = req->seq;
	}
	return any;
}
