/* SPDX-License-Identifier: BSD-2-Clause */
/* What others say about joins: see join.c. */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "coll/group/join.h"
#include "xfer/worker.h"

/* Words about joins that were not begun here, or ends of groups that do not stand here: each of these. */
#define KEPT_MAX         65536
#define KEPT_OF_PEER_MAX 4096

/* Somebody who is not told by those in the group is: its join of `key` is in vain. */
static void refuse(struct peer *to, uint64_t key, uint32_t attempt, int err)
{
	struct wire_group word = {
		.kind = WIRE_GROUP_FAIL, .error = (uint32_t)err, .attempt = attempt, .key = key};

	coll_answer(to, &word);
}

static void hear_up(struct group *g, struct peer *from, const struct wire_group *word)
{
	uint32_t step = word->rank - g->rank;
	unsigned int k;

	/* It may answer what we asked in a join that stands by now. */
	if (word->id && word->id != g->serial)
		return;
	if (!step || step & (step - 1) || !(g->join.children & step) ||
	    !group_has(g, word->rank, from))
		return;
	k = (unsigned int)__builtin_ctz(step);
	g->join.arrived |= step;
	g->join.attempts[k] = word->attempt;
	if (word->cpus < g->cpus)
		g->cpus = word->cpus;
	g->shares &= word->shares;
	join_check(g);
}

/* Where it comes too late the others are told that we are not there. */
static void hear_down(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct wire_group gone = {
		.kind = WIRE_GROUP_ABORT, .error = FI_ECONNABORTED, .id = word->id};
	struct group *g = join_find(c, word->key);

	if (g && g->join.told && g->rank && word->attempt == g->join.attempt && word->id &&
	    group_has(g, join_parent(g->rank), from)) {
		g->cpus = word->cpus;
		g->shares = word->shares;
		join_formed(g, word->id);
	} else {
		coll_answer(from, &gone);
	}
}

/* One of us that is over, or stands. */
static struct group *find_past(struct coll *c, uint64_t key)
{
	LIST_EACH (node, &c->groups) {
		struct group *g = LIST_ENTRY(node, struct group, in_coll);

		if (g->join.key == key)
			return g;
	}
	return NULL;
}

/* Somebody waits for us in a join that we do not know. */
static void hear_probe(struct coll *c, struct peer *from, const struct wire_group *word)
{
	uint64_t now = clock_coarse_ms(), patience = (uint64_t)env_get()->join_timeout;

	LIST_EACH (node, &c->joins) {
		struct group *g = LIST_ENTRY(node, struct group, in_joins);
		struct wire_group ask;

		if (!g->join.active || now - g->join.since < patience ||
		    group_rank(g, from) == g->size)
			continue;
		ask = join_say_what(g, WIRE_GROUP_ASK);
		ask.key = word->key;
		ask.id = g->join.key;
		coll_answer(from, &ask);
	}
}

/* Somebody does not know a join of ours, and asks for one of his. */
static void hear_ask(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct group *g = join_find(c, word->key);

	if (!g || find_past(c, word->id))
		return;
	LOG_WARN(LOG_EP_CTRL,
		 "join: we wait for fi_addr %llu in a group of %u, it waits for us in one of %u",
		 (unsigned long long)peer_addr(from), g->size, word->size);
	refuse(from, word->id, word->attempt, FI_EINVAL);
	join_fail(g, FI_EINVAL);
}

/* Which of the two lists, and counts. */
static unsigned int sort_of(const struct wire_group *word)
{
	return word->kind == WIRE_GROUP_LEAVE || word->kind == WIRE_GROUP_ABORT;
}

void join_keep(struct coll *c, struct peer *from, const struct wire_group *word)
{
	unsigned int sort = sort_of(word);
	struct join_message *w;

	if (c->kept_count[sort] >= KEPT_MAX || from->kept_controls[sort] >= KEPT_OF_PEER_MAX ||
	    !(w = malloc(sizeof(*w)))) {
		LOG_WARN(LOG_EP_CTRL,
			 "a word about a join is lost: %zu are kept already, %u of the same peer",
			 c->kept_count[sort], from->kept_controls[sort]);
		return;
	}
	*w = (struct join_message){.from = pool_id(from), .word = *word};
	list_push(sort ? &c->leaves : &c->kept, &w->link);
	c->kept_count[sort]++;
	from->kept_controls[sort]++;
}

void join_drop(struct coll *c, struct join_message *w)
{
	struct peer *from = pool_find(&c->worker->peer_pool, w->from);
	unsigned int sort = sort_of(&w->word);

	list_remove(&w->link);
	c->kept_count[sort]--;
	if (from)
		from->kept_controls[sort]--;
	free(w);
}

/* Others are at a later attempt: one that we had not begun has failed before. */
static void renew(struct group *g, uint32_t attempt)
{
	uint32_t children = g->join.children;
	unsigned int k;

	g->join.attempt = attempt;
	g->join.told = false;
	while (children) {
		uint32_t rank = join_child(g, &children, &k);

		if (g->join.attempts[k] >= attempt)
			continue;
		g->join.arrived &= ~(1u << k);
		join_say(g, rank, WIRE_GROUP_PROBE);
	}
	join_check(g);
}

/* False: it is about an attempt that is over. */
static bool current(struct group *g, struct peer *from, const struct wire_group *word)
{
	if (word->attempt < g->join.attempt) {
		if (word->kind != WIRE_GROUP_FAIL)
			refuse(from, word->key, word->attempt, FI_ECANCELED);
		return false;
	}
	if (word->attempt > g->join.attempt && word->kind != WIRE_GROUP_FAIL &&
	    group_rank(g, from) < g->size)
		renew(g, word->attempt);
	return !list_empty(&g->in_joins);
}

/* Our parent waits for what we have told: it had no room to keep it. */
static void tell_again(struct group *g, struct peer *from, const struct wire_group *probe)
{
	struct wire_group up = join_say_what(g, WIRE_GROUP_UP);

	up.id = probe->id;
	if (g->join.told && g->rank && group_has(g, join_parent(g->rank), from))
		coll_answer(from, &up);
}

/* About a join that is active here. */
static void hear(struct group *g, struct peer *from, const struct wire_group *word)
{
	if (!current(g, from, word))
		return;
	switch (word->kind) {
	case WIRE_GROUP_UP:
		hear_up(g, from, word);
		break;
	case WIRE_GROUP_PROBE:
		tell_again(g, from, word);
		break;
	case WIRE_GROUP_FAIL:
		if (group_rank(g, from) < g->size)
			join_fail(g, word->error ? (int)word->error : FI_EINVAL);
		break;
	default:
		break;
	}
}

/* About one that is not. */
static void hear_other(struct coll *c, struct peer *from, const struct wire_group *word)
{
	const struct join_failure *f = join_failure_of(c, word->key);
	struct group *past = find_past(c, word->key);

	if (word->kind == WIRE_GROUP_UP && f && word->attempt <= f->attempt)
		refuse(from, word->key, word->attempt, FI_ECANCELED);
	else if (past && past->err && !past->id && word->kind != WIRE_GROUP_FAIL &&
		 word->attempt <= past->join.attempt)
		refuse(from, word->key, word->attempt, past->err);
	else if (word->kind == WIRE_GROUP_PROBE)
		hear_probe(c, from, word);
	else if (word->kind == WIRE_GROUP_UP && !word->id)
		join_keep(c, from, word);
	else if (word->kind == WIRE_GROUP_FAIL)
		join_note_failure(c, word->key, word->attempt);
}

void join_hear(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct group *g = join_find(c, word->key);

	if (word->kind == WIRE_GROUP_ASK)
		hear_ask(c, from, word);
	else if (word->kind == WIRE_GROUP_DOWN)
		hear_down(c, from, word);
	else if (g)
		hear(g, from, word);
	else
		hear_other(c, from, word);
}

/* What came about it before it began; it may end by that. */
void join_hear_kept(struct group *g)
{
	struct coll *c = g->coll;

	LIST_EACH_SAFE (node, &c->kept) {
		struct join_message *w = LIST_ENTRY(node, struct join_message, link);
		struct peer *from = pool_find(&c->worker->peer_pool, w->from);
		struct wire_group word = w->word;

		/* Each sender's first: what else it said is about the next one. */
		if (word.key != g->join.key ||
		    (word.rank > g->rank && g->join.arrived & (word.rank - g->rank)))
			continue;
		join_drop(c, w);
		if (!from)
			continue;
		hear(g, from, &word);
		/* The list may be another one now. */
		if (list_empty(&g->in_joins))
			return;
	}
}
