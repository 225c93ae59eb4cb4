/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins. Members who have different ideas of a group would wait for ever: each in a join that the other does not
 * know. That the other has not begun it yet is no reason to give up, so after a while we ask those we wait
 * for (PROBE). Who does not know our join, and waits long in one that we belong to, asks back (ASK); if we
 * do not know that one, both fail. A join that fails does so for all who take part in it.
 */
#include "coll/join.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "core/av_set.h"
#include "core/ep.h"
#include "xfer/port.h"

#define KEPT_MAX      65536 /* words about joins that were not begun here */
#define PROBE_MS      100   /* until we first ask those we wait for, */
#define PROBE_NEXT_MS 1000  /* and ask again */

/* ---- The tree --------------------------------------------------------------------------------- */

/* Rank 0 is the root; a rank's parent is the rank without its lowest bit. */
static uint32_t parent_of(uint32_t rank)
{
	return rank & (rank - 1);
}

static uint32_t children_of(const struct group *g)
{
	uint32_t bits = 0;

	for (unsigned int k = 0; k < GROUP_LINKS && g->rank + (UINT64_C(1) << k) < g->size; k++) {
		if (g->rank & (1u << k))
			break;
		bits |= 1u << k;
	}
	return bits;
}

/* The next child in a set of them, taken out; its rank is returned, its bit's number in *k. */
static uint32_t next_child(const struct group *g, uint32_t *bits, unsigned int *k)
{
	*k = (unsigned int)__builtin_ctz(*bits);
	*bits &= *bits - 1;
	return g->rank + (1u << *k);
}

/* ---- Saying ----------------------------------------------------------------------------------- */

static struct wire_group word_of(const struct group *g, enum wire_group_kind kind)
{
	return (struct wire_group){.kind = kind,
				   .rank = g->rank,
				   .size = g->size,
				   .attempt = g->join.attempt,
				   .key = g->join.key,
				   .id = g->id};
}

static int say(struct group *g, uint32_t rank, enum wire_group_kind kind)
{
	struct wire_group word = word_of(g, kind);

	return coll_say(g->coll, group_member(g, rank), &word);
}

/* Somebody who is not told by those in the group is: its join of `key` is in vain. */
static void refuse(struct peer *to, uint64_t key, uint32_t attempt, int err)
{
	struct wire_group word = {
		.kind = WIRE_GROUP_FAIL, .error = (uint32_t)err, .attempt = attempt, .key = key};

	coll_answer(to, &word);
}

/* ---- Ends ------------------------------------------------------------------------------------- */

static struct join_failure *find_failure(struct coll *c, uint64_t key)
{
	LIST_EACH (node, &c->failures) {
		struct join_failure *f = LIST_ENTRY(node, struct join_failure, link);

		if (f->key == key)
			return f;
	}
	return NULL;
}

static void drop(struct coll *c, struct join_word *w)
{
	list_remove(&w->link);
	c->kept_count--;
	free(w);
}

/* An attempt has failed; what is heard of it, or of those before, is old from now on. */
static void note_failure(struct coll *c, uint64_t key, uint32_t attempt)
{
	struct join_failure *f = find_failure(c, key);

	if (!f) {
		f = malloc(sizeof(*f));
		if (!f)
			return;
		*f = (struct join_failure){.key = key};
		list_push(&c->failures, &f->link);
	}
	if (attempt > f->attempt)
		f->attempt = attempt;
	LIST_EACH_SAFE (node, &c->kept) {
		struct join_word *w = LIST_ENTRY(node, struct join_word, link);

		if (w->word.key == key && w->word.attempt <= f->attempt)
			drop(c, w);
	}
}

static struct group *find_join(struct coll *c, uint64_t key)
{
	LIST_EACH (node, &c->joins) {
		struct group *g = LIST_ENTRY(node, struct group, in_joins);

		if (g->join.key == key && g->join.active)
			return g;
	}
	return NULL;
}

static void begin(struct group *g);

/* One of this key less is pending: the next has its turn. */
static void leave(struct group *g)
{
	struct coll *c = g->coll;

	list_remove(&g->in_joins);
	LIST_EACH (node, &c->joins) {
		struct group *next = LIST_ENTRY(node, struct group, in_joins);

		if (next->join.key != g->join.key || next->join.active)
			continue;
		begin(next);
		return;
	}
}

void join_fail(struct group *g, int err)
{
	struct wire_group word = word_of(g, WIRE_GROUP_FAIL);
	bool active = g->join.active;

	LOG_WARN(LOG_EP_CTRL, "the join of a group of %u comes to nothing: %s", g->size,
		 fi_strerror(err));
	list_remove(&g->in_broken);
	group_refuse(g, err);
	word.error = (uint32_t)err;
	if (active) {
		note_failure(g->coll, g->join.key, g->join.attempt);
		group_tell(g, &word);
	}
	leave(g);
}

static void formed(struct group *g, uint64_t id)
{
	struct coll *c = g->coll;
	struct wire_group word = word_of(g, WIRE_GROUP_DOWN);
	uint32_t children = g->join.children;
	unsigned int k;

	if (group_find(c, id)) {
		LOG_WARN(LOG_EP_CTRL, "two groups have the number %#llx", (unsigned long long)id);
		join_fail(g, FI_EADDRINUSE);
		return;
	}
	word.id = id;
	while (children) {
		uint32_t rank = next_child(g, &children, &k);

		word.attempt = g->join.attempts[k];
		coll_say(c, group_member(g, rank), &word);
	}
	group_form(g, id);
	leave(g);
}

/* One that no other endpoint gives, nor we again. */
static uint64_t new_id(struct coll *c)
{
	uint64_t id = (c->port->incarnation * UINT64_C(0x9e3779b97f4a7c15) + ++c->made) &
		      ~GROUP_ID_MANAGED;

	return id ? id : new_id(c);
}

/* All below us have joined? */
static void check(struct group *g)
{
	int err;

	if (g->join.arrived != g->join.children || g->join.told)
		return;
	g->join.told = true;
	if (!g->rank) {
		formed(g, new_id(g->coll));
		return;
	}
	err = say(g, parent_of(g->rank), WIRE_GROUP_UP);
	if (err)
		join_fail(g, -err);
}

/* ---- Hearing ---------------------------------------------------------------------------------- */

static void hear_up(struct group *g, struct peer *from, const struct wire_group *word)
{
	uint32_t step = word->rank - g->rank;
	unsigned int k;

	if (!step || step & (step - 1) || !(g->join.children & step) ||
	    !group_has(g, word->rank, from))
		return;
	k = (unsigned int)__builtin_ctz(step);
	g->join.arrived |= step;
	g->join.attempts[k] = word->attempt;
	check(g);
}

/* Where it comes too late the others are told that we are not there. */
static void hear_down(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct wire_group gone = {.kind = WIRE_GROUP_ABORT, .error = FI_ECANCELED, .id = word->id};
	struct group *g = find_join(c, word->key);

	if (g && g->join.told && g->rank && word->attempt == g->join.attempt && word->id &&
	    group_has(g, parent_of(g->rank), from))
		formed(g, word->id);
	else
		coll_answer(from, &gone);
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
		ask = word_of(g, WIRE_GROUP_ASK);
		ask.key = word->key;
		ask.id = g->join.key;
		coll_answer(from, &ask);
	}
}

/* Somebody does not know a join of ours, and asks for one of his. */
static void hear_ask(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct group *g = find_join(c, word->key);

	if (!g || find_past(c, word->id))
		return;
	LOG_WARN(LOG_EP_CTRL,
		 "join: we wait for fi_addr %llu in a group of %u, it waits for us in one of %u",
		 (unsigned long long)peer_addr(from), g->size, word->size);
	refuse(from, word->id, word->attempt, FI_EINVAL);
	join_fail(g, FI_EINVAL);
}

static void keep(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct join_word *w;

	if (c->kept_count >= KEPT_MAX || !(w = malloc(sizeof(*w)))) {
		LOG_WARN(LOG_EP_CTRL, "a word about a join is lost: %zu are kept already",
			 c->kept_count);
		return;
	}
	*w = (struct join_word){.from = pool_id(from), .word = *word};
	list_push(&c->kept, &w->link);
	c->kept_count++;
}

/* Others are at a later attempt: one that we had not begun has failed before. */
static void renew(struct group *g, uint32_t attempt)
{
	uint32_t children = g->join.children;
	unsigned int k;

	g->join.attempt = attempt;
	g->join.told = false;
	while (children) {
		uint32_t rank = next_child(g, &children, &k);

		if (g->join.attempts[k] >= attempt)
			continue;
		g->join.arrived &= ~(1u << k);
		say(g, rank, WIRE_GROUP_PROBE);
	}
	check(g);
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

/* About a join that is active here. */
static void hear(struct group *g, struct peer *from, const struct wire_group *word)
{
	if (!current(g, from, word))
		return;
	switch (word->kind) {
	case WIRE_GROUP_UP:
		hear_up(g, from, word);
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
	const struct join_failure *f = find_failure(c, word->key);
	struct group *past = find_past(c, word->key);

	if (word->kind == WIRE_GROUP_UP && f && word->attempt <= f->attempt)
		refuse(from, word->key, word->attempt, FI_ECANCELED);
	else if (past && past->err && !past->id && word->kind != WIRE_GROUP_FAIL)
		refuse(from, word->key, word->attempt, past->err);
	else if (word->kind == WIRE_GROUP_PROBE)
		hear_probe(c, from, word);
	else if (word->kind == WIRE_GROUP_UP)
		keep(c, from, word);
	else if (word->kind == WIRE_GROUP_FAIL)
		note_failure(c, word->key, word->attempt);
}

void join_hear(struct coll *c, struct peer *from, const struct wire_group *word)
{
	struct group *g = find_join(c, word->key);

	if (word->kind == WIRE_GROUP_ASK)
		hear_ask(c, from, word);
	else if (word->kind == WIRE_GROUP_DOWN)
		hear_down(c, from, word);
	else if (g)
		hear(g, from, word);
	else
		hear_other(c, from, word);
}

/* ---- Beginning -------------------------------------------------------------------------------- */

/* What came about it before it began; it may end by that. */
static void hear_kept(struct group *g)
{
	struct coll *c = g->coll;

	LIST_EACH_SAFE (node, &c->kept) {
		struct join_word *w = LIST_ENTRY(node, struct join_word, link);
		struct peer *from = pool_find(&c->port->peer_pool, w->from);
		struct wire_group word = w->word;

		/* Each sender's first: what else it said is about the next one. */
		if (word.key != g->join.key ||
		    (word.rank > g->rank && g->join.arrived & (word.rank - g->rank)))
			continue;
		drop(c, w);
		if (!from)
			continue;
		hear(g, from, &word);
		/* The list may be another one now. */
		if (list_empty(&g->in_joins))
			return;
	}
}

/* Those we wait for have to be watched: they may be dead already. */
static int reach_all(struct group *g)
{
	uint32_t children = g->join.children;
	int err = g->rank ? coll_reach(g->coll, group_member(g, parent_of(g->rank))) : 0;
	unsigned int k;

	while (children && !err)
		err = coll_reach(g->coll, group_member(g, next_child(g, &children, &k)));
	return err;
}

static void begin(struct group *g)
{
	const struct join_failure *f = find_failure(g->coll, g->join.key);
	int err;

	g->join.active = true;
	g->join.attempt = f ? f->attempt + 1 : 1;
	g->join.since = clock_coarse_ms();
	g->join.probe_at = g->join.since + PROBE_MS;
	g->join.children = children_of(g);
	err = reach_all(g);
	if (err) {
		join_fail(g, -err);
		return;
	}
	hear_kept(g);
	if (!list_empty(&g->in_joins))
		check(g);
}

void join_start(struct group *g)
{
	struct coll *c = g->coll;
	bool first = !find_join(c, g->join.key);

	list_push(&c->joins, &g->in_joins);
	if (first)
		begin(g);
}

/* ---- Looking ---------------------------------------------------------------------------------- */

static void probe(struct group *g)
{
	uint32_t waits = g->join.children & ~g->join.arrived;
	unsigned int k;

	while (waits)
		say(g, next_child(g, &waits, &k), WIRE_GROUP_PROBE);
	if (g->join.told && g->rank)
		say(g, parent_of(g->rank), WIRE_GROUP_PROBE);
}

void join_look(struct coll *c, uint64_t now)
{
	LIST_EACH (node, &c->joins) {
		struct group *g = LIST_ENTRY(node, struct group, in_joins);

		if (!g->join.active || now < g->join.probe_at)
			continue;
		g->join.probe_at = now + PROBE_NEXT_MS;
		probe(g);
	}
}

/* What the peer had said is void; a join with it comes to nothing. */
void join_lost(struct coll *c, struct peer *peer, int err)
{
	LIST_EACH_SAFE (node, &c->kept) {
		struct join_word *w = LIST_ENTRY(node, struct join_word, link);

		if (w->from == pool_id(peer))
			drop(c, w);
	}
	LIST_EACH (node, &c->joins) {
		struct group *g = LIST_ENTRY(node, struct group, in_joins);

		if (group_rank(g, peer) < g->size)
			group_fail(g, err);
	}
}

void join_close(struct coll *c)
{
	LIST_EACH_SAFE (node, &c->kept)
		drop(c, LIST_ENTRY(node, struct join_word, link));
	LIST_EACH_SAFE (node, &c->failures)
		free(LIST_ENTRY(node, struct join_failure, link));
}
