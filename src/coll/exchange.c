/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/exchange.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "coll/group/leave.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/*
 * A message up to this length (bytes) goes straight to its operation, not through the queues. Such
 * a message is one whole packet: transports place only messages longer than 4096 bytes directly.
 */
#define DIRECT_MAX 256

/* Was the member's call different? Then length or call hash differ. */
static bool differs(const struct op *op, const struct plan_message *m, uint64_t tag, size_t len)
{
	if (__builtin_expect(
		    len == m->count * op->local.width &&
			    !((tag ^ WIRE_GROUP_TAG(0, op->what, 0)) & WIRE_GROUP_WHAT_MASK),
		    1))
		return false;
	LOG_WARN(LOG_EP_DATA,
		 "the member of rank %u made another call: our collective is of kind %d", m->peer,
		 (int)op->shape.kind);
	return true;
}

static inline void complete(struct op *op, struct op_slot *slot, int err)
{
	slot->pending = false;
	op->pending--;
	shard_part(&op->group->coll->worker->shard);
	if (__builtin_expect(err, 0))
		group_fail(op->group, err);
	if (!op->pending && list_empty(&op->in_ready))
		list_push(&op->group->coll->ready, &op->in_ready);
}

static void done(struct work *work, int err)
{
	struct op_slot *slot = LIST_ENTRY(work, struct op_slot, work);
	struct op *op = slot->op;
	const struct plan_message *m = &op->round->message[slot - op->slot];

	if (!err && !m->send && differs(op, m, work->tag, work->got))
		err = FI_EINVAL;
	complete(op, slot, err);
}

static const struct work_kind kind = {.done = done};

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
static inline void watch(struct group *g, uint32_t rank)
{
	const struct peer *peer = worker_peer(g->coll->worker, group_member(g, rank));

	if (__builtin_expect(peer->state != PEER_CONNECTED || g->left || leave_doubts(g, rank), 0))
		watch_closely(g, rank);
}

/* Message `i` of the round has arrived. */
static inline void take_in(struct op *op, unsigned int i, uint64_t tag, const void *payload,
			   size_t len, int err)
{
	const struct plan_message *m = &op->round->message[i];

	if (!err && differs(op, m, tag, len))
		err = FI_EINVAL;
	if (!err && len)
		memcpy(local_at(&op->local, m->place), payload, len);
	complete(op, &op->slot[i], err);
}

static bool was_early(struct op *op, unsigned int i)
{
	struct early_queue *early = &op->group->early;
	uint32_t rank = op->round->message[i].peer;
	struct early_message *s = early_queue_find(early, WIRE_GROUP_TAG(op->seq, 0, rank));

	if (!s)
		return false;
	take_in(op, i, s->tag, s->payload, s->len, 0);
	early_queue_drop(early, s);
	return true;
}

/* A member's messages stay in order: a direct one must not overtake a queued one. */
static bool queues_empty(const struct group *g)
{
	return list_empty(&g->rx.unexpected[1]) && list_empty(&g->rx.posted[1]);
}

static int post_receive(struct op *op, unsigned int i, void *buf, size_t len)
{
	struct iovec iov = {buf, len};
	struct recv_args args = {.iov = &iov,
				 .iov_count = 1,
				 .src = FI_ADDR_UNSPEC,
				 .tag = WIRE_GROUP_TAG(op->seq, 0, op->round->message[i].peer),
				 .ignore = WIRE_GROUP_WHAT_MASK,
				 .work = &op->slot[i].work};
	int err = rx_post(&op->group->rx, NULL, true, &args);

	return err == -FI_EAGAIN ? -FI_ENOMEM : err; /* because no caller would try again */
}

static int receive(struct op *op, unsigned int i)
{
	const struct plan_message *m = &op->round->message[i];
	struct group *g = op->group;
	struct op_slot *slot = &op->slot[i];
	size_t len = m->count * op->local.width;
	int err = 0;

	if (g->early.count && was_early(op, i))
		return 0;
	slot->direct = len <= DIRECT_MAX && queues_empty(g);
	if (!slot->direct)
		err = post_receive(op, i, local_at(&op->local, m->place), len);
	if (!err && slot->pending)
		watch(g, m->peer);
	return err;
}

/* Returns the index of the direct receive from `rank` in its round, or the number of messages. */
static unsigned int waiting(const struct op *op, uint32_t rank)
{
	unsigned int i;

	for (i = 0; i < op->round->messages; i++)
		if (op->slot[i].pending && op->slot[i].direct && op->round->message[i].peer == rank)
			break;
	return i;
}

/* A short receive matches an RTS: the message is too long, so the member's call was different. */
static __attribute__((noinline, cold)) int answer(struct peer *peer, const struct packet *p)
{
	int err = wire_op(p->head) == WIRE_RTS ? FI_ETRUNC : 0;

	tx_control(peer, WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(p->head)), (uint64_t)err);
	return err;
}

bool exchange_take(struct group *g, struct peer *peer, const struct packet *p)
{
	uint32_t rank = p->tag & WIRE_GROUP_RANK_MASK;

	LIST_EACH (node, &g->ops) {
		struct op *op = LIST_ENTRY(node, struct op, in_group);
		uint64_t tag = WIRE_GROUP_TAG(op->seq, 0, rank);
		unsigned int i;
		int err;

		if (!op->begun || (p->tag & ~WIRE_GROUP_WHAT_MASK) != tag)
			continue;
		i = waiting(op, rank);
		if (i == op->round->messages)
			break;
		err = rx_wants_ack(p->head) ? answer(peer, p) : 0;
		take_in(op, i, p->tag, p->payload, p->len, err);
		return true;
	}
	return queues_empty(g) && early_queue_put(&g->early, p);
}

/* Returns 1 if the send is already complete, 0 or a negative error. */
static int send(struct op *op, unsigned int i)
{
	const struct plan_message *m = &op->round->message[i];
	struct group *g = op->group;
	fi_addr_t addr = group_member(g, m->peer);
	struct peer *peer = worker_peer(g->coll->worker, addr);
	struct packet p = {.head = WIRE_HEAD(WIRE_MSG, WIRE_TAGGED | WIRE_DATA, WIRE_RX_GROUP, 0),
			   .tag = WIRE_GROUP_TAG(op->seq, op->what, g->rank),
			   .data = g->id,
			   .payload = local_at(&op->local, m->place),
			   .len = m->count * op->local.width};

	if (__builtin_expect(peer == &peer_nobody, 0))
		peer = peer_get(g->coll->worker, addr);
	return peer ? tx_ahead(peer, &p, &op->slot[i].work) : -FI_EADDRNOTAVAIL;
}

/* The end of the group handles the message, posted or not. */
static __attribute__((noinline, cold)) void fail(struct op *op, uint32_t rank, int err)
{
	fi_addr_t addr = group_member(op->group, rank);

	LOG_WARN(LOG_EP_DATA, "a member of a group of %u, fi_addr %llu, cannot be reached: %s",
		 op->group->size, (unsigned long long)addr, fi_strerror(-err));
	group_fail(op->group, -err);
}

static void start_send(struct op *op, unsigned int i)
{
	int ret;

	/*
	 * The next round begins when all receivers have the memory: until then it stays unchanged.
	 */
	op->slot[i].work.batch = op->plan.whole ? op : NULL;
	op->slot[i].direct = false;
	op->slot[i].pending = true; /* before the call, which may complete the send */
	ret = send(op, i);
	if (ret) {
		op->slot[i].pending = false;
		op->pending--;
	}
	if (__builtin_expect(ret < 0, 0))
		fail(op, op->round->message[i].peer, ret);
}

static void start_receive(struct op *op, unsigned int i)
{
	int err;

	op->slot[i].pending = true;
	err = receive(op, i);
	if (__builtin_expect(err, 0))
		fail(op, op->round->message[i].peer, err);
}

void exchange_prepare(struct op *op)
{
	for (unsigned int i = 0; i < PLAN_MESSAGES; i++) {
		op->slot[i].work.kind = &kind;
		op->slot[i].op = op;
		op->slot[i].pending = false;
	}
}

/* A slot is pending only from its posting on, so no message can complete it earlier. */
void exchange_start(struct op *op)
{
	unsigned int count = op->round->messages, i = 0;

	/* One extra until all messages are posted. */
	op->pending = count + 1;
	for (; i < op->round->sends; i++)
		start_send(op, i);
	for (; i < count; i++)
		start_receive(op, i);
	op->pending--;
}

bool exchange_waits_for(const struct op *op, uint32_t rank)
{
	for (unsigned int i = 0; i < op->round->messages; i++) {
		const struct plan_message *m = &op->round->message[i];

		if (op->slot[i].pending && !m->send && m->peer == rank)
			return true;
	}
	return false;
}

void exchange_poll(struct op *op)
{
	struct group *g = op->group;

	for (unsigned int i = 0; op->begun && i < op->round->messages; i++) {
		const struct plan_message *m = &op->round->message[i];

		if (op->slot[i].pending && !m->send)
			watch(g, m->peer);
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
