/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What atomics report and when: completions asked for or not, data for the target's queue, counters
 * on both sides; and their order among themselves, with a fence, and with reads and writes.
 */
#include "api.h"
#include "lib/atomic.h"

#define QUIET_MS 5
#define CQ_DATA  UINT64_C(0xfedcba9876543210)

/* One element of the target, and what an operation needs. */
static uint64_t operand = 1, comparison, fetched;

static const enum fi_op family_op[] = {FI_SUM, FI_SUM, FI_CSWAP_NE};

/* Adds one, or, as a comparison, writes one. */
static struct amo single(struct amo_side *to, enum amo_family family, enum amo_form form)
{
	struct amo m = {.family = family, .form = form, .type = FI_UINT64, .op = family_op[family]};

	m.buf->addr = &operand;
	m.compare->addr = &comparison;
	m.result->addr = &fetched;
	amo_aim(&m, to, 0, 0, 1);
	m.context = &operand;
	return m;
}

static uint64_t *word(struct api *a, size_t i)
{
	return (uint64_t *)(void *)amo_memory(a, 0) + i;
}

static uint64_t load(uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* Waits, with progress, until the target holds that. */
static void holds(struct amo_side *m, size_t i, uint64_t value)
{
	api_at(__FILE__, __LINE__);
	while (load(word(m->s.a, i)) != value)
		side_progress(&m->s);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static const enum amo_form most_forms[] = {AMO_PLAIN, AMO_VECTOR, AMO_MSG};

/* Bound to be selective: only what says FI_COMPLETION completes. */
static void selective(struct api *a)
{
	struct side_opts o = {.tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION};
	uint64_t adds = 0;
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (int i = 0; a->rank && i < 18; i++) {
		struct amo one = single(&m, (enum amo_family)(i / 2 % 2), most_forms[i / 6]);

		if (one.form == AMO_MSG && i & 1)
			one.flags = FI_COMPLETION | FI_DELIVERY_COMPLETE;
		POST(&m.s, amo_post(m.s.ep, &one));
		holds(&m, 0, ++adds);
		if (one.flags & FI_COMPLETION)
			AMO_DONE(&m.s, &one);
		QUIET(&m.s, m.s.tx, QUIET_MS);
	}
	amo_close(&m);
}

/* And those of the endpoint whose default it is; injected ones never. */
static void by_default(struct api *a)
{
	struct side_opts o = {.tx_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
			      .tx_bind = FI_SELECTIVE_COMPLETION};
	uint64_t adds = 0;
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (int i = 0; a->rank && i < 6; i++) {
		struct amo one = single(&m, (enum amo_family)(i % 2), most_forms[i / 2]);

		POST(&m.s, amo_post(m.s.ep, &one));
		holds(&m, 0, ++adds);
		if (one.form != AMO_MSG)
			AMO_DONE(&m.s, &one);
		QUIET(&m.s, m.s.tx, QUIET_MS);
	}
	for (int i = 0; a->rank && i < 4; i++) {
		struct amo one = single(&m, AMO_BASE, AMO_INJECT);

		POST(&m.s, amo_post(m.s.ep, &one));
		holds(&m, 0, ++adds);
	}
	QUIET(&m.s, m.s.tx, QUIET_MS);
	amo_close(&m);
}

/* Many of them under way: each completes once, with its own context, result and all. */
static void many(struct api *a)
{
	enum { COUNT = 500 };
	static uint64_t results[COUNT];
	static unsigned char seen[COUNT];
	struct amo_side m;

	amo_open_usual(&m, a);
	for (size_t i = 0; a->rank && i < COUNT; i++) {
		struct amo one = single(&m, (enum amo_family)(i % 3), most_forms[i / 3 % 3]);

		one.result->addr = &results[i];
		one.context = &results[i];
		one.flags = FI_DELIVERY_COMPLETE;
		POST(&m.s, amo_post(m.s.ep, &one));
	}
	for (size_t i = 0; a->rank && i < COUNT; i++) {
		struct fi_cq_tagged_entry e = TAKE(&m.s, m.s.tx);
		size_t at = (size_t)((uint64_t *)e.op_context - results);

		CHECK(at < COUNT);
		CHECK_EQ(seen[at]++, 0);
		CHECK_EQ(e.flags & (FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE),
			 FI_ATOMIC | (at % 3 == AMO_BASE ? FI_WRITE : FI_READ));
	}
	if (a->rank)
		QUIET(&m.s, m.s.tx, QUIET_MS);
	amo_close(&m);
}

/* With FI_REMOTE_CQ_DATA the target is told, after the change; without it is not. */
static void remote_data(struct api *a)
{
	static const uint64_t sets[] = {FI_REMOTE_CQ_DATA, 0, FI_REMOTE_CQ_DATA | FI_INJECT,
					FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, FI_INJECT};
	struct amo_side m;

	amo_open_usual(&m, a);
	for (uint64_t i = 0; i < API_COUNT(sets); i++) {
		struct amo one = single(&m, AMO_BASE, AMO_MSG);

		one.flags = sets[i];
		one.data = CQ_DATA + i;
		if (a->rank) {
			AMO_RUN(&m.s, &one);
		} else if (sets[i] & FI_REMOTE_CQ_DATA) {
			struct fi_cq_tagged_entry e = TAKE(&m.s, m.s.rx);

			CHECK_EQ(*word(a, 0), i + 1);
			CHECK_EQ(e.flags & AMO_FLAGS,
				 FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
			CHECK(e.op_context == NULL);
			if (!api_other())
				CHECK_EQ(e.data, CQ_DATA + i);
		} else {
			holds(&m, 0, i + 1);
			QUIET(&m.s, m.s.rx, QUIET_MS);
		}
		api_meet(a);
	}
	QUIET(&m.s, m.s.rx, QUIET_MS);
	amo_close(&m);
}

/* ---- Counters -------------------------------------------------------------------------------- */

enum { READS, WRITES, REMOTE_READS, REMOTE_WRITES, COUNTERS };

static void counts_to(struct side *s, struct fid_cntr *cntr, uint64_t value)
{
	api_at(__FILE__, __LINE__);
	while (fi_cntr_read(cntr) < value)
		side_progress(s);
	CHECK_EQ(fi_cntr_read(cntr), value);
}

static void open_counted(struct amo_side *m, struct api *a, struct fid_cntr **cntrs)
{
	static const uint64_t flags[] = {FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE};
	struct side_opts o = {.caps = AMO_CAPS | FI_RMA_EVENT,
			      .tx_flags = FI_DELIVERY_COMPLETE,
			      .not_enabled = true};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};

	side_open(&m->s, a, &o);
	for (int i = 0; i < COUNTERS; i++) {
		OK(fi_cntr_open(m->s.domain, &attr, &cntrs[i], NULL));
		OK(fi_ep_bind(m->s.ep, &cntrs[i]->fid, flags[i]));
	}
	OK(fi_enable(m->s.ep));
	side_exchange(&m->s, &o);
	a->progress = side_progress;
	a->progress_arg = &m->s;
	amo_register(m, a, AMO_ACCESS);
}

static void close_counted(struct amo_side *m, struct fid_cntr **cntrs)
{
	api_meet(m->s.a);
	OK(fi_close(&m->mr->fid));
	OK(fi_close(&m->s.ep->fid));
	for (int i = 0; i < COUNTERS; i++)
		OK(fi_close(&cntrs[i]->fid));
	OK(fi_endpoint(m->s.domain, m->s.info, &m->s.ep, NULL)); /* for side_close */
	side_close(&m->s);
}

/* Base ones are writes; those that fetch are reads. Injected ones count, and nothing else. */
static void counters(struct api *a)
{
	struct fid_cntr *cntrs[COUNTERS];
	uint64_t want[AMO_FAMILIES] = {0};
	struct amo_side m;

	open_counted(&m, a, cntrs);
	for (enum amo_family family = 0; family < AMO_FAMILIES; family++)
		for (enum amo_form form = 0; form < AMO_FORMS; form++)
			for (int i = 0; i <= (int)family + (int)form; i++) {
				struct amo one = single(&m, family, form);

				if (form == AMO_INJECT && family != AMO_BASE)
					continue;
				one.flags = FI_DELIVERY_COMPLETE;
				if (a->rank)
					AMO_RUN(&m.s, &one);
				want[family]++;
			}
	for (int i = 0; i < COUNTERS; i++) {
		bool remote = i >= REMOTE_READS, mine = remote ? !a->rank : a->rank;
		uint64_t count = i % 2 ? want[AMO_BASE] : want[AMO_FETCH] + want[AMO_COMPARE];

		counts_to(&m.s, cntrs[i], mine ? count : 0);
	}
	QUIET(&m.s, m.s.tx, QUIET_MS);
	for (int i = 0; i < COUNTERS; i++)
		CHECK_EQ(fi_cntr_readerr(cntrs[i]), 0);
	close_counted(&m, cntrs);
}

/* A region counts what changes it, whichever endpoint it comes through. */
static void region_counter(struct api *a)
{
	struct side_opts o = {.caps = AMO_CAPS | FI_RMA_EVENT, .tx_flags = FI_DELIVERY_COMPLETE};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fid_cntr *cntr;
	struct amo_side m;

	if (api_other())
		api_skip("not offered by this library");
	amo_open(&m, a, &o, AMO_ACCESS);
	OK(fi_cntr_open(m.s.domain, &attr, &cntr, NULL));
	if (!a->rank)
		OK(fi_mr_bind(m.mr, &cntr->fid, FI_REMOTE_WRITE));
	api_meet(a);
	for (int i = 0; a->rank && i < 10; i++) {
		struct amo one = single(&m, AMO_BASE, i & 1 ? AMO_MSG : AMO_INJECT);

		AMO_RUN(&m.s, &one);
	}
	counts_to(&m.s, cntr, a->rank ? 0 : 10);
	CHECK_EQ(*word(a, 0), 10);
	api_meet(a);
	OK(fi_close(&m.mr->fid));
	OK(fi_close(&cntr->fid));
	side_close(&m.s);
}

/* ---- Order ----------------------------------------------------------------------------------- */

#define WORDS 8192 /* a read or write of 64 KiB */

static const size_t sizes[] = {1, 40, WORDS};

/* The three words of so many that atomics act on. */
static size_t spot(size_t words, int i)
{
	return i == 0 ? 0 : i == 1 ? words / 2 : words - 1;
}

static void ordered(struct fi_info *hints)
{
	hints->tx_attr->msg_order = hints->rx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW;
}

/* Some words of rank 0, written or read or added to by calls that return at once. */
struct script {
	struct amo_side m;
	uint64_t out[WORDS], in[WORDS];
	size_t words;
	unsigned int posted;
};

static void put(struct script *s, uint64_t value)
{
	for (size_t i = 0; i < s->words; i++)
		s->out[i] = value;
	POST(&s->m.s, fi_write(s->m.s.ep, s->out, s->words * 8, NULL, s->m.s.addr[0], s->m.base[0],
			       s->m.key[0], s->out));
	s->posted++;
}

static void get(struct script *s)
{
	POST(&s->m.s, fi_read(s->m.s.ep, s->in, s->words * 8, NULL, s->m.s.addr[0], s->m.base[0],
			      s->m.key[0], s->in));
	s->posted++;
}

/* On three words, at once or one by one. */
static void change(struct script *s, enum fi_op op, const uint64_t *value)
{
	for (int i = 0; i < 3; i++) {
		struct amo one = single(&s->m, AMO_BASE, i == 1 ? AMO_MSG : AMO_PLAIN);

		one.op = op;
		one.buf->addr = (void *)(uintptr_t)value;
		one.target->addr += 8 * spot(s->words, i);
		if (i && spot(s->words, i) == spot(s->words, i - 1))
			continue;
		POST(&s->m.s, amo_post(s->m.s.ep, &one));
		s->posted++;
	}
}

static void finish(struct script *s)
{
	for (; s->posted; s->posted--)
		TAKE(&s->m.s, s->m.s.tx);
}

static void all_are(const struct script *s, const uint64_t *words, uint64_t value,
		    uint64_t at_spots, const char *what)
{
	char line[160];

	for (size_t i = 0; i < s->words; i++) {
		bool there =
			i == spot(s->words, 0) || i == spot(s->words, 1) || i == spot(s->words, 2);
		uint64_t want = there ? at_spots : value;

		if (words[i] == want)
			continue;
		snprintf(line, sizeof(line), "%s, word %zu of %zu: %#" PRIx64 ", wanted %#" PRIx64,
			 what, i, s->words, words[i], want);
		api_fail(line);
	}
}

/* Written over by atomics, then by a write, and read in between: each sees what came before. */
static void mixed(struct script *s, uint64_t turn)
{
	uint64_t add = turn + 7, value = turn << 32;

	put(s, value);
	change(s, FI_SUM, &add);
	finish(s);
	all_are(s, word(s->m.s.a, 0), value, value + add, "write, atomic");

	change(s, FI_BXOR, &value);
	get(s);
	finish(s);
	all_are(s, s->in, value, (value + add) ^ value, "atomic, read");

	get(s);
	change(s, FI_ATOMIC_WRITE, &turn);
	finish(s);
	all_are(s, s->in, value, (value + add) ^ value, "read, atomic");
	all_are(s, word(s->m.s.a, 0), value, turn, "atomic write");

	change(s, FI_PROD, &add);
	put(s, ~value);
	finish(s);
	all_are(s, word(s->m.s.a, 0), ~value, ~value, "atomic, write");
}

static void order(struct api *a)
{
	static struct script s;

	amo_open(&s.m, a, &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE, .tune = ordered},
		 AMO_ACCESS);
	for (size_t i = 0; a->rank && i < API_COUNT(sizes); i++) {
		s.words = sizes[i];
		for (uint64_t turn = 1; turn <= 25; turn++)
			mixed(&s, turn);
	}
	amo_close(&s.m);
}

/* A fenced one, and what follows it, see all that was posted before, though no order is asked for. */
static void fence(struct api *a)
{
	static uint64_t big[WORDS], results[2];
	struct side_opts o = {.caps = AMO_CAPS | FI_FENCE, .tx_flags = FI_DELIVERY_COMPLETE};
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (uint64_t i = 1; a->rank && i <= 30; i++) {
		struct amo last = single(&m, AMO_FETCH, AMO_MSG), next = last;

		for (size_t w = 0; w < WORDS; w++)
			big[w] = i;
		last.flags = FI_FENCE;
		last.target->addr += 8 * (WORDS - 1);
		last.result->addr = &results[0];
		next.form = AMO_PLAIN;
		next.target->addr += 8 * (WORDS - 2);
		next.result->addr = &results[1];
		POST(&m.s, fi_write(m.s.ep, big, sizeof(big), NULL, m.s.addr[0], m.base[0],
				    m.key[0], big));
		POST(&m.s, amo_post(m.s.ep, &last));
		POST(&m.s, amo_post(m.s.ep, &next));
		for (int n = 0; n < 3; n++)
			TAKE(&m.s, m.s.tx);
		CHECK_EQ(results[0], i);
		CHECK_EQ(results[1], i);
		CHECK_EQ(*word(a, WORDS - 1), i + 1);
		CHECK_EQ(*word(a, WORDS - 2), i + 1);
	}
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"selective", selective, 2, {0}},
		{"by-default", by_default, 2, {0}},
		{"many", many, 2, {0}},
		{"remote-data", remote_data, 2, {0}},
		{"counters", counters, 2, {0}},
		{"region-counter", region_counter, 2, {0}},
		{"order", order, 2, {0}},
		{"order-no-cma", order, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"fence", fence, 2, {0}},
		{"fence-no-cma", fence, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
