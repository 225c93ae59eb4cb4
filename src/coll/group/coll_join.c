/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_join_collective: checks the arguments and begins the join of a group. fi_collective(3). */
#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/log.h"
#include "coll/group/group.h"
#include "core/av_set.h"
#include "core/ep.h"
#include "xfer/worker.h"
#include "xfer/engine.h"

#define TICK_MS 50 /* interval (ms) of progress calls while a reader sleeps on the event queue */
#define CALLS   64 /* limit of progress calls to read all that has arrived */

/* The checked arguments of a call. Owns a reference to `members`. */
struct wish {
	struct ep *ep;
	struct av_set *set;
	fi_addr_t coll_addr;
	void *context;
	uint64_t ways; /* see struct group */
	struct av_members *members;
	uint32_t rank;
	uint64_t key;
	bool managed;   /* the application manages the members (FI_ADDR_NOTAVAIL) */
	uint64_t *last; /* last number of a managed group with this key */
};

static uint64_t hash_bytes(const void *bytes, size_t len)
{
	const unsigned char *b = bytes;
	uint64_t h = len;

	for (size_t i = 0; i < len; i++)
		h = hash_mix(h ^ b[i]);
	return h;
}

/* Computes our rank, and the key of all members, which is equal on all members. */
static int number_members(struct wish *w)
{
	struct worker *worker = w->ep->worker;
	unsigned int own = 0;

	for (size_t i = 0; i < w->members->count; i++) {
		const struct addr *name = av_addr(w->ep->av, w->members->addr[i]);
		struct addr key;

		if (!name)
			return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
					  "join: member %zu, fi_addr %llu, is not in the address "
					  "vector any more",
					  i, (unsigned long long)w->members->addr[i]);
		key = addr_unmapped(name);
		w->key = hash_mix(w->key ^ addr_hash(&key));
		if (station_goes_by(&worker->conn, &key)) {
			w->rank = (uint32_t)i;
			own++;
		}
	}
	if (own == 1)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
			  "join: the endpoint is %u times among the %zu members of its set", own,
			  w->members->count);
}

/* Are all members of `m` in `whole`? 1, 0 or -FI_ENOMEM. */
static int coll_join_contains(const struct av_members *whole, const struct av_members *m)
{
	fi_addr_t top = 0;
	unsigned char *in;
	int all = 1;

	for (size_t i = 0; i < whole->count; i++)
		if (whole->addr[i] > top)
			top = whole->addr[i];
	in = calloc(1, top / 8 + 1);
	if (!in)
		return -FI_ENOMEM;
	for (size_t i = 0; i < whole->count; i++)
		in[whole->addr[i] / 8] |= (unsigned char)(1u << whole->addr[i] % 8);
	for (size_t i = 0; i < m->count && all; i++)
		all = m->addr[i] <= top && in[m->addr[i] / 8] >> m->addr[i] % 8 & 1;
	free(in);
	return all;
}

/* Checks that coll_addr is a set or a group that contains all members. */
static int check_whole(struct wish *w)
{
	const struct av_members *whole = NULL;
	struct av_set *set = av_set_find(w->ep->dom, w->coll_addr);
	struct group *g = group_of(w->ep->worker->coll, w->coll_addr);
	int ret;

	if (set && set->av->store == w->ep->av->store)
		whole = set->members;
	else if (g && g->id && !g->err)
		whole = g->members;
	if (!whole)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_CTRL,
			"join: %#llx is the address of no set and of no group that stands",
			(unsigned long long)w->coll_addr);
	ret = whole == w->members ? 1 : coll_join_contains(whole, w->members);
	if (!ret)
		LOG_WARN(LOG_EP_CTRL, "join: the set has members who do not belong to %#llx",
			 (unsigned long long)w->coll_addr);
	if (g && !set)
		w->key = hash_mix(w->key ^ g->id);
	return ret < 0 ? ret : ret ? 0 : -FI_EINVAL;
}

/* Checks the set's size, coll_addr and communication key. */
static int coll_join_check_ways(struct wish *w)
{
	int err = 0;

	if (w->members->count > 1u << WIRE_GROUP_RANK_BITS)
		return LOG_REFUSE(-FI_EMSGSIZE, LOG_EP_CTRL, "join: %zu members are more than %u",
				  w->members->count, 1u << WIRE_GROUP_RANK_BITS);
	w->managed = w->coll_addr == FI_ADDR_NOTAVAIL;
	if (!w->managed)
		err = check_whole(w);
	if (w->set->comm_key_size)
		w->key = hash_mix(w->key ^ hash_bytes(w->set->comm_key, w->set->comm_key_size));
	return err;
}

static int check_double(struct wish *w, struct coll *c)
{
	LIST_EACH_OF (struct group, g, &c->groups, in_coll) {
		if (g->err || g->join.key != w->key)
			continue;
		if (g->set == w->set->number)
			return LOG_REFUSE(
				-FI_EALREADY, LOG_EP_CTRL,
				"join: the endpoint has joined the %u of that set already",
				g->size);
		if (w->managed && g->id & MANAGED_ID)
			return LOG_REFUSE(-FI_EALREADY, LOG_EP_CTRL,
					  "join: another set of the same %u members and key is "
					  "joined already",
					  g->size);
	}
	return 0;
}

/* Begins the join; forms a managed group at once. */
static void coll_join_start(struct wish *w, struct group *g)
{
	g->ep = w->ep;
	g->fid.fid.context = w->context;
	g->set = w->set->number;
	g->flags = w->set->flags & AV_SET_COLLECTIVES;
	g->ways = w->ways;
	g->join.key = w->key;
	ref_get(&w->ep->ref);
	if (!w->managed) {
		join_start(g);
		return;
	}
	*w->last = managed_next(*w->last);
	group_form(g, *w->last);
}

/* Checks and begins; sets *out. Returns 0 or a negative error. Domain locked. */
static int coll_join_wish(struct wish *w, struct coll *c, struct group **out)
{
	struct group *g = NULL;
	int err;

	w->members = av_set_members(w->set);
	if (!w->members)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL,
				  "join: the set has no members: add them by fi_av_set_insert");
	err = number_members(w);
	if (!err)
		err = coll_join_check_ways(w);
	if (!err)
		err = check_double(w, c);
	if (!err && w->managed) {
		w->last = managed_last(c, w->key);
		err = w->last ? 0 : -FI_ENOMEM;
	}
	if (!err) {
		g = group_new(c, w->members, w->rank);
		err = g ? 0 : -FI_ENOMEM;
	}
	if (err) {
		av_members_put(w->members);
		return err;
	}
	coll_join_start(w, g);
	coll_run(c);
	*out = g;
	return 0;
}

/* ---- Progress by readers of the event queue -------------------------------------------------- */

static void coll_join_watch(struct coll *c)
{
	bool pending;
	int fd;

	pthread_mutex_lock(&c->watching);
	domain_lock(c->worker->conn.driven.dom);
	pending = !list_empty(&c->joins);
	domain_unlock(c->worker->conn.driven.dom);
	fd = pending ? c->worker->conn.driven.fd : -1;
	if (c->driver.fd != fd)
		eq_driver_watch(c->ep->eq, &c->driver, fd);
	if (pending && !c->rushes)
		eq_rush(c->ep->eq, TICK_MS);
	else if (!pending && c->rushes)
		eq_calm(c->ep->eq);
	c->rushes = pending;
	pthread_mutex_unlock(&c->watching);
}

static void coll_join_drive(struct eq_driver *driver)
{
	struct coll *c = LIST_ENTRY(driver, struct coll, driver);
	struct domain *dom = c->worker->conn.driven.dom;
	bool pending;

	if (domain_foreign(dom))
		return;
	domain_lock(dom);
	pending = !list_empty(&c->joins);
	for (int i = 0;
	     pending && i < CALLS && (worker_progress(c->worker) || !worker_arm(c->worker)); i++)
		;
	domain_unlock(dom);
	if (pending || __atomic_load_n(&c->driver.fd, __ATOMIC_RELAXED) >= 0)
		coll_join_watch(c);
}

static int begin_driving(struct coll *c, struct ep *ep)
{
	int err;

	domain_lock(ep->dom);
	err = driven_add_waiter(&c->worker->conn.driven, &ep->eq->wait);
	domain_unlock(ep->dom);
	if (err)
		return err;
	c->ep = ep;
	c->driver.progress = coll_join_drive;
	err = eq_add_driver(ep->eq, &c->driver);
	if (!err)
		return 0;
	domain_lock(ep->dom);
	driven_del_waiter(&c->worker->conn.driven, &ep->eq->wait);
	domain_unlock(ep->dom);
	return err;
}

/* At the endpoint's first join. */
static int add_driver(struct coll *c, struct ep *ep)
{
	int err = 0;

	pthread_mutex_lock(&c->joining);
	if (!c->driven)
		err = begin_driving(c, ep);
	c->driven |= !err;
	pthread_mutex_unlock(&c->joining);
	return err;
}

void coll_leave(struct ep *ep)
{
	struct coll *c = ep->worker && ep->base == ep ? ep->worker->coll : NULL;

	if (!c || !c->driven)
		return;
	eq_del_driver(ep->eq, &c->driver);
	if (c->rushes)
		eq_calm(ep->eq);
	c->rushes = false;
	domain_lock(ep->dom);
	driven_del_waiter(&c->worker->conn.driven, &ep->eq->wait);
	c->driven = false;
	domain_unlock(ep->dom);
}

/* ---- The call -------------------------------------------------------------------------------- */

static int check_ep(const struct ep *ep, uint64_t flags)
{
	if (!(ep->info->caps & FI_COLLECTIVE) || ep->fid.fid.fclass != FI_CLASS_EP)
		return LOG_REFUSE(
			-FI_ENOSYS, LOG_EP_CTRL,
			"join: the endpoint has not the capability FI_COLLECTIVE: ask for it in hints->caps");
	if (flags & ~(FI_COLLECTIVE | FI_SEND | FI_RECV))
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_EP_CTRL,
				  "join: flags %#llx: FI_SEND and FI_RECV are known",
				  (unsigned long long)flags);
	if (!ep->enabled ||
	    !ep->av) /* a connected endpoint has no address vector, whatever its caps */
		return -FI_EOPBADSTATE;
	if (!ep->eq)
		return LOG_REFUSE(
			-FI_ENOEQ, LOG_EP_CTRL,
			"join: no event queue is bound that could tell of its end: bind one before fi_enable");
	return 0;
}

/* Directions in `flags`, else all that the endpoint has. Returns 0 or a negative error. */
static int coll_join_ways_of(const struct ep *ep, uint64_t flags, uint64_t *ways)
{
	uint64_t able = ep->info->caps & (FI_SEND | FI_RECV);

	flags &= FI_SEND | FI_RECV;
	if (!able)
		able = FI_SEND | FI_RECV;
	if (flags & ~able)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_CTRL, "join: the endpoint cannot %s",
				  flags & ~able & FI_SEND ? "send" : "receive");
	*ways = flags ? flags : able;
	return 0;
}

int coll_join(struct ep *ep, const struct fi_collective_addr *addr, uint64_t flags,
	      struct fid_mc **mc, void *context)
{
	struct wish w = {.ep = ep, .context = context};
	struct group *g = NULL;
	struct coll *c;
	int err = check_ep(ep, flags);

	if (!err)
		err = coll_join_ways_of(ep, flags, &w.ways);
	if (err)
		return err;
	if (!addr || !addr->set || !mc)
		return -FI_EINVAL;
	w.set = (struct av_set *)(uintptr_t)addr->set;
	w.coll_addr = addr->coll_addr;
	if (w.set->av->store != ep->av->store)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_CTRL,
			"join: the set is of another address vector than the endpoint: make it by fi_av_set of the bound one");
	domain_lock(ep->dom);
	c = coll_of(ep->worker);
	domain_unlock(ep->dom);
	err = c ? add_driver(c, ep) : -FI_ENOMEM;
	if (err)
		return err;
	domain_lock(ep->dom);
	worker_progress(ep->worker); /* an arrived message may end the join */
	err = coll_join_wish(&w, c, &g);
	if (!err)
		*mc = &g->fid;
	domain_unlock(ep->dom);
	coll_join_watch(c);
	return err;
}
