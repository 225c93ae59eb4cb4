/* SPDX-License-Identifier: BSD-2-Clause */
/* TIMEOUT=120 */
/*
 * Threading levels, row by row of the table in docs/LOCKING.md: threads use objects at random (lib/lanes.h), with the locks
 * around them that the level asks of the application and no others. Each message and each read arrives once and whole. SEED
 * repeats.
 */
#include "lib/lanes.h"

#define THREADS 3
#define WORLDS  5 /* made by a case */
#define WINDOW  8 /* operations of a lane under way, of a kind */

static uint64_t seed;

/* ---- Locks of the application ---------------------------------------------------------------- */

/* Puts two things into one group. */
static void join(struct thing *a, struct thing *b)
{
	struct thing *old = b->group;

	for (unsigned int i = 0; i < w.thing_count; i++)
		if (w.things[i].group == old)
			w.things[i].group = a->group;
}

/* Which lock the application holds for each thing: docs/LOCKING.md. */
static void choose_locks(enum fi_threading level)
{
	for (unsigned int i = 0; level != FI_THREAD_SAFE && i < w.thing_count; i++)
		w.things[i].group = level == FI_THREAD_ENDPOINT ? w.things[i].base : &w.things[i];
	if (level == FI_THREAD_DOMAIN && !w.scalable)
		for (unsigned int i = 1; i < w.thing_count; i++)
			join(&w.things[0], &w.things[i]);
	if (level != FI_THREAD_COMPLETION)
		return;
	for (unsigned int i = 0; i < w.lane_count; i++) {
		struct lane *l = &w.lane[i];

		join(l->tx_thing, l->tx_q->thing);
		join(l->rx_thing, l->rx_q->thing);
		if (l->sends)
			join(l->tx_thing, l->cntr_thing);
	}
	for (unsigned int i = 0; w.poll && i < w.queue_count; i++)
		join(w.poll_thing, w.queue[i].thing);
}

/* ---- Use by threads -------------------------------------------------------------------------- */

static void ended(const struct fi_cq_tagged_entry *e)
{
	struct op *op = e->op_context;

	CHECK(!__atomic_exchange_n(&op->done, true, __ATOMIC_RELAXED));
	if (op->receives) {
		CHECK_EQ(e->len, op->len);
		CHECK_EQ(e->tag, op->tag);
	}
	if (op->receives || op->reads)
		data_check(op->buf, op->len, op->reads ? 1 : op->tag);
	free(op->buf);
	__atomic_sub_fetch(&op->at->flying[op->receives], 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&w.left, 1, __ATOMIC_RELAXED);
}

static void read_queue(struct queue *q)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t n;

	hold(q->thing);
	n = fi_cq_read(q->cq, e, 4);
	drop(q->thing);
	if (n < 0 && n != -FI_EAGAIN)
		obj_cq_failed(q->cq, n);
	for (ssize_t i = 0; i < n; i++)
		ended(&e[i]);
}

static ssize_t call(struct lane *l, struct op *op)
{
	if (op->receives)
		return fi_trecv(l->rx, op->buf, op->len, NULL, FI_ADDR_UNSPEC, op->tag, 0, op);
	if (op->reads)
		return fi_read(l->tx, op->buf, op->len, NULL, op->to->peer, 0, MR_KEY, op);
	return fi_tsend(l->tx, op->buf, op->len, NULL, op->to->peer, op->tag, op);
}

/* Posts the lane's next operation, if there is one and few are under way. */
static void post(struct lane *l, bool receive)
{
	struct thing *t = receive ? l->rx_thing : l->tx_thing;
	unsigned int n, end = receive ? l->receives : most;
	struct op *op;
	ssize_t ret;

	if (__atomic_add_fetch(&l->flying[receive], 1, __ATOMIC_RELAXED) > WINDOW ||
	    (n = __atomic_fetch_add(&l->posted[receive], 1, __ATOMIC_RELAXED)) >= end) {
		__atomic_sub_fetch(&l->flying[receive], 1, __ATOMIC_RELAXED);
		return;
	}
	op = &l->op[receive][n];
	op->buf = malloc(op->len + 1);
	CHECK(op->buf != NULL);
	if (!receive && !op->reads)
		data_fill(op->buf, op->len, op->tag);
	do {
		hold(t);
		ret = call(l, op);
		drop(t);
		if (ret == -FI_EAGAIN)
			read_queue(l->tx_q);
	} while (ret == -FI_EAGAIN);
	OK(ret);
}

static void poll_all(void)
{
	void *contexts[2 * LANES];
	int ret;

	if (!w.poll)
		return;
	hold(w.poll_thing);
	ret = fi_poll(w.poll, contexts, 2 * LANES);
	drop(w.poll_thing);
	CHECK(ret >= 0);
}

static void count(struct lane *l)
{
	uint64_t value;

	if (!l->sends)
		return;
	hold(l->cntr_thing);
	value = fi_cntr_read(l->sends);
	drop(l->cntr_thing);
	CHECK(value <= l->messages);
}

static void *use(void *arg)
{
	struct rng rng = {seed + (uintptr_t)arg};

	while (__atomic_load_n(&w.left, __ATOMIC_RELAXED)) {
		struct lane *l = &w.lane[rng_below(&rng, w.lane_count)];

		switch (rng_below(&rng, 7)) {
		case 0:
			post(l, false);
			break;
		case 1:
			post(l, true);
			break;
		case 2:
			count(l);
			break;
		case 3:
			poll_all();
			break;
		case 4:
			read_queue(l->tx_q);
			break;
		default:
			read_queue(l->rx_q);
		}
	}
	return NULL;
}

static void drive(void *arg)
{
	(void)arg;
	for (unsigned int i = 0; i < w.queue_count; i++)
		read_queue(&w.queue[i]);
}

static void world(struct api *a, enum fi_threading level, bool scalable)
{
	pthread_t thread[THREADS];

	memset(&w, 0, sizeof(w));
	w.rng.at = seed;
	open_bases(level, scalable);
	if (rng_one_in(&w.rng, 2))
		open_poll();
	choose_locks(level);
	swap_addresses(a);
	for (unsigned int n = 0; n < most; n++)
		for (unsigned int i = 0; i < w.lane_count; i++)
			plan_op(i, n);
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&thread[i], NULL, use, (void *)i) == 0);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	a->progress = drive;
	api_meet(a);
	a->progress = NULL;
	close_world();
}

static void worlds(struct api *a, enum fi_threading level, bool scalable)
{
	const char *given = getenv("SEED");

	most = api_times(MOST);
	data_fill(memory, sizeof(memory), 1);
	for (unsigned int i = 0; i < (given ? 1 : WORLDS); i++) {
		seed = given ? strtoull(given, NULL, 0) : obj_now_us();
		if (a->rank) {
			api_hear(a, 0, &seed, sizeof(seed));
		} else {
			api_tell(a, 1, &seed, sizeof(seed));
			printf("SEED=%llu\n", (unsigned long long)seed);
			fflush(stdout);
		}
		world(a, level, scalable);
	}
}

#define ROW(name, level, scalable)                                                                 \
	static void name(struct api *a)                                                            \
	{                                                                                          \
		worlds(a, level, scalable);                                                        \
	}

ROW(domain, FI_THREAD_DOMAIN, false)
ROW(domain_contexts, FI_THREAD_DOMAIN, true)
ROW(completion, FI_THREAD_COMPLETION, false)
ROW(completion_contexts, FI_THREAD_COMPLETION, true)
ROW(endpoint, FI_THREAD_ENDPOINT, false)
ROW(endpoint_contexts, FI_THREAD_ENDPOINT, true)
ROW(fid, FI_THREAD_FID, false)
ROW(fid_contexts, FI_THREAD_FID, true)
ROW(safe, FI_THREAD_SAFE, false)
ROW(safe_contexts, FI_THREAD_SAFE, true)

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"domain", domain, 2, {0}},
		{"domain-contexts", domain_contexts, 2, {0}},
		{"completion", completion, 2, {0}},
		{"completion-contexts", completion_contexts, 2, {0}},
		{"endpoint", endpoint, 2, {0}},
		{"endpoint-contexts", endpoint_contexts, 2, {0}},
		{"fid", fid, 2, {0}},
		{"fid-contexts", fid_contexts, 2, {0}},
		{"safe", safe, 2, {0}},
		{"safe-contexts", safe_contexts, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
