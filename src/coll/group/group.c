/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fid.h"
#include "base/log.h"
#include "coll/op.h"
#include "core/av_set.h"
#include "core/ep.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/worker.h"

/* Collective addresses of groups; distinct from entries of vectors and from sets. */
#define GROUP_ADDR (UINT64_C(1) << 61)

static struct list *group_bucket_of(struct coll *c, uint64_t id)
{
	return &c->bucket[(id ^ id >> 32) % COLL_BUCKETS];
}

struct group *group_find(struct coll *c, uint64_t id)
{
	LIST_EACH_OF (struct group, g, group_bucket_of(c, id), in_bucket) {
		if (g->id == id)
			return g;
	}
	return NULL;
}

struct group *group_of(struct coll *c, fi_addr_t coll_addr)
{
	if (!c || coll_addr >> 32 != GROUP_ADDR >> 32)
		return NULL;
	return pool_find(&c->group_pool, (uint32_t)coll_addr);
}

/* ---- Members --------------------------------------------------------------------------------- */

fi_addr_t group_member(const struct group *g, uint32_t rank)
{
	return g->members->addr[rank];
}

/*
 * Is the peer that of the entry? Not every peer knows its entry: the address may have been inserted
 * after it connected, or in two forms.
 */
static __attribute__((noinline)) bool is_entry(struct worker *worker, fi_addr_t addr,
					       const struct peer *peer)
{
	const struct peer *known = worker_peer(worker, addr);
	const struct addr *name;
	struct addr key;

	if (known != &peer_nobody)
		return known == peer;
	name = av_addr(worker->conn.av, addr);
	if (!name)
		return false;
	key = addr_unmapped(name);
	return (addr_equal(&key, &peer->conn.key) || contact_also_has(peer->conn.also, &key)) &&
	       peer_get(worker, addr) == peer;
}

/* A peer of our own name is no member: none sends to itself. */
bool group_has(struct group *g, uint32_t rank, const struct peer *peer)
{
	fi_addr_t addr;

	if (rank >= g->size || rank == g->rank)
		return false;
	addr = group_member(g, rank);
	return addr == peer->conn.addr || is_entry(g->coll->worker, addr, peer);
}

uint32_t group_rank(struct group *g, const struct peer *peer)
{
	for (uint32_t i = 0; i < g->size; i++)
		if (group_has(g, i, peer))
			return i;
	return g->size;
}

uint32_t group_rank_of(struct group *g, fi_addr_t addr)
{
	/* Often the root of the last call. */
	if (g->root == addr)
		return g->root_rank;
	for (uint32_t i = 0; i < g->size; i++)
		if (group_member(g, i) == addr) {
			g->root = addr;
			g->root_rank = i;
			return i;
		}
	return g->size;
}

/* Returns a number for the member's host: a hash of its IP address. */
static uint64_t host_of(void *arg, uint32_t rank)
{
	struct group *g = arg;
	const struct addr *name = av_addr(g->ep->av, group_member(g, rank));
	struct addr host;

	if (!name || name->kind == ADDR_STR)
		return 0;
	host = addr_unmapped(name);
	host.port = 0;
	return addr_hash(&host);
}

int group_lay_out(struct group *g)
{
	if (g->size > 1)
		g->layout = layout_make(g->rank, g->size, host_of, g);
	g->laid_out = g->layout || g->size == 1;
	return g->laid_out ? 0 : -FI_ENOMEM;
}

/* ---- Telling other members ------------------------------------------------------------------- */

/* Other members report our cancel or close as a lost member. */
static struct wire_group say_ended(const struct group *g)
{
	int err = g->err && g->err != FI_ECANCELED ? g->err : FI_ECONNABORTED;

	return (struct wire_group){.kind = WIRE_GROUP_ABORT,
				   .error = (uint32_t)err,
				   .rank = g->rank,
				   .size = g->size,
				   .key = g->join.key,
				   .id = g->id};
}

struct rx *group_answer(struct group *g, struct peer *to)
{
	struct wire_group msg = say_ended(g);

	coll_answer(to, &msg);
	return NULL;
}

/* Drops the kept messages; senders that await ATS get the group's error. */
static void drop_kept(struct group *g)
{
	LIST_EACH_SAFE_OF (struct unexpected, u, &g->rx.unexpected[1], link) {
		if (u->peer && rx_wants_ack(u->head))
			group_answer(g, u->peer);
		rx_refuse(u);
		rx_take(&g->rx, u);
		rx_drop(u);
	}
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void free_group(struct group *g)
{
	rx_fini(&g->rx);
	layout_free(g->layout);
	free(g->left);
	free(g->doubts);
	av_members_put(g->members);
	pool_put(&g->coll->group_pool, g);
}

static int group_close(struct fid *fid)
{
	struct group *g = (struct group *)fid;
	struct ep *ep = g->ep;

	if (domain_foreign(ep->dom))
		return 0;
	domain_lock(ep->dom);
	if (!list_empty(&g->in_joins))
		join_fail(g, FI_ECANCELED);
	list_remove(&g->in_broken);
	/* Ends operations in progress, so that other members do not wait for us. */
	if (!list_empty(&g->ops)) {
		g->err = g->err ? g->err : FI_ECANCELED;
		group_end(g);
	}
	if (g->id)
		leave_say(g);
	drop_kept(g);
	list_remove(&g->in_bucket);
	list_remove(&g->in_coll);
	eq_forget(ep->eq, fid); /* before the memory is reused */
	free_group(g);
	domain_unlock(ep->dom);
	ref_put(&ep->ref);
	return 0;
}

static struct fi_ops group_fi_ops = FID_OPS(group_close, fid_no_bind, fid_no_control);

struct group *group_new(struct coll *c, struct av_members *members, uint32_t rank)
{
	struct group *g = pool_get(&c->group_pool);

	if (!g)
		return NULL;
	memset(g, 0, sizeof(*g));
	g->fid.fid = (struct fid){.fclass = FI_CLASS_MC, .ops = &group_fi_ops};
	g->fid.fi_addr = GROUP_ADDR | pool_id(g);
	g->coll = c;
	g->serial = ++c->serials;
	g->members = members;
	g->rank = rank;
	g->size = (uint32_t)members->count;
	g->ways = FI_SEND | FI_RECV;
	g->root = FI_ADDR_NOTAVAIL;
	list_init(&g->in_bucket);
	list_init(&g->in_joins);
	list_init(&g->in_broken);
	list_init(&g->ops);
	rx_init(&g->rx, c->worker->conn.driven.dom);
	g->rx.budget = &c->worker->budget;
	list_push(&c->groups, &g->in_coll);
	return g;
}

void group_form(struct group *g, uint64_t id)
{
	struct fi_eq_entry entry = {.fid = &g->fid.fid, .context = g->fid.fid.context};

	g->id = id;
	list_push(group_bucket_of(g->coll, id), &g->in_bucket);
	early_take(g);
	leave_take(g);
	if (eq_post(g->ep->eq, FI_JOIN_COMPLETE, &entry, sizeof(entry)))
		LOG_WARN(LOG_EP_CTRL,
			 "out of memory: the completion event of the join of a group of %u is lost",
			 g->size);
}

void group_refuse(struct group *g, int err)
{
	struct fi_eq_err_entry entry = {
		.fid = &g->fid.fid, .context = g->fid.fid.context, .err = err, .prov_errno = err};

	g->err = err;
	if (eq_post_error(g->ep->eq, &entry))
		LOG_WARN(LOG_EP_CTRL,
			 "out of memory: the event of the failed join of a group of %u is lost: %s",
			 g->size, fi_strerror(err));
}

/* ---- Ending ---------------------------------------------------------------------------------- */

void group_tell(struct group *g, const struct wire_group *msg)
{
	for (uint64_t step = 1; step < g->size; step *= 2) {
		uint32_t up = (uint32_t)((g->rank + step) % g->size);
		uint32_t down = (uint32_t)((g->rank + g->size - step) % g->size);

		/* Skips members that cannot be reached: other members tell them. */
		coll_say(g->coll, group_member(g, up), msg);
		if (down != up)
			coll_say(g->coll, group_member(g, down), msg);
	}
}

void group_fail(struct group *g, int err)
{
	if (g->err)
		return;
	g->err = err;
	list_push(&g->coll->broken, &g->in_broken);
}

void group_miss(struct group *g, uint32_t rank, int err)
{
	uint64_t now = clock_coarse_ms();

	/* Notes only the first such member, until it is reached or the note is too old. */
	if (!g->missed_at || now - g->missed_at > 10 * COLL_LATER_MS) {
		g->missed = rank;
		g->missed_at = now;
	}
	if (g->missed == rank && now - g->missed_at >= COLL_LATER_MS)
		group_fail(g, err);
	else
		coll_wake_in(g->coll, COLL_LATER_MS);
}

static bool group_is_of(const struct work *work, const void *arg)
{
	const struct op_slot *slot = LIST_ENTRY(work, struct op_slot, work);

	return exchange_is_work(work) && slot->op->group == arg;
}

void group_end(struct group *g)
{
	struct worker *worker = g->coll->worker;
	struct wire_group msg = say_ended(g);

	if (!g->id) {
		join_fail(g, g->err);
		return;
	}
	LOG_INFO(LOG_EP_CTRL, "a group of %u ends: %s", g->size, fi_strerror(g->err));
	rx_fail_posted(&g->rx, g->err);
	rdma_quiesce(worker, &g->rx,
		     NULL); /* no device may write to memory that is released next */
	rxreq_fail_context(worker, &g->rx, g->err);
	tx_cancel_posted(worker, g->err, group_is_of, g);
	op_end_all(g);
	group_tell(g, &msg);
	drop_kept(g);
}

void group_poll(struct group *g)
{
	leave_poll(g);
	LIST_EACH (node, &g->ops)
		if (!g->err)
			exchange_poll(LIST_ENTRY(node, struct op, in_group));
}
