/* SPDX-License-Identifier: BSD-2-Clause */
/* What the target says of one-sided operations; and doing without it where it says nothing. */
#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "xfer/rma.h"
#include "xfer/port.h"
#include "xfer/tx.h"

/* A peer that does not look at its packets is spared this many operations. */
#define DIRECT_SPELL 32
#define PUT_TRIES    100

static struct txreq *oldest(struct peer *peer)
{
	return list_empty(&peer->awaiting) ? NULL
					   : LIST_ENTRY(peer->awaiting.next, struct txreq, link);
}

static void retire(struct peer *peer, struct txreq *req, int err, int reason)
{
	list_remove(&req->link);
	if (--peer->awaiting_count == 0) {
		list_remove(&peer->in_awaiting);
		peer->bulk = false;
	}
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

static size_t scatter(const struct txreq *req, const char *from, size_t len)
{
	size_t skip = req->got, done = 0;

	for (size_t i = 0; i < req->result_count && done < len; i++) {
		size_t room = req->result[i].iov_len;

		if (skip >= room) {
			skip -= room;
			continue;
		}
		room -= skip;
		if (room > len - done)
			room = len - done;
		memcpy((char *)req->result[i].iov_base + skip, from + done, room);
		done += room;
		skip = 0;
	}
	return done;
}

int rma_result(struct txreq *req, const struct packet *p)
{
	if (p->len != (expects_result(req) ? req->len : 0))
		return FI_EPROTO;
	scatter(req, p->payload, p->len);
	return 0;
}

static void take_result(struct peer *peer, struct txreq *req, const struct packet *p)
{
	if (!expects_result(req) || p->tag != req->got || p->len > req->len - req->got) {
		LOG_WARN(LOG_EP_DATA, "a result of %zu bytes that was not asked for", p->len);
		return;
	}
	scatter(req, p->payload, p->len);
	req->got += p->len;
	if (req->got == req->len)
		retire(peer, req, 0, 0);
}

void rma_answer(struct port *port, struct peer *peer, const struct packet *p)
{
	uint32_t seq = wire_id(p->head);
	struct txreq *req;

	if (wire_op(p->head) == WIRE_DONE) {
		done_before(peer, seq + 1);
	} else {
		done_before(peer, seq);
		req = oldest(peer);
		/* An answer that comes too late is to one we have helped ourselves to. */
		if (req && req->seq == seq && wire_op(p->head) == WIRE_RESULT)
			take_result(peer, req, p);
		else if (req && req->seq == seq)
			retire(peer, req, (int)(p->tag & 0xffff) ? (int)(p->tag & 0xffff) : FI_EIO,
			       (int)(p->tag >> 16 & 0xffff));
	}
	if (!list_empty(&peer->backlog))
		peer_busy(peer, &port->busy);
}

/* The peer sleeps over it: in its place, as it would have done. 0, or negative: cannot be done. */
static int do_get(struct link *link, const struct txreq *req)
{
	/* Of an endpoint that was closed meanwhile nobody wants it any more. */
	return req->ep ? link->ops->get(link, req->result, req->result_count, req->remote,
					req->remote_count)
		       : 0;
}

/*
 * What is taken back must be written now. The way there can be crowded for a moment, or be closing;
 * and what was to be reached may just have been closed.
 */
static int put_withdrawn(struct link *link, const struct iovec *iov, const struct txreq *req)
{
	int ret = -FI_EAGAIN;

	for (int tries = 0; tries < PUT_TRIES && ret == -FI_EAGAIN; tries++)
		ret = link->ops->put(link, iov, iov->iov_len ? 1 : 0, req->remote,
				     req->remote_count);
	switch (ret) {
	case -FI_EAGAIN:
		return -FI_ESHUTDOWN;
	case -FI_ENOKEY:
		return -FI_EACCES;
	default:
		return ret;
	}
}

static int do_put(struct link *link, const struct txreq *req)
{
	struct iovec iov;
	const char *payload;
	size_t len;

	payload = link->ops->withdraw(link, req->place, &len);
	if (!payload)
		return -FI_EAGAIN;
	if (len < req->len)
		return -FI_EPROTO; /* it was written to by somebody else */
	/* The data end the payload, whatever leads it. */
	iov = (struct iovec){(void *)(uintptr_t)(payload + len - req->len), req->len};
	return put_withdrawn(link, &iov, req);
}

/* Only what nobody at the peer has to take part in. */
static bool helpable(struct link *link, const struct txreq *req)
{
	bool put = wire_op(req->head) == WIRE_PUT && req->whole,
	     get = wire_op(req->head) == WIRE_GET && !req->got;

	return (put || get) && !(wire_flags(req->head) & WIRE_COMMIT) &&
	       link->ops->reach(link, req->remote, req->remote_count, put);
}

static bool help_peer(struct peer *peer)
{
	struct link *link = peer->real;
	struct txreq *req;
	bool any = false;

	while ((req = oldest(peer)) && helpable(link, req)) {
		bool put = wire_op(req->head) == WIRE_PUT;
		int ret = put ? do_put(link, req) : do_get(link, req);

		if (ret == -FI_EAGAIN || (!put && ret < 0 && ret != -FI_EFAULT))
			break;
		peer->direct_spell = DIRECT_SPELL;
		/* The packet of a read is still there: the peer counts it when it gets to it. */
		if (put && ret >= 0)
			rma_tell(req, ret > 0);
		retire(peer, req, ret < 0 ? -ret : 0, ret < 0 ? -ret : 0);
		any = true;
	}
	if (any && !list_empty(&peer->backlog))
		peer_busy(peer, &peer->port->busy);
	return any;
}

bool rma_help(struct port *port, bool now)
{
	bool any = false;

	LIST_EACH_SAFE (node, &port->awaiting) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_awaiting);
		struct txreq *req = oldest(peer);

		if (!req || !peer->real || !peer->real->ops->withdraw)
			continue;
		if (now || peer->seen_seq == req->seq)
			any |= help_peer(peer);
		else
			peer->seen_seq = req->seq;
	}
	return any;
}
