/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180 Joining groups: managed by the library or the application, subgroups, refusals, many
 * at once.
 */
#include <pthread.h>

#define API_RANKS 17
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

static const int both[] = {0, 1}, turned[] = {1, 0}, three[] = {0, 1, 2},
		 all_of[] = {0, 1, 2, 3, 4};

/* Checks an allreduce of the members' values. */
static void sum(struct group *g)
{
	uint64_t in = (uint64_t)g->ranks[g->rank] + 1, out = 0, want = 0;
	struct side *s = &g->c->s;

	for (int i = 0; i < g->size; i++)
		want += (uint64_t)g->ranks[i] + 1;
	POST(s, fi_allreduce(s->ep, &in, 1, NULL, &out, NULL, g->addr, FI_UINT64, FI_SUM, 0, &out));
	GROUP_DONE(g->c, &out);
	CHECK_EQ(out, want);
}

static ssize_t join(struct club *c, struct fid_av_set *set, fi_addr_t addr, struct fid_mc **mc)
{
	return fi_join_collective(c->s.ep, addr, set, 0, mc, NULL);
}

static fi_addr_t address(struct fid_av_set *set)
{
	fi_addr_t addr;

	OK(fi_av_set_addr(set, &addr));
	return addr;
}

/* Groups managed by the application: joining waits for no other member. */
static void managed(struct api *a)
{
	struct fid_mc *again;
	struct group g = {.size = 2, .rank = a->rank, .ranks = {0, 1}}, key;
	struct club c;

	club_open(&c, a);
	g.c = &c;
	key = g;
	g.set = club_set(&c, both, 2);
	key.set = club_set_key(&c, both, 2, 77);
	if (a->rank)
		api_meet_still(a);
	OK(join(&c, g.set, FI_ADDR_NOTAVAIL, &g.mc));
	CHECK_EQ(club_event(&c, g.mc), 0);
	if (!a->rank) /* begins before the peer has joined */
		POST(&c.s, fi_barrier(c.s.ep, fi_mc_addr(g.mc), &g));
	if (!a->rank)
		api_meet_still(a);
	g.addr = fi_mc_addr(g.mc);
	if (a->rank)
		POST(&c.s, fi_barrier(c.s.ep, g.addr, &g));
	GROUP_DONE(&c, &g);
	CHECK_EQ(join(&c, g.set, FI_ADDR_NOTAVAIL, &again), -FI_EALREADY);
	OK(join(&c, key.set, FI_ADDR_NOTAVAIL, &key.mc));
	CHECK_EQ(club_event(&c, key.mc), 0);
	key.addr = fi_mc_addr(key.mc);
	sum(&key);
	sum(&g);
	group_close(&g);
	group_close(&key);
	club_close(&c);
}

/* Subgroups, and subgroups of these. */
static void parts(struct api *a)
{
	int mine[API_RANKS], n = 0, other;
	struct group g, part;
	struct fid_mc *mc;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	for (int i = 0; i < a->ranks; i++)
		if (i % 2 == a->rank % 2)
			mine[n++] = i;
	part = (struct group){.c = &c, .size = n, .rank = a->rank / 2};
	memcpy(part.ranks, mine, sizeof(mine));
	part.set = club_set(&c, mine, n);
	OK(join(&c, part.set, g.addr, &part.mc));
	CHECK_EQ(club_event(&c, part.mc), 0);
	part.addr = fi_mc_addr(part.mc);
	CHECK(part.addr != g.addr);
	sum(&part);
	sum(&g);
	/* A member outside of the parent group. */
	other = !(a->rank % 2);
	OK(fi_av_set_insert(part.set, c.s.addr[other]));
	CHECK_EQ(join(&c, part.set, part.addr, &mc), -FI_EINVAL);
	/* Changing the set does not change the group. A subgroup outlives its parent group. */
	group_close(&g);
	sum(&part);
	group_close(&part);
	club_close(&c);
}

static void refused(struct api *a)
{
	struct fid_av_set *pair, *alone, *none;
	struct fid_mc *mc = NULL, *more;
	fi_addr_t addr = 0;
	struct group g;
	struct club c;

	club_open(&c, a);
	pair = club_set(&c, both, 2);
	alone = club_set(&c, &both[!a->rank], 1);
	none = club_set(&c, both, 0);
	CHECK_EQ(fi_av_set_addr(pair, NULL), -FI_EINVAL);
	addr = address(pair);
	CHECK_EQ(join(&c, NULL, addr, &mc), -FI_EINVAL);
	CHECK_EQ(join(&c, alone, address(alone), &mc), -FI_EINVAL); /* without this process */
	CHECK_EQ(join(&c, none, address(none), &mc), -FI_EINVAL);
	CHECK_EQ(join(&c, pair, 12345, &mc), -FI_EINVAL);
	CHECK_EQ(join(&c, pair, address(alone), &mc), -FI_EINVAL); /* not a subset */
	CHECK_EQ(fi_join_collective(c.s.ep, addr, pair, FI_MORE, &mc, NULL), -FI_EBADFLAGS);
	CHECK(mc == NULL);
	CHECK_EQ(fi_barrier(c.s.ep, addr, NULL), -FI_EINVAL); /* the address of a set is no group */
	OK(join(&c, pair, addr, &mc));
	if (!a->rank) /* the peer has not joined */
		CHECK_EQ(fi_barrier(c.s.ep, fi_mc_addr(mc), NULL), -FI_EOPBADSTATE);
	api_meet(a);
	CHECK_EQ(join(&c, pair, addr, &more), -FI_EALREADY);
	CHECK_EQ(club_event(&c, mc), 0);
	CHECK_EQ(join(&c, pair, addr, &more), -FI_EALREADY);
	addr = fi_mc_addr(mc);
	OK(fi_close(&pair->fid)); /* the group keeps its own member list */
	g = (struct group){
		.c = &c, .mc = mc, .addr = addr, .size = 2, .rank = a->rank, .ranks = {0, 1}};
	sum(&g);
	CHECK_EQ(fi_close(&c.s.ep->fid), -FI_EBUSY);
	OK(fi_close(&mc->fid));
	CHECK_EQ(fi_barrier(c.s.ep, addr, NULL), -FI_EINVAL);
	OK(fi_close(&alone->fid));
	OK(fi_close(&none->fid));
	club_close(&c);
}

/* Endpoints without the capability, or without an event queue. */
static void unable(struct api *a)
{
	struct fid_av_set *set;
	struct fid_mc *mc;
	struct side s;
	struct club c = {.eq = NULL};

	if (pair_wanted())
		api_skip("connected endpoints have no groups");
	side_open(&s, a, &(struct side_opts){.caps = FI_MSG});
	c.s = s;
	set = club_set(&c, both, 1);
	CHECK_EQ(join(&c, set, FI_ADDR_NOTAVAIL, &mc), -FI_ENOSYS);
	CHECK_EQ(fi_barrier(s.ep, 0, NULL), -FI_EOPNOTSUPP);
	OK(fi_close(&set->fid));
	side_close(&s);
	side_open(&s, a, &(struct side_opts){.caps = FI_MSG | FI_COLLECTIVE});
	c.s = s;
	set = club_set(&c, both, 1);
	CHECK_EQ(join(&c, set, FI_ADDR_NOTAVAIL, &mc), -FI_ENOEQ);
	OK(fi_close(&set->fid));
	side_close(&s);
}

/*
 * Gives time for the news of a failed join to reach processes that have not begun to join. A join
 * begun later is a new attempt.
 */
static void news(struct club *c)
{
	QUIET(&c->s, c->s.tx, (int)(200 * api_limit() / API_LIMIT));
}

/* The members give different sets. Both joins fail; a join with equal sets succeeds then. */
static void mismatch(struct api *a, const int *first, int first_size, const int *second,
		     int second_size)
{
	struct fid_av_set *set;
	struct group g;
	struct fid_mc *mc;
	struct club c;

	club_open(&c, a);
	if (a->rank < 2) {
		set = a->rank ? club_set(&c, second, second_size) : club_set(&c, first, first_size);
		OK(join(&c, set, address(set), &mc));
		CHECK_EQ(club_event(&c, mc), FI_EINVAL);
		CHECK(fi_barrier(c.s.ep, fi_mc_addr(mc), NULL) < 0);
		OK(fi_close(&mc->fid));
		OK(fi_close(&set->fid));
	}
	news(&c);
	api_meet(a);
	group_all(&g, &c);
	sum(&g);
	group_close(&g);
	club_close(&c);
}

static void other_order(struct api *a)
{
	mismatch(a, both, 2, turned, 2);
}

static void other_members(struct api *a)
{
	mismatch(a, both, 2, three, 3);
}

/* One member cancels while others join: their joins fail. */
static void leaver(struct api *a)
{
	struct fid_av_set *set;
	struct group g;
	struct fid_mc *mc;
	struct club c;

	club_open(&c, a);
	set = club_set(&c, all_of, 5);
	if (a->rank != 3) {
		OK(join(&c, set, address(set), &mc));
		if (a->rank == 2) {
			OK(fi_close(&mc->fid));
		} else {
			CHECK_EQ(club_event(&c, mc), FI_ECANCELED);
			OK(fi_close(&mc->fid));
		}
	}
	OK(fi_close(&set->fid));
	news(&c);
	api_meet(a);
	group_all(&g, &c);
	sum(&g);
	group_close(&g);
	club_close(&c);
}

/* ---- Many at once ---------------------------------------------------------------------------- */

#define GROUPS  240
#define THREADS 3

struct crowd {
	struct club c;
	struct group g[GROUPS];
	int first; /* first group of a thread */
};

struct thread {
	struct crowd *crowd;
	int number;
};

/* Returns the members of a group as bits, equal in all processes. Each group has at least two. */
static unsigned int who(int group, int ranks)
{
	unsigned int bits = (unsigned int)(group * 2654435761u >> 7) & ((1u << ranks) - 1);

	return bits | 1u << group % ranks | 1u << (group + 1) % ranks;
}

static void fill_group(struct group *g, struct club *c, int number)
{
	unsigned int bits = who(number, c->s.a->ranks);

	*g = (struct group){.c = c, .rank = -1};
	/* Odd groups have their members in reverse order. */
	for (int i = 0; i < c->s.a->ranks; i++) {
		int r = number % 2 ? c->s.a->ranks - 1 - i : i;

		if (!(bits >> r & 1))
			continue;
		if (r == c->s.a->rank)
			g->rank = g->size;
		g->ranks[g->size++] = r;
	}
}

/* Each thread joins its share of the groups, in an order that differs between processes. */
static void *join_share(void *arg)
{
	struct thread *t = arg;
	struct crowd *w = t->crowd;
	int n = GROUPS / THREADS;

	for (int i = 0; i < n; i++) {
		int k = t->number + THREADS * ((i * 7 + w->c.s.a->rank * 13) % n);
		struct group *g = &w->g[k];
		fi_addr_t addr;

		if (g->rank < 0)
			continue;
		if (fi_av_set_addr(g->set, &addr) ||
		    fi_join_collective(w->c.s.ep, addr, g->set, 0, &g->mc, g))
			return "fi_join_collective failed";
	}
	return NULL;
}

static void all_stand(struct crowd *w, int wanted)
{
	struct fi_eq_entry entry;
	uint32_t event;

	while (wanted) {
		CHECK_EQ(fi_eq_sread(w->c.eq, &event, &entry, sizeof(entry), 4 * GROUP_MS, 0),
			 sizeof(entry));
		CHECK_EQ(event, FI_JOIN_COMPLETE);
		((struct group *)entry.context)->addr = fi_mc_addr((struct fid_mc *)entry.fid);
		wanted--;
	}
}

/* Runs an allreduce in all groups at once. A message to the wrong group would give a wrong sum. */
static void sum_all(struct crowd *w)
{
	static uint64_t in[GROUPS], out[GROUPS];
	int under_way = 0;

	for (int i = 0; i < GROUPS; i++) {
		struct group *g = &w->g[i];

		if (g->rank < 0)
			continue;
		in[i] = (uint64_t)i * 1000003 + (uint64_t)w->c.s.a->rank;
		POST(&w->c.s, fi_allreduce(w->c.s.ep, &in[i], 1, NULL, &out[i], NULL, g->addr,
					   FI_UINT64, FI_SUM, 0, g));
		under_way++;
	}
	while (under_way--)
		TAKE(&w->c.s, w->c.s.tx);
	for (int i = 0; i < GROUPS; i++) {
		uint64_t want = 0;

		for (int k = 0; k < w->g[i].size; k++)
			want += (uint64_t)i * 1000003 + (uint64_t)w->g[i].ranks[k];
		if (w->g[i].rank >= 0)
			CHECK_EQ(out[i], want);
	}
}

static void crowd(struct api *a)
{
	static struct crowd w;
	struct thread threads[THREADS];
	pthread_t ids[THREADS];
	int wanted = 0;
	void *wrong;

	alarm(6 * api_limit());
	club_open_with(&w.c, a, &(struct side_opts){.one_cq = true, .threading = FI_THREAD_SAFE});
	for (int i = 0; i < GROUPS; i++) {
		fill_group(&w.g[i], &w.c, i);
		if (w.g[i].rank < 0)
			continue;
		w.g[i].set = club_set_key(&w.c, w.g[i].ranks, w.g[i].size, (uint32_t)i + 1);
		wanted++;
	}
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){&w, i};
		CHECK(!pthread_create(&ids[i], NULL, join_share, &threads[i]));
	}
	all_stand(&w, wanted);
	for (int i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(ids[i], &wrong));
		CHECK(wrong == NULL);
	}
	sum_all(&w);
	sum_all(&w);
	for (int i = 0; i < GROUPS; i++)
		if (w.g[i].rank >= 0)
			group_close(&w.g[i]);
	club_close(&w.c);
}

/*
 * One send-only and two receive-only members. Collectives in that direction and barriers work.
 * Others are refused to the members that lack a direction, and the group stays usable.
 */
static void ways(struct api *a)
{
	struct group g = {.size = 3, .rank = a->rank, .ranks = {0, 1, 2}};
	uint64_t in[3] = {4, 5, 6}, out[3] = {0};
	struct side *s;
	struct club c;
	fi_addr_t root;

	club_open(&c, a);
	s = &c.s;
	g.c = &c;
	g.set = club_set(&c, three, 3);
	OK(fi_join_collective(s->ep, address(g.set), g.set, a->rank ? FI_RECV : FI_SEND, &g.mc,
			      &g));
	CHECK_EQ(club_event(&c, g.mc), 0);
	g.addr = fi_mc_addr(g.mc);
	root = group_entry(&g, 0);
	CHECK_EQ(fi_allreduce(s->ep, in, 1, NULL, out, NULL, g.addr, FI_UINT64, FI_SUM, 0, out),
		 -FI_EACCES);
	CHECK_EQ(fi_reduce(s->ep, in, 1, NULL, out, NULL, g.addr, root, FI_UINT64, FI_SUM, 0, out),
		 -FI_EACCES);
	CHECK_EQ(fi_gather(s->ep, in, 1, NULL, out, NULL, g.addr, root, FI_UINT64, 0, out),
		 -FI_EACCES);
	if (a->rank < 2)
		CHECK_EQ(fi_broadcast(s->ep, in, 1, NULL, g.addr, group_entry(&g, 1), FI_UINT64, 0,
				      in),
			 -FI_EACCES);
	group_barrier(&g);
	out[0] = a->rank ? 0 : 77;
	POST(s, fi_broadcast(s->ep, out, 1, NULL, g.addr, root, FI_UINT64, 0, out));
	GROUP_DONE(&c, out);
	CHECK_EQ(out[0], 77);
	POST(s, fi_scatter(s->ep, in, 1, NULL, out, NULL, g.addr, root, FI_UINT64, 0, out));
	GROUP_DONE(&c, out);
	CHECK_EQ(out[0], 4 + (uint64_t)a->rank);
	group_close(&g);
	club_close(&c);
}

static const struct api_case cases[] = {
	{"managed", managed, 2, {0}},
	{"parts", parts, 5, {0}},
	{"refused", refused, 2, {0}},
	{"unable", unable, 1, {0}},
	{"ways", ways, 3, {0}},
	{"other_order", other_order, 2, {"FI_WEFT_PEER_TIMEOUT=1800"}},
	{"other_members", other_members, 3, {"FI_WEFT_PEER_TIMEOUT=1800"}},
	{"leaver", leaver, 5, {0}},
	{"crowd", crowd, 4, {0}},
	{"crowd_of_eight", crowd, 8, {0}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
