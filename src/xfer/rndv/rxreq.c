/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages received in fragments, streamed after CTS or speculative, and direct placement of
 * payloads by tcp.
 */
#include "xfer/events.h"
#include "xfer/rndv/rxreq.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/iov.h"
#include "base/log.h"
#include "link/wire.h"
#include "xfer/joint.h"
#include "xfer/rndv/rdma.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/spec.h"

struct rxreq *rxreq_begin(struct rx *rx, struct recv *r, const struct message *m, size_t capacity,
			  void *base)
{
	struct rxreq *a = pool_get(&m->peer->worker->rxreq_pool);

	if (!a)
		return NULL;
	memset(a, 0, offsetof(struct rxreq, in_spec));
	a->rx = rx;
	a->recv = r;
	a->peer = m->peer;
	a->head = m->head;
	a->tag = m->tag;
	a->data = m->data;
	a->len = m->len;
	a->capacity = capacity;
	a->base = base;
	if (m->peer->real && a->len >= m->peer->real->joint_min)
		a->begun = clock_ns();
	list_init(&a->in_spec);
	list_push(&m->peer->rx.rxreqs, &a->link);
	return a;
}

/* Returns what ATS tells the sender: the error, and how long the message took. */
static uint64_t answer(const struct rxreq *a, int err)
{
	uint64_t ns = a->begun && !err ? clock_ns() - a->begun : 0;

	return (uint64_t)err | (ns < UINT32_MAX ? ns : UINT32_MAX) << 16;
}

/* Does a joint copy read an earlier message of the same peer? */
static bool has_earlier(struct rxreq *a)
{
	return joint_receives(a->peer) && a->peer->worker->joint.id != pool_id(a);
}

void rxreq_end(struct rxreq *a, int err)
{
	struct worker *worker = a->peer->worker;
	struct message m = {.peer = a->peer,
			    .src = peer_addr(a->peer),
			    .head = a->head,
			    .tag = a->tag,
			    .data = a->data,
			    .len = a->len};
	unsigned int flags = a->spec && a->received == a->len ? WIRE_SPEC : 0;

	list_remove(&a->in_spec);
	if (!err && has_earlier(a)) {
		a->rdma_posted = a->held = true;
		return;
	}
	list_remove(&a->link);
	if (a->ack_pending) /* no effect if the peer is disconnected */
		tx_control(a->peer, WIRE_HEAD(WIRE_ATS, flags, 0, wire_id(a->head)),
			   answer(a, err));
	if (worker->closing)
		rx_abandon(a->rx, a->recv);
	else
		rx_finish(a->rx, a->recv, &m, a->capacity, a->base, err);
	pool_put(&worker->rxreq_pool, a);
}

void rxreq_ask(struct rxreq *a)
{
	unsigned int flags = a->spec ? WIRE_SPEC : 0;

	a->asked = true;
	tx_control(a->peer, WIRE_HEAD(WIRE_CTS, flags, 0, wire_id(a->head)), pool_id(a));
}

int rxreq_fetch(const struct peer *peer, const struct wire_rts *rts, size_t offset,
		const struct iovec *iov, size_t count, size_t want)
{
	struct link *link = peer->real;
	struct iovec whole[WIRE_IOV_MAX], remote[WIRE_IOV_MAX];
	size_t rest = want, segments;
	ssize_t got;

	if (!want)
		return 0;
	if (!link)
		return -FI_ENOTCONN;
	for (size_t i = 0; i < rts->count; i++)
		whole[i] = (struct iovec){(void *)(uintptr_t)rts->segment[i].addr,
					  rts->segment[i].len};
	segments = iov_slice(remote, whole, rts->count, offset, &rest);
	got = link->local->fetch(link, iov, count, remote, segments,
				 offset ? 0 : rts->segment[0].key);
	return got < 0 || (size_t)got != want ? -FI_EIO : 0;
}

/* Reads together with the sender; as link_local_ops.joint. */
static int read_jointly(struct rxreq *a, const struct wire_rts *rts, const struct iovec *iov,
			size_t count, size_t want)
{
	if (!a->peer->real || a->asked || want < a->peer->real->joint_min || count != 1 ||
	    rts->count != 1 || rts->segment[0].key)
		return -FI_ENOSYS;
	return joint_begin(a->peer,
			   &(struct link_joint){.local = iov->iov_base,
						.remote = rts->segment[0].addr + a->received,
						.len = want},
			   pool_id(a));
}

bool rxreq_read(struct rxreq *a, const struct wire_rts *rts)
{
	size_t want = a->len < a->capacity ? a->len : a->capacity;
	struct iovec whole = {a->base, want}, iov[RX_IOV_MAX];
	size_t count;
	int ret;

	want = want > a->received ? want - a->received : 0;
	count = a->base ? iov_slice(iov, &whole, 1, a->received, &want)
			: iov_slice(iov, a->recv->iov, a->recv->iov_count, a->received, &want);
	ret = read_jointly(a, rts, iov, count, want);
	if (ret == -FI_EINPROGRESS) {
		a->rdma_posted = true;
		list_push(&a->peer->worker->spec, &a->in_spec);
		return true;
	}
	if (ret >= 0)
		a->peer->counts.joint++;
	else if (rxreq_fetch(a->peer, rts, a->received, iov, count, want))
		return false;
	else
		a->peer->counts.read++;
	rxreq_end(a, 0);
	return true;
}

void rxreq_joint_ended(struct worker *worker, uint32_t id, int ret)
{
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);

	if (!a || !a->rdma_posted)
		return;
	if (ret >= 0) {
		a->peer->counts.joint++;
		rxreq_end(a, 0);
		return;
	}
	/* Fragments that came meanwhile were dropped: all is sent again. */
	list_remove(&a->in_spec);
	a->rdma_posted = a->spec = false;
	a->received = 0;
	rxreq_ask(a);
}

bool rxreq_hold(struct rx *rx, struct recv *r, const struct message *m, size_t capacity, void *base)
{
	struct rxreq *a = joint_receives(m->peer) ? rxreq_begin(rx, r, m, capacity, base) : NULL;

	if (!a)
		return false;
	a->rdma_posted = a->held = true;
	return true;
}

void rxreq_release(struct peer *peer)
{
	LIST_EACH_SAFE (node, &peer->rx.rxreqs) {
		struct rxreq *a = LIST_ENTRY(node, struct rxreq, link);

		if (a->held)
			rxreq_end(a, 0);
	}
}

void rxreq_send_cts(struct rx *rx, struct recv *r, const struct message *m, size_t capacity,
		    void *base, struct link_rdma *op)
{
	struct link *link = m->peer->real;
	struct rxreq *a = rxreq_begin(rx, r, m, capacity, base);

	if (!a) {
		rx_send_ats(m, FI_ENOMEM);
		rx_finish(rx, r, m, capacity, base, FI_ENOMEM);
		return;
	}
	a->ack_pending = true;
	if (op && link && link->rdma_usable) {
		op->id = pool_id(a);
		a->rdma_posted = !link->rdma->post(link, op);
	}
	if (!a->rdma_posted)
		rxreq_ask(a);
}

void rxreq_rdma_refused(struct opener *o, uint64_t id)
{
	struct worker *worker = worker_opener(o);
	struct rxreq *a = pool_find(&worker->rxreq_pool, (uint32_t)id);

	if (!a || !a->rdma_posted)
		return;
	a->rdma_posted = false;
	rxreq_ask(a);
}

void rxreq_rdma_failed(struct peer *peer)
{
	LIST_EACH (node, &peer->rx.rxreqs) {
		struct rxreq *a = LIST_ENTRY(node, struct rxreq, link);

		if (!a->rdma_posted)
			continue;
		a->rdma_posted = false;
		rxreq_ask(a);
	}
}

bool rxreq_rdma(const struct peer *peer, const struct rx *rx)
{
	LIST_EACH (node, &peer->rx.rxreqs) {
		const struct rxreq *a = LIST_ENTRY(node, struct rxreq, link);

		if (a->rx == rx && a->rdma_posted)
			return true;
	}
	return false;
}

void rxreq_rdma_done(struct worker *worker, uint32_t id)
{
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);

	if (!a || !a->rdma_posted)
		return;
	a->peer->counts.rdma++;
	rxreq_end(a, 0);
}

/* Returns the receive request that expects this fragment next, or NULL. */
static struct rxreq *next_fragment(struct worker *worker, const struct peer *peer,
				   const struct packet *p)
{
	struct rxreq *a = wire_flags(p->head) & WIRE_SPEC
				  ? spec_find(worker, peer, wire_id(p->head))
				  : pool_find(&worker->rxreq_pool, wire_id(p->head));

	return a && a->peer == peer && !a->rdma_posted && p->tag == a->received &&
			       p->len <= a->len - a->received
		       ? a
		       : NULL;
}

static void advance(struct rxreq *a, size_t len)
{
	a->received += len;
	a->peer->rx.came++;
	if (a->spec)
		spec_advance(a);
	if (a->received != a->len) {
		shard_part(&a->peer->worker->driven.shard);
		return;
	}
	if (a->asked)
		a->peer->counts.asked++;
	else if (a->spec)
		a->peer->counts.speculative++;
	spec_overtaken(a->peer, a);
	rxreq_end(a, 0);
}

void rxreq_frag(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct rxreq *a = next_fragment(worker, peer, p);
	size_t keep = p->len, offset = p->tag;

	if (!a) {
		if (!(wire_flags(p->head) & WIRE_SPEC))
			LOG_INFO(LOG_EP_DATA,
				 "fragment of a message that is not being received, dropped");
		return;
	}
	if (offset >= a->capacity)
		keep = 0;
	else if (keep > a->capacity - offset)
		keep = a->capacity - offset;
	if (keep && a->base)
		copy_bytes(a->base + offset, p->payload, keep);
	else if (keep)
		iov_scatter(a->recv->iov, a->recv->iov_count, offset, p->payload, keep);
	advance(a, p->len);
}

/* Makes a receive request for a whole message whose receive is posted, or returns NULL. */
static struct rxreq *place_message(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct message m = rx_message_of(peer, p);
	struct rx *rx = rx_context_of(worker, peer, p);
	struct recv *r = NULL;
	struct rxreq *a;

	if (rx && !peer_expelled(peer)) /* rx_deliver drops later packets */
		r = rx_find_posted(rx, wire_flags(p->head) & WIRE_TAGGED, m.src, m.tag);
	if (!r)
		return NULL;
	a = rxreq_begin(rx, r, &m, 0, r->flags & FI_MULTI_RECV ? r->iov[0].iov_base : NULL);
	if (!a)
		return NULL;
	a->capacity = rx_reserve(rx, r, m.len);
	a->ack_pending = rx_wants_ack(m.head);
	return a;
}

uint32_t rxreq_placement_begin(struct opener *o, uint32_t src, const struct packet *p)
{
	struct worker *worker = worker_opener(o);
	struct peer *peer = pool_find(&worker->peer_pool, src);
	struct rxreq *a = NULL;

	if (peer && wire_op(p->head) == WIRE_MSG)
		a = place_message(worker, peer, p);
	else if (peer && wire_op(p->head) == WIRE_FRAG)
		a = next_fragment(worker, peer, p);
	if (!a)
		return 0;
	a->placing = p->len;
	a->placed = 0;
	return pool_id(a);
}

size_t rxreq_placement_iov(struct opener *o, uint32_t id, size_t offset, struct iovec *iov,
			   size_t max)
{
	struct worker *worker = worker_opener(o);
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);
	size_t at, want;

	if (!a || max < RX_IOV_MAX)
		return 0;
	at = a->received + offset;
	if (offset > a->placed)
		a->peer->rx.came++;
	a->placed = offset;
	if (at >= a->capacity)
		return 0;
	want = a->placing - offset;
	if (want > a->capacity - at)
		want = a->capacity - at;
	if (a->base) {
		iov[0] = (struct iovec){a->base + at, want};
		return 1;
	}
	return iov_slice(iov, a->recv->iov, a->recv->iov_count, at, &want);
}

void rxreq_placement_end(struct opener *o, uint32_t id)
{
	struct worker *worker = worker_opener(o);
	struct rxreq *a = pool_find(&worker->rxreq_pool, id);

	if (a)
		advance(a, a->placing);
}

void rxreq_fail_peer(struct peer *peer, int err)
{
	while (!list_empty(&peer->rx.rxreqs)) {
		struct rxreq *a = LIST_ENTRY(peer->rx.rxreqs.next, struct rxreq, link);

		/* A sender that still awaits its ATS is told of no message that others were lost before. */
		rxreq_end(a, a->held && !a->ack_pending ? 0 : err);
	}
}

void rxreq_fail_context(struct worker *worker, struct rx *rx, int err)
{
	LIST_EACH (at, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(at, struct peer, in_worker);

		LIST_EACH_SAFE (node, &peer->rx.rxreqs) {
			struct rxreq *a = LIST_ENTRY(node, struct rxreq, link);

			if (a->rx == rx)
				rxreq_end(a, err);
		}
	}
}
