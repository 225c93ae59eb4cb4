/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "coll/op.h"
#include "xfer/worker.h"

static struct wire_group say_what(const struct group *g, enum wire_group_kind kind, uint32_t rank)
{
	return (struct wire_group){
		.kind = kind, .rank = rank, .size = g->size, .key = g->join.key, .id = g->id};
}

/* Resolves connected peers, so that worker_peer finds them. */
static void find_connected(struct worker *worker)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		if (peer->conn.state != PEER_IDLE)
			contact_addr(&peer->conn);
	}
}

void leave_say(struct group *g)
{
	struct coll *c = g->coll;
	struct worker *worker = c->worker;
	struct wire_group msg = say_what(g, WIRE_GROUP_LEAVE, g->rank);

	c->left[c->left_count++ % COLL_LEFT] = g->id;
	find_connected(worker);
	for (uint32_t i = 0; i < g->size; i++) {
		fi_addr_t addr = group_member(g, i);
		struct peer *peer = worker_peer(worker, addr);

		if (i != g->rank && !leave_has(g, i) && peer->conn.state != PEER_IDLE)
			coll_answer(peer, &msg);
	}
}

void leave_ask(struct group *g, uint32_t rank)
{
	struct wire_group msg = say_what(g, WIRE_GROUP_HERE, rank);

	coll_say(g->coll, group_member(g, rank), &msg);
}

void leave_doubt_first(struct group *g, uint32_t rank)
{
	uint64_t bit = UINT64_C(1) << rank % 64;

	if (!g->doubts)
		g->doubts = calloc(g->size / 64 + 1, sizeof(*g->doubts));
	if (!g->doubts)
		return; /* tries again next time */
	g->doubts[rank / 64].seen |= bit;
	g->doubts[rank / 64].due |= bit;
	if (!g->doubts_due)
		coll_wake_in(g->coll, COLL_LATER_MS);
	g->doubts_due = true;
}

static void ask_due(struct group *g, uint32_t rank)
{
	const struct peer *peer = peer_get(g->coll->worker, group_member(g, rank));

	if (leave_has(g, rank))
		return;
	if (peer && peer->conn.state != PEER_IDLE)
		leave_ask(g, rank);
	else
		leave_doubt_again(g, rank);
}

void leave_poll(struct group *g)
{
	if (!g->doubts_due || g->err)
		return;
	g->doubts_due = false;
	for (uint32_t i = 0; i <= g->size / 64; i++)
		while (g->doubts[i].due) {
			uint32_t bit = (uint32_t)__builtin_ctzll(g->doubts[i].due);

			g->doubts[i].due &= g->doubts[i].due - 1;
			ask_due(g, i * 64 + bit);
		}
}

/* All earlier messages and answers of the member have arrived before its LEAVE. */
static void note_left(struct group *g, const struct peer *from, uint32_t rank)
{
	if (!g->left)
		g->left = calloc(g->size / 64 + 1, sizeof(*g->left));
	if (!g->left) {
		group_fail(g, FI_ENOMEM);
		return;
	}
	g->left[rank / 64] |= UINT64_C(1) << rank % 64;
	LIST_EACH (node, &g->ops)
		if (exchange_waits_for(LIST_ENTRY(node, struct op, in_group), rank))
			group_fail(g, FI_ECONNABORTED);
	if (exchange_awaits_ats(g, from))
		group_fail(g, FI_ECONNABORTED);
}

/* Never returns FI_ECANCELED, which error counters would not count. */
static int reason_of(const struct wire_group *abort)
{
	if (!abort->error)
		return FI_ECONNRESET;
	return abort->error == FI_ECANCELED ? FI_ECONNABORTED : (int)abort->error;
}

static void leave_note(struct group *g, struct peer *from, const struct wire_group *msg)
{
	if (!member_may(g, from, msg))
		member_refuse(g->coll, from, msg);
	else if (g->err)
		return;
	else if (msg->kind == WIRE_GROUP_ABORT)
		group_fail(g, reason_of(msg));
	else
		note_left(g, from, msg->rank);
}

static bool was_left(const struct coll *c, uint64_t id)
{
	for (unsigned int i = 0; i < COLL_LEFT; i++)
		if (c->left[i] == id)
			return true;
	return false;
}

/* Returns the join of this key that waits for DOWN, that is, for its group to be formed. */
static struct group *leave_pending(const struct coll *c, uint64_t key)
{
	LIST_EACH_OF (struct group, g, &c->joins, in_joins) {
		if (g->join.key == key && g->join.reported)
			return g;
	}
	return NULL;
}

/* A message about a group that is not formed here. */
enum early {
	PAST,  /* the group will not be formed here */
	AHEAD, /* it may be formed here */
	FORGED /* it may be, but the sender is not the member that may send the message */
};

static enum early leave_early(const struct coll *c, const struct peer *from,
			      const struct wire_group *msg)
{
	struct group *g;

	/* The members are not known before the join. */
	if (msg->id & MANAGED_ID)
		return managed_ahead(c, msg->id) ? AHEAD : PAST;
	g = was_left(c, msg->id) ? NULL : leave_pending(c, msg->key);
	if (!g)
		return PAST;
	return member_may(g, from, msg) ? AHEAD : FORGED;
}

void leave_hear(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = group_find(c, msg->id);
	enum early when;

	if (g) {
		leave_note(g, from, msg);
		return;
	}
	when = leave_early(c, from, msg);
	if (when == AHEAD)
		kept_add(c, from, msg);
	else if (when == FORGED)
		member_refuse(c, from, msg);
}

void leave_hear_ask(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = group_find(c, msg->id);
	enum early when = g ? AHEAD : leave_early(c, from, msg);
	struct wire_group answer = *msg;

	if (g ? !member_may(g, from, msg) : when == FORGED) {
		member_refuse(c, from, msg);
		return;
	}
	if (g && g->err)
		group_answer(g, from);
	if (when != PAST)
		return;
	answer.kind = WIRE_GROUP_LEAVE;
	answer.error = 0;
	coll_answer(from, &answer);
}

void leave_take(struct group *g)
{
	struct coll *c = g->coll;

	LIST_EACH_SAFE_OF (struct kept_message, w, &c->leaves, link) {
		if (w->msg.id != g->id)
			continue;
		leave_note(g, w->from, &w->msg);
		kept_drop(c, w);
	}
}

void leave_flush(struct coll *c)
{
	LIST_EACH_SAFE_OF (struct kept_message, w, &c->leaves, link) {
		if (!(w->msg.id & MANAGED_ID))
			kept_drop(c, w);
	}
}
