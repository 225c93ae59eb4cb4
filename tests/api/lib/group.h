/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Groups of the processes of a case: joining and using them. Needs api.h, lib/data.h and
 * lib/side.h.
 */
#ifndef API_GROUP_H
#define API_GROUP_H

#include <rdma/fi_collective.h>

#define GROUP_MS 8000 /* limit for an event */

/* An endpoint that can join groups. */
struct club {
	struct side s;
	struct fid_eq *eq;
};

struct group {
	struct club *c;
	struct fid_av_set *set;
	struct fid_mc *mc;
	fi_addr_t addr;
	int ranks[API_RANKS]; /* ranks of the members, in their order */
	int size, rank;       /* rank: index of this process in ranks */
};

static inline void club_open_with(struct club *c, struct api *a, const struct side_opts *opts)
{
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct side_opts o = *opts;

	if (pair_wanted())
		api_skip("connected endpoints have no groups");
	o.caps |= FI_MSG | FI_TAGGED | FI_COLLECTIVE;
	o.not_enabled = true;
	side_open(&c->s, a, &o);
	OK(fi_eq_open(c->s.fabric, &attr, &c->eq, NULL));
	OK(fi_ep_bind(c->s.ep, &c->eq->fid, 0));
	OK(fi_enable(c->s.ep));
	side_exchange(&c->s, &o);
	a->progress = side_progress;
	a->progress_arg = &c->s;
	c->s.yields = true;
}

static inline void club_open(struct club *c, struct api *a)
{
	club_open_with(c, a, &(struct side_opts){.one_cq = true});
}

/* Closes all but the endpoint. */
static inline void club_end_rest(struct club *c)
{
	OK(fi_close(&c->eq->fid));
	OK(fi_close(&c->s.tx->fid));
	if (c->s.rx != c->s.tx)
		OK(fi_close(&c->s.rx->fid));
	OK(fi_close(&c->s.av->fid));
	OK(fi_close(&c->s.domain->fid));
	OK(fi_close(&c->s.fabric->fid));
	fi_freeinfo(c->s.info);
}

/* Closes all without waiting for the other processes. */
static inline void club_end(struct club *c)
{
	/* The event queue must outlive the endpoint. */
	c->s.a->progress = NULL;
	OK(fi_close(&c->s.ep->fid));
	club_end_rest(c);
}

/* Waits until all processes are done, then closes all. */
static inline void club_close(struct club *c)
{
	api_meet(c->s.a);
	club_end(c);
}

/* Returns a set of the processes `ranks`, in this order. */
static inline struct fid_av_set *club_set_key(struct club *c, const int *ranks, int size,
					      uint32_t key)
{
	struct fi_av_set_attr attr = {.count = (size_t)size,
				      .start_addr = FI_ADDR_NOTAVAIL,
				      .end_addr = FI_ADDR_NOTAVAIL,
				      .comm_key_size = key ? sizeof(key) : 0,
				      .comm_key = (uint8_t *)&key};
	struct fid_av_set *set;

	OK(fi_av_set(c->s.av, &attr, &set, NULL));
	for (int i = 0; i < size; i++)
		OK(fi_av_set_insert(set, c->s.addr[ranks[i]]));
	return set;
}

static inline struct fid_av_set *club_set(struct club *c, const int *ranks, int size)
{
	return club_set_key(c, ranks, size, 0);
}

/* Waits for the end of the join `mc`. Returns 0 or its error (positive). */
static inline int club_event(struct club *c, const struct fid_mc *mc)
{
	struct fi_eq_err_entry err = {0};
	struct fi_eq_entry entry;
	uint32_t event = 0;
	ssize_t ret = fi_eq_sread(c->eq, &event, &entry, sizeof(entry), GROUP_MS, 0);

	if (ret == -FI_EAVAIL) {
		CHECK(fi_eq_readerr(c->eq, &err, 0) > 0);
		CHECK(err.fid == &mc->fid);
		CHECK(err.err > 0);
		return err.err;
	}
	CHECK_EQ(ret, sizeof(entry));
	CHECK_EQ(event, FI_JOIN_COMPLETE);
	CHECK(entry.fid == &mc->fid);
	return 0;
}

/* Joins a group of processes `ranks`, which include this process. */
static inline void group_join(struct group *g, struct club *c, const int *ranks, int size)
{
	fi_addr_t addr;

	*g = (struct group){.c = c, .size = size, .rank = -1};
	for (int i = 0; i < size; i++) {
		g->ranks[i] = ranks[i];
		if (ranks[i] == c->s.a->rank)
			g->rank = i;
	}
	CHECK(g->rank >= 0);
	g->set = club_set(c, ranks, size);
	OK(fi_av_set_addr(g->set, &addr));
	OK(fi_join_collective(c->s.ep, addr, g->set, 0, &g->mc, g));
	CHECK_EQ(club_event(c, g->mc), 0);
	g->addr = fi_mc_addr(g->mc);
}

/* Joins a group of all processes, in the order of ranks. */
static inline void group_all(struct group *g, struct club *c)
{
	int ranks[API_RANKS];

	for (int i = 0; i < c->s.a->ranks; i++)
		ranks[i] = i;
	group_join(g, c, ranks, c->s.a->ranks);
}

static inline void group_close(struct group *g)
{
	OK(fi_close(&g->mc->fid));
	OK(fi_close(&g->set->fid));
}

/* Returns the member's entry in the address vector. */
static inline fi_addr_t group_entry(const struct group *g, int rank)
{
	return g->c->s.addr[g->ranks[rank]];
}

/* Waits for the next completion, which must be a good one of a collective, with `context`. */
static inline void group_done_one(struct club *c, const void *context)
{
	struct fi_cq_tagged_entry e = side_take(&c->s, c->s.tx);

	api_check_eq((intptr_t)e.op_context, (intptr_t)context, "context of the collective");
	api_check_eq((int64_t)(e.flags & (FI_COLLECTIVE | SIDE_FLAGS)), FI_COLLECTIVE,
		     "flags of the collective");
}

#define GROUP_DONE(...) (api_at(__FILE__, __LINE__), group_done_one(__VA_ARGS__))

static inline void group_barrier(struct group *g)
{
	struct side *s = &g->c->s;

	POST(s, fi_barrier(s->ep, g->addr, g));
	GROUP_DONE(g->c, g);
}

#endif
