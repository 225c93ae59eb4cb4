/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threading levels, each used to its limit: threads share what the level lets them share and
 * nothing else. fi_domain(3).
 */
#include <pthread.h>

#include "obj.h"

#define THREADS  3
#define MESSAGES 3000

/* One thread's way of talking: from `tx` to `peer`, which is `rx` of the same thread. */
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

static void send_one(struct worker *w, uint64_t tag, uint64_t *word)
{
	*word = tag;
	POST(w->tx_cq, fi_tsend(w->tx, word, sizeof(*word), NULL, w->peer, tag, NULL));
}

/* Messages to itself, tags of its own; completions are counted, whoever's they are. */
static void *talk(void *arg)
{
	struct worker *w = arg;
	static __thread uint64_t out[16], in[16];

	for (uint64_t n = 0; n < MESSAGES; n++) {
		uint64_t tag = (uint64_t)w->id << 32 | n;

		in[n % 16] = 0;
		OK(fi_trecv(w->rx, &in[n % 16], 8, NULL, FI_ADDR_UNSPEC, tag, 0, NULL));
		send_one(w, tag, &out[n % 16]);
		OBJ_UNTIL(__atomic_load_n(&in[n % 16], __ATOMIC_ACQUIRE) == tag,
			  fi_cq_read(w->rx_cq, NULL, 0));
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

static int drain(struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e;
	int count = 0;
	ssize_t ret;

	while ((ret = fi_cq_read(cq, &e, 1)) == 1)
		count++;
	CHECK_EQ(ret, -FI_EAGAIN);
	return count;
}

/* All threads use one endpoint and one queue at the same time. */
static void safe(struct api *a)
{
	struct worker w[THREADS] = {0};
	struct obj o = {0};
	fi_addr_t self;

	(void)a;
	open_level(&o, FI_THREAD_SAFE);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ready_ep(&o, o.cq);
	self = obj_insert_ep(o.av, o.ep);
	for (int i = 0; i < THREADS; i++)
		w[i] = (struct worker){
			.tx = o.ep, .rx = o.ep, .tx_cq = o.cq, .rx_cq = o.cq, .peer = self};
	run_all(w, talk);
	CHECK_EQ(drain(o.cq), 2 * THREADS * MESSAGES);
	obj_close(&o);
}

/* Each thread has endpoints of its own; `shared_queue` is one for all. */
static void separate(enum fi_threading level, bool shared_queue)
{
	struct worker w[THREADS] = {0};
	struct obj o = {0};
	int count = 0;

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
		count += shared_queue && i ? 0 : drain(w[i].rx_cq);
		CLOSE(w[i].tx);
		CLOSE(w[i].rx);
		if (!shared_queue)
			CLOSE(w[i].rx_cq);
	}
	CHECK_EQ(count, 2 * THREADS * MESSAGES);
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

/* One thread sends, another reads the endpoint's queue: allowed for FI_THREAD_FID and above. */
static bool stop_reading;

static void *read_only(void *arg)
{
	struct worker *w = arg;
	struct fi_cq_tagged_entry e;
	static int count;

	while (!__atomic_load_n(&stop_reading, __ATOMIC_ACQUIRE) || count < 2 * MESSAGES) {
		ssize_t ret = fi_cq_read(w->rx_cq, &e, 1);

		if (ret == 1)
			count++;
		else
			CHECK_EQ(ret, -FI_EAGAIN);
	}
	return NULL;
}

static void post_only(struct worker *w)
{
	static uint64_t out[MESSAGES], in[MESSAGES];

	for (uint64_t n = 0; n < MESSAGES; n++) {
		OK(fi_trecv(w->rx, &in[n], 8, NULL, FI_ADDR_UNSPEC, n + 1, 0, NULL));
		out[n] = n + 1;
		OBJ_UNTIL(fi_tsend(w->tx, &out[n], 8, NULL, w->peer, n + 1, NULL) == 0, );
	}
	for (uint64_t n = 0; n < MESSAGES; n++)
		OBJ_UNTIL(__atomic_load_n(&in[n], __ATOMIC_ACQUIRE) == n + 1, obj_sleep_us(100));
}

static void fid(struct api *a)
{
	struct obj o = {0};
	struct worker w;

	(void)a;
	open_level(&o, FI_THREAD_FID);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ready_ep(&o, o.cq);
	w = (struct worker){.tx = o.ep, .rx = o.ep, .tx_cq = o.cq, .rx_cq = o.cq};
	w.peer = obj_insert_ep(o.av, o.ep);
	CHECK(pthread_create(&w.thread, NULL, read_only, &w) == 0);
	post_only(&w);
	__atomic_store_n(&stop_reading, true, __ATOMIC_RELEASE);
	pthread_join(w.thread, NULL);
	obj_close(&o);
}

/* A domain for each thread, objects and all: nothing is shared, nor may it be behind the scenes. */
static void *own_domain(void *arg)
{
	struct worker *w = arg;
	struct obj o = {0};

	for (int round = 0; round < 3; round++) {
		open_level(&o, FI_THREAD_DOMAIN);
		o.cq = obj_cq(&o, FI_WAIT_NONE);
		o.ep = obj_ready_ep(&o, o.cq);
		*w = (struct worker){.thread = w->thread,
				     .tx = o.ep,
				     .rx = o.ep,
				     .tx_cq = o.cq,
				     .rx_cq = o.cq,
				     .peer = obj_insert_ep(o.av, o.ep),
				     .id = w->id};
		talk(w);
		CHECK_EQ(drain(o.cq), 2 * MESSAGES);
		obj_close(&o);
	}
	return NULL;
}

static void domain(struct api *a)
{
	struct worker w[THREADS] = {0};

	(void)a;
	run_all(w, own_domain);
}

/* With automatic progress the library's own thread is no business of the application. */
static void domain_auto(struct api *a)
{
	struct worker w = {0};
	struct obj o = {0};

	(void)a;
	o.hints = obj_hints(FI_MSG | FI_TAGGED);
	o.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	open_level(&o, FI_THREAD_DOMAIN);
	o.cq = obj_cq(&o, FI_WAIT_NONE);
	o.ep = obj_ready_ep(&o, o.cq);
	w = (struct worker){.tx = o.ep, .rx = o.ep, .tx_cq = o.cq, .rx_cq = o.cq};
	w.peer = obj_insert_ep(o.av, o.ep);
	talk(&w);
	OBJ_UNTIL(drain(o.cq) == 0, );
	obj_close(&o);
}

/* Opening, enabling, closing in several threads of one safe domain while others talk. */
static void *open_and_close(void *arg)
{
	struct worker *w = arg;
	struct obj *o = w->shared;

	for (int n = 0; n < 40; n++) {
		struct fid_cq *cq = obj_cq(o, FI_WAIT_NONE);
		struct fid_ep *ep = obj_ready_ep(o, cq);
		fi_addr_t self = obj_insert_ep(o->av, ep);
		uint64_t in = 0;

		OK(fi_trecv(ep, &in, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ULL, NULL));
		POST(cq, fi_tinject(ep, &(uint64_t){w->id + 1}, 8, self, 1));
		OBJ_UNTIL(__atomic_load_n(&in, __ATOMIC_ACQUIRE), fi_cq_read(cq, NULL, 0));
		CHECK_EQ(in, w->id + 1);
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
		{"domain_auto", domain_auto, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
