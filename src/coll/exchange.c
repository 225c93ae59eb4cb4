/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/exchange.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "coll/leave.h"
#include "xfer/port.h"
#include "xfer/tx.h"

/*
 * Bytes of a message up to here are sooner taken at once than matched in queues. They come in one packet, and as a
 * whole: transports ask where to put those alone that are longer than 4096 bytes.
 */
#define DIRECT_MAX 256

/* Was it called with other arguments there? */
static bool differs(const struct op *op, const struct plan_message *m, const struct work *work)
{
	if (work->got == m->count * op->local.width &&
	    !((work->tag ^ WIRE_GROUP_TAG(0, op->what, 0)) & WIRE_GROUP_WHAT_MASK))
		return false;
	LOG_WARN(LOG_EP_DATA,
		 "the member of rank %u takes part in another collective than ours, of kind %d",
		 m->peer, (int)op->shape.kind);
	return true;
}

static void done(struct work *work, int err)
{
	struct op_slot *slot = LIST_ENTRY(work, struct op_slot, work);
	struct op *op = slot->op;
	const struct plan_message *m = &op->round.message[slot - op->slot];

	slot->pending = false;
	if (!err && !m->send && differs(op, m, work))
		err = FI_EINVAL;
	op->pending--;
	if (err)
		group_fail(op->group, err);
	if (!op->pending && list_empty(&op->in_ready))
		list_push(&op->group->coll->ready, &op->in_ready);
}

static const struct work_kind kind = {.done = done};

bool exchange_is_work(const struct work *work)
{
	return work->kind == &kind;
}

/* Nobody else would notice if it was dead, or has left. */
static void watch(struct group *g, uint32_t rank)
{
	int ret = coll_reach(g->coll, group_member(g, rank));

	if (ret < 0)
		group_miss(g, rank, -ret);
	else if (ret)
		leave_ask(g, rank);
	else
		leave_doubt(g, rank);
	if (leave_has(g, rank))
		group_fail(g, FI_ECONNABORTED);
}

/* A message is for this slot. */
static void take_in(struct op_slot *slot, uint64_t tag, const void *payload, size_t len, int err)
{
	struct op *op = slot->op;
	const struct plan_message *m = &op->round.message[slot - op->slot];

	if (!err && len == m->count * op->local.width && len)
		memcpy(local_at(&op->local, m->place), payload, len);
	slot->work.got = len;
	slot->work.tag = tag;
	done(&slot->work, err);
}

static bool was_stashed(struct op *op, struct op_slot *slot, const struct plan_message *m)
{
	struct stash *stash = &op->group->stash;
	struct stashed *s = stash_find(stash, WIRE_GROUP_TAG(op->seq, 0, m->peer));

	if (!s)
		return false;
	take_in(slot, s->tag, s->payload, s->len, 0);
	stash_drop(stash, s);
	return true;
}

/* Of one member several may come: none overtakes what waits in the queues. */
static bool queues_empty(const struct group *g)
{
	return list_empty(&g->rx.unexpected[1]) && list_empty(&g->rx.posted[1]);
}

static int receive(struct op *op, struct op_slot *slot, const struct plan_message *m)
{
	struct group *g = op->group;
	struct iovec iov = {local_at(&op->local, m->place), m->count * op->local.width};
	int err = 0;

	if (g->stash.count && was_stashed(op, slot, m))
		return 0;
	slot->direct = iov.iov_len <= DIRECT_MAX && queues_empty(g);
	if (!slot->direct)
		err = rx_post(&g->rx, NULL, true,
			      &(struct recv_args){.iov = &iov,
						  .iov_count = 1,
						  .src = FI_ADDR_UNSPEC,
						  .tag = WIRE_GROUP_TAG(op->seq, 0, m->peer),
						  .ignore = WIRE_GROUP_WHAT_MASK,
						  .work = &slot->work});
	if (!err && slot->pending)
		watch(g, m->peer);
	return err;
}

static struct op_slot *waiting(struct op *op, uint32_t rank)
{
	for (unsigned int i = 0; i < op->round.messages; i++)
		if (op->slot[i].direct && op->slot[i].pending && op->round.message[i].peer == rank)
			return &op->slot[i];
	return NULL;
}

/* What is long enough to be offered is too long: it was called with other arguments there. */
static void hand_over(struct op_slot *slot, struct peer *peer, const struct packet *p)
{
	int err = wire_op(p->head) == WIRE_OFFER ? FI_ETRUNC : 0;

	if (rx_owes(p->head))
		tx_control(peer, WIRE_HEAD(WIRE_FIN, 0, 0, wire_id(p->head)), (uint64_t)err);
	take_in(slot, p->tag, p->payload, p->len, err);
}

bool exchange_take(struct group *g, struct peer *peer, const struct packet *p)
{
	uint32_t rank = p->tag & WIRE_GROUP_RANK_MASK;

	LIST_EACH (node, &g->ops) {
		struct op *op = LIST_ENTRY(node, struct op, in_group);
		uint64_t tag = WIRE_GROUP_TAG(op->seq, 0, rank);
		struct op_slot *slot;

		if (!op->begun || (p->tag & ~WIRE_GROUP_WHAT_MASK) != tag)
			continue;
		slot = waiting(op, rank);
		if (!slot)
			break;
		hand_over(slot, peer, p);
		return true;
	}
	return queues_empty(g) && stash_put(&g->stash, p);
}

/* 1: it is complete already. */
static int send(struct op *op, struct op_slot *slot, const struct plan_message *m)
{
	struct group *g = op->group;
	struct peer *peer = peer_get(g->coll->port, group_member(g, m->peer));
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0),
			   .tag = WIRE_GROUP_TAG(op->seq, op->what, g->rank),
			   .data = g->id,
			   .payload = local_at(&op->local, m->place),
			   .len = m->count * op->local.width};

	return peer ? tx_ahead(peer, &p, &slot->work) : -FI_EADDRNOTAVAIL;
}

static void start_message(struct op *op, unsigned int i)
{
	const struct plan_message *m = &op->round.message[i];
	struct op_slot *slot = &op->slot[i];
	int ret;

	slot->pending = true;
	ret = m->send ? send(op, slot, m) : receive(op, slot, m);
	if (ret > 0) {
		slot->pending = false;
		op->pending--;
	}
	if (ret >= 0)
		return;
	/* Posted all the same, or not: the end of the group sees to it. */
	LOG_WARN(LOG_EP_DATA, "a member of a group of %u, fi_addr %llu, cannot be reached: %s",
		 op->group->size, (unsigned long long)group_member(op->group, m->peer),
		 fi_strerror(-ret));
	if (m->send) {
		slot->pending = false;
		op->pending--;
	}
	group_fail(op->group, -ret);
}

void exchange_prepare(struct op *op)
{
	for (unsigned int i = 0; i < PLAN_MESSAGES; i++) {
		op->slot[i].work.kind = &kind;
		op->slot[i].op = op;
	}
}

/* Sends first: others wait for them. */
void exchange_start(struct op *op)
{
	unsigned int count = op->round.messages;

	/* Something may come for one that is not posted yet. */
	for (unsigned int i = 0; i < count; i++)
		op->slot[i].pending = op->slot[i].direct = false;
	/* One more until all are posted. */
	op->pending = count + 1;
	for (unsigned int i = 0; i < count; i++)
		if (op->round.message[i].send)
			start_message(op, i);
	for (unsigned int i = 0; i < count; i++)
		if (!op->round.message[i].send)
			start_message(op, i);
	op->pending--;
}

bool exchange_waits_for(const struct op *op, uint32_t rank)
{
	for (unsigned int i = 0; i < op->round.messages; i++) {
		const struct plan_message *m = &op->round.message[i];

		if (op->slot[i].pending && !m->send && m->peer == rank)
			return true;
	}
	return false;
}

void exchange_look(struct op *op)
{
	struct group *g = op->group;

	for (unsigned int i = 0; op->begun && i < op->round.messages; i++) {
		const struct plan_message *m = &op->round.message[i];

		if (op->slot[i].pending && !m->send)
			watch(g, m->peer);
	}
}

bool exchange_offers_to(const struct group *g, const struct peer *peer)
{
	LIST_EACH (node, &peer->requests) {
		const struct work *work = LIST_ENTRY(node, struct txreq, link)->work;

		if (work && exchange_is_work(work) &&
		    LIST_ENTRY(work, struct op_slot, work)->op->group == g)
			return true;
	}
	return false;
}
