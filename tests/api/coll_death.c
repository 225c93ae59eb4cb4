/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180 A member dies or leaves while others wait for it: all pending collectives end with an
 * error in time. That group is unusable then; other groups work.
 */
#define API_RANKS 17
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

#define DEAD_S 2.0 /* limit for all members to notice */
#define MANY   4   /* collectives in flight */
#define LONG   (1u << 20)

struct life {
	struct club c;
	struct group all, rest; /* rest: all without the victim */
	int victim;
};

/* Joins both groups. The last rank is the victim. */
static void meet(struct life *l, struct api *a)
{
	int ranks[API_RANKS];

	alarm(4 * api_limit());
	l->victim = a->ranks - 1;
	for (int i = 0; i < a->ranks; i++)
		ranks[i] = i;
	club_open(&l->c, a);
	group_all(&l->all, &l->c);
	if (a->rank != l->victim)
		group_join(&l->rest, &l->c, ranks, a->ranks - 1);
}

/* Exits without closing anything. */
static void die(void)
{
	_exit(0);
}

/* Checks that `under_way` collectives end with errors in time, and that later ones are refused. */
static void expect_ends(struct life *l, int under_way, int wanted)
{
	struct side *s = &l->c.s;
	double end = api_seconds() + DEAD_S * (double)(api_limit() / API_LIMIT);
	uint64_t word = 0;
	ssize_t ret;

	while (under_way) {
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = {0};

		CHECK(api_seconds() < end);
		ret = fi_cq_read(s->tx, &e, 1);
		if (ret == -FI_EAGAIN) {
			sched_yield();
			continue;
		}
		CHECK_EQ(ret, -FI_EAVAIL);
		CHECK_EQ(fi_cq_readerr(s->tx, &err, 0), 1);
		CHECK(err.err > 0);
		if (wanted)
			CHECK_EQ(err.err, wanted);
		CHECK(err.op_context == &l->all);
		CHECK_EQ(err.flags & FI_COLLECTIVE, FI_COLLECTIVE);
		under_way--;
	}
	ret = fi_allreduce(s->ep, &word, 1, NULL, &word, NULL, l->all.addr, FI_UINT64, FI_SUM, 0,
			   NULL);
	CHECK(ret < 0 && ret != -FI_EAGAIN);
	for (int i = 0; i < 20; i++)
		group_barrier(&l->rest);
	group_close(&l->all);
	group_close(&l->rest);
	club_end(&l->c);
}

static void begin(struct life *l, void *buf, size_t count)
{
	struct side *s = &l->c.s;

	POST(s, fi_allreduce(s->ep, buf, count, NULL, buf, NULL, l->all.addr, FI_UINT8, FI_BOR, 0,
			     &l->all));
}

/* Begins barriers. Returns how many, as calls fail once the death is known. */
static int barriers(struct life *l)
{
	for (int i = 0; i < MANY; i++)
		if (fi_barrier(l->c.s.ep, l->all.addr, &l->all))
			return i;
	return MANY;
}

/* The victim dies before it takes part, while the others wait. */
static void before(struct api *a)
{
	static unsigned char bufs[MANY][64];
	struct life l;

	meet(&l, a);
	api_meet(a);
	if (a->rank == l.victim) {
		usleep(50000);
		die();
	}
	for (int i = 0; i < MANY; i++)
		begin(&l, bufs[i], sizeof(bufs[i]));
	expect_ends(&l, MANY, 0);
}

/* The victim dies in the middle of a long collective. */
static void amidst(struct api *a)
{
	static unsigned char buf[LONG];
	struct life l;

	meet(&l, a);
	api_meet(a);
	begin(&l, buf, sizeof(buf));
	if (a->rank == l.victim) {
		for (int i = 0; i < 20; i++)
			side_progress(&l.c.s);
		die();
	}
	/* The first collective may succeed, so begin others until one fails. */
	for (;;) {
		struct fi_cq_tagged_entry e;
		struct fi_cq_err_entry err = {0};
		ssize_t ret = fi_cq_read(l.c.s.tx, &e, 1);

		if (ret == -FI_EAVAIL) {
			CHECK_EQ(fi_cq_readerr(l.c.s.tx, &err, 0), 1);
			break;
		}
		if (ret == 1 && fi_allreduce(l.c.s.ep, buf, LONG, NULL, buf, NULL, l.all.addr,
					     FI_UINT8, FI_BOR, 0, &l.all))
			break;
		sched_yield();
	}
	expect_ends(&l, 0, 0);
}

/* The victim is needed by some members only: a gather to the root through others. */
static void aside(struct api *a)
{
	static uint64_t in, out[API_RANKS];
	struct life l;

	meet(&l, a);
	api_meet(a);
	if (a->rank == l.victim)
		die();
	for (int i = 0; i < MANY; i++)
		POST(&l.c.s, fi_allgather(l.c.s.ep, &in, 1, NULL, out, NULL, l.all.addr, FI_UINT64,
					  0, &l.all));
	expect_ends(&l, MANY, 0);
}

/* The victim closes its endpoint in good order during collectives. */
static void gone(struct api *a)
{
	struct life l;

	meet(&l, a);
	api_meet(a);
	if (a->rank == l.victim) {
		group_close(&l.all);
		club_end(&l.c);
		return;
	}
	expect_ends(&l, barriers(&l), 0);
}

/* The victim closes the group with collectives in flight, which end at all members. */
static void quits(struct api *a)
{
	struct life l;

	meet(&l, a);
	api_meet(a);
	if (a->rank == l.victim) {
		struct fi_cq_err_entry err;

		for (int i = 0; i < MANY / 2; i++)
			POST(&l.c.s, fi_barrier(l.c.s.ep, l.all.addr, &l.all));
		group_close(&l.all);
		for (int i = 0; i < MANY / 2; i++) {
			err = TAKE_ERR(&l.c.s, l.c.s.tx, FI_ECANCELED);
			CHECK(err.op_context == &l.all);
		}
		QUIET(&l.c.s, l.c.s.tx, 300);
		club_end(&l.c);
		return;
	}
	QUIET(&l.c.s, l.c.s.tx, 100);
	expect_ends(&l, barriers(&l), 0);
}

/* The victim left the group before the others begin, and stays alive. */
static void left(struct api *a)
{
	struct life l;

	meet(&l, a);
	if (a->rank == l.victim)
		group_close(&l.all);
	api_meet(a);
	if (a->rank == l.victim) {
		QUIET(&l.c.s, l.c.s.tx, 400);
		club_end(&l.c);
		return;
	}
	expect_ends(&l, barriers(&l), 0);
}

/* A process that has completed its part may exit; slower members still complete. */
static void early(struct api *a)
{
	static uint64_t buf[API_RANKS];
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	for (int i = 0; i < 50; i++) {
		buf[0] = a->rank ? 0 : 7;
		POST(&c.s,
		     fi_broadcast(c.s.ep, buf, 1, NULL, g.addr, c.s.addr[0], FI_UINT64, 0, &g));
		GROUP_DONE(&c, &g);
		CHECK_EQ(buf[0], 7);
	}
	/* The root runs far ahead of the sleeping members. */
	if (a->rank % 2)
		usleep(20000);
	group_barrier(&g);
	group_close(&g);
	club_end(&c);
}

static void join_death(struct api *a)
{
	struct fid_av_set *set;
	int ranks[API_RANKS];
	struct fid_mc *mc;
	fi_addr_t addr;
	struct club c;

	club_open(&c, a);
	for (int i = 0; i < a->ranks; i++)
		ranks[i] = i;
	api_meet(a);
	if (a->rank == a->ranks - 1)
		die();
	set = club_set(&c, ranks, a->ranks);
	OK(fi_av_set_addr(set, &addr));
	OK(fi_join_collective(c.s.ep, addr, set, 0, &mc, NULL));
	CHECK(club_event(&c, mc) > 0);
	OK(fi_close(&mc->fid));
	OK(fi_close(&set->fid));
	club_end(&c);
}

static const struct api_case cases[] = {
	{"before", before, 3, {0}},
	{"before_many", before, 9, {0}},
	{"amidst", amidst, 3, {0}},
	{"amidst_many", amidst, 8, {0}},
	{"aside", aside, 12, {0}},
	{"gone", gone, 3, {0}},
	{"gone_many", gone, 9, {0}},
	{"quits", quits, 5, {0}},
	{"left", left, 4, {0}},
	{"early", early, 6, {0}},
	{"join_death", join_death, 3, {0}},
	{"join_death_many", join_death, 9, {0}},
};

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
