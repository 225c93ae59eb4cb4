/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics on memory of a process that two domains register: no update is lost. */
#include <pthread.h>

#include "api.h"
#include "lib/atomic.h"
#include "lib/eval.h"
#include "lib/hammer.h"

/*
 * Rank 0 opens the domain twice and drives each with its own thread. Atomics that arrive through
 * one domain must be atomic with those of the other.
 */
static bool stop;

/*
 * Held by the thread that accesses the memory: the one that drives both domains, or the one that
 * clears and compares. Messages order these accesses too, but through other processes, which
 * ThreadSanitizer cannot follow.
 */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static void *poll_second(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		OK(pthread_mutex_lock(&memory_lock));
		side_progress(arg);
		OK(pthread_mutex_unlock(&memory_lock));
		sched_yield();
	}
	return NULL;
}

static void progress_both(void *arg)
{
	struct amo_side *m = arg;

	side_progress(&m[0].s);
	hammer_progress(&m[1].s);
}

static void open_twice(struct amo_side *m, struct worker *w, struct api *a)
{
	struct amo_side *mine = &m[a->rank % 2];

	hammer_open(&m[0], a);
	hammer_open(&m[1], a);
	a->progress = progress_both;
	a->progress_arg = m;
	*w = (struct worker){.m = mine,
			     .ep = mine->s.ep,
			     .cq = mine->s.tx,
			     .id = (unsigned int)a->rank,
			     .workers = HAMMER_RANKS};
}

/* Returns the number of atomics of each worker, more than HAMMER_WINDOW. */
static int flood_count(void)
{
	int count = (int)api_times(1000);

	return count > 2 * HAMMER_WINDOW ? count : 2 * HAMMER_WINDOW;
}

static size_t at_once(const struct amo_side *m)
{
	return api_other() ? m->s.info->tx_attr->rma_iov_limit : AMO_IOV;
}

/* Adds ones to a single element, many times in each atomic. */
static void flood(struct worker *w)
{
	size_t size = eval_size(w->kind->type), n = at_once(w->m);
	int count = flood_count();
	static unsigned char ones[AMO_IOV * EVAL_ELEMENT];

	for (size_t i = 0; i < n; i++)
		hammer_number(w->kind->type, ones + i * size, 1);
	for (int i = 0; i < count; i++) {
		struct hammer_op *op = &w->ops[i % HAMMER_WINDOW];

		if (i >= HAMMER_WINDOW)
			hammer_wait(w, op);
		op->amo = (struct amo){.form = AMO_MSG, .type = w->kind->type, .op = FI_SUM};
		amo_aim(&op->amo, w->m, 0, w->kind->odd, 1);
		*op->amo.buf = (struct fi_ioc){ones, n};
		for (op->amo.targets = 1; op->amo.targets < n; op->amo.targets++)
			op->amo.target[op->amo.targets] = op->amo.target[0];
		hammer_post(w, op);
	}
	for (int i = 0; i < HAMMER_WINDOW; i++)
		hammer_wait(w, &w->ops[i]);
	hammer_perform(w, AMO_FETCH, FI_ATOMIC_READ, HAMMER_SUM); /* after all others */
}

static void two_domains(struct api *a)
{
	static struct amo_side m[2];
	static struct worker w;
	pthread_t thread;

	alarm(4 * api_limit());
	open_twice(m, &w, a);
	if (!a->rank)
		OK(pthread_create(&thread, NULL, poll_second, &m[1].s));
	for (size_t k = 0; k < API_COUNT(hammer_kinds); k++) {
		if (!hammer_has(&m[0], &hammer_kinds[k]))
			continue;
		OK(pthread_mutex_lock(&memory_lock));
		hammer_clear(a);
		OK(pthread_mutex_unlock(&memory_lock));
		w.kind = &hammer_kinds[k];
		flood(&w);
		api_meet(a);
		OK(pthread_mutex_lock(&memory_lock));
		CHECK_EQ(hammer_value(hammer_kinds[k].type,
				      hammer_target(a, &hammer_kinds[k], HAMMER_SUM)),
			 HAMMER_RANKS * (size_t)flood_count() * at_once(m));
		OK(pthread_mutex_unlock(&memory_lock));
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
		{"two-domains", two_domains, HAMMER_RANKS, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
