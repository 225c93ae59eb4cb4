/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/op.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "coll/group/group.h"
#include "xfer/msg/tx.h"
#include "xfer/worker.h"

/*
 * A message up to this length (bytes) goes straight to its operation, not through the queues. Such
 * a message is one whole packet: transports place only messages longer than 4096 bytes directly.
 */
#define DIRECT_MAX 256
/* Receives of longer messages (bytes) are posted a round ahead: see post_ahead. */
#define AHEAD_MIN 4096
/* Longer messages (bytes) may have to wait for a member that is behind: see awaits_delivery. */
#define DELIVERED_MIN 131072

/* Was the member's call different? Then length or call hash differ. */
static bool exchange_differs(const struct op *op, const struct plan_message *m, uint64_t tag,
			     size_t len)
{
	if (__builtin_expect(
		    len == m->count * op->local.width &&
			    !((tag ^ WIRE_GROUP_TAG(0, op->what, 0)) & WIRE_GROUP_WHAT_MASK),
		    1))
		return false;
	LOG_PEER(LOG_EP_DATA,
		 "the member of rank %u made another call: our collective is of kind %d", m->peer,
		 (int)op->shape.kind);
	return true;
}

static inline void exchange_complete(struct op *op, struct op_slot *slot, int err)
{
	slot->pending = false;
	op->pending -= !slot->ahead;
	shard_part(&op->group->coll->worker->conn.driven.shard);
	if (__builtin_expect(err, 0))
		group_fail(op->group, err);
	if (!op->pending && !slot->ahead && list_empty(&op->in_ready))
		list_push(&op->group->coll->ready, &op->in_ready);
}

static void exchange_done(struct work *work, int err)
{
	struct op_slot *slot = LIST_ENTRY(work, struct op_slot, work);
	struct op *op = slot->op;
	const struct plan_message *m = slot->message;

	if (!err && !m->send && exchange_differs(op, m, work->tag, work->got))
		err = FI_EINVAL;
	exchange_complete(op, slot, err);
}

static const struct work_kind kind = {.done = exchange_done};

bool exchange_is_work(const struct work *work)
{
	return work->kind == &kind;
}

static __attribute__((noinline)) void watch_closely(struct group *g, uint32_t rank)
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

/* Watches the member, because nothing else would detect that it died or left. */
static inline void exchange_watch(struct group *g, uint32_t rank)
{
	const struct peer *peer = worker_peer(g->coll->worker, group_member(g, rank));

	if (__builtin_expect(peer->conn.state != PEER_CONNECTED || g->left || leave_doubts(g, rank),
			     0))
		watch_closely(g, rank);
}

/* The message has arrived. */
static inline void take_in(struct op *op, struct op_slot *slot, uint64_t tag, const void *payload,
			   size_t len, int err)
{
	const struct plan_message *m = slot->message;

	if (!err && exchange_differs(op, m, tag, len))
		err = FI_EINVAL;
	if (!err && len)
		memcpy(local_at(&op->local, m->place), payload, len);
	exchange_complete(op, slot, err);
}

static bool was_early(struct op *op, struct op_slot *slot)
{
	struct early_queue *early = &op->group->early;
	uint32_t rank = slot->message->peer;
	struct early_message *s = early_queue_find(early, WIRE_GROUP_TAG(op->seq, 0, rank));

	if (!s)
		return false;
	take_in(op, slot, s->tag, s->payload, s->len, 0);
	early_queue_drop(early, s);
	return true;
}

/* A member's messages stay in order: a direct one must not overtake a queued one. */
static bool queues_empty(const struct group *g)
{
	return list_empty(&g->rx.unexpected[1]) && list_empty(&g->rx.posted[1]);
}

static inline size_t exchange_length(const struct op *op, const struct plan_message *m)
{
	return m->count * op->local.width;
}

static int post_receive(struct op *op, struct op_slot *slot)
{
	const struct plan_message *m = slot->message;
	struct iovec iov = {local_at(&op->local, m->place), exchange_length(op, m)};
	struct recv_args args = {.iov = &iov,
				 .iov_count = 1,
				 .src = FI_ADDR_UNSPEC,
				 .tag = WIRE_GROUP_TAG(op->seq, 0, m->peer),
				 .ignore = WIRE_GROUP_WHAT_MASK,
				 .work = &slot->work};
	int err = rx_post(&op->group->rx, NULL, true, &args);

	return err == -FI_EAGAIN ? -FI_ENOMEM : err; /* because no caller would try again */
}

static int exchange_receive(struct op *op, struct op_slot *slot)
{
	struct group *g = op->group;
	int err = 0;

	if (g->early.count && was_early(op, slot))
		return 0;
	slot->direct = exchange_length(op, slot->message) <= DIRECT_MAX && queues_empty(g);
	if (!slot->direct)
		err = post_receive(op, slot);
	if (!err && slot->pending)
		exchange_watch(g, slot->message->peer);
	return err;
}

/* Returns the direct receive from `rank` in the round, or NULL. */
static struct op_slot *exchange_waiting(struct op_round *round, uint32_t rank)
{
	for (unsigned int i = 0; i < round->plan.messages; i++)
		if (round->slot[i].pending && round->slot[i].direct &&
		    round->plan.message[i].peer == rank)
			return &round->slot[i];
	return NULL;
}

/* A short receive matches an RTS: the message is too long, so the member's call was different. */
static __attribute__((noinline, cold)) int exchange_answer(struct peer *peer,
							   const struct packet *p)
{
	int err = wire_op(p->head) == WIRE_RTS ? FI_ETRUNC : 0;

	tx_control(peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(p->head)), (uint64_t)err);
	return err;
}

bool exchange_take(struct group *g, struct peer *peer, const struct packet *p)
{
	uint32_t rank = p->tag & WIRE_GROUP_RANK_MASK;

	LIST_EACH_OF (struct op, op, &g->ops, in_group) {
		uint64_t tag = WIRE_GROUP_TAG(op->seq, 0, rank);
		struct op_slot *slot;
		int err;

		if (!op->begun || (p->tag & ~WIRE_GROUP_WHAT_MASK) != tag)
			continue;
		slot = exchange_waiting(op->round, rank);
		if (!slot)
			break;
		err = rx_wants_ack(p->head) ? exchange_answer(peer, p) : 0;
		take_in(op, slot, p->tag, p->payload, p->len, err);
		return true;
	}
	return queues_empty(g) && early_queue_put(&g->early, p);
}

/* Returns 1 if the send is already complete, 0 or a negative error. */
static int exchange_send(struct op *op, struct op_slot *slot)
{
	const struct plan_message *m = slot->message;
	struct group *g = op->group;
	fi_addr_t addr = group_member(g, m->peer);
	struct peer *peer = worker_peer(g->coll->worker, addr);
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0),
			   .tag = WIRE_GROUP_TAG(op->seq, op->what, g->rank),
			   .data = g->id,
			   .payload = local_at(&op->local, m->place),
			   .len = exchange_length(op, m)};

	if (__builtin_expect(peer == &peer_nobody, 0))
		peer = peer_get(g->coll->worker, addr);
	return peer ? tx_ahead(peer, &p, &slot->work) : -FI_EADDRNOTAVAIL;
}

/* The end of the group handles the message, posted or not. */
static __attribute__((noinline, cold)) void exchange_fail(struct op *op, uint32_t rank, int err)
{
	fi_addr_t addr = group_member(op->group, rank);

	LOG_WARN(LOG_EP_DATA, "a member of a group of %u, fi_addr %llu, cannot be reached: %s",
		 op->group->size, (unsigned long long)addr, fi_strerror(-err));
	group_fail(op->group, -err);
}

/*
 * Does the operation begin with a long message to a member that may not have begun it? The sender waits for that, as
 * what it sends on would be kept, and so would its messages of the next operations.
 */
static bool awaits_delivery(const struct op *op, const struct plan_message *m)
{
	return op->next == 1 && exchange_length(op, m) > DELIVERED_MIN &&
	       plan_rooted(op->args.kind);
}

static void start_send(struct op *op, struct op_slot *slot)
{
	int ret;

	slot->work.delivered = awaits_delivery(op, slot->message);
	slot->direct = false;
	slot->pending = true; /* before the call, which may complete the send */
	ret = exchange_send(op, slot);
	if (ret) {
		slot->pending = false;
		op->pending--;
	}
	if (__builtin_expect(ret < 0, 0))
		exchange_fail(op, slot->message->peer, ret);
}

static void start_receive(struct op *op, struct op_slot *slot)
{
	int err;

	slot->pending = true;
	err = exchange_receive(op, slot);
	if (__builtin_expect(err, 0))
		exchange_fail(op, slot->message->peer, err);
}

static void prepare_round(struct op *op, struct op_round *round)
{
	round->ahead = 0;
	for (unsigned int i = 0; i < PLAN_MESSAGES; i++) {
		round->slot[i].work.kind = &kind;
		round->slot[i].op = op;
		round->slot[i].message = &round->plan.message[i];
		round->slot[i].pending = round->slot[i].ahead = false;
	}
}

void exchange_prepare(struct op *op)
{
	for (unsigned int i = 0; i < OP_KEPT; i++)
		prepare_round(op, &op->kept[i]);
}

/* ---- Receives of the next round -------------------------------------------------------------- */

/*
 * Posts receives of the next round, as far as this one does not use their memory: a long message that comes before
 * its receive is posted has to be kept, and copied once more. In order, as a member's messages are matched.
 */
static __attribute__((noinline)) void post_ahead(struct op *op)
{
	struct op_round *next = op_round(op, op->next);
	unsigned int i = next ? next->plan.sends : 0;

	for (; next && i < next->plan.messages && !op->group->err; i++) {
		struct op_slot *slot = &next->slot[i];
		int err;

		if (exchange_length(op, slot->message) <= AHEAD_MIN ||
		    !local_apart(&op->local, &op->round->plan, slot->message))
			break;
		slot->direct = false;
		slot->ahead = slot->pending = true;
		next->ahead++;
		err = post_receive(op, slot);
		if (__builtin_expect(err, 0))
			exchange_fail(op, slot->message->peer, err);
	}
}

/* The round of a receive that was posted ahead begins. */
static void begin_ahead(struct op *op, struct op_slot *slot)
{
	slot->ahead = false;
	if (slot->pending)
		exchange_watch(op->group, slot->message->peer);
	else
		op->pending--;
}

/* A slot is pending only from its posting on, so no message can complete it earlier. */
void exchange_start(struct op *op)
{
	struct op_round *round = op->round;
	unsigned int count = round->plan.messages, i = 0;

	/* One extra until all messages are posted. */
	op->pending = count + 1;
	for (; i < round->plan.sends; i++)
		start_send(op, &round->slot[i]);
	for (; round->ahead; round->ahead--)
		begin_ahead(op, &round->slot[i++]);
	for (; i < count; i++)
		start_receive(op, &round->slot[i]);
	op->pending--;
	if (op->pending && op->args.count * op->local.width > AHEAD_MIN)
		post_ahead(op);
}

bool exchange_waits_for(const struct op *op, uint32_t rank)
{
	for (unsigned int i = 0; i < op->round->plan.messages; i++) {
		const struct plan_message *m = &op->round->plan.message[i];

		if (op->round->slot[i].pending && !m->send && m->peer == rank)
			return true;
	}
	return false;
}

void exchange_poll(struct op *op)
{
	struct group *g = op->group;

	for (unsigned int i = 0; op->begun && i < op->round->plan.messages; i++) {
		const struct plan_message *m = &op->round->plan.message[i];

		if (op->round->slot[i].pending && !m->send)
			exchange_watch(g, m->peer);
	}
}

bool exchange_awaits_ats(const struct group *g, const struct peer *peer)
{
	LIST_EACH (node, &peer->txreqs[TXREQ_ACK]) {
		const struct work *work = LIST_ENTRY(node, struct txreq, link)->work;

		if (work && exchange_is_work(work) &&
		    LIST_ENTRY(work, struct op_slot, work)->op->group == g)
			return true;
	}
	return false;
}
