/* SPDX-License-Identifier: BSD-2-Clause */
/* Threading levels: threads share all that the level permits, and nothing else. fi_domain(3). */
#include <pthread.h>

#include "obj.h"

#define THREADS  3
#define MESSAGES 3000 /* maximum */
#define ROUNDS   3

/* State of a thread, which sends from `tx` to `peer`, the address of its own `rx`. */
struct worker {
	pthread_t thread;
	struct fid_ep *tx, *rx;
	struct fid_cq *tx_cq, *rx_cq;
	fi_addr_t peer;
	unsigned int id;
	struct obj *shared;
};

static void open_level(struct obj *o, enum fi_threading level)
{
	if (!o->hints)
		o->hints = obj_hints(FI_MSG | FI_TAGGED);
	o->hints->domain_attr->threading = level;
	obj_domain(o);
	CHECK_EQ(o->info->domain_attr->threading, level);
	o->av = obj_av(o, FI_AV_UNSPEC, 0);
}

/* A receive in flight. The thread that reads its completion sets `done`. */
struct pending {
	bool done;
	uint64_t word;
};

static int completions;   /* of all threads */
static uint64_t messages; /* per thread */

static ssize_t read_one(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret = fi_cq_read(cq, &e, 1);
	struct pending *p = ret == 1 ? e.op_context : NULL;

	if (ret != 1) {
		CHECK_EQ(ret, -FI_EAGAIN);
		return ret;
	}
	__atomic_add_fetch(&completions, 1, __ATOMIC_RELAXED);
	if (p)
		__atomic_store_n(&p->done, true, __ATOMIC_RELEASE); /* pairs with is_done */
	return ret;
}

static bool is_done(const struct pending *p)
{
	return __atomic_load_n(&p->done, __ATOMIC_ACQUIRE);
}

/* Sends messages to itself, with tags of its own. */
static void *talk(void *arg)
{
	struct worker *w = arg;
	static __thread uint64_t out[16];
	static __thread struct pending in[16];

	for (uint64_t n = 0; n < messages; n++) {
		uint64_t tag = (uint64_t)w->id << 32 | n, *word = &out[n % 16];
		struct pending *p = &in[n % 16];

		p->done = false;
		*word = tag;
		OK(fi_trecv(w->rx, &p->word, 8, NULL, FI_ADDR_UNSPEC, tag, 0, p));
		POST(w->tx_cq, fi_tsend(w->tx, word, 8, NULL, w->peer, tag, NULL));
		OBJ_UNTIL(is_done(p), read_one(w->rx_cq));
		CHECK_EQ(p->word, tag);
	}
	return NULL;
}

static void run_all(struct worker *w, void *(*run)(void *))
{
	for (unsigned int i = 0; i < THREADS; i++) {
		w[i].id = i;
		CHECK(pthread_create(&w[i].thread, NULL, run, &w[i]) == 0);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
}

static void expect_completions(struct fid_cq *cq, int count)
{
	OBJ_UNTIL(__atomic_load_n(&completions, __ATOMIC_RELAXED) == count, read_one(cq));
	CHECK_EQ(read_one(cq), -FI_EAGAIN);
}

/* Opens an endpoint and a queue in `o` for a single thread. */
static struct worker open_worker(struct obj *o, enum fi_threading level)
{
	open_level(o, level);
	o->cq = obj_cq(o, FI_WAIT_NONE);
	o->ep = obj_ready_ep(o, o->cq);
	return (struct worker){.tx = o->ep,
			       .rx = o->ep,
			       .tx_cq = o->cq,
			       .rx_cq = o->cq,
			       .peer = obj_insert_ep(o->av, o->ep)};
}

/* All threads use one endpoint and one queue concurrently. */
static void safe(struct api *a)
{
	struct worker w[THREADS];
	struct obj o = {0};

	(void)a;
	w[0] = open_worker(&o, FI_THREAD_SAFE);
	for (int i = 1; i < THREADS; i++)
		w[i] = w[0];
	run_all(w, talk);
	expect_completions(o.cq, 2 * THREADS * (int)messages);
	obj_close(&o);
}

/* Each thread has its own endpoints; `shared_queue`: all use one queue. */
static void separate(enum fi_threading level, bool shared_queue)
{
	struct worker w[THREADS] = {0};
	struct obj o = {0};

	open_level(&o, level);
	if (shared_queue)
		o.cq = obj_cq(&o, FI_WAIT_NONE);
	for (int i = 0; i < THREADS; i++) {
		w[i].tx_cq = w[i].rx_cq = shared_queue ? o.cq : obj_cq(&o, FI_WAIT_NONE);
		w[i].tx = obj_ready_ep(&o, w[i].tx_cq);
		w[i].rx = obj_ready_ep(&o, w[i].rx_cq);
		w[i].peer = obj_insert_ep(o.av, w[i].rx);
	}
	run_all(w, talk);
	for (int i = 0; i < THREADS; i++) {
		while (read_one(w[i].rx_cq) == 1)
			;
		CLOSE(w[i].tx);
		CLOSE(w[i].rx);
		if (!shared_queue)
			CLOSE(w[i].rx_cq);
	}
	CHECK_EQ(completions, 2 * THREADS * (int)messages);
	obj_close(&o);
}

static void completion(struct api *a)
{
	(void)a;
	separate(FI_THREAD_COMPLETION, false);
}

static void safe_separate(struct api *a)
{
	(void)a;
	separate(FI_THREAD_SAFE, true);
}

static void endpoint(struct api *a)
{
	(void)a;
	separate(FI_THREAD_ENDPOINT, false);
}

/* One thread posts, another reads the endpoint's queue: permitted from FI_THREAD_FID on. */
static void *read_only(void *arg)
{
	struct worker *w = arg;

	expect_completions(w->rx_cq, 2 * (int)messages);
	return NULL;
}

static void post_only(struct worker *w)
{
	static uint64_t out[MESSAGES];
	static struct pending in[MESSAGES];

	for (uint64_t n = 0; n < messages; n++) {
		OK(fi_trecv(w->rx, &in[n].word, 8, NULL, FI_ADDR_UNSPEC, n, 0, &in[n]));
		out[n] = n + 1;
		OBJ_UNTIL(fi_tsend(w->tx, &out[n], 8, NULL, w->peer, n, NULL) == 0, );
	}
	for (uint64_t n = 0; n < messages; n++) {
		OBJ_UNTIL(is_done(&in[n]), obj_sleep_us(100));
		CHECK_EQ(in[n].word, n + 1);
	}
}

static void fid(struct api *a)
{
	struct obj o = {0};
	struct worker w = open_worker(&o, FI_THREAD_FID);

	(void)a;
	CHECK(pthread_create(&w.thread, NULL, read_only, &w) == 0);
	post_only(&w);
	pthread_join(w.thread, NULL);
	obj_close(&o);
}

/* Each thread has its own domain and objects: the library may not share state between them. */
static void *own_domain(void *arg)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct obj o = {0};
		struct worker mine = open_worker(&o, FI_THREAD_DOMAIN);

		mine.id = ((struct worker *)arg)->id;
		talk(&mine);
		while (read_one(o.cq) == 1)
			;
		obj_close(&o);
	}
	return NULL;
}

static void domain(struct api *a)
{
	struct worker w[THREADS] = {0};

	(void)a;
	run_all(w, own_domain);
	CHECK_EQ(completions, ROUNDS * 2 * THREADS * (int)messages);
}

/* With automatic progress the library synchronizes with its own thread. */
static void domain_auto(struct api *a)
{
	struct obj o = {.hints = obj_hints(FI_MSG | FI_TAGGED)};
	struct worker w;

	(void)a;
	o.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	w = open_worker(&o, FI_THREAD_DOMAIN);
	talk(&w);
	expect_completions(o.cq, 2 * (int)messages);
	obj_close(&o);
}

/* A queue that a thread of progress has to drive comes late: what is open takes locks from then on. */
static void domain_late_thread(struct api *a)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_MUTEX_COND};
	struct obj o = {0};
	struct worker w = open_worker(&o, FI_THREAD_DOMAIN);
	struct fid_cq *late;

	(void)a;
	talk(&w);
	OK(fi_cq_open(o.domain, &attr, &late, NULL));
	talk(&w);
	expect_completions(o.cq, 4 * (int)messages);
	CLOSE(late);
	obj_close(&o);
}

/* Threads of a safe domain open, enable and close objects while others communicate. */
static void *open_and_close(void *arg)
{
	struct worker *w = arg;
	struct obj *o = w->shared;

	for (unsigned int n = 0; n < api_times(40); n++) {
		struct fid_cq *cq = obj_cq(o, FI_WAIT_NONE);
		struct fid_ep *ep = obj_ready_ep(o, cq);
		fi_addr_t self = obj_insert_ep(o->av, ep);
		struct pending in = {0};

		OK(fi_trecv(ep, &in.word, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, &in));
		POST(cq, fi_tinject(ep, &(uint64_t){w->id + 1}, 8, self, 1));
		OBJ_UNTIL(is_done(&in), read_one(cq));
		CHECK_EQ(in.word, w->id + 1);
		CLOSE(ep);
		CLOSE(cq);
		OK(fi_av_remove(o->av, &self, 1, 0));
	}
	return NULL;
}

static void safe_objects(struct api *a)
{
	struct worker w[THREADS] = {0};
	struct obj o = {0};

	(void)a;
	open_level(&o, FI_THREAD_SAFE);
	for (int i = 0; i < THREADS; i++)
		w[i].shared = &o;
	run_all(w, open_and_close);
	obj_close(&o);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"safe", safe, 1, {0}},
		{"safe_separate", safe_separate, 1, {0}},
		{"safe_objects", safe_objects, 1, {0}},
		{"fid", fid, 1, {0}},
		{"endpoint", endpoint, 1, {0}},
		{"completion", completion, 1, {0}},
		{"domain", domain, 1, {0}},
		{"domain_late_thread", domain_late_thread, 1, {0}},
		{"domain_auto", domain_auto, 1, {0}},
	};

	messages = api_times(MESSAGES);
	return api_main(argc, argv, cases, API_COUNT(cases));
}
