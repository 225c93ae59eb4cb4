/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles control messages about joins: see join.c. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "coll/group/join.h"
#include "xfer/worker.h"

/*
 * Limits of kept control messages: for each of the lists coll->kept and coll->leaves, in all and
 * per peer.
 */
#define KEPT_MAX         65536
#define KEPT_OF_PEER_MAX 4096

/* Tells a sender that its join of `key` fails. */
static void refuse(struct peer *to, uint64_t key, uint32_t attempt, int err)
{
	struct wire_group msg = {
		.kind = WIRE_GROUP_FAIL, .error = (uint32_t)err, .attempt = attempt, .key = key};

	coll_answer(to, &msg);
}

static void hear_up(struct group *g, struct peer *from, const struct wire_group *msg)
{
	uint32_t step = msg->rank - g->rank;
	unsigned int k;

	/* The report answers the PROBE of an earlier join, which is formed by now. */
	if (msg->id && msg->id != g->serial)
		return;
	if (!step || step & (step - 1) || !(g->join.children & step) ||
	    !group_has(g, msg->rank, from))
		return;
	k = (unsigned int)__builtin_ctz(step);
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
	struct wire_group abort = {
		.kind = WIRE_GROUP_ABORT, .error = FI_ECONNABORTED, .id = msg->id};
	struct group *g = join_find(c, msg->key);

	if (g && g->join.reported && g->rank && msg->attempt == g->join.attempt && msg->id &&
	    group_has(g, join_parent(g->rank), from)) {
		g->cpus = msg->cpus;
		g->shares = msg->shares;
		join_formed(g, msg->id);
	} else {
		coll_answer(from, &abort);
	}
}

/* Returns the open group of this key, formed or failed. */
static struct group *find_past(struct coll *c, uint64_t key)
{
	LIST_EACH (node, &c->groups) {
		struct group *g = LIST_ENTRY(node, struct group, in_coll);

		if (g->join.key == key)
			return g;
	}
	return NULL;
}

/* PROBE: a member waits for us in a join that we have not begun. */
static void hear_probe(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	uint64_t now = clock_coarse_ms(), patience = (uint64_t)env_get()->join_timeout;

	LIST_EACH (node, &c->joins) {
		struct group *g = LIST_ENTRY(node, struct group, in_joins);
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
static void hear_ask(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = join_find(c, msg->key);

	if (!g || find_past(c, msg->id))
		return;
	LOG_WARN(
		LOG_EP_CTRL,
		"join: we wait for fi_addr %llu in a group of %u, but it waits for us in one of %u",
		(unsigned long long)peer_addr(from), g->size, msg->size);
	refuse(from, msg->id, msg->attempt, FI_EINVAL);
	join_fail(g, FI_EINVAL);
}

/* Index of kept_count: 0 for `kept`, 1 for `leaves`. */
static unsigned int sort_of(const struct wire_group *msg)
{
	return msg->kind == WIRE_GROUP_LEAVE || msg->kind == WIRE_GROUP_ABORT;
}

void join_keep(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	unsigned int sort = sort_of(msg);
	struct join_message *w;

	if (c->kept_count[sort] >= KEPT_MAX || from->kept_controls[sort] >= KEPT_OF_PEER_MAX ||
	    !(w = malloc(sizeof(*w)))) {
		LOG_WARN(
			LOG_EP_CTRL,
			"join dropped: %zu control messages for unknown groups are queued already, %u of the same peer",
			c->kept_count[sort], from->kept_controls[sort]);
		return;
	}
	*w = (struct join_message){.from = pool_id(from), .msg = *msg};
	list_push(sort ? &c->leaves : &c->kept, &w->link);
	c->kept_count[sort]++;
	from->kept_controls[sort]++;
}

void join_drop(struct coll *c, struct join_message *w)
{
	struct peer *from = pool_find(&c->worker->peer_pool, w->from);
	unsigned int sort = sort_of(&w->msg);

	list_remove(&w->link);
	c->kept_count[sort]--;
	if (from)
		from->kept_controls[sort]--;
	free(w);
}

/* The other members are at a later attempt: one failed that we had not begun. */
static void renew(struct group *g, uint32_t attempt)
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

/* Returns false if the message is about an old attempt, or the join has ended. */
static bool current(struct group *g, struct peer *from, const struct wire_group *msg)
{
	if (msg->attempt < g->join.attempt) {
		if (msg->kind != WIRE_GROUP_FAIL)
			refuse(from, msg->key, msg->attempt, FI_ECANCELED);
		return false;
	}
	if (msg->attempt > g->join.attempt && msg->kind != WIRE_GROUP_FAIL &&
	    group_rank(g, from) < g->size)
		renew(g, msg->attempt);
	return !list_empty(&g->in_joins);
}

/* Repeats our report to the parent, which has not kept it. */
static void tell_again(struct group *g, struct peer *from, const struct wire_group *probe)
{
	struct wire_group up = join_say_what(g, WIRE_GROUP_UP);

	up.id = probe->id;
	if (g->join.reported && g->rank && group_has(g, join_parent(g->rank), from))
		coll_answer(from, &up);
}

/* Handles a message about a join that is active here. */
static void hear(struct group *g, struct peer *from, const struct wire_group *msg)
{
	if (!current(g, from, msg))
		return;
	switch (msg->kind) {
	case WIRE_GROUP_UP:
		hear_up(g, from, msg);
		break;
	case WIRE_GROUP_PROBE:
		tell_again(g, from, msg);
		break;
	case WIRE_GROUP_FAIL:
		if (group_rank(g, from) < g->size)
			join_fail(g, msg->error ? (int)msg->error : FI_EINVAL);
		break;
	default:
		break;
	}
}

/* Handles a message about any other join. */
static void hear_other(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	const struct join_failure *f = join_failure_of(c, msg->key);
	struct group *past = find_past(c, msg->key);

	if (msg->kind == WIRE_GROUP_UP && f && msg->attempt <= f->attempt)
		refuse(from, msg->key, msg->attempt, FI_ECANCELED);
	else if (past && past->err && !past->id && msg->kind != WIRE_GROUP_FAIL &&
		 msg->attempt <= past->join.attempt)
		refuse(from, msg->key, msg->attempt, past->err);
	else if (msg->kind == WIRE_GROUP_PROBE)
		hear_probe(c, from, msg);
	else if (msg->kind == WIRE_GROUP_UP && !msg->id)
		join_keep(c, from, msg);
	else if (msg->kind == WIRE_GROUP_FAIL)
		join_note_failure(c, msg->key, msg->attempt);
}

void join_hear(struct coll *c, struct peer *from, const struct wire_group *msg)
{
	struct group *g = join_find(c, msg->key);

	if (msg->kind == WIRE_GROUP_ASK)
		hear_ask(c, from, msg);
	else if (msg->kind == WIRE_GROUP_DOWN)
		hear_down(c, from, msg);
	else if (g)
		hear(g, from, msg);
	else
		hear_other(c, from, msg);
}

/* Handles messages about the join that came before it began; it may fail by that. */
void join_hear_kept(struct group *g)
{
	struct coll *c = g->coll;

	LIST_EACH_SAFE (node, &c->kept) {
		struct join_message *w = LIST_ENTRY(node, struct join_message, link);
		struct peer *from = pool_find(&c->worker->peer_pool, w->from);
		struct wire_group msg = w->msg;

		/* Only the first message of each sender: later ones are about the next join. */
		if (msg.key != g->join.key ||
		    (msg.rank > g->rank && g->join.arrived & (msg.rank - g->rank)))
			continue;
		join_drop(c, w);
		if (!from)
			continue;
		hear(g, from, &msg);
		/* The list may have changed. */
		if (list_empty(&g->in_joins))
			return;
	}
}
