/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every form of every family of atomics: from one element to the maximum, in 1 to 16 pieces, at any
 * alignment, with flags, all kinds of keys and addresses, to a peer and to itself.
 */
#include "../valgrind.h"
#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"
#include "lib/pieces.h"

#define BYTES 4096 /* maximum bytes of operands */

/* One atomic. The operation depends on the family. */
struct step {
	enum fi_datatype type;
	enum fi_op op, compare_op;
	enum amo_family family;
	enum amo_form form;
	size_t count, n;  /* elements, pieces */
	unsigned int odd; /* bytes by which buffers are unaligned, each differently */
	bool no_operand;  /* pass NULL where the operation has no operand */
	uint64_t flags;
};

/* Integers and floats, up to sixteen bytes and more, lock-free ones and others. */
static const struct step kinds[] = {
	{FI_INT8, FI_SUM, FI_CSWAP, .count = 1},
	{FI_UINT16, FI_BXOR, FI_MSWAP, .count = 3},
	{FI_INT32, FI_MIN, FI_CSWAP_LE, .count = 1},
	{FI_UINT64, FI_SUM, FI_CSWAP, .count = 1},
	{FI_INT64, FI_PROD, FI_CSWAP_NE, .count = 100},
	{FI_FLOAT, FI_SUM, FI_CSWAP_LT, .count = 7},
	{FI_DOUBLE, FI_ATOMIC_WRITE, FI_CSWAP_GE, .count = 70},
	{FI_FLOAT_COMPLEX, FI_DIFF, FI_CSWAP_NE, .count = 65},
	{FI_LONG_DOUBLE, FI_LXOR, FI_CSWAP_GT, .count = 2},
	{FI_INT128, FI_DIFF, FI_MSWAP, .count = 64},
	{FI_LONG_DOUBLE_COMPLEX, FI_SUM, FI_CSWAP, .count = 61},
	{FI_FLOAT16, FI_MAX, FI_CSWAP_GT, .count = 500},
	{FI_FLOAT8_E4M3, FI_PROD, FI_CSWAP_LE, .count = 77},
	{FI_UINT32, FI_ATOMIC_READ, FI_CSWAP_NE, .count = 1},
	{FI_DOUBLE_COMPLEX, FI_ATOMIC_READ, FI_CSWAP, .count = 66, .no_operand = true},
};

/* All memory of an operation. */
struct values {
	_Alignas(64) unsigned char target[BYTES], buf[BYTES], compare[BYTES], result[BYTES];
};

/* Every other element has an equal compare value. */
static void fill_values(struct values *v, size_t size, unsigned int seed)
{
	data_fill(v->target, BYTES, seed);
	data_fill(v->buf, BYTES, seed + 1);
	data_fill(v->compare, BYTES, seed + 2);
	for (size_t at = 0; at + size <= BYTES; at += 2 * size)
		memcpy(v->compare + at, v->target + at, size);
}

static void evaluate(const struct step *st, struct values *v)
{
	size_t size = eval_size(st->type);

	memcpy(v->result, v->target, BYTES);
	for (size_t at = 0; at < st->count * size; at += size)
		eval(st->type, st->op, v->target + at, v->buf + at, v->compare + at);
}

/* Makes the values before the operation, and those expected after it. */
static void make_values(const struct step *st, struct values *before, struct values *after)
{
	static unsigned int seed;
	size_t size = eval_size(st->type);

	do {
		fill_values(before, size, seed += 3);
		*after = *before;
		evaluate(st, after);
	} while (st->form == AMO_INJECT && !memcmp(after->target, before->target, BYTES));
}

/* Returns the index of the first wrong element, or st->count. */
static size_t differs(const struct step *st, const unsigned char *want, const unsigned char *got)
{
	size_t size = eval_size(st->type), i = 0;

	while (i < st->count && eval_same(st->type, want + i * size, got + i * size))
		i++;
	return i;
}

static void expect(const struct step *st, const unsigned char *want, const unsigned char *got,
		   const char *what)
{
	size_t i = differs(st, want, got);
	char line[160];

	if (i == st->count)
		return;
	snprintf(line, sizeof(line),
		 "%s differs at element %zu of %zu: type %d, op %d, family %d, form %d, %zu "
		 "pieces, odd %u",
		 what, i, st->count, st->type, st->op, st->family, st->form, st->n, st->odd);
	api_fail(line);
}

/* The lists of an operation, each split differently. */
struct lists {
	struct pieces buf, compare, result, target;
};

static struct lists make_lists(const struct step *st, void *target)
{
	size_t size = eval_size(st->type), many = st->n, fewer = many > 2 ? many - 2 : many;
	struct lists l;

	l.buf = pieces_new(size, st->count, many, 0 + PIECES_ODD(st->odd));
	l.compare = pieces_new(size, st->count, fewer, 1 + PIECES_ODD(st->odd * 2 % 8));
	l.result = pieces_new(size, st->count, many > 1 ? many - 1 : 1,
			      2 + PIECES_ODD(st->odd * 3 % 8));
	l.target = pieces_in(target, size, st->count, st->form == AMO_MSG ? many : 1,
			     3 + PIECES_ODD(st->odd));
	return l;
}

static void free_lists(struct lists *l)
{
	free(l->buf.memory);
	free(l->compare.memory);
	free(l->result.memory);
}

static void describe(struct amo *m, const struct step *st, const struct lists *l,
		     const struct amo_side *to, int rank)
{
	const unsigned char *region = amo_memory(to->s.a, rank);

	*m = (struct amo){.family = st->family,
			  .form = st->form,
			  .type = st->type,
			  .op = st->op,
			  .flags = st->flags,
			  .peer = to->s.addr[rank],
			  .context = m};
	m->bufs = st->no_operand ? 0 : l->buf.n;
	m->compares = l->compare.n;
	m->results = l->result.n;
	m->targets = l->target.n;
	if (m->bufs)
		memcpy(m->buf, l->buf.ioc, sizeof(l->buf.ioc));
	memcpy(m->compare, l->compare.ioc, sizeof(l->compare.ioc));
	memcpy(m->result, l->result.ioc, sizeof(l->result.ioc));
	for (size_t i = 0; i < m->targets; i++)
		m->target[i] = amo_target(
			to, rank, (uint64_t)((unsigned char *)l->target.ioc[i].addr - region),
			l->target.ioc[i].count);
}

/* Waits for the effect of an injected atomic, which has no completion. */
static void injected(struct side *s, const struct step *st, const struct lists *l,
		     const struct values *want)
{
	static unsigned char now[BYTES];
	double end = api_seconds() + api_limit() / 4.0;

	do {
		side_progress(s);
		pieces_get(&l->target, now);
	} while (differs(st, want->target, now) < st->count && api_seconds() < end);
}

static void check(const struct step *st, const struct lists *l, const struct values *want)
{
	static struct values got;

	pieces_get(&l->target, got.target);
	expect(st, want->target, got.target, "the target");
	pieces_guarded(&l->target);
	pieces_guarded(&l->result);
	pieces_get(&l->result, got.result);
	if (st->family != AMO_BASE)
		expect(st, want->result, got.result, "the result");
	else
		CHECK(data_all(got.result, st->count * eval_size(st->type), DATA_EMPTY));
}

static void one(struct amo_side *to, int rank, const struct step *st)
{
	static struct values v, want;
	struct lists l = make_lists(st, amo_memory(to->s.a, rank) + 4096);
	struct amo m;

	make_values(st, &v, &want);
	pieces_put(&l.target, v.target);
	pieces_put(&l.buf, v.buf);
	pieces_put(&l.compare, v.compare);
	describe(&m, st, &l, to, rank);
	POST(&to->s, amo_post(to->s.ep, &m));
	if (st->form == AMO_INJECT || st->flags & FI_INJECT) {
		/* Injected operands, and all lists, belong to the caller again. */
		memset(l.buf.memory, 0xee, PIECES_ROOM);
		memset(l.compare.memory, 0xee, PIECES_ROOM);
	}
	memset(m.buf, 0xee, sizeof(m.buf));
	memset(m.compare, 0xee, sizeof(m.compare));
	memset(m.result, 0xee, sizeof(m.result));
	memset(m.target, 0xee, sizeof(m.target));
	if (st->form == AMO_INJECT)
		injected(&to->s, st, &l, &want);
	else
		AMO_DONE(&to->s, &m);
	check(st, &l, &want);
	free_lists(&l);
}

/* Returns whether the step is valid. Picks the operation of the family. */
static bool there_is(struct amo_side *m, struct step *st)
{
	size_t most, limit = m->s.info->tx_attr->iov_limit;

	if (st->type >= FI_LONG_DOUBLE && in_valgrind())
		return false;
	if (st->family == AMO_COMPARE) {
		st->op = st->compare_op;
		st->no_operand = false;
	}
	if ((st->form == AMO_INJECT && st->family != AMO_BASE) ||
	    (st->op == FI_ATOMIC_READ && st->family == AMO_BASE))
		return false;
	if (api_other() && (st->type > FI_DOUBLE_COMPLEX || st->op > FI_MSWAP ||
			    amo_valid(m->s.ep, st->family, st->type, st->op, &most) ||
			    (st->family == AMO_COMPARE && st->type > FI_UINT64)))
		return false;
	if (st->n > limit && api_other())
		st->n = limit;
	return st->n <= st->count && (st->n == 1 || st->form == AMO_VECTOR || st->form == AMO_MSG);
}

/* Runs all kinds in all forms, in `n` pieces. */
static void all_forms(struct amo_side *to, int rank, size_t n, uint64_t flags)
{
	for (enum amo_family family = 0; family < AMO_FAMILIES; family++)
		for (enum amo_form form = 0; form < AMO_FORMS; form++)
			for (size_t i = 0; i < API_COUNT(kinds); i++) {
				struct step st = kinds[i];

				st.family = family;
				st.form = form;
				st.n = n;
				st.flags = form == AMO_MSG ? flags | FI_COMPLETION : 0;
				if (there_is(to, &st))
					one(to, rank, &st);
			}
}

static void forms(struct api *a)
{
	struct amo_side m;

	amo_open_usual(&m, a);
	if (a->rank)
		for (size_t n = 1; n <= AMO_IOV; n = n == 1 ? 2 : n == 2 ? 7 : n * 2 + 2)
			all_forms(&m, 0, n, FI_DELIVERY_COMPLETE);
	amo_close(&m);
}

static void oneself(struct api *a)
{
	struct amo_side m;

	amo_open_usual(&m, a);
	all_forms(&m, 0, 1, FI_DELIVERY_COMPLETE);
	all_forms(&m, 0, 8, FI_DELIVERY_COMPLETE);
	amo_close(&m);
}

/* Flags that do not change the result. Atomics of this library complete when delivered. */
static void flags(struct api *a)
{
	static const uint64_t sets[] = {FI_INJECT, FI_MORE,
					0,         FI_INJECT | FI_MORE,
					FI_MORE,   FI_TRANSMIT_COMPLETE,
					FI_INJECT, FI_INJECT_COMPLETE | FI_DELIVERY_COMPLETE};
	struct amo_side m;

	amo_open_usual(&m, a);
	for (size_t i = 0; a->rank && i < API_COUNT(sets); i++)
		all_forms(&m, 0, i & 1 ? 3 : 1, sets[i] | (api_other() ? FI_DELIVERY_COMPLETE : 0));
	amo_close(&m);
}

/* The maximum of one call, in one piece and in sixteen. */
static void full(struct api *a)
{
	struct amo_side m;

	if (api_other())
		api_skip("as many as it says may overrun its buffers");
	amo_open_usual(&m, a);
	for (size_t i = 0; a->rank && i < 2 * API_COUNT(kinds) * AMO_FAMILIES * AMO_FORMS; i++) {
		struct step st = kinds[i / 2 % API_COUNT(kinds)];

		st.form = (enum amo_form)(i / 2 / API_COUNT(kinds) % AMO_FORMS);
		st.family = (enum amo_family)(i / 2 / API_COUNT(kinds) / AMO_FORMS);
		st.n = i & 1 ? AMO_IOV : 1;
		st.flags = FI_COMPLETION;
		if (!there_is(&m, &st))
			continue;
		OK(amo_valid(m.s.ep, st.family, st.type, st.op, &st.count));
		CHECK_EQ(st.count * eval_size(st.type), BYTES);
		one(&m, 0, &st);
	}
	amo_close(&m);
}

/* Unaligned target, operands and result: all operations but writes of eight bytes. */
static void alignment(struct api *a)
{
	struct amo_side m;

	amo_open_usual(&m, a);
	for (unsigned int odd = 1; a->rank && odd < 16; odd += odd < 9 ? 1 : 3)
		for (size_t i = 0; i < API_COUNT(kinds) * AMO_FAMILIES; i++) {
			struct step st = kinds[i % API_COUNT(kinds)];

			st.family = (enum amo_family)(i / API_COUNT(kinds));
			st.form = odd & 1 ? AMO_PLAIN : AMO_MSG;
			st.n = st.form == AMO_MSG && st.count > 5 ? 5 : 1;
			st.odd = odd;
			st.flags = FI_DELIVERY_COMPLETE;
			if (st.op == FI_ATOMIC_WRITE && st.family != AMO_COMPARE)
				st.type = odd & 8 ? FI_FLOAT : FI_DOUBLE_COMPLEX;
			if (there_is(&m, &st))
				one(&m, 0, &st);
		}
	amo_close(&m);
}

/* Each form as the very first operation, which waits for the connection. */
static void first(struct api *a)
{
	for (unsigned int i = 0; i < AMO_FAMILIES * AMO_FORMS * 4; i++) {
		struct step st = kinds[i & 1 ? 4 : 3];
		struct amo_side m;

		st.family = (enum amo_family)(i / 4 / AMO_FORMS);
		st.form = (enum amo_form)(i / 4 % AMO_FORMS);
		st.count = i & 1 ? st.count : 3;
		st.n = i & 2 ? 3 : 1;
		st.flags = st.form == AMO_MSG ? FI_COMPLETION | FI_DELIVERY_COMPLETE : 0;
		amo_open_usual(&m, a);
		if (a->rank && there_is(&m, &st))
			one(&m, 0, &st);
		amo_close(&m);
	}
}

/* Keys chosen by the application or the library; addresses or offsets. */

static void scalable(struct fi_info *hints)
{
	hints->domain_attr->mr_mode = 0;
}

static void library_keys(struct fi_info *hints)
{
	hints->domain_attr->mr_mode = FI_MR_PROV_KEY;
}

static void addresses(struct fi_info *hints)
{
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR;
}

static void basic(struct fi_info *hints)
{
	hints->domain_attr->mr_mode = FI_MR_BASIC;
}

static void keys(struct api *a)
{
	static void (*const modes[])(struct fi_info *) = {scalable, library_keys, addresses, basic};

	for (size_t i = 0; i < API_COUNT(modes); i++) {
		struct side_opts o = {.tx_flags = FI_DELIVERY_COMPLETE, .tune = modes[i]};
		struct amo_side m;

		if (api_other() && modes[i] == basic)
			continue; /* FI_MR_BASIC stands alone */
		amo_open(&m, a, &o, AMO_ACCESS);
		if (a->rank)
			all_forms(&m, 0, 3, FI_DELIVERY_COMPLETE);
		amo_close(&m);
	}
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"forms", forms, 2, {0}},
		{"forms-no-cma", forms, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"oneself", oneself, 1, {0}},
		{"first", first, 2, {0}},
		{"flags", flags, 2, {0}},
		{"full", full, 2, {0}},
		{"full-no-cma", full, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"alignment", alignment, 2, {0}},
		{"keys", keys, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
