/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles control messages about joins: see join.c. */
#include <rdma/fi_errno.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "coll/group/group.h"

#define PATIENCE 6 /* this part of FI_WEFT_PEER_TIMEOUT */

/* Tells a sender that its join of `key` fails. */
static void join_hear_refuse(struct peer *to, uint64_t key, uint32_t attempt, int err)
{
	struct wire_group msg = {
		.kind = WIRE_GROUP_FAIL, .error = (uint32_t)err, .attempt = attempt, .key = key};

	coll_answer(to, &msg);
}

/* UP of a child. */
static void hear_up(struct group *g, const struct wire_group *msg)
{
	uint32_t step = msg->rank - g->rank; /* a bit of g->join.children: see member.c */
	unsigned int k = (unsigned int)__builtin_ctz(step);

	/* The report answers the PROBE of an earlier join, which is formed by now. */
	if (msg->id && msg->id != g->serial)
		return;
	g->join.arrived |= step;
	g->join.attempts[k] = msg->attempt;
	if (msg->cpus < g->cpus)
		g->cpus = msg->cpus;
	g->shares &= msg->shares;
	join_check(g);
}

/* If the join is not pending here: tells the parent that we are no member. */
static void hear_down(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = join_find(c, msg->key);

	if (g && !member_may(g, from, msg)) {
		member_refuse(c, from, msg);
	} else if (!g || !g->join.reported || msg->attempt != g->join.attempt) {
		early_abort(from, msg->id);
	} else if (!msg->id || msg->id & MANAGED_ID) {
		/* It might be the number of a group that the parent is no member of. */
		LOG_PEER(LOG_EP_CTRL, "join failed: %#llx is no number that a join assigns",
			 (unsigned long long)msg->id);
		join_fail(g, FI_EPROTO);
	} else {
		g->cpus = msg->cpus;
		g->shares = msg->shares;
		join_formed(g, msg->id);
	}
}

/* Returns the open group of this key, formed or failed. */
static struct group *find_past(struct coll *c, uint64_t key)
{
	LIST_EACH_OF (struct group, g, &c->groups, in_coll) {
		if (g->join.key == key)
			return g;
	}
	return NULL;
}

/* How long a join may wait before a member that waits in another one is asked about it. */
static uint64_t patience_ms(void)
{
	int ms = env_get()->peer_timeout;

	return ms > 0 ? (uint64_t)ms / PATIENCE : UINT64_MAX;
}

/* PROBE: a member waits for us in a join that we have not begun. */
static void hear_probe(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	uint64_t now = clock_coarse_ms(), patience = patience_ms();

	LIST_EACH_OF (struct group, g, &c->joins, in_joins) {
		struct wire_group ask;

		if (!g->join.active || now - g->join.since < patience ||
		    group_rank(g, from) == g->size)
			continue;
		ask = join_say_what(g, WIRE_GROUP_ASK);
		ask.key = msg->key;
		ask.id = g->join.key;
		coll_answer(from, &ask);
	}
}

/* ASK: a member does not know our join, and waits for us in its own. */
static void join_hear_ask(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = join_find(c, msg->key);

	if (!g || find_past(c, msg->id))
		return;
	if (!member_may(g, from, msg)) {
		member_refuse(c, from, msg);
		return;
	}
	LOG_PEER(
		LOG_EP_CTRL,
		"join: we wait for fi_addr %llu in a group of %u, but it waits for us in one of %u",
		(unsigned long long)contact_addr(&from->conn), g->size, msg->size);
	join_hear_refuse(from, msg->id, msg->attempt, FI_EINVAL);
	join_fail(g, FI_EINVAL);
}

/* The other members are at a later attempt: one failed that we had not begun. */
static void join_hear_renew(struct group *g, uint32_t attempt)
{
	uint32_t children = g->join.children;
	unsigned int k;

	g->join.attempt = attempt;
	g->join.reported = false;
	while (children) {
		uint32_t rank = join_child(g, &children, &k);

		if (g->join.attempts[k] >= attempt)
			continue;
		g->join.arrived &= ~(1u << k);
		join_say(g, rank, WIRE_GROUP_PROBE);
	}
	join_check(g);
}

/* A member's message. Returns false if it is about an old attempt, or the join has ended. */
static bool join_hear_current(struct group *g, struct peer *from, const struct wire_group *msg)
{
	if (msg->attempt < g->join.attempt) {
		if (msg->kind != WIRE_GROUP_FAIL)
			join_hear_refuse(from, msg->key, msg->attempt, FI_ECANCELED);
		return false;
	}
	if (msg->attempt > g->join.attempt && msg->kind != WIRE_GROUP_FAIL)
		join_hear_renew(g, msg->attempt);
	return !list_empty(&g->in_joins);
}

/* Repeats our report to the parent, which has not kept it. */
static void tell_again(struct group *g, struct peer *from, const struct wire_group *probe)
{
	struct wire_group up = join_say_what(g, WIRE_GROUP_UP);

	up.id = probe->id;
	if (g->join.reported && g->rank && probe->rank == join_parent(g->rank))
		coll_answer(from, &up);
}

/* Handles a message about a join that is active here. */
static void join_hear_member(struct group *g, struct peer *from, const struct wire_group *msg)
{
	if (!member_may(g, from, msg)) {
		member_refuse(g->coll, from, msg);
		return;
	}
	if (!join_hear_current(g, from, msg))
		return;
	switch (msg->kind) {
	case WIRE_GROUP_UP:
		hear_up(g, msg);
		break;
	case WIRE_GROUP_PROBE:
		tell_again(g, from, msg);
		break;
	case WIRE_GROUP_FAIL:
		join_fail(g, msg->error ? (int)msg->error : FI_EINVAL);
		break;
	default:
		break;
	}
}

/*
 * FAIL of a join that is not active here. If a group of its members is open here, it is known
 * whether the sender is one; else it will be when the next join of that key begins.
 */
static void hear_fail(struct coll *c, struct peer *from, const struct wire_group *msg,
		      struct group *past)
{
	const struct join_failure *f = join_failure_of(c, msg->key);

	if (f && msg->attempt <= f->attempt)
		return;
	if (past && member_may(past, from, msg))
		join_note_failure(c, msg->key, msg->attempt);
	else
		kept_add(c, from, msg);
}

/* Handles a message about a join that is not active here. Answers go to its sender alone. */
static void hear_other(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	const struct join_failure *f = join_failure_of(c, msg->key);
	struct group *past = find_past(c, msg->key);

	if (msg->kind == WIRE_GROUP_UP && f && msg->attempt <= f->attempt)
		join_hear_refuse(from, msg->key, msg->attempt, FI_ECANCELED);
	else if (past && past->err && !past->id && msg->kind != WIRE_GROUP_FAIL &&
		 msg->attempt <= past->join.attempt)
		join_hear_refuse(from, msg->key, msg->attempt, past->err);
	else if (msg->kind == WIRE_GROUP_PROBE)
		hear_probe(c, from, msg);
	else if (msg->kind == WIRE_GROUP_UP && !msg->id)
		kept_add(c, from, msg);
	else if (msg->kind == WIRE_GROUP_FAIL)
		hear_fail(c, from, msg, past);
}

void join_hear(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = join_find(c, msg->key);

	if (msg->kind == WIRE_GROUP_ASK)
		join_hear_ask(c, from, msg);
	else if (msg->kind == WIRE_GROUP_DOWN)
		hear_down(c, from, msg);
	else if (g)
		join_hear_member(g, from, msg);
	else
		hear_other(c, from, msg);
}

void join_hear_failures(struct group *g)
{
	struct coll *c = g->coll;
	uint32_t last = 0;

	LIST_EACH_SAFE_OF (struct kept_message, w, &c->kept, link) {
		if (w->msg.key != g->join.key || w->msg.kind != WIRE_GROUP_FAIL)
			continue;
		if (!member_may(g, w->from, &w->msg))
			member_refuse(c, w->from, &w->msg);
		else if (w->msg.attempt > last)
			last = w->msg.attempt;
		kept_drop(c, w);
	}
	if (last)
		join_note_failure(c, g->join.key, last);
}

/* Is this a member's second report? It is about the next join. */
static bool is_second(struct group *g, const struct kept_message *w)
{
	uint32_t rank = w->msg.rank;

	return rank > g->rank && g->join.arrived & (rank - g->rank) &&
	       member_may(g, w->from, &w->msg);
}

void join_hear_kept(struct group *g)
{
	struct coll *c = g->coll;

	LIST_EACH_SAFE_OF (struct kept_message, w, &c->kept, link) {
		struct peer *from = w->from;
		struct wire_group msg = w->msg;

		if (msg.key != g->join.key || is_second(g, w))
			continue;
		kept_drop(c, w);
		join_hear_member(g, from, &msg);
		/* The list may have changed. */
		if (list_empty(&g->in_joins))
			return;
	}
}
