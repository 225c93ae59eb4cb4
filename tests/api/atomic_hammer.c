/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many at once on the same few elements, from threads with one endpoint or one each, and from
 * processes: nothing is lost, nothing is seen half done.
 */
#include <pthread.h>

#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"

#define THREADS   8
#define PROCESSES 4
#define WINDOW    8   /* operations a worker has under way */
#define UPDATES   160 /* of each worker, without an answer */
#define TICKETS   80  /* of each worker, one after the other */
#define SWAPS     25
#define LOOKS     60
#define ARRAY     3   /* elements of the sum */
#define SLOT      128 /* bytes from one target to the next */

/* What is hammered on, and how far off its alignment it lies. */
static const struct kind {
	enum fi_datatype type;
	unsigned int odd;
} kinds[] = {{FI_UINT64, 0}, {FI_INT32, 0},  {FI_DOUBLE, 0}, {FI_INT128, 0},
	     {FI_UINT64, 1}, {FI_INT32, 62}, {FI_DOUBLE, 3}, {FI_INT128, 8}};

/* The targets, a slot each. */
enum { SUM, MIX, TICKET, SWAP, WHOLE };

struct op {
	struct amo amo;
	unsigned char buf[ARRAY * EVAL_ELEMENT], compare[EVAL_ELEMENT], result[EVAL_ELEMENT];
	bool done; /* by whoever reads the queue */
};

struct worker {
	struct amo_side *m;
	const struct kind *kind;
	struct fid_ep *ep;
	struct fid_cq *cq;
	unsigned int id, workers;
	struct op ops[WINDOW];
};

/* ---- Numbers of any of the types ------------------------------------------------------------- */

static void number(enum fi_datatype type, void *to, uint64_t value)
{
	unsigned __int128 whole = value;

	if (eval_class(type) == EVAL_INTEGER)
		memcpy(to, &whole, eval_size(type));
	else
		eval_put(type, to, (long double)value);
}

static uint64_t value_of(enum fi_datatype type, const void *from)
{
	if (eval_class(type) == EVAL_INTEGER)
		return (uint64_t)eval_load(type, from);
	return (uint64_t)eval_get(type, from);
}

static unsigned char *target(struct api *a, const struct kind *k, int slot)
{
	return amo_memory(a, 0) + slot * SLOT + k->odd;
}

/* ---- Posting and waiting --------------------------------------------------------------------- */

/* Others' completions too, when the queue is shared. */
static void reap(struct worker *w)
{
	struct fi_cq_tagged_entry e[WINDOW];
	ssize_t n = fi_cq_read(w->cq, e, WINDOW);

	CHECK(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++)
		__atomic_store_n(&((struct op *)e[i].op_context)->done, true, __ATOMIC_RELEASE);
	sched_yield();
}

static void wait_for(struct worker *w, struct op *op)
{
	while (!__atomic_load_n(&op->done, __ATOMIC_ACQUIRE))
		reap(w);
}

static void post(struct worker *w, struct op *op)
{
	ssize_t ret;

	op->amo.context = op;
	__atomic_store_n(&op->done, false, __ATOMIC_RELAXED);
	while ((ret = amo_post(w->ep, &op->amo)) == -FI_EAGAIN)
		reap(w);
	CHECK_EQ(ret, 0);
}

/* The operation's operands are set; it is the worker's own until it is waited for. */
static void start(struct worker *w, struct op *op, enum amo_family family, enum fi_op what,
		  int slot, size_t count)
{
	op->amo = (struct amo){.family = family, .type = w->kind->type, .op = what};
	op->amo.buf->addr = op->buf;
	op->amo.compare->addr = op->compare;
	op->amo.result->addr = op->result;
	amo_aim(&op->amo, w->m, 0, (uint64_t)slot * SLOT + w->kind->odd, count);
	post(w, op);
}

static void perform(struct worker *w, enum amo_family family, enum fi_op what, int slot)
{
	start(w, &w->ops[0], family, what, slot, 1);
	wait_for(w, &w->ops[0]);
}

/* ---- What a worker does ---------------------------------------------------------------------- */

static bool is_integer(const struct kind *k)
{
	return eval_class(k->type) == EVAL_INTEGER;
}

/* What update `i` of that worker mixes in: numbers all types hold. */
static uint64_t mixed_in(unsigned int id, unsigned int i)
{
	return (id * UPDATES + i + 1) * UINT64_C(7919) & 0x7fffffff;
}

/* Sums over an array, and bits flipped (or, of floats, the largest kept), without waiting. */
static void update(struct worker *w)
{
	size_t size = eval_size(w->kind->type);

	for (unsigned int i = 0; i < UPDATES; i++) {
		struct op *op = &w->ops[i % WINDOW];

		if (i >= WINDOW)
			wait_for(w, op);
		if (i % 2) {
			for (unsigned int e = 0; e < ARRAY; e++)
				number(w->kind->type, op->buf + e * size, w->id + e + 1);
			start(w, op, AMO_BASE, FI_SUM, SUM, ARRAY);
		} else {
			number(w->kind->type, op->buf, mixed_in(w->id, i));
			start(w, op, AMO_BASE, is_integer(w->kind) ? FI_BXOR : FI_MAX, MIX, 1);
		}
	}
	for (unsigned int i = 0; i < WINDOW; i++)
		wait_for(w, &w->ops[i]);
}

/* Each number is drawn once, by whomever. */
static void draw(struct worker *w)
{
	unsigned char *drawn = amo_memory(w->m->s.a, 0) + AMO_REGION;

	number(w->kind->type, w->ops[0].buf, 1);
	for (int i = 0; i < TICKETS; i++) {
		uint64_t ticket;

		perform(w, AMO_FETCH, FI_SUM, TICKET);
		ticket = value_of(w->kind->type, w->ops[0].result);
		CHECK(ticket < w->workers * TICKETS);
		CHECK_EQ(__atomic_fetch_add(&drawn[ticket], 1, __ATOMIC_RELAXED), 0);
	}
}

/* Counts by comparing with what was there a moment ago, until nobody was faster. */
static void swap(struct worker *w)
{
	enum fi_datatype type = w->kind->type;
	struct op *op = &w->ops[0];
	uint64_t seen = 0, was;

	for (int i = 0; i < SWAPS; i++)
		for (;; seen = was) {
			number(type, op->compare, seen);
			number(type, op->buf, seen + 1);
			perform(w, AMO_COMPARE, FI_CSWAP, SWAP);
			was = value_of(type, op->result);
			if (was == seen)
				break;
			CHECK(was > seen); /* it only grows */
		}
}

static void whole(const struct worker *w, const unsigned char *value)
{
	CHECK(data_all(value, eval_size(w->kind->type), value[0]));
}

/* Writes values whose bytes are all the same, and sees none but such. */
static void look(struct worker *w)
{
	struct op *op = &w->ops[0];

	memset(op->buf, (int)(0x80 | w->id), EVAL_ELEMENT);
	memset(op->compare, 0xff, EVAL_ELEMENT);
	for (int i = 0; i < LOOKS; i++) {
		if (i % 3)
			perform(w, AMO_FETCH, FI_ATOMIC_READ, WHOLE);
		else
			perform(w, AMO_COMPARE, FI_CSWAP_NE, WHOLE);
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

/* ---- What came of it ------------------------------------------------------------------------- */

static void check(struct api *a, const struct kind *k, unsigned int workers)
{
	const unsigned char *drawn = amo_memory(a, 0) + AMO_REGION;
	uint64_t mix = 0;

	for (unsigned int e = 0; e < ARRAY; e++)
		CHECK_EQ(value_of(k->type, target(a, k, SUM) + e * eval_size(k->type)),
			 UPDATES / 2 * (workers * (workers - 1) / 2 + workers * (e + 1)));
	for (unsigned int id = 0; id < workers; id++)
		for (unsigned int i = 0; i < UPDATES; i += 2)
			if (is_integer(k))
				mix ^= mixed_in(id, i);
			else if (mixed_in(id, i) > mix)
				mix = mixed_in(id, i);
	CHECK_EQ(value_of(k->type, target(a, k, MIX)), mix);
	CHECK_EQ(value_of(k->type, target(a, k, TICKET)), workers * TICKETS);
	CHECK(data_all(drawn, workers * TICKETS, 1));
	CHECK_EQ(value_of(k->type, target(a, k, SWAP)), workers * SWAPS);
}

/* Rank 0 yields: there are fewer cores than workers. */
static void progress(void *arg)
{
	side_progress(arg);
	sched_yield();
}

static void open_all(struct amo_side *m, struct api *a)
{
	amo_open(m, a, &(struct side_opts){.threading = FI_THREAD_SAFE}, AMO_ACCESS);
	a->progress = progress;
}

/* Does the library have the type at all? */
static bool offers(struct amo_side *m, const struct kind *k)
{
	size_t count;

	return !api_other() || (k->type <= FI_DOUBLE && is_integer(k) && !k->odd &&
				!fi_compare_atomicvalid(m->s.ep, k->type, FI_CSWAP_NE, &count));
}

static void clear(struct api *a)
{
	api_meet(a);
	if (!a->rank)
		memset(amo_memory(a, 0), 0, 2 * AMO_REGION);
	api_meet(a);
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

	open_all(&m, a);
	for (unsigned int i = 0; i < THREADS && a->rank; i++) {
		w[i] = (struct worker){
			.m = &m, .ep = m.s.ep, .cq = m.s.tx, .id = i, .workers = THREADS};
		if (own)
			open_own(&w[i]);
	}
	for (size_t k = 0; k < API_COUNT(kinds); k++) {
		if (!offers(&m, &kinds[k]))
			continue;
		clear(a);
		for (unsigned int i = 0; i < THREADS; i++)
			w[i].kind = &kinds[k];
		if (a->rank)
			run_threads(w, THREADS);
		api_meet(a);
		check(a, &kinds[k], THREADS);
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

/* That of the memory is one of them. */
static void processes(struct api *a)
{
	static struct worker w;
	struct amo_side m;

	open_all(&m, a);
	w = (struct worker){.m = &m,
			    .ep = m.s.ep,
			    .cq = m.s.tx,
			    .id = (unsigned int)a->rank,
			    .workers = PROCESSES};
	for (size_t k = 0; k < API_COUNT(kinds); k++) {
		if (!offers(&m, &kinds[k]))
			continue;
		clear(a);
		w.kind = &kinds[k];
		work(&w);
		api_meet(a);
		check(a, &kinds[k], PROCESSES);
	}
	amo_close(&m);
}

/*
 * The memory's process has the domain open twice, a thread for each: still one actor, so what comes
 * in by the one is not lost to the other.
 */
static bool stop;

static void *poll_second(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		progress(arg);
	return NULL;
}

static void progress_both(void *arg)
{
	struct amo_side *m = arg;

	side_progress(&m[0].s);
	progress(&m[1].s);
}

static void open_twice(struct amo_side *m, struct worker *w, struct api *a)
{
	struct amo_side *mine = &m[a->rank % 2];

	open_all(&m[0], a);
	open_all(&m[1], a);
	a->progress = progress_both;
	a->progress_arg = m;
	*w = (struct worker){.m = mine,
			     .ep = mine->s.ep,
			     .cq = mine->s.tx,
			     .id = (unsigned int)a->rank,
			     .workers = PROCESSES};
}

#define FLOOD       300
#define FLOOD_BYTES 4096

/* Ones to as many elements as one atomic takes, by both ways at a time. */
static void flood(struct worker *w)
{
	static unsigned char ones[FLOOD_BYTES];
	size_t size = eval_size(w->kind->type);

	for (size_t i = 0; i < FLOOD_BYTES / size; i++)
		number(w->kind->type, ones + i * size, 1);
	for (int i = 0; i < FLOOD; i++) {
		struct op *op = &w->ops[i % WINDOW];

		if (i >= WINDOW)
			wait_for(w, op);
		op->amo = (struct amo){.type = w->kind->type, .op = FI_SUM};
		op->amo.buf->addr = ones;
		amo_aim(&op->amo, w->m, 0, w->kind->odd, FLOOD_BYTES / size);
		post(w, op);
	}
	for (int i = 0; i < WINDOW; i++)
		wait_for(w, &w->ops[i]);
}

static void check_flood(struct api *a, const struct kind *k)
{
	size_t size = eval_size(k->type);

	for (size_t i = 0; i < FLOOD_BYTES / size; i++)
		CHECK_EQ(value_of(k->type, target(a, k, SUM) + i * size), PROCESSES * FLOOD);
}

static void two_domains(struct api *a)
{
	static struct amo_side m[2];
	static struct worker w;
	pthread_t thread;

	open_twice(m, &w, a);
	if (!a->rank)
		OK(pthread_create(&thread, NULL, poll_second, &m[1].s));
	for (size_t k = 0; k < API_COUNT(kinds); k++) {
		if (!offers(&m[0], &kinds[k]))
			continue;
		clear(a);
		w.kind = &kinds[k];
		flood(&w);
		api_meet(a);
		check_flood(a, &kinds[k]);
	}
	api_meet(a);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (!a->rank)
		OK(pthread_join(thread, NULL));
	amo_close(&m[1]);
	amo_close(&m[0]);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one-endpoint", one_endpoint, 2, {0}},
		{"own-endpoints", own_endpoints, 2, {0}},
		{"processes", processes, PROCESSES, {0}},
		{"two-domains", two_domains, PROCESSES, {0}},
		{"processes-no-cma", processes, PROCESSES, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
