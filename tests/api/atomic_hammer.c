/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Concurrent atomics on a few elements, from threads with a shared endpoint or one each, and from
 * processes. No update is lost, and no partial update is visible.
 */
#include <pthread.h>

#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"
#include "lib/hammer.h"

#define THREADS 8
#define UPDATES 160 /* base atomics per worker */
#define TICKETS 80  /* fetching atomics per worker, one at a time */
#define SWAPS   25
#define POLLS   60

/* ---- What a worker does ---------------------------------------------------------------------- */

static bool is_integer(const struct hammer_kind *k)
{
	return eval_class(k->type) == EVAL_INTEGER;
}

/* Returns the operand of update `i` of a worker; all types can hold it. */
static uint64_t mixed_in(unsigned int id, unsigned int i)
{
	return (id * UPDATES + i + 1) * UINT64_C(7919) & 0x7fffffff;
}

/* Posts sums over an array, and XORs (for floats: maxima), without waiting. */
static void update(struct worker *w)
{
	size_t size = eval_size(w->kind->type);

	for (unsigned int i = 0; i < UPDATES; i++) {
		struct hammer_op *op = &w->ops[i % HAMMER_WINDOW];

		if (i >= HAMMER_WINDOW)
			hammer_wait(w, op);
		if (i % 2) {
			for (unsigned int e = 0; e < HAMMER_ARRAY; e++)
				hammer_number(w->kind->type, op->buf + e * size, w->id + e + 1);
			hammer_start(w, op, AMO_BASE, FI_SUM, HAMMER_SUM, HAMMER_ARRAY);
		} else {
			hammer_number(w->kind->type, op->buf, mixed_in(w->id, i));
			hammer_start(w, op, AMO_BASE, is_integer(w->kind) ? FI_BXOR : FI_MAX,
				     HAMMER_MIX, 1);
		}
	}
	for (unsigned int i = 0; i < HAMMER_WINDOW; i++)
		hammer_wait(w, &w->ops[i]);
}

/* Draws tickets: each number is drawn once. */
static void draw(struct worker *w)
{
	unsigned char *drawn = amo_memory(w->m->s.a, 0) + AMO_REGION;

	hammer_number(w->kind->type, w->ops[0].buf, 1);
	for (int i = 0; i < TICKETS; i++) {
		uint64_t ticket;

		hammer_perform(w, AMO_FETCH, FI_SUM, HAMMER_TICKET);
		ticket = hammer_value(w->kind->type, w->ops[0].result);
		CHECK(ticket < w->workers * TICKETS);
		CHECK_EQ(__atomic_fetch_add(&drawn[ticket], 1, __ATOMIC_RELAXED), 0);
	}
}

/* Increments with compare and swap, repeated until no other worker was faster. */
static void swap(struct worker *w)
{
	enum fi_datatype type = w->kind->type;
	struct hammer_op *op = &w->ops[0];
	uint64_t seen = 0, was;

	for (int i = 0; i < SWAPS; i++)
		for (;; seen = was) {
			hammer_number(type, op->compare, seen);
			hammer_number(type, op->buf, seen + 1);
			hammer_perform(w, AMO_COMPARE, FI_CSWAP, HAMMER_SWAP);
			was = hammer_value(type, op->result);
			if (was == seen)
				break;
			CHECK(was > seen); /* the value only grows */
		}
}

static void whole(const struct worker *w, const unsigned char *value)
{
	CHECK(data_all(value, eval_size(w->kind->type), value[0]));
}

/* Writes values whose bytes are all equal, and checks that every value read is such. */
static void look(struct worker *w)
{
	struct hammer_op *op = &w->ops[0];

	memset(op->buf, (int)(0x80 | w->id), EVAL_ELEMENT);
	memset(op->compare, 0xff, EVAL_ELEMENT);
	for (int i = 0; i < POLLS; i++) {
		if (i % 3)
			hammer_perform(w, AMO_FETCH, FI_ATOMIC_READ, HAMMER_WHOLE);
		else
			hammer_perform(w, AMO_COMPARE, FI_CSWAP_NE, HAMMER_WHOLE);
		whole(w, op->result);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	update(w);
	draw(w);
	swap(w);
	look(w);
	return NULL;
}

/* ---- Checking the results -------------------------------------------------------------------- */

static void check(struct api *a, const struct hammer_kind *k, unsigned int workers)
{
	const unsigned char *drawn = amo_memory(a, 0) + AMO_REGION;
	uint64_t mix = 0;

	for (unsigned int e = 0; e < HAMMER_ARRAY; e++)
		CHECK_EQ(hammer_value(k->type,
				      hammer_target(a, k, HAMMER_SUM) + e * eval_size(k->type)),
			 UPDATES / 2 * (workers * (workers - 1) / 2 + workers * (e + 1)));
	for (unsigned int id = 0; id < workers; id++)
		for (unsigned int i = 0; i < UPDATES; i += 2)
			if (is_integer(k))
				mix ^= mixed_in(id, i);
			else if (mixed_in(id, i) > mix)
				mix = mixed_in(id, i);
	CHECK_EQ(hammer_value(k->type, hammer_target(a, k, HAMMER_MIX)), mix);
	CHECK_EQ(hammer_value(k->type, hammer_target(a, k, HAMMER_TICKET)), workers * TICKETS);
	CHECK(data_all(drawn, workers * TICKETS, 1));
	CHECK_EQ(hammer_value(k->type, hammer_target(a, k, HAMMER_SWAP)), workers * SWAPS);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static void run_threads(struct worker *w, unsigned int count)
{
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < count; i++)
		OK(pthread_create(&threads[i], NULL, work, &w[i]));
	for (unsigned int i = 0; i < count; i++)
		OK(pthread_join(threads[i], NULL));
}

static void open_own(struct worker *w)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};

	OK(fi_cq_open(w->m->s.domain, &attr, &w->cq, NULL));
	OK(fi_endpoint(w->m->s.domain, w->m->s.info, &w->ep, NULL));
	OK(fi_ep_bind(w->ep, &w->m->s.av->fid, 0));
	OK(fi_ep_bind(w->ep, &w->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(w->ep));
}

static void threads(struct api *a, bool own)
{
	static struct worker w[THREADS];
	struct amo_side m;

	hammer_open(&m, a);
	for (unsigned int i = 0; i < THREADS && a->rank; i++) {
		w[i] = (struct worker){
			.m = &m, .ep = m.s.ep, .cq = m.s.tx, .id = i, .workers = THREADS};
		if (own)
			open_own(&w[i]);
	}
	for (size_t k = 0; k < API_COUNT(hammer_kinds); k++) {
		if (!hammer_has(&m, &hammer_kinds[k]))
			continue;
		hammer_clear(a);
		for (unsigned int i = 0; i < THREADS; i++)
			w[i].kind = &hammer_kinds[k];
		if (a->rank)
			run_threads(w, THREADS);
		api_meet(a);
		check(a, &hammer_kinds[k], THREADS);
	}
	for (unsigned int i = 0; i < THREADS && a->rank && own; i++) {
		OK(fi_close(&w[i].ep->fid));
		OK(fi_close(&w[i].cq->fid));
	}
	amo_close(&m);
}

static void one_endpoint(struct api *a)
{
	threads(a, false);
}

static void own_endpoints(struct api *a)
{
	threads(a, true);
}

/* ---- Processes ------------------------------------------------------------------------------- */

/* The process that owns the memory takes part. */
static void processes(struct api *a)
{
	static struct worker w;
	struct amo_side m;

	hammer_open(&m, a);
	w = (struct worker){.m = &m,
			    .ep = m.s.ep,
			    .cq = m.s.tx,
			    .id = (unsigned int)a->rank,
			    .workers = HAMMER_RANKS};
	for (size_t k = 0; k < API_COUNT(hammer_kinds); k++) {
		if (!hammer_has(&m, &hammer_kinds[k]))
			continue;
		hammer_clear(a);
		w.kind = &hammer_kinds[k];
		work(&w);
		api_meet(a);
		check(a, &hammer_kinds[k], HAMMER_RANKS);
	}
	amo_close(&m);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one-endpoint", one_endpoint, 2, {0}},
		{"own-endpoints", own_endpoints, 2, {0}},
		{"processes", processes, HAMMER_RANKS, {0}},
		{"processes-no-cma", processes, HAMMER_RANKS, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
