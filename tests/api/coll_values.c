/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * TIMEOUT=300
 * Collectives of every kind, type and operator, of many sizes, in place or not, with any root, in
 * groups of 1 to 17 processes. The results must equal those of lib/group_model.h.
 */
#define API_RANKS 17
#include "api.h"
#include "lib/data.h"
#include "lib/side.h"
#include "lib/group.h"
#include "lib/eval_type.h"
#include "lib/eval.h"
#include "lib/group_model.h"

#define ROUNDS    api_times(400)
#define ELEMENTS  20000 /* maximum; checking more elements takes too long */
#define GUARD     64    /* guard bytes behind each buffer */
#define GUARD_IS  0xa5
#define TYPES     20
#define NO_RESULT 0xee

static const enum fi_op ops[] = {FI_MIN, FI_MAX,  FI_SUM,  FI_PROD, FI_LOR,         FI_LAND,
				 FI_BOR, FI_BAND, FI_LXOR, FI_BXOR, FI_ATOMIC_WRITE};

static const size_t counts[] = {1, 0, 2, 3, 7, 16, 33, 100, 257, 1000, 1023, 2048, 5001, 20000};

/* One call with its buffers: in and out, or one for both. */
struct shot {
	struct model m;
	unsigned char *in, *out;
	size_t in_len, out_len, width;
	bool in_place;
};

static bool offered(struct club *c, const struct model *m)
{
	struct fi_collective_attr attr = {.op = m->op, .datatype = m->type};
	int ret = fi_query_collective(c->s.domain, m->kind, &attr, 0);

	if (ret == -FI_EOPNOTSUPP)
		return false;
	OK(ret);
	CHECK(attr.datatype_attr.count >= m->count);
	CHECK(m->kind == FI_BARRIER || attr.datatype_attr.size == eval_size(m->type));
	CHECK(attr.max_members >= 65536);
	return true;
}

/* Returns collective `number`, equal on all members. */
static struct model choose(struct group *g, unsigned int number)
{
	uint64_t r = model_random(number * 77777ULL + (unsigned int)g->size);
	struct model m = {.kind = (enum fi_collective_op)(number % (FI_GATHER + 1)),
			  .type = (enum fi_datatype)(r % TYPES),
			  .op = FI_NOOP,
			  .size = g->size,
			  .seed = number};

	m.count = counts[(r >> 8) % API_COUNT(counts)];
	if (m.count * (size_t)m.size > ELEMENTS)
		m.count = 1 + (r >> 16) % (ELEMENTS / (unsigned int)m.size);
	if (number % 3) /* most vectors are short */
		m.count %= 40;
	m.root = (int)((r >> 32) % (unsigned int)g->size);
	if (model_reduces(m.kind))
		m.op = ops[(r >> 40) % API_COUNT(ops)];
	if (m.kind == FI_BARRIER) {
		m.type = FI_VOID;
		m.count = 0;
	}
	return m;
}

/* Returns a buffer with guard bytes behind it. */
static unsigned char *memory(size_t len, int fill)
{
	unsigned char *p = aligned_alloc(64, (len + GUARD + 63) / 64 * 64);

	CHECK(p != NULL);
	memset(p, fill, len);
	memset(p + len, GUARD_IS, GUARD);
	return p;
}

static void guarded(const unsigned char *p, size_t len)
{
	for (size_t i = 0; p && i < GUARD; i++)
		CHECK_EQ(p[len + i], GUARD_IS);
}

static void load(struct shot *s, const struct group *g)
{
	size_t n = model_in(&s->m, g->rank);

	for (size_t i = 0; i < n; i++)
		model_bring(&s->m, g->rank, i, s->in + i * s->width);
}

static struct shot prepare(struct group *g, struct model m)
{
	struct shot s = {.m = m, .width = m.kind == FI_BARRIER ? 1 : eval_size(m.type)};
	size_t most;

	s.in_len = model_in(&m, g->rank) * s.width;
	s.out_len = model_out(&m, g->rank) * s.width;
	/* Each member decides on its own whether to work in place. */
	s.in_place =
		m.kind == FI_BROADCAST || model_random(m.seed + (unsigned int)g->rank) % 3 == 0;
	most = s.in_len > s.out_len ? s.in_len : s.out_len;
	if (s.in_place)
		s.in = s.out = memory(most, NO_RESULT);
	else if (s.in_len)
		s.in = memory(s.in_len, 0);
	if (!s.in_place && s.out_len)
		s.out = memory(s.out_len, NO_RESULT);
	load(&s, g);
	return s;
}

static ssize_t call(struct group *g, struct shot *s, void *context)
{
	const struct model *m = &s->m;
	struct fid_ep *ep = g->c->s.ep;
	fi_addr_t root = group_entry(g, m->root);

	switch (m->kind) {
	case FI_BARRIER:
		return fi_barrier(ep, g->addr, context);
	case FI_BROADCAST:
		return fi_broadcast(ep, s->out, m->count, NULL, g->addr, root, m->type, 0, context);
	case FI_ALLTOALL:
		return fi_alltoall(ep, s->in, m->count, NULL, s->out, NULL, g->addr, m->type, 0,
				   context);
	case FI_ALLREDUCE:
		return fi_allreduce(ep, s->in, m->count, NULL, s->out, NULL, g->addr, m->type,
				    m->op, 0, context);
	case FI_ALLGATHER:
		return fi_allgather(ep, s->in, m->count, NULL, s->out, NULL, g->addr, m->type, 0,
				    context);
	case FI_REDUCE_SCATTER:
		return fi_reduce_scatter(ep, s->in, m->count, NULL, s->out, NULL, g->addr, m->type,
					 m->op, 0, context);
	case FI_REDUCE:
		return fi_reduce(ep, s->in, m->count, NULL, s->out, NULL, g->addr, root, m->type,
				 m->op, 0, context);
	case FI_SCATTER:
		return fi_scatter(ep, s->in, m->count, NULL, s->out, NULL, g->addr, root, m->type,
				  0, context);
	default:
		return fi_gather(ep, s->in, m->count, NULL, s->out, NULL, g->addr, root, m->type, 0,
				 context);
	}
}

static void differs(const struct group *g, const struct shot *s, size_t i)
{
	char line[160];

	snprintf(
		line, sizeof(line),
		"collective %d, type %d, operator %d, count %zu, root %d%s: element %zu of %d of %d",
		s->m.kind, s->m.type, s->m.op, s->m.count, s->m.root,
		s->in_place ? ", in place" : "", i, g->rank, g->size);
	api_fail(line);
}

static void verify(const struct group *g, struct shot *s)
{
	size_t n = model_out(&s->m, g->rank);
	unsigned char want[EVAL_ELEMENT];

	for (size_t i = 0; i < n; i++) {
		model_result(&s->m, g->rank, i, want);
		if (!model_same(&s->m, s->out + i * s->width, want))
			differs(g, s, i);
	}
	guarded(s->in, s->in_place && s->out_len > s->in_len ? s->out_len : s->in_len);
	if (s->in_place)
		return;
	guarded(s->out, s->out_len);
	/* Input buffers must be unchanged. */
	for (size_t i = 0; i < s->in_len / s->width; i++) {
		model_bring(&s->m, g->rank, i, want);
		CHECK(!memcmp(s->in + i * s->width, want, s->width));
	}
}

static void dispose(struct shot *s)
{
	free(s->in);
	if (s->out != s->in)
		free(s->out);
}

static void round_of(struct group *g, unsigned int number)
{
	struct model m = choose(g, number);
	struct shot s;

	if (!offered(g->c, &m))
		return;
	s = prepare(g, m);
	POST(&g->c->s, call(g, &s, &s));
	GROUP_DONE(g->c, &s);
	verify(g, &s);
	dispose(&s);
}

static void values(struct api *a)
{
	struct group g;
	struct club c;

	alarm(6 * api_limit());
	club_open(&c, a);
	group_all(&g, &c);
	for (unsigned int i = 0; i < ROUNDS; i++)
		round_of(&g, i);
	group_close(&g);
	club_close(&c);
}

/* Many collectives in flight, in two groups with different orders of members. */
#define FLIGHT 24

static void flights(struct api *a)
{
	struct shot s[FLIGHT];
	struct group g[2];
	int back[API_RANKS];
	struct club c;

	alarm(6 * api_limit());
	club_open(&c, a);
	group_all(&g[0], &c);
	for (int i = 0; i < a->ranks; i++)
		back[i] = a->ranks - 1 - i;
	group_join(&g[1], &c, back, a->ranks);
	for (unsigned int flight = 0; flight < 12; flight++) {
		int under_way = 0;

		for (unsigned int i = 0; i < FLIGHT; i++) {
			struct group *of = &g[model_random(flight * 100 + i) % 2];
			struct model m = choose(of, 1000 + flight * FLIGHT + i);

			s[i] = (struct shot){.width = 0};
			if (!offered(&c, &m))
				continue;
			s[i] = prepare(of, m);
			POST(&c.s, call(of, &s[i], of));
			under_way++;
		}
		while (under_way--) {
			struct fi_cq_tagged_entry e = TAKE(&c.s, c.s.tx);

			CHECK(e.op_context == &g[0] || e.op_context == &g[1]);
			CHECK_EQ(e.flags & FI_COLLECTIVE, FI_COLLECTIVE);
		}
		for (unsigned int i = 0; i < FLIGHT; i++) {
			if (!s[i].width)
				continue;
			verify(&g[model_random(flight * 100 + i) % 2], &s[i]);
			dispose(&s[i]);
		}
	}
	group_close(&g[0]);
	group_close(&g[1]);
	club_close(&c);
}

/* clang-format off */
static const struct api_case cases[] = {
	{"one", values, 1, {0}},         {"two", values, 2, {0}},       {"three", values, 3, {0}},
	{"four", values, 4, {0}},        {"five", values, 5, {0}},      {"six", values, 6, {0}},
	{"seven", values, 7, {0}},       {"eight", values, 8, {0}},     {"nine", values, 9, {0}},
	{"ten", values, 10, {0}},        {"eleven", values, 11, {0}},   {"twelve", values, 12, {0}},
	{"thirteen", values, 13, {0}},   {"fourteen", values, 14, {0}}, {"fifteen", values, 15, {0}},
	{"sixteen", values, 16, {0}},    {"seventeen", values, 17, {0}},
	{"flights_two", flights, 2, {0}},
	{"flights_five", flights, 5, {0}},
	{"flights_eight", flights, 8, {0}},
};
/* clang-format on */

int main(int argc, char **argv)
{
	return api_main(argc, argv, cases, API_COUNT(cases));
}
