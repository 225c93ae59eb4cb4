/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unexpected messages. Beyond a limit per receive context their senders get XOFF, except those of
 * collective groups. Peeked at, claimed and discarded as fi_tagged(3) describes.
 */
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/copy.h"
#include "base/log.h"
#include "core/cq.h"
#include "link/wire.h"
#include "xfer/rma/rma.h"
#include "xfer/worker.h"
#include "xfer/msg/rx.h"
#include "xfer/msg/tx.h"

static size_t cost(const struct unexpected *u)
{
	return sizeof(*u) + u->kept;
}

static void send_xoff(struct rx *rx, struct peer *peer)
{
	/* A disconnected peer sends nothing more. */
	if (peer->rx.xoff_sent || peer->state == PEER_IDLE)
		return;
	LOG_INFO(
		LOG_EP_DATA,
		"%zu bytes of unexpected messages exceed FI_WEFT_UNEXPECTED_MAX=%zu: sending XOFF to the peer",
		rx->unexpected_bytes, rx->unexpected_max);
	peer->rx.xoff_sent = true;
	peer->rx.unheard = 0;
	list_push(&rx->paused, &peer->rx.in_xoff);
	tx_control(peer, WIRE_HEAD(WIRE_XOFF, 0, 0, 0), 0);
}

void rx_send_xon(struct rx *rx)
{
	struct list *node;

	while ((node = list_pop(&rx->paused))) {
		struct peer *peer = LIST_ENTRY(node, struct peer, rx.in_xoff);

		peer->rx.xoff_sent = false;
		tx_control(peer, WIRE_HEAD(WIRE_XON, 0, 0, 0), 0);
	}
}

/* May a message of the peer be kept? False: too many bytes since XOFF. */
static bool bearable(struct peer *peer, size_t bytes)
{
	if (!peer || !peer->rx.xoff_sent)
		return true;
	peer->rx.unheard += bytes;
	if (peer->rx.unheard > WIRE_KEPT_MAX)
		peer_over_budget(peer, "of messages since it was asked to pause", WIRE_KEPT_MAX);
	return !peer->conn.over_budget;
}

/* The same for messages of collective groups, which ignore XOFF and have a budget of their own. */
static bool bearable_of_group(struct peer *peer, size_t bytes)
{
	if (peer->rx.kept + bytes > WIRE_KEPT_MAX)
		peer_over_budget(peer, "of early messages to collective groups", WIRE_KEPT_MAX);
	return !peer->conn.over_budget;
}

static void count_kept(struct rx *rx, const struct unexpected *u)
{
	rx->unexpected_bytes += cost(u);
	if (wire_of_group(u->head) && u->peer)
		u->peer->rx.kept += cost(u);
}

static void uncount_kept(struct rx *rx, const struct unexpected *u)
{
	rx->unexpected_bytes -= cost(u);
	if (wire_of_group(u->head) && u->peer)
		u->peer->rx.kept -= cost(u);
}

/* No memory to keep a message: a datagram is dropped; other peers are disconnected. */
static void starve(const struct message *m)
{
	if (m->peer)
		peer_starve(m->peer, "a message that no receive waits for");
	else
		LOG_WARN(LOG_EP_DATA, "out of memory: a message of %zu bytes is lost", m->len);
}

void rx_store(struct rx *rx, const struct message *m, size_t payload_len)
{
	struct rx *q = rx->q;
	bool tagged = wire_flags(m->head) & WIRE_TAGGED || wire_op(m->head) == WIRE_AMO;
	bool grouped = m->peer && wire_of_group(m->head);
	struct unexpected *u;
	size_t bytes = sizeof(*u) + payload_len;

	if (grouped ? !bearable_of_group(m->peer, bytes) : !bearable(m->peer, bytes))
		return;
	u = malloc(sizeof(*u) + payload_len);
	if (!u) {
		starve(m);
		return;
	}
	u->rx = rx;
	u->peer = m->peer;
	u->src = m->src;
	u->head = m->head;
	if (wire_op(m->head) == WIRE_RTS) /* speculative fragments of a kept RTS are dropped */
		u->head &= ~WIRE_HEAD(0, WIRE_SPEC, 0, 0);
	u->tag = m->tag;
	u->data = m->data;
	u->len = m->len;
	u->kept = payload_len;
	if (payload_len)
		copy_bytes(u->payload, m->payload, payload_len);
	list_push(&q->unexpected[tagged], &u->link);
	count_kept(q, u);
	if (q->unexpected_bytes > q->unexpected_max && m->peer && !grouped)
		send_xoff(q, m->peer);
}

void rx_take(struct rx *rx, struct unexpected *u)
{
	list_remove(&u->link);
	uncount_kept(rx, u);
	if (!list_empty(&rx->paused) && rx->unexpected_bytes <= rx->unexpected_max / 2)
		rx_send_xon(rx);
}

void rx_drop(struct unexpected *u)
{
	free(u);
}

void rx_give(struct rx *rx, struct unexpected *u)
{
	u->rx = rx;
	list_push(&rx->unexpected[1], &u->link);
	count_kept(rx, u);
}

void rx_refuse(const struct unexpected *u)
{
	if (u->peer && rx_wants_ack(u->head))
		tx_control(u->peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(u->head)), FI_ECANCELED);
}

/* Answers the sender of a discarded message if the sender awaits an answer. */
static void answer_discarded(struct unexpected *u)
{
	if (u->peer && wire_op(u->head) == WIRE_AMO) {
		rma_match_refuse(u->peer, u->head);
		return;
	}
	if (u->peer && rx_wants_ack(u->head))
		tx_control(u->peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(u->head)), 0);
}

static size_t message_len(const struct unexpected *u)
{
	struct wire_rts rts;

	if (wire_op(u->head) == WIRE_AMO)
		return rma_match_len(&(struct message){.peer = u->peer,
						       .head = u->head,
						       .tag = u->tag,
						       .data = u->data,
						       .len = u->len,
						       .payload = u->payload});
	if (wire_op(u->head) != WIRE_RTS)
		return u->len;
	memcpy(&rts.len, u->payload, sizeof(rts.len));
	return rts.len;
}

static void complete_peek(struct rx *rx, bool tagged, const struct recv_args *args,
			  const struct unexpected *u)
{
	struct cq_slot slot = {.context = args->context,
			       .flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG),
			       .tag = u ? u->tag : args->tag,
			       .src = FI_ADDR_NOTAVAIL};

	if (!rx->cq)
		return;
	if (!u) {
		cq_push_error(rx->cq, &slot,
			      &(struct cq_error){.err = FI_ENOMSG, .prov_errno = FI_ENOMSG}, NULL);
		return;
	}
	if (wire_op(u->head) == WIRE_AMO) {
		slot.flags |= FI_ATOMIC;
	} else if (wire_flags(u->head) & WIRE_DATA) {
		slot.flags |= FI_REMOTE_CQ_DATA;
		slot.data = u->data;
	}
	slot.len = message_len(u);
	slot.src = u->peer ? peer_reported(u->peer) : u->src;
	cq_push(rx->cq, slot);
}

int rx_peek(struct rx *rx, struct worker *worker, bool tagged, const struct recv_args *args)
{
	struct unexpected *u = rx_unexpected(rx, tagged, args);

	if (!u && worker && worker_progress(worker))
		u = rx_unexpected(rx, tagged, args);
	complete_peek(rx, tagged, args, u);
	if (!u)
		return 0;
	if (args->flags & FI_DISCARD) {
		rx_take(rx, u);
		answer_discarded(u);
		rx_drop(u);
	} else if (args->flags & FI_CLAIM) {
		struct fi_context *context = args->context;

		/* Removed from matching, but counted until it is received. */
		list_remove(&u->link);
		list_push(&rx->claimed, &u->link);
		context->internal[0] = u;
	}
	return 0;
}

/* FI_CLAIM | FI_DISCARD: drops the claimed message. */
int rx_discard_claimed(struct rx *rx, bool tagged, const struct recv_args *args)
{
	struct fi_context *context = args->context;
	struct unexpected *u = context ? context->internal[0] : NULL;

	if (!u)
		return -FI_EINVAL;
	context->internal[0] = NULL;
	complete_peek(rx, tagged, args, u);
	rx_take(rx, u);
	answer_discarded(u);
	rx_drop(u);
	return 0;
}

void rx_refuse_kept(struct rx *rx)
{
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE (node, &rx->q->unexpected[tagged]) {
			struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

			if (u->rx != rx)
				continue;
			rx_refuse(u);
			rx_take(rx->q, u);
			rx_drop(u);
		}
}

void rx_forget_context(struct rx *rx)
{
	if (rx->q->cq == rx->cq)
		rx->q->cq = NULL;
	LIST_EACH (node, &rx->q->claimed) {
		struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

		/*
		 * The claimed message can still be received, without the closed context's queue and
		 * peers.
		 */
		if (u->rx == rx) {
			u->rx = rx->q;
			u->src = FI_ADDR_NOTAVAIL;
			u->peer = NULL;
		}
	}
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE (node, &rx->q->unexpected[tagged]) {
			struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

			if (u->rx != rx)
				continue;
			rx_take(rx->q, u);
			rx_drop(u);
		}
}

static void forget_sender(struct unexpected *u)
{
	if (wire_of_group(u->head))
		u->peer->rx.kept -= cost(u);
	u->peer = NULL;
}

/*
 * A kept RTS of a disconnected peer can never be received and is dropped. Whole messages stay,
 * unless the peer exceeded its budget. A claimed RTS stays, and fails when received.
 */
void rx_forget_peer(struct rx *rx, struct peer *peer)
{
	LIST_EACH (node, &rx->q->claimed) {
		struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

		if (u->peer != peer)
			continue;
		u->src = peer_addr(peer);
		u->peer = NULL;
	}
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH_SAFE (node, &rx->q->unexpected[tagged]) {
			struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

			if (u->peer != peer)
				continue;
			if (wire_op(u->head) != WIRE_MSG ||
			    (peer->conn.over_budget && !peer->conn.starved)) {
				rx_take(rx->q, u);
				rx_drop(u);
			} else {
				u->src = peer_addr(peer);
				forget_sender(u);
			}
		}
}

/* Kept messages lose their source: the removed fi_addr_t may soon name another address. */
void rx_forget_addr(struct rx *rx, fi_addr_t addr)
{
	LIST_EACH (node, &rx->q->claimed) {
		struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

		if (u->src == addr)
			u->src = FI_ADDR_NOTAVAIL;
	}
	for (int tagged = 0; tagged < 2; tagged++)
		LIST_EACH (node, &rx->q->unexpected[tagged]) {
			struct unexpected *u = LIST_ENTRY(node, struct unexpected, link);

			if (u->src == addr)
				u->src = FI_ADDR_NOTAVAIL;
		}
}
