/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "xfer/msg/rx.h"

static uint32_t rank_of(uint64_t tag)
{
	return tag & WIRE_GROUP_RANK_MASK;
}

/* May a pending join form a group in which the peer has this rank? */
static bool early_awaited(const struct coll *c, uint32_t rank, const struct peer *peer)
{
	LIST_EACH (node, &c->joins)
		if (group_has(LIST_ENTRY(node, struct group, in_joins), rank, peer))
			return true;
	return false;
}

void early_abort(struct peer *peer, uint64_t id)
{
	struct wire_group abort = {.kind = WIRE_GROUP_ABORT, .error = FI_ECONNABORTED, .id = id};

	coll_answer(peer, &abort);
}

struct rx *early_context(struct coll *c, struct peer *peer, const struct packet *p)
{
	uint64_t id = p->data;

	if (id & MANAGED_ID ? managed_ahead(c, id) : early_awaited(c, rank_of(p->tag), peer))
		return &c->early;
	early_abort(peer, id);
	return NULL;
}

static bool from_member(struct group *g, const struct unexpected *u)
{
	uint32_t rank = rank_of(u->tag);

	if (u->peer)
		return group_has(g, rank, u->peer);
	return rank < g->size && group_member(g, rank) == u->src;
}

void early_take(struct group *g)
{
	struct rx *from = &g->coll->early;

	LIST_EACH_SAFE_OF (struct unexpected, u, &from->unexpected[1], link) {
		if (u->data != g->id)
			continue;
		rx_take(from, u);
		if (from_member(g, u)) {
			rx_give(&g->rx, u);
			continue;
		}
		member_refuse_message(g->coll, u->peer, u->tag);
		rx_refuse(u);
		rx_drop(u);
	}
}

void early_flush(struct coll *c)
{
	LIST_EACH_SAFE_OF (struct unexpected, u, &c->early.unexpected[1], link) {
		if (u->data & MANAGED_ID)
			continue;
		rx_take(&c->early, u);
		if (u->peer)
			early_abort(u->peer, u->data);
		rx_refuse(u);
		rx_drop(u);
	}
}

/* Keeps complete messages of disconnected peers, unless such messages already exceed the limit. */
void early_peer_failed(struct coll *c, struct peer *peer)
{
	struct rx *rx = &c->early;
	bool full = rx->unexpected_bytes > rx->unexpected_max;

	LIST_EACH_SAFE_OF (struct unexpected, u, &rx->unexpected[1], link) {
		if (u->peer != peer || !full)
			continue;
		rx_take(rx, u);
		rx_drop(u);
	}
	rx_forget_peer(rx, peer);
}

/* ---- Short messages that came before their operation waited for them ------------------------- */

bool early_queue_put(struct early_queue *s, const struct packet *p)
{
	struct early_message *m = &s->message[s->count];

	if (s->count == EARLY_QUEUE_MESSAGES || p->len > EARLY_QUEUE_BYTES ||
	    wire_op(p->head) != WIRE_MSG || rx_wants_ack(p->head))
		return false;
	m->tag = p->tag;
	m->len = p->len;
	if (p->len)
		memcpy(m->payload, p->payload, p->len);
	s->count++;
	return true;
}

struct early_message *early_queue_find(struct early_queue *s, uint64_t tag)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!((s->message[i].tag ^ tag) & ~WIRE_GROUP_WHAT_MASK))
			return &s->message[i];
	return NULL;
}

void early_queue_drop(struct early_queue *s, struct early_message *m)
{
	size_t after = (size_t)(&s->message[s->count] - m) - 1;

	s->count--;
	if (after)
		memmove(m, m + 1, after * sizeof(*m));
}
