/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joins. Two members that join different groups would wait for ever, each in a join that the other does not know. The
 * other may just be late, so a member waits a while, then asks (PROBE). A member that does not know the join, and
 * itself waits long in one that the asker belongs to, asks back (ASK). If the asker does not know that one either, both
 * joins fail. A join fails for all its members.
 */
#include "coll/group/group.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sysinfo.h>

#include "base/clock.h"
#include "base/log.h"
#include "xfer/worker.h"

#define FAILURES_MAX  1024 /* limit of remembered failed joins */
#define PROBE_MS      100  /* ms until the first PROBE to the members we wait for */
#define PROBE_NEXT_MS 1000 /* ms between later PROBEs */

/* ---- The tree -------------------------------------------------------------------------------- */

/* Rank 0 is the root. A rank's parent is the rank without its lowest 1 bit. */
uint32_t join_parent(uint32_t rank)
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

uint32_t join_child(const struct group *g, uint32_t *bits, unsigned int *k)
{
	*k = (unsigned int)__builtin_ctz(*bits);
	*bits &= *bits - 1;
	return g->rank + (1u << *k);
}

/* ---- Control messages ------------------------------------------------------------------------ */

struct wire_group join_say_what(const struct group *g, enum wire_group_kind kind)
{
	return (struct wire_group){.kind = kind,
				   .rank = g->rank,
				   .size = g->size,
				   .attempt = g->join.attempt,
				   .cpus = g->cpus,
				   .shares = g->shares,
				   .key = g->join.key,
				   .id = kind == WIRE_GROUP_PROBE ? g->serial : g->id};
}

int join_say(struct group *g, uint32_t rank, enum wire_group_kind kind)
{
	struct wire_group msg = join_say_what(g, kind);

	return coll_say(g->coll, group_member(g, rank), &msg);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

struct join_failure *join_failure_of(struct coll *c, uint64_t key)
{
	LIST_EACH_OF (struct join_failure, f, &c->failures, link) {
		if (f->key == key)
			return f;
	}
	return NULL;
}

static void drop_failure(struct coll *c, struct join_failure *f)
{
	list_remove(&f->link);
	c->failure_count--;
	free(f);
}

void join_note_failure(struct coll *c, uint64_t key, uint32_t attempt)
{
	struct join_failure *f = join_failure_of(c, key);

	if (!f) {
		f = malloc(sizeof(*f));
		if (!f)
			return;
		*f = (struct join_failure){.key = key};
		list_push(&c->failures, &f->link);
		if (++c->failure_count > FAILURES_MAX)
			drop_failure(c, LIST_ENTRY(c->failures.next, struct join_failure, link));
	}
	if (attempt > f->attempt)
		f->attempt = attempt;
	LIST_EACH_SAFE_OF (struct kept_message, w, &c->kept, link) {
		if (w->msg.key == key && w->msg.attempt <= f->attempt)
			kept_drop(c, w);
	}
}

struct group *join_find(struct coll *c, uint64_t key)
{
	LIST_EACH_OF (struct group, g, &c->joins, in_joins) {
		if (g->join.key == key && g->join.active)
			return g;
	}
	return NULL;
}

static void join_begin(struct group *g);

/* A join has ended: begins the next one of the same key. */
static void join_over(struct group *g)
{
	struct coll *c = g->coll;

	list_remove(&g->in_joins);
	LIST_EACH_OF (struct group, next, &c->joins, in_joins) {
		if (next->join.key != g->join.key || next->join.active)
			continue;
		join_begin(next);
		return;
	}
	if (!list_empty(&c->joins))
		return;
	early_flush(c);
	leave_flush(c);
}

void join_fail(struct group *g, int err)
{
	struct wire_group msg = join_say_what(g, WIRE_GROUP_FAIL);
	bool active = g->join.active;

	LOG_WARN(LOG_EP_CTRL, "the join of a group of %u members failed: %s", g->size,
		 fi_strerror(err));
	list_remove(&g->in_broken);
	group_refuse(g, err);
	msg.error = (uint32_t)err;
	if (active) {
		join_note_failure(g->coll, g->join.key, g->join.attempt);
		group_tell(g, &msg);
	}
	join_over(g);
}

void join_formed(struct group *g, uint64_t id)
{
	struct coll *c = g->coll;
	struct wire_group msg = join_say_what(g, WIRE_GROUP_DOWN);
	uint32_t children = g->join.children;
	unsigned int k;

	if (group_find(c, id)) {
		LOG_WARN(LOG_EP_CTRL,
			 "join failed: another group here has the number %#llx already",
			 (unsigned long long)id);
		join_fail(g, FI_EADDRINUSE);
		return;
	}
	msg.id = id;
	while (children) {
		uint32_t rank = join_child(g, &children, &k);

		msg.attempt = g->join.attempts[k];
		coll_say(c, group_member(g, rank), &msg);
	}
	group_form(g, id);
	join_over(g);
}

/*
 * Returns a number that no endpoint assigns again, and that nobody can guess: a member of one group
 * must not give it the number that another group will have. 0: there is none.
 */
static uint64_t new_id(void)
{
	uint64_t id;

	return getrandom(&id, sizeof(id), 0) == sizeof(id) ? id & ~MANAGED_ID : 0;
}

/* Rank 0: all members have reported. */
static void join_form(struct group *g)
{
	uint64_t id = new_id();

	if (id) {
		join_formed(g, id);
		return;
	}
	LOG_WARN(LOG_EP_CTRL, "join failed: the kernel gave no random number: %s", strerror(errno));
	join_fail(g, FI_EIO);
}

void join_check(struct group *g)
{
	int err;

	if (g->join.arrived != g->join.children || g->join.reported)
		return;
	g->join.reported = true;
	if (!g->rank) {
		join_form(g);
		return;
	}
	err = join_say(g, join_parent(g->rank), WIRE_GROUP_UP);
	if (err)
		join_fail(g, -err);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

/* Connects to the members we wait for, to detect dead ones. */
static int reach_all(struct group *g)
{
	uint32_t children = g->join.children;
	int err = g->rank ? coll_reach(g->coll, group_member(g, join_parent(g->rank))) : 0;
	unsigned int k;

	while (children && err >= 0)
		err = coll_reach(g->coll, group_member(g, join_child(g, &children, &k)));
	return err < 0 ? err : 0;
}

static void join_begin(struct group *g)
{
	const struct join_failure *f;
	int processors = get_nprocs(), err;

	join_hear_failures(g);
	f = join_failure_of(g->coll, g->join.key);
	g->join.active = true;
	g->join.attempt = f ? f->attempt + 1 : 1;
	g->join.since = clock_coarse_ms();
	g->join.probe_at = g->join.since + PROBE_MS;
	g->join.children = children_of(g);
	g->cpus = processors < UINT16_MAX ? (uint16_t)processors : UINT16_MAX;
	g->shares = g->coll->worker->conn.via[LINK_HOST].state != NULL;
	err = reach_all(g);
	if (err) {
		join_fail(g, -err);
		return;
	}
	join_hear_kept(g);
	if (!list_empty(&g->in_joins))
		join_check(g);
}

void join_start(struct group *g)
{
	struct coll *c = g->coll;
	bool first = !join_find(c, g->join.key);

	list_push(&c->joins, &g->in_joins);
	if (first)
		join_begin(g);
}

/* ---- Polling --------------------------------------------------------------------------------- */

/* Sends PROBE to the members we wait for. Returns 0, or why one cannot be reached. */
static int join_probe(struct group *g)
{
	uint32_t waits = g->join.children & ~g->join.arrived;
	unsigned int k;
	int err = 0;

	while (waits && !err)
		err = join_say(g, join_child(g, &waits, &k), WIRE_GROUP_PROBE);
	if (!err && g->join.reported && g->rank)
		err = join_say(g, join_parent(g->rank), WIRE_GROUP_PROBE);
	return err;
}

void join_poll(struct coll *c, uint64_t now)
{
	LIST_EACH_OF (struct group, g, &c->joins, in_joins) {
		int err;

		if (!g->join.active || now < g->join.probe_at)
			continue;
		g->join.probe_at = now + PROBE_NEXT_MS;
		err = join_probe(g);
		if (err)
			group_fail(g, -err);
	}
}

void join_peer_failed(struct coll *c, struct peer *peer, int err)
{
	LIST_EACH_OF (struct group, g, &c->joins, in_joins) {
		if (group_rank(g, peer) < g->size)
			group_fail(g, err);
	}
}

void join_close(struct coll *c)
{
	kept_close(c);
	LIST_EACH_SAFE (node, &c->failures)
		drop_failure(c, LIST_ENTRY(node, struct join_failure, link));
}
