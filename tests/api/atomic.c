/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which atomics exist, and the result of each for all pairs and triples of edge values. Target and
 * fetched values must equal the results of fi_atomic(3) bit by bit.
 */
#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"
#include "lib/edges.h"

/* One column per enum fi_op: b base and fetch, f fetch only, c compare, - none. */
static const char *const offered[AMO_TYPES] = {
	[FI_INT8] = "bbbbbbbbbbfbcccccccb",
	[FI_UINT8] = "bbbbbbbbbbfbcccccccb",
	[FI_INT16] = "bbbbbbbbbbfbcccccccb",
	[FI_UINT16] = "bbbbbbbbbbfbcccccccb",
	[FI_INT32] = "bbbbbbbbbbfbcccccccb",
	[FI_UINT32] = "bbbbbbbbbbfbcccccccb",
	[FI_INT64] = "bbbbbbbbbbfbcccccccb",
	[FI_UINT64] = "bbbbbbbbbbfbcccccccb",
	[FI_FLOAT] = "bbbbbb--b-fbcccccc-b",
	[FI_DOUBLE] = "bbbbbb--b-fbcccccc-b",
	[FI_FLOAT_COMPLEX] = "--bbbb--b-fbcc-----b",
	[FI_DOUBLE_COMPLEX] = "--bbbb--b-fbcc-----b",
	[FI_LONG_DOUBLE] = "bbbbbb--b-fbcccccc-b",
	[FI_LONG_DOUBLE_COMPLEX] = "--bbbb--b-fbcc-----b",
	[FI_INT128] = "bbbbbbbbbbfbcccccccb",
	[FI_UINT128] = "bbbbbbbbbbfbcccccccb",
	[FI_FLOAT16] = "bbbbbb--b-fbcccccc-b",
	[FI_BFLOAT16] = "bbbbbb--b-fbcccccc-b",
	[FI_FLOAT8_E4M3] = "bbbbbb--b-fbcccccc-b",
	[FI_FLOAT8_E5M2] = "bbbbbb--b-fbcccccc-b",
};

static const char *const families[] = {"base", "fetch", "compare"};
static const uint64_t family_flags[] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};

/*
 * Returns whether another library offers the atomic with these semantics. Others may offer fewer,
 * and may compare the bits of floats instead of their values.
 */
static bool other_has(struct fid_ep *ep, enum amo_family family, int type, int op)
{
	size_t count;

	return type <= FI_LONG_DOUBLE_COMPLEX && op <= FI_MSWAP &&
	       (family != AMO_COMPARE || type <= FI_UINT64) &&
	       !amo_valid(ep, family, (enum fi_datatype)type, (enum fi_op)op, &count);
}

static bool has(struct fid_ep *ep, enum amo_family family, int type, int op)
{
	char mark = offered[type][op];

	if (api_other())
		return other_has(ep, family, type, op);
	return family == AMO_COMPARE ? mark == 'c'
	       : family == AMO_FETCH ? mark == 'b' || mark == 'f'
				     : mark == 'b';
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* fi_query_atomic of the domain and the valid calls of the endpoint agree, with FI_TAGGED too. */
static bool ask(struct side *s, enum amo_family family, enum fi_datatype type, enum fi_op op)
{
	bool want = has(s->ep, family, type, op);
	struct fi_atomic_attr attr, tagged;
	size_t count = 0;
	int ret = want ? 0 : -FI_EOPNOTSUPP;

	CHECK_EQ(amo_valid(s->ep, family, type, op, &count), ret);
	CHECK_EQ(fi_query_atomic(s->domain, type, op, &attr, family_flags[family]), ret);
	if (!api_other())
		CHECK_EQ(fi_query_atomic(s->domain, type, op, &tagged,
					 family_flags[family] | FI_TAGGED),
			 ret);
	if (!want)
		return false;
	CHECK_EQ(attr.size, eval_size(type));
	CHECK_EQ(attr.count, count);
	if (!api_other()) {
		CHECK_EQ(count * attr.size, 4096);
		CHECK_EQ(tagged.count, count);
		CHECK_EQ(tagged.size, attr.size);
	}
	return true;
}

static void query(struct api *a)
{
	int counts[AMO_FAMILIES] = {0};
	struct amo_side m;

	amo_open_usual(&m, a);
	for (int type = 0; type < AMO_TYPES; type++)
		for (int op = 0; op < AMO_OPS; op++)
			for (enum amo_family f = 0; f < AMO_FAMILIES; f++)
				counts[f] += has(m.s.ep, f, type, op) || !api_other()
						     ? ask(&m.s, f, (enum fi_datatype)type,
							   (enum fi_op)op)
						     : 0;
	printf("base %d, fetch %d, compare %d\n", counts[AMO_BASE], counts[AMO_FETCH],
	       counts[AMO_COMPARE]);
	if (!api_other()) {
		/* 10 integer types, 7 real types, 3 complex types */
		CHECK_EQ(counts[AMO_BASE], 10 * 12 + 7 * 9 + 3 * 7);
		CHECK_EQ(counts[AMO_FETCH], 10 * 13 + 7 * 10 + 3 * 8);
		CHECK_EQ(counts[AMO_COMPARE], 10 * 7 + 7 * 6 + 3 * 2);
	}
	amo_close(&m);
}

/* Without the capability, the endpoint offers no atomics: neither valid calls nor operations. */
static void no_capability(struct api *a)
{
	struct side s;
	struct amo m = {.op = FI_SUM, .type = FI_INT64};
	int64_t word = 1;

	if (api_other())
		api_skip("what is refused is ours to say");
	side_open(&s, a, &(struct side_opts){.caps = FI_MSG | FI_RMA});
	m.bufs = m.compares = m.results = m.targets = 1;
	m.buf[0] = m.compare[0] = m.result[0] = (struct fi_ioc){&word, 1};
	m.target[0].count = 1;
	m.peer = s.addr[0];
	for (m.family = 0; m.family < AMO_FAMILIES; m.family++) {
		if (m.family == AMO_COMPARE)
			m.op = FI_CSWAP;
		for (m.form = 0; m.form < AMO_FORMS; m.form++) {
			ssize_t ret = amo_post(s.ep, &m);

			CHECK(ret == -FI_EOPNOTSUPP || ret == -FI_ENOSYS);
		}
	}
	side_close(&s);
}

/* ---- Refusing -------------------------------------------------------------------------------- */

static void refused(ssize_t ret, bool in_range)
{
	CHECK(ret == -FI_EOPNOTSUPP || (!in_range && ret == -FI_EINVAL));
}

/* The valid calls and all forms of the operation refuse an unsupported atomic. */
static void refuse(struct amo_side *to, enum amo_family family, int type, int op, bool in_range)
{
	struct amo m = {.family = family, .type = (enum fi_datatype)type, .op = (enum fi_op)op};
	unsigned char *scratch = amo_scratch(to->s.a);
	struct fi_atomic_attr attr;
	size_t count = 4321;

	refused(amo_valid(to->s.ep, family, m.type, m.op, &count), in_range);
	refused(fi_query_atomic(to->s.domain, m.type, m.op, &attr, family_flags[family]), in_range);
	m.buf->addr = scratch;
	m.compare->addr = scratch + 64;
	m.result->addr = scratch + 128;
	amo_aim(&m, to, 0, 64, 1);
	for (m.form = 0; m.form < AMO_FORMS; m.form++)
		refused(amo_post(to->s.ep, &m), in_range);
}

static void refusals(struct api *a)
{
	static const int types[] = {-1, AMO_TYPES, 255, FI_VOID, 257, 1 << 20, INT32_MAX};
	static const int ops[] = {-1, AMO_OPS, 255, FI_NOOP, 257, 1 << 20, INT32_MAX};
	struct fi_atomic_attr attr;
	struct amo_side m;

	if (api_other())
		api_skip("what is refused is ours to say");
	amo_open_usual(&m, a);
	memset(amo_memory(a, 0), 0x11, 512);
	for (enum amo_family f = 0; f < AMO_FAMILIES; f++) {
		for (int type = 0; type < AMO_TYPES; type++)
			for (int op = 0; op < AMO_OPS; op++)
				if (!has(m.s.ep, f, type, op))
					refuse(&m, f, type, op, true);
		for (size_t i = 0; i < API_COUNT(types); i++) {
			refuse(&m, f, types[i], f == AMO_COMPARE ? FI_CSWAP : FI_SUM, false);
			refuse(&m, f, FI_INT32, ops[i], false);
			refuse(&m, f, types[i], ops[i], false);
		}
	}
	CHECK_EQ(fi_query_atomic(m.s.domain, FI_INT32, FI_SUM, &attr,
				 FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC),
		 -FI_EINVAL);
	CHECK_EQ(fi_query_atomic(m.s.domain, FI_INT32, FI_CSWAP, &attr,
				 FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED),
		 -FI_EINVAL);
	QUIET(&m.s, m.s.tx, 2);
	CHECK(data_all(amo_memory(a, 0), 512, 0x11));
	amo_close(&m);
}

/* ---- Doing ----------------------------------------------------------------------------------- */

/* One operation on one type. The elements are all pairs, or triples, of edge values. */
struct cell {
	enum amo_family family;
	enum fi_datatype type;
	enum fi_op op;
	size_t count, size;
	unsigned char *target, *buf, *compare, *result; /* AMO_REGION bytes each */
};

static void *at(unsigned char *array, const struct cell *c, size_t i)
{
	return array + i * c->size;
}

static void fill(struct cell *c)
{
	edge values[EDGES_MAX];
	size_t n = edges(c->type, values);
	bool triples = c->family == AMO_COMPARE && n == EDGES;

	c->size = eval_size(c->type);
	c->count = triples ? n * n * n : n * n;
	for (size_t i = 0; i < c->count; i++) {
		size_t t = triples ? i / n / n : i / n, b = i % n, v = triples ? i / n % n : b;

		if (c->family == AMO_COMPARE && !triples)
			b = (i * 37 + 11) % n; /* pairs only; the new value varies */
		memcpy(at(c->target, c, i), values[t], c->size);
		memcpy(at(c->buf, c, i), values[b], c->size);
		memcpy(at(c->compare, c, i), values[v], c->size);
	}
	memset(c->result, 0xcc, c->count * c->size);
}

static void hex(char *to, const void *value, size_t size)
{
	for (size_t i = size; i--; to += 2)
		snprintf(to, 3, "%02x", ((const unsigned char *)value)[i]);
}

static __attribute__((noreturn)) void wrong(const struct cell *c, const char *what, size_t i,
					    const void *got)
{
	char text[4][2 * EVAL_ELEMENT + 1] = {{0}}, line[512];

	hex(text[0], at(c->target, c, i), c->size);
	hex(text[1], at(c->buf, c, i), c->size);
	hex(text[2], at(c->compare, c, i), c->size);
	hex(text[3], got, c->size);
	snprintf(line, sizeof(line), "%s, type %d, op %d, target %s, buf %s, compare %s: %s is %s",
		 families[c->family], c->type, c->op, text[0], text[1], text[2], what, text[3]);
	api_fail(line);
}

/* Posts all elements, as many per call as are allowed, then waits for all calls. */
static void do_all(struct amo_side *to, const struct cell *c)
{
	size_t most = 0, posted = 0;

	OK(amo_valid(to->s.ep, c->family, c->type, c->op, &most));
	if (api_other())
		most /= 4; /* some libraries overrun their buffers at their maximum */
	for (size_t i = 0; i < c->count; i += most, posted++) {
		struct amo m = {.family = c->family, .type = c->type, .op = c->op};

		m.buf->addr = at(c->buf, c, i);
		m.compare->addr = at(c->compare, c, i);
		m.result->addr = at(c->result, c, i);
		amo_aim(&m, to, 0, i * c->size, c->count - i < most ? c->count - i : most);
		POST(&to->s, amo_post(to->s.ep, &m));
		if (api_other())
			AMO_DONE(&to->s, &m);
	}
	while (posted-- && !api_other())
		TAKE(&to->s, to->s.tx);
}

static void one_cell(struct amo_side *to, struct cell *c)
{
	unsigned char *remote = amo_memory(to->s.a, 0);

	fill(c);
	memcpy(remote, c->target, c->count * c->size);
	do_all(to, c);
	for (size_t i = 0; i < c->count; i++) {
		unsigned char want[EVAL_ELEMENT];

		memcpy(want, at(c->target, c, i), c->size);
		eval(c->type, c->op, want, at(c->buf, c, i), at(c->compare, c, i));
		if (!eval_same(c->type, want, at(remote, c, i)))
			wrong(c, "the target", i, at(remote, c, i));
		if (c->family != AMO_BASE &&
		    !eval_same(c->type, at(c->target, c, i), at(c->result, c, i)))
			wrong(c, "the result", i, at(c->result, c, i));
	}
}

/* Rank 1 runs all operations on the memory of rank 0. */
static void walk(struct api *a, bool (*wanted)(enum fi_datatype type))
{
	struct amo_side m;
	struct cell c;
	int done = 0;

	amo_open_usual(&m, a);
	c.target = malloc(4 * (size_t)AMO_REGION);
	CHECK(c.target);
	c.buf = c.target + AMO_REGION;
	c.compare = c.buf + AMO_REGION;
	c.result = c.compare + AMO_REGION;
	for (int type = 0; a->rank && type < AMO_TYPES; type++)
		for (int op = 0; wanted((enum fi_datatype)type) && op < AMO_OPS; op++)
			for (c.family = 0; c.family < AMO_FAMILIES; c.family++) {
				if (!has(m.s.ep, c.family, type, op))
					continue;
				c.type = (enum fi_datatype)type;
				c.op = (enum fi_op)op;
				one_cell(&m, &c);
				done++;
			}
	if (a->rank && !done)
		api_skip("none of these types");
	free(c.target);
	amo_close(&m);
}

static bool is_byte(enum fi_datatype type)
{
	return eval_size(type) == 1;
}

static bool is_integer(enum fi_datatype type)
{
	return !is_byte(type) && eval_class(type) == EVAL_INTEGER;
}

static bool is_real(enum fi_datatype type)
{
	return !is_byte(type) && eval_class(type) == EVAL_REAL;
}

static bool is_complex(enum fi_datatype type)
{
	return eval_class(type) == EVAL_COMPLEX;
}

static void bytes(struct api *a)
{
	alarm(4 * api_limit()); /* all pairs of 256 values */
	walk(a, is_byte);
}

static void integers(struct api *a)
{
	walk(a, is_integer);
}

static void reals(struct api *a)
{
	walk(a, is_real);
}

static void complexes(struct api *a)
{
	walk(a, is_complex);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"query", query, 1, {0}},       {"no-capability", no_capability, 1, {0}},
		{"refusals", refusals, 1, {0}}, {"bytes", bytes, 2, {0}},
		{"integers", integers, 2, {0}}, {"reals", reals, 2, {0}},
		{"complex", complexes, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
