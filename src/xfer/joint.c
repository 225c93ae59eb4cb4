/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/joint.h"

#include <rdma/fi_errno.h>
#include <rdma/fabric.h>

#include "base/log.h"
#include "base/once.h"
#include "core/mr.h"
#include "link/wire.h"
#include "xfer/msg/tx.h"
#include "xfer/rma/rma.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/worker.h"

int joint_begin(struct peer *peer, const struct link_joint *copy, uint64_t id)
{
	struct worker *worker = peer->worker;
	int ret = worker->joint.peer || peer->conn.end ? -FI_EAGAIN
						       : peer->real->local->joint(peer->real, copy);

	if (ret == -FI_EINPROGRESS) {
		worker->joint.peer = peer;
		worker->joint.id = id;
		idle_end(&worker->driven.idle);
		/* The peer's last chunk sends no packet: a sleeper has to look. */
		if (worker->opener.sleepers)
			worker_wake(worker);
	}
	return ret;
}

void joint_progress(struct worker *worker)
{
	struct peer *peer = worker->joint.peer;
	struct link *link = peer->real;
	uint64_t id = worker->joint.id;
	int ret = link->local->joint_ended(link);

	if (ret == -FI_EINPROGRESS)
		return;
	worker->joint.peer = NULL;
	if (id & JOINT_OF_TXREQ)
		rma_joint_ended(worker, (uint32_t)id, ret);
	else
		rxreq_joint_ended(worker, (uint32_t)id, ret);
	rxreq_release(peer);
}

bool joint_receives(const struct peer *peer)
{
	const struct worker *worker = peer->worker;

	return worker->joint.peer == peer && !(worker->joint.id & JOINT_OF_TXREQ);
}

void joint_abandon(struct peer *peer)
{
	struct worker *worker = peer->worker;

	if (worker->joint.peer != peer)
		return;
	peer->real->local->joint_abandon(peer->real);
	worker->joint.peer = NULL;
}

/* ---- The peer's copies ----------------------------------------------------------------------- */

/* Does a message that we send to the peer consist of these bytes, among others? */
static bool sends(const struct list *txreqs, uint64_t at, size_t len)
{
	LIST_EACH (node, txreqs) {
		const struct txreq *req = LIST_ENTRY(node, struct txreq, link);
		uint64_t base = (uintptr_t)req->iov[0].iov_base;

		if ((req->state == TXREQ_RTS || req->state == TXREQ_SPEC) && req->count == 1 &&
		    at >= base && at - base <= req->iov[0].iov_len &&
		    len <= req->iov[0].iov_len - (at - base))
			return true;
	}
	return false;
}

/* Returns our memory of the copy, or NULL: the peer may not access it. */
static void *memory_of(const struct peer *peer, const struct packet *p, size_t len)
{
	uint64_t access = wire_flags(p->head) & WIRE_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	const struct mr *mr;

	if (!(wire_flags(p->head) & WIRE_REGION))
		return access == FI_REMOTE_READ && (sends(&peer->txreqs[TXREQ_ACK], p->tag, len) ||
						    sends(&peer->txreqs[TXREQ_SPEC], p->tag, len))
			       ? (void *)(uintptr_t)p->tag
			       : NULL;
	mr = mr_granted(peer->worker->driven.dom, p->data, p->tag, len, access);
	return mr && mr->iov_count == 1 ? (char *)mr->iov->iov_base + (p->tag - mr->offset) : NULL;
}

/* What has ended meanwhile is no error: the peer goes on without us. */
void joint_help(struct peer *peer, const struct packet *p)
{
	struct wire_joint w;
	struct link_help help;

	if (p->len != sizeof(w) || !(wire_flags(p->head) & WIRE_DATA) || !peer->real) {
		LOG_INFO(LOG_EP_DATA, "offer of a joint copy of %zu bytes dropped", p->len);
		return;
	}
	once_copy(&w, p->payload, sizeof(w));
	help = (struct link_help){
		.copy = {.local = memory_of(peer, p, w.len),
			 .remote = w.at,
			 .len = w.len,
			 .write = wire_flags(p->head) & WIRE_READ},
		.seq = w.seq,
		.chunk = w.chunk,
	};
	if (help.copy.local)
		peer->real->local->help(peer->real, &help);
}
