/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What atomics report: completions on demand, remote CQ data at the target, counters on both sides.
 */
#include "api.h"
#include "lib/atomic.h"
#include "lib/word.h"

#define QUIET_MS 5
#define CQ_DATA  UINT64_C(0xfedcba9876543210)

static uint64_t load(uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_ACQUIRE);
}

/* Waits, with progress, until word `i` of the target has this value. */
static void holds(struct amo_side *m, size_t i, uint64_t value)
{
	api_at(__FILE__, __LINE__);
	while (load(word_at(m->s.a, i)) != value)
		side_progress(&m->s);
}

/* ---- Completions ----------------------------------------------------------------------------- */

static const enum amo_form most_forms[] = {AMO_PLAIN, AMO_VECTOR, AMO_MSG};

/* On a queue bound with FI_SELECTIVE_COMPLETION only calls with FI_COMPLETION complete. */
static void selective(struct api *a)
{
	struct side_opts o = {.tx_flags = FI_DELIVERY_COMPLETE, .tx_bind = FI_SELECTIVE_COMPLETION};
	uint64_t adds = 0;
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (int i = 0; a->rank && i < 18; i++) {
		struct amo one = word_amo(&m, (enum amo_family)(i / 2 % 2), most_forms[i / 6]);

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

/* With FI_COMPLETION as default flag, calls without flags complete too; injected ones never do. */
static void by_default(struct api *a)
{
	struct side_opts o = {.tx_flags = FI_DELIVERY_COMPLETE | FI_COMPLETION,
			      .tx_bind = FI_SELECTIVE_COMPLETION};
	uint64_t adds = 0;
	struct amo_side m;

	amo_open(&m, a, &o, AMO_ACCESS);
	for (int i = 0; a->rank && i < 6; i++) {
		struct amo one = word_amo(&m, (enum amo_family)(i % 2), most_forms[i / 2]);

		POST(&m.s, amo_post(m.s.ep, &one));
		holds(&m, 0, ++adds);
		if (one.form != AMO_MSG)
			AMO_DONE(&m.s, &one);
		QUIET(&m.s, m.s.tx, QUIET_MS);
	}
	for (int i = 0; a->rank && i < 4; i++) {
		struct amo one = word_amo(&m, AMO_BASE, AMO_INJECT);

		POST(&m.s, amo_post(m.s.ep, &one));
		holds(&m, 0, ++adds);
	}
	QUIET(&m.s, m.s.tx, QUIET_MS);
	amo_close(&m);
}

/* Many atomics in flight: each completes once, with its own context and result. */
static void many(struct api *a)
{
	enum { COUNT = 500 };
	static uint64_t results[COUNT];
	static unsigned char seen[COUNT];
	struct amo_side m;

	amo_open_usual(&m, a);
	for (size_t i = 0; a->rank && i < COUNT; i++) {
		struct amo one = word_amo(&m, (enum amo_family)(i % 3), most_forms[i / 3 % 3]);

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

/* With FI_REMOTE_CQ_DATA the target gets a completion after the change; without the flag none. */
static void remote_data(struct api *a)
{
	static const uint64_t sets[] = {FI_REMOTE_CQ_DATA, 0, FI_REMOTE_CQ_DATA | FI_INJECT,
					FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE, FI_INJECT};
	struct amo_side m;

	amo_open_usual(&m, a);
	for (uint64_t i = 0; i < API_COUNT(sets); i++) {
		struct amo one = word_amo(&m, AMO_BASE, AMO_MSG);

		one.flags = sets[i];
		one.data = CQ_DATA + i;
		if (a->rank) {
			AMO_RUN(&m.s, &one);
		} else if (sets[i] & FI_REMOTE_CQ_DATA) {
			struct fi_cq_tagged_entry e = TAKE(&m.s, m.s.rx);

			CHECK_EQ(*word_at(a, 0), i + 1);
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
	OK(fi_endpoint(m->s.domain, m->s.info, &m->s.ep, NULL)); /* closed by side_close */
	side_close(&m->s);
}

/* Base atomics count as writes, fetching ones as reads. Injected atomics only count. */
static void counters(struct api *a)
{
	struct fid_cntr *cntrs[COUNTERS];
	uint64_t want[AMO_FAMILIES] = {0};
	struct amo_side m;

	open_counted(&m, a, cntrs);
	for (enum amo_family family = 0; family < AMO_FAMILIES; family++)
		for (enum amo_form form = 0; form < AMO_FORMS; form++)
			for (int i = 0; i <= (int)family + (int)form; i++) {
				struct amo one = word_amo(&m, family, form);

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

/* Binds a counter to rank 0's region; the counter counts changes. */
static struct fid_cntr *counted_region(struct amo_side *m, struct api *a, const struct side_opts *o,
				       enum fi_wait_obj wait)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = wait};
	struct fid_cntr *cntr;

	amo_open(m, a, o, AMO_ACCESS);
	OK(fi_cntr_open(m->s.domain, &attr, &cntr, NULL));
	if (!a->rank)
		OK(fi_mr_bind(m->mr, &cntr->fid, FI_REMOTE_WRITE));
	return cntr;
}

/* The counter of a region counts changes by any endpoint. */
static void region_counter(struct api *a)
{
	struct side_opts o = {.caps = AMO_CAPS | FI_RMA_EVENT, .tx_flags = FI_DELIVERY_COMPLETE};
	struct fid_cntr *cntr;
	struct amo_side m;

	if (api_other())
		api_skip("not offered by this library");
	cntr = counted_region(&m, a, &o, FI_WAIT_NONE);
	api_meet(a);
	for (int i = 0; a->rank && i < 10; i++) {
		struct amo one = word_amo(&m, AMO_BASE, i & 1 ? AMO_MSG : AMO_INJECT);

		AMO_RUN(&m.s, &one);
	}
	counts_to(&m.s, cntr, a->rank ? 0 : 10);
	CHECK_EQ(*word_at(a, 0), 10);
	api_meet(a);
	OK(fi_close(&m.mr->fid));
	OK(fi_close(&cntr->fid));
	side_close(&m.s);
}

/* An atomic with operand 1 and compare value 0. */
struct access {
	enum amo_family family;
	enum fi_op op;
	bool modifies;
};

static const struct access accesses[] = {
	{AMO_BASE, FI_SUM, true},           {AMO_BASE, FI_ATOMIC_WRITE, true},
	{AMO_FETCH, FI_SUM, true},          {AMO_FETCH, FI_ATOMIC_WRITE, true},
	{AMO_FETCH, FI_ATOMIC_READ, false}, {AMO_COMPARE, FI_CSWAP, true},
	{AMO_COMPARE, FI_MSWAP, true},
};

static struct amo access_amo(struct amo_side *m, const struct access *what, enum amo_form form)
{
	struct amo one = word_amo(m, what->family, form);

	one.op = what->op;
	if (what->op == FI_ATOMIC_READ)
		one.bufs = 0;
	if (form == AMO_MSG) { /* two ranges of the region count as one access */
		static struct {
			uint64_t operand[2], compare[2], result[2];
		} two = {.operand = {1, 1}};

		one.targets = 2;
		one.target[1] = amo_target(m, 0, 64, 1);
		one.buf->addr = two.operand;
		one.compare->addr = two.compare;
		one.result->addr = two.result;
		one.buf->count = one.compare->count = one.result->count = 2;
		one.flags = FI_DELIVERY_COMPLETE | FI_COMPLETION;
	}
	return one;
}

/*
 * Rank 1 runs all atomics in all forms. The counter of rank 0's region counts those that `flags`
 * select.
 */
static void region_counts(struct api *a, uint64_t flags)
{
	struct side_opts o = {.caps = AMO_CAPS | FI_RMA_EVENT, .tx_flags = FI_DELIVERY_COMPLETE};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
	struct fid_cntr *cntr;
	struct amo_side m;
	uint64_t want = 0;

	if (api_other())
		api_skip("it counts reads, too");
	amo_open(&m, a, &o, AMO_ACCESS);
	OK(fi_cntr_open(m.s.domain, &attr, &cntr, NULL));
	if (!a->rank)
		OK(fi_mr_bind(m.mr, &cntr->fid, flags));
	api_meet(a);
	for (size_t i = 0; i < API_COUNT(accesses) * API_COUNT(most_forms); i++) {
		const struct access *what = &accesses[i / API_COUNT(most_forms)];
		struct amo one = access_amo(&m, what, most_forms[i % API_COUNT(most_forms)]);

		if (a->rank)
			AMO_RUN(&m.s, &one);
		want += flags & FI_REMOTE_READ ? what->modifies || what->family != AMO_BASE
					       : what->modifies;
		counts_to(&m.s, cntr, a->rank ? 0 : want);
		api_meet(a);
		counts_to(&m.s, cntr, a->rank ? 0 : want); /* no further count follows */
		api_meet(a);
	}
	OK(fi_close(&m.mr->fid));
	OK(fi_close(&cntr->fid));
	side_close(&m.s);
}

static void region_modified(struct api *a)
{
	region_counts(a, FI_REMOTE_WRITE);
}

/* An access that reads and writes counts once. */
static void region_accessed(struct api *a)
{
	region_counts(a, FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/* Passing a lock on: rank 0 sleeps on the counter until rank 1's masked swap changes the word. */
static void lock_handover(struct api *a)
{
	struct side_opts o = {.caps = AMO_CAPS | FI_RMA_EVENT, .tx_flags = FI_DELIVERY_COMPLETE};
	const struct access swap = {AMO_COMPARE, FI_MSWAP, true};
	uint64_t all = UINT64_MAX;
	struct fid_cntr *cntr;
	struct amo_side m;

	if (api_other())
		api_skip("not offered by this library");
	cntr = counted_region(&m, a, &o, FI_WAIT_UNSPEC);
	for (uint64_t i = 1; i <= 5; i++) {
		struct amo one = access_amo(&m, &swap, AMO_PLAIN);

		api_meet(a);
		one.buf->addr = &i;
		one.compare->addr = &all;
		if (a->rank) {
			usleep(5000);
			AMO_RUN(&m.s, &one);
		} else {
			OK(fi_cntr_wait(cntr, i, 8000));
			CHECK_EQ(load(word_at(a, 0)), i);
		}
	}
	api_meet(a);
	OK(fi_close(&m.mr->fid));
	OK(fi_close(&cntr->fid));
	side_close(&m.s);
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
		{"region-modified", region_modified, 2, {0}},
		{"region-accessed", region_accessed, 2, {0}},
		{"lock-handover", lock_handover, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
