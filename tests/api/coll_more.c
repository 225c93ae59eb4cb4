/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=180 Collectives in special situations: long ones, beside messages, with counters, fences
 * and sleepers, members that run ahead; refused calls; sums of floats that are equal everywhere and
 * every time.
 */
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"

#define BIG (3u << 20) /* bytes: exceeds eager_max, the rings, and one zero-copy send */

static uint64_t *words(size_t count)
{
	uint64_t *w = calloc(count, sizeof(*w));

	CHECK(w != NULL);
	return w;
}

/* Returns input element `i` of member `rank`. */
static uint64_t bring(int rank, size_t i)
{
	return (uint64_t)(rank + 1) * 1000003 + i * 7;
}

static uint64_t sum_at(int ranks, size_t i)
{
	uint64_t sum = 0;

	for (int r = 0; r < ranks; r++)
		sum += bring(r, i);
	return sum;
}

static void big(struct api *a)
{
	const size_t n = BIG / sizeof(uint64_t), each = n / (size_t)a->ranks;
	uint64_t *in = words(n), *out = words(n);
	struct group g;
	struct club c;

	alarm(4 * api_limit());
	club_open(&c, a);
	group_all(&g, &c);
	for (size_t i = 0; i < n; i++)
		in[i] = bring(a->rank, i);
	POST(&c.s, fi_allreduce(c.s.ep, in, n, NULL, out, NULL, g.addr, FI_UINT64, FI_SUM, 0, &g));
	GROUP_DONE(&c, &g);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(out[i], sum_at(a->ranks, i));
	POST(&c.s, fi_alltoall(c.s.ep, in, each, NULL, out, NULL, g.addr, FI_UINT64, 0, &g));
	GROUP_DONE(&c, &g);
	for (size_t i = 0; i < each * (size_t)a->ranks; i++)
		CHECK_EQ(out[i], bring((int)(i / each), (size_t)a->rank * each + i % each));
	POST(&c.s,
	     fi_broadcast(c.s.ep, in, n, NULL, g.addr, c.s.addr[a->ranks - 1], FI_UINT64, 0, &g));
	GROUP_DONE(&c, &g);
	for (size_t i = 0; i < n; i++)
		CHECK_EQ(in[i], bring(a->ranks - 1, i));
	group_close(&g);
	club_close(&c);
	free(in);
	free(out);
}

/* Messages of both kinds and collectives of two groups, all in flight at once. */
#define BESIDE 40

static void beside(struct api *a)
{
	static uint64_t out[BESIDE], in[BESIDE];
	static unsigned char long_out[BESIDE][20000], long_in[BESIDE][20000];
	int to = (a->rank + 1) % a->ranks, from = (a->rank + a->ranks - 1) % a->ranks;
	struct group g[2];
	int back[API_RANKS], left = 0;
	struct club c;

	club_open(&c, a);
	group_all(&g[0], &c);
	for (int i = 0; i < a->ranks; i++)
		back[i] = a->ranks - 1 - i;
	group_join(&g[1], &c, back, a->ranks);
	for (int i = 0; i < BESIDE; i++) {
		size_t len = i % 3 ? 100 : sizeof(long_out[i]);

		in[i] = bring(a->rank, (size_t)i);
		data_fill(long_out[i], len, (unsigned int)(a->rank * 100 + i));
		POST(&c.s,
		     fi_trecv(c.s.ep, long_in[i], len, NULL, FI_ADDR_UNSPEC, (uint64_t)i, 0, NULL));
		POST(&c.s, fi_allreduce(c.s.ep, &in[i], 1, NULL, &out[i], NULL, g[i % 2].addr,
					FI_UINT64, FI_SUM, 0, NULL));
		POST(&c.s,
		     fi_tsend(c.s.ep, long_out[i], len, NULL, c.s.addr[to], (uint64_t)i, NULL));
		left += 3;
	}
	while (left--)
		TAKE(&c.s, c.s.tx);
	for (int i = 0; i < BESIDE; i++) {
		CHECK_EQ(out[i], sum_at(a->ranks, (size_t)i));
		data_check_at(long_in[i], i % 3 ? 100 : sizeof(long_in[i]),
			      (unsigned int)(from * 100 + i), 0);
	}
	group_close(&g[0]);
	group_close(&g[1]);
	club_close(&c);
}

/* The root, or the leaves, run as far ahead as they can. */
#define AHEAD 1000

static void ahead(struct api *a)
{
	static uint64_t bufs[AHEAD];
	struct group g;
	struct club c;
	int done = 0;

	alarm(4 * api_limit());
	club_open(&c, a);
	group_all(&g, &c);
	for (int i = 0; i < AHEAD; i++) {
		bufs[i] = a->rank ? 0 : bring(0, (size_t)i);
		POST(&c.s, fi_broadcast(c.s.ep, &bufs[i], 1, NULL, g.addr, c.s.addr[0], FI_UINT64,
					i % 100 == 5 ? FI_FENCE : 0, &g));
		if (a->rank && i % 50 == 0)
			usleep(500);
	}
	while (done++ < AHEAD)
		GROUP_DONE(&c, &g);
	for (int i = 0; i < AHEAD; i++)
		CHECK_EQ(bufs[i], bring(0, (size_t)i));
	group_close(&g);
	club_close(&c);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static void selective(struct api *a)
{
	uint64_t in = 1, out = 0;
	struct group g;
	struct club c;

	club_open_with(&c, a,
		       &(struct side_opts){.one_cq = true, .tx_bind = FI_SELECTIVE_COMPLETION});
	group_all(&g, &c);
	POST(&c.s,
	     fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_SUM, 0, &in));
	POST(&c.s, fi_barrier2(c.s.ep, g.addr, FI_COMPLETION, &g));
	GROUP_DONE(&c, &g);
	QUIET(&c.s, c.s.tx, 20);
	CHECK_EQ(out, (uint64_t)a->ranks);
	CHECK_EQ(fi_barrier2(c.s.ep, g.addr, FI_INJECT, &g), -FI_EBADFLAGS);
	CHECK_EQ(fi_barrier2(c.s.ep, g.addr, FI_TRIGGER, &g), -FI_EBADFLAGS);
	group_close(&g);
	club_close(&c);
}

/* An endpoint with its own counter, which the members sleep on. */
static void counted(struct api *a)
{
	struct fi_cntr_attr cntr_attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct side_opts o = {.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_COLLECTIVE,
			      .one_cq = true,
			      .not_enabled = true};
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_UNSPEC};
	uint64_t in = 5, out = 0;
	struct fid_cntr *cntr;
	struct group g;
	struct club c;

	if (pair_wanted())
		api_skip("connected endpoints have no groups");
	side_open(&c.s, a, &o);
	OK(fi_eq_open(c.s.fabric, &eq_attr, &c.eq, NULL));
	OK(fi_cntr_open(c.s.domain, &cntr_attr, &cntr, NULL));
	OK(fi_ep_bind(c.s.ep, &c.eq->fid, 0));
	OK(fi_ep_bind(c.s.ep, &cntr->fid, FI_WRITE));
	OK(fi_enable(c.s.ep));
	side_exchange(&c.s, &o);
	a->progress = side_progress;
	a->progress_arg = &c.s;
	group_all(&g, &c);
	for (uint64_t i = 1; i <= 20; i++) {
		if (a->rank == (int)i % a->ranks)
			usleep(2000); /* the others fall asleep meanwhile */
		OK(fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_SUM, 0,
				&g));
		OK(fi_cntr_wait(cntr, i, 5000));
		CHECK_EQ(out, 5 * (uint64_t)a->ranks);
		GROUP_DONE(&c, &g);
	}
	CHECK_EQ(fi_cntr_readerr(cntr), 0);
	group_close(&g);
	api_meet(a);
	a->progress = NULL;
	OK(fi_close(&c.s.ep->fid));
	OK(fi_close(&cntr->fid));
	club_end_rest(&c);
}

static void automatic(struct fi_info *hints)
{
	hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
}

/* The library may write this word concurrently. */
static __attribute__((no_sanitize("thread"))) uint64_t glance(const uint64_t *at)
{
	return *(const volatile uint64_t *)at;
}

/* One member reads its queue; the others sleep, and take part by automatic progress. */
static void asleep(struct api *a)
{
	uint64_t in = 1, out = 0;
	struct fi_cq_tagged_entry e;
	struct group g;
	struct club c;

	club_open_with(&c, a,
		       &(struct side_opts){
			       .one_cq = true, .threading = FI_THREAD_SAFE, .tune = automatic});
	group_all(&g, &c);
	for (int i = 0; i < 20; i++) {
		OK(fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_SUM, 0,
				&g));
		if (a->rank) { /* no library call */
			double end = api_seconds() + 5;

			while (glance(&out) != (uint64_t)a->ranks) {
				CHECK(api_seconds() < end);
				usleep(100);
			}
		}
		while (fi_cq_read(c.s.tx, &e, 1) == -FI_EAGAIN)
			sched_yield();
		CHECK(e.op_context == &g);
		out = 0;
		group_barrier(&g);
	}
	group_close(&g);
	club_close(&c);
}

static void nothing_else(struct fi_info *hints)
{
	hints->caps = FI_COLLECTIVE;
}

/* FI_COLLECTIVE as the only capability. */
static void only(struct api *a)
{
	uint64_t in = (uint64_t)a->rank, out = 0;
	struct group g;
	struct club c;

	club_open_with(&c, a, &(struct side_opts){.one_cq = true, .tune = nothing_else});
	CHECK(c.s.info->caps & FI_COLLECTIVE);
	CHECK(fi_send(c.s.ep, &in, sizeof(in), NULL, c.s.addr[0], NULL) < 0);
	group_all(&g, &c);
	POST(&c.s,
	     fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_MAX, 0, &g));
	GROUP_DONE(&c, &g);
	CHECK_EQ(out, a->ranks - 1);
	group_close(&g);
	club_close(&c);
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refused(struct api *a)
{
	union {
		uint64_t w[4];
		unsigned char b[32];
	} m = {{0}};
	struct fi_collective_attr attr = {.op = FI_SUM, .datatype = FI_DOUBLE};
	struct group g;
	struct club c;
	struct fid_ep *ep;

	club_open(&c, a);
	group_all(&g, &c);
	ep = c.s.ep;
	CHECK_EQ(fi_allreduce(ep, m.w, 1, NULL, m.w, NULL, g.addr, FI_DOUBLE, FI_BXOR, 0, NULL),
		 -FI_EOPNOTSUPP);
	CHECK_EQ(fi_allreduce(ep, m.w, 1, NULL, m.w, NULL, g.addr, FI_UINT64, FI_CSWAP, 0, NULL),
		 -FI_EOPNOTSUPP);
	CHECK_EQ(fi_allreduce(ep, m.w, 1, NULL, m.w, NULL, g.addr, FI_VOID, FI_SUM, 0, NULL),
		 -FI_EOPNOTSUPP);
	CHECK_EQ(fi_broadcast(ep, m.w, 1, NULL, g.addr, c.s.addr[0], FI_VOID, 0, NULL),
		 -FI_EOPNOTSUPP);
	CHECK_EQ(fi_broadcast(ep, m.w, 1, NULL, g.addr, 4711, FI_UINT64, 0, NULL), -FI_EINVAL);
	CHECK_EQ(fi_broadcast(ep, NULL, 1, NULL, g.addr, c.s.addr[0], FI_UINT64, 0, NULL),
		 -FI_EINVAL);
	CHECK_EQ(fi_allreduce(ep, m.b + 1, 1, NULL, m.w, NULL, g.addr, FI_UINT64, FI_SUM, 0, NULL),
		 -FI_EINVAL);
	CHECK_EQ(fi_allgather(ep, m.w, SIZE_MAX / 8, NULL, m.w, NULL, g.addr, FI_UINT64, 0, NULL),
		 -FI_EMSGSIZE);
	CHECK_EQ(fi_barrier(ep, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	CHECK_EQ(fi_query_collective(c.s.domain, FI_ALLREDUCE, NULL, 0), -FI_EINVAL);
	OK(fi_query_collective(c.s.domain, FI_REDUCE, &attr, FI_SCATTER));
	CHECK_EQ(attr.datatype_attr.size, sizeof(double));
	CHECK_EQ(fi_query_collective(c.s.domain, FI_BROADCAST, &attr, FI_SCATTER), -FI_EINVAL);
	attr.op = FI_BAND;
	CHECK_EQ(fi_query_collective(c.s.domain, FI_ALLREDUCE, &attr, 0), -FI_EOPNOTSUPP);
	attr.mode = 1;
	CHECK_EQ(fi_query_collective(c.s.domain, FI_ALLREDUCE, &attr, 0), -FI_EINVAL);
	attr = (struct fi_collective_attr){.op = FI_NOOP, .datatype = FI_VOID};
	OK(fi_query_collective(c.s.domain, FI_BARRIER, &attr, 0));
	group_barrier(&g);
	group_close(&g);
	club_close(&c);
}

/* A set restricted to some collectives. */
static void restricted(struct api *a)
{
	struct fi_av_set_attr attr = {.flags = FI_UNIVERSE | FI_BARRIER_SET | FI_ALLREDUCE_SET,
				      .start_addr = FI_ADDR_NOTAVAIL,
				      .end_addr = FI_ADDR_NOTAVAIL};
	uint64_t in = 2, out = 0;
	struct group g = {.size = a->ranks};
	struct club c;

	club_open(&c, a);
	g.c = &c;
	OK(fi_av_set(c.s.av, &attr, &g.set, NULL));
	OK(fi_av_set_addr(g.set, &g.addr));
	OK(fi_join_collective(c.s.ep, g.addr, g.set, 0, &g.mc, NULL));
	CHECK_EQ(club_event(&c, g.mc), 0);
	g.addr = fi_mc_addr(g.mc);
	CHECK_EQ(fi_broadcast(c.s.ep, &in, 1, NULL, g.addr, c.s.addr[0], FI_UINT64, 0, NULL),
		 -FI_EOPNOTSUPP);
	POST(&c.s,
	     fi_allreduce(c.s.ep, &in, 1, NULL, &out, NULL, g.addr, FI_UINT64, FI_SUM, 0, &g));
	GROUP_DONE(&c, &g);
	CHECK_EQ(out, 2 * (uint64_t)a->ranks);
	group_close(&g);
	club_close(&c);
}

/* Members with different lengths get an error instead of wrong data. */
static void unequal(struct api *a)
{
	static unsigned char in[5000], out[5000];
	struct fi_cq_err_entry e = {0};
	struct group g;
	struct club c;

	club_open(&c, a);
	group_all(&g, &c);
	POST(&c.s, fi_allreduce(c.s.ep, in, a->rank ? 8 : 16, NULL, out, NULL, g.addr, FI_UINT8,
				FI_BOR, 0, &g));
	while (fi_cq_readerr(c.s.tx, &e, 0) != 1)
		side_progress(&c.s);
	CHECK(e.err == FI_EINVAL || e.err == FI_ETRUNC);
	CHECK(fi_barrier(c.s.ep, g.addr, NULL) < 0);
	group_close(&g);
	club_close(&c);
}

/* ---- Floats ---------------------------------------------------------------------------------- */

/* Returns numbers of very different size, whose sum depends on the order. */
static double rough(int rank, size_t i)
{
	uint64_t r = (uint64_t)(rank + 1) * UINT64_C(0x9e3779b97f4a7c15) +
		     i * UINT64_C(0xbf58476d1ce4e5b9);

	r ^= r >> 29;
	r *= UINT64_C(0x94d049bb133111eb);
	r ^= r >> 32;
	return ((double)(r & 0xffffff) - 8388608.0) * (r >> 24 & 1 ? 1e-9 : 1e9) / 3;
}

static void same(struct api *a)
{
	static const size_t counts[] = {1, 3, 100, 5000, 50000};
	static double in[50000], out[50000], first[50000];
	double *seen = a->shared;
	struct group g;
	struct club c;

	alarm(4 * api_limit());
	club_open(&c, a);
	group_all(&g, &c);
	for (size_t k = 0; k < API_COUNT(counts); k++) {
		for (int again = 0; again < 3; again++) {
			size_t n = counts[k];

			for (size_t i = 0; i < n; i++)
				in[i] = rough(a->rank, i);
			if (again == a->rank % 3)
				usleep(3000);
			POST(&c.s, fi_allreduce(c.s.ep, in, n, NULL, out, NULL, g.addr, FI_DOUBLE,
						FI_SUM, 0, &g));
			GROUP_DONE(&c, &g);
			if (!again)
				memcpy(first, out, n * sizeof(out[0]));
			CHECK(!memcmp(first, out, n * sizeof(out[0])));
			if (!a->rank)
				memcpy(seen, out, n * sizeof(out[0]));
			api_meet(a);
			CHECK(!memcmp(seen, out, n * sizeof(out[0])));
			api_meet(a);
		}
	}
	group_close(&g);
	club_close(&c);
}

/* clang-format off */
static const struct api_case cases[] = {
	{"big", big, 2, {0}},         {"big_three", big, 3, {0}},  {"big_six", big, 6, {0}},
	{"beside", beside, 2, {0}},   {"beside_five", beside, 5, {0}},
	{"ahead", ahead, 3, {0}},     {"selective", selective, 2, {0}}, {"only", only, 3, {0}},
	{"counted", counted, 3, {0}}, {"asleep", asleep, 3, {0}},
	{"refused", refused, 2, {0}}, {"restricted", restricted, 3, {0}},
	{"unequal", unequal, 2, {0}}, {"same", same, 2, {0}}, {"same_seven", same, 7, {0}},
};
/* clang-format on */

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
