/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180 Members leave a group. A process that waits for one of them gets an error. Members
 * that have done their part may leave in any order without effect. Groups managed by the
 * application are joined repeatedly: none receives messages of an earlier one.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

#define LONG   (1u << 19)
#define SOON_S 2.0 /* limit for all members to notice */

static void begin_broadcast(struct group *g, uint64_t *word, int root)
{
	struct side *s = &g->c->s;

	POST(s, fi_broadcast(s->ep, word, 1, NULL, g->addr, group_entry(g, root), FI_UINT64, 0, g));
}

/* The pending collective ends with an error in time, and a new one is refused. */
static void in_vain(struct group *g)
{
	double end = api_seconds() + SOON_S * (double)(api_limit() / API_LIMIT);
	struct side *s = &g->c->s;
	struct fi_cq_tagged_entry none;
	struct fi_cq_err_entry e = {0};
	ssize_t ret;

	while ((ret = fi_cq_read(s->tx, &none, 1)) == -FI_EAGAIN) {
		CHECK(api_seconds() < end);
		sched_yield();
	}
	CHECK_EQ(ret, -FI_EAVAIL);
	CHECK_EQ(fi_cq_readerr(s->tx, &e, 0), 1);
	CHECK(e.op_context == g);
	CHECK_EQ(e.flags & FI_COLLECTIVE, FI_COLLECTIVE);
	CHECK_EQ(e.err, FI_ECONNABORTED);
	CHECK(fi_barrier(s->ep, g->addr, g) < 0);
}

static void join_managed(struct group *g)
{
	OK(fi_join_collective(g->c->s.ep, FI_ADDR_NOTAVAIL, g->set, 0, &g->mc, NULL));
	CHECK_EQ(club_event(g->c, g->mc), 0);
	g->addr = fi_mc_addr(g->mc);
}

static void open_managed(struct club *c, struct group *g, struct api *a)
{
	*g = (struct group){.c = c, .size = a->ranks, .rank = a->rank};
	club_open(c, a);
	for (int i = 0; i < a->ranks; i++)
		g->ranks[i] = i;
	g->set = club_set(c, g->ranks, g->size);
}

/* Other groups still work. */
static void others_go_on(struct group *other)
{
	for (int i = 0; i < 10; i++)
		group_barrier(other);
	group_close(other);
}

static void meet(struct club *c, struct group *g, struct group *other, struct api *a)
{
	club_open(c, a);
	group_all(g, c);
	group_all(other, c);
}

/* The root closes the group while the others wait for it. */
static void root_goes(struct api *a)
{
	struct group g, other;
	uint64_t word = 0;
	struct club c;

	meet(&c, &g, &other, a);
	group_barrier(&g);
	if (a->rank) {
		begin_broadcast(&g, &word, 0);
		QUIET(&c.s, c.s.tx, 50);
	}
	api_meet(a);
	if (a->rank)
		in_vain(&g);
	group_close(&g);
	others_go_on(&other);
	club_close(&c);
}

/* Waits for a root that has left or is leaving. */
static void wait_in_vain(struct group *g, int root)
{
	struct side *s = &g->c->s;
	uint64_t word = 0;
	ssize_t ret;

	ret = fi_broadcast(s->ep, &word, 1, NULL, g->addr, group_entry(g, root), FI_UINT64, 0, g);
	/* The departure may be known before the call. */
	if (ret)
		CHECK_EQ(ret, -FI_ECONNABORTED);
	else
		in_vain(g);
}

/* All members but the root wait for it. */
static void wait_for_root(struct group *g)
{
	if (!g->rank)
		return;
	wait_in_vain(g, 0);
	group_close(g);
}

/*
 * Rank 0 closes the group with its barrier pending. Its own barrier is cancelled; the waiting
 * member fails.
 */
static void quits_amidst(struct api *a)
{
	struct group g, other;
	struct club c;

	meet(&c, &g, &other, a);
	group_barrier(&g);
	if (a->rank < 2)
		POST(&c.s, fi_barrier(c.s.ep, g.addr, &g));
	api_meet(a);
	if (!a->rank) {
		OK(fi_close(&g.mc->fid));
		CHECK(TAKE_ERR(&c.s, c.s.tx, FI_ECANCELED).op_context == &g);
		OK(fi_close(&g.set->fid));
	} else {
		if (a->rank == 1)
			in_vain(&g);
		group_close(&g);
	}
	others_go_on(&other);
	club_close(&c);
}

/* The root has sent long messages; the others close the group instead of receiving them. */
static void long_in_vain(struct api *a)
{
	static unsigned char bytes[LONG];
	struct group g, other;
	struct club c;

	meet(&c, &g, &other, a);
	group_barrier(&g);
	if (!a->rank)
		POST(&c.s, fi_broadcast(c.s.ep, bytes, LONG, NULL, g.addr, group_entry(&g, 0),
					FI_UINT8, 0, &g));
	QUIET(&c.s, c.s.tx, 100);
	api_meet(a);
	if (a->rank)
		group_close(&g);
	api_meet(a);
	if (!a->rank) {
		in_vain(&g);
		group_close(&g);
	}
	others_go_on(&other);
	club_close(&c);
}

/* The root left long before the others begin. */
static void root_gone(struct api *a)
{
	struct group g, other;
	struct club c;

	meet(&c, &g, &other, a);
	group_barrier(&g);
	if (!a->rank)
		group_close(&g);
	api_meet(a);
	wait_for_root(&g);
	others_go_on(&other);
	club_close(&c);
}

/* All join a managed group, then rank 0 leaves it. No connections exist yet. */
static void root_leaves(struct club *c, struct group *g, struct api *a)
{
	open_managed(c, g, a);
	join_managed(g);
	if (!a->rank)
		group_close(g);
	api_meet(a);
}

/* A member without a connection to the leaver asks it, and gets an error. */
static void non_member_gone(struct api *a)
{
	struct group g;
	struct club c;

	root_leaves(&c, &g, a);
	wait_for_root(&g);
	club_close(&c);
}

/* The same when another message has connected the two before the wait begins. */
static void non_member_met(struct api *a)
{
	uint64_t word = 0;
	struct group g;
	struct club c;

	root_leaves(&c, &g, a);
	if (!a->rank)
		POST(&c.s, fi_tsend(c.s.ep, &word, sizeof(word), NULL, c.s.addr[1], 7, &word));
	if (a->rank == 1)
		POST(&c.s,
		     fi_trecv(c.s.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, 7, 0, &word));
	if (a->rank < 2)
		side_take(&c.s, c.s.tx);
	api_meet(a);
	if (a->rank == 1)
		wait_in_vain(&g, 0);
	if (a->rank)
		group_close(&g);
	club_close(&c);
}

/* The root left before the others joined; all are connected. */
static void gone_before(struct api *a)
{
	struct group g, all;
	struct club c;

	open_managed(&c, &g, a);
	group_all(&all, &c);
	group_barrier(&all);
	if (!a->rank) {
		join_managed(&g);
		group_close(&g);
	}
	api_meet(a);
	if (a->rank)
		join_managed(&g);
	wait_for_root(&g);
	others_go_on(&all);
	club_close(&c);
}

/* ---- In good order --------------------------------------------------------------------------- */

#define ROUNDS 60

static unsigned int chance(unsigned int *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

/* Runs one of five collectives. In the last ones some members are done early. */
static void one_of_all(struct group *g, unsigned int number, uint64_t *in, uint64_t *out)
{
	struct side *s = &g->c->s;
	fi_addr_t root = group_entry(g, (int)number % g->size);

	switch (number % 5) {
	case 0:
		POST(s, fi_broadcast(s->ep, out, 1, NULL, g->addr, root, FI_UINT64, 0, g));
		break;
	case 1:
		POST(s, fi_reduce(s->ep, in, 1, NULL, out, NULL, g->addr, root, FI_UINT64, FI_SUM,
				  0, g));
		break;
	case 2:
		POST(s, fi_scatter(s->ep, in, 1, NULL, out, NULL, g->addr, root, FI_UINT64, 0, g));
		break;
	case 3:
		POST(s, fi_gather(s->ep, in, 1, NULL, out, NULL, g->addr, root, FI_UINT64, 0, g));
		break;
	default:
		POST(s,
		     fi_allreduce(s->ep, in, 1, NULL, out, NULL, g->addr, FI_UINT64, FI_SUM, 0, g));
	}
	GROUP_DONE(g->c, g);
}

/* Members wait for each other only inside collectives, and close groups at once. */
static void any_order(struct api *a)
{
	uint64_t in[API_RANKS] = {1, 1, 1, 1, 1, 1, 1, 1}, out[API_RANKS] = {0};
	unsigned int seed = (unsigned int)a->rank + 1;
	struct group g;
	struct club c;

	alarm(4 * api_limit());
	club_open(&c, a);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		group_all(&g, &c);
		for (unsigned int k = 0; k <= i % 3; k++)
			one_of_all(&g, i + k, in, out);
		if (chance(&seed) % 4 == 0)
			usleep(chance(&seed) % 3000);
		group_close(&g);
		if (chance(&seed) % 4 == 0)
			QUIET(&c.s, c.s.tx, 1);
	}
	QUIET(&c.s, c.s.tx, 20);
	club_close(&c);
}

/* ---- Managed by the application, again and again --------------------------------------------- */

/* The root has been through several groups before the others join the first. */
static void far_ahead(struct api *a)
{
	struct group g;
	struct club c;

	open_managed(&c, &g, a);
	for (uint64_t i = 0; i < 5; i++) {
		uint64_t word = a->rank ? 0 : 100 + i;

		join_managed(&g);
		begin_broadcast(&g, &word, 0);
		GROUP_DONE(&c, &g);
		CHECK_EQ(word, 100 + i);
		OK(fi_close(&g.mc->fid));
		if (!a->rank && i == 3)
			api_meet(a);
		if (a->rank && !i) { /* messages of later groups arrive first */
			api_meet(a);
			QUIET(&c.s, c.s.tx, 50);
		}
	}
	OK(fi_close(&g.set->fid));
	club_close(&c);
}

/* Rank 1 has left the first group and joined the second when rank 0 uses the first. */
static void late_words(struct api *a)
{
	struct group g;
	struct club c;

	open_managed(&c, &g, a);
	join_managed(&g);
	if (a->rank) {
		OK(fi_close(&g.mc->fid));
		join_managed(&g);
	}
	api_meet(a);
	if (!a->rank) {
		POST(&c.s, fi_barrier(c.s.ep, g.addr, &g));
		in_vain(&g);
		api_meet(a);
		OK(fi_close(&g.mc->fid));
		join_managed(&g);
	} else {
		POST(&c.s, fi_barrier(c.s.ep, g.addr, &g));
		QUIET(&c.s, c.s.tx, 100);
		api_meet(a);
	}
	if (!a->rank)
		POST(&c.s, fi_barrier(c.s.ep, g.addr, &g));
	GROUP_DONE(&c, &g);
	group_barrier(&g);
	group_close(&g);
	club_close(&c);
}

/* After an error the same set can be joined again without closing the group first. */
static void again_after_error(struct api *a)
{
	struct group g, next;
	struct club c;

	open_managed(&c, &g, a);
	join_managed(&g);
	group_barrier(&g);
	api_meet(a); /* else the end of the next group could end this one */
	if (a->rank == 1)
		OK(fi_close(&g.mc->fid));
	else
		wait_in_vain(&g, 1);
	api_meet(a);
	next = g;
	join_managed(&next);
	group_barrier(&next);
	if (a->rank != 1)
		OK(fi_close(&g.mc->fid));
	api_meet(a);
	group_barrier(&next);
	group_close(&next);
	club_close(&c);
}

static const struct api_case cases[] = {
	{"root_goes", root_goes, 3, {0}},       {"root_goes_two", root_goes, 2, {0}},
	{"root_goes_many", root_goes, 8, {0}},  {"root_gone", root_gone, 3, {0}},
	{"long_in_vain", long_in_vain, 2, {0}}, {"long_in_vain_five", long_in_vain, 5, {0}},
	{"quits_amidst", quits_amidst, 3, {0}}, {"non_member_gone", non_member_gone, 3, {0}},
	{"gone_before", gone_before, 3, {0}},   {"non_member_met", non_member_met, 2, {0}},
	{"any_order", any_order, 5, {0}},       {"any_order_two", any_order, 2, {0}},
	{"any_order_many", any_order, 8, {0}},  {"far_ahead", far_ahead, 3, {0}},
	{"late_words", late_words, 2, {0}},     {"again_after_error", again_after_error, 3, {0}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
