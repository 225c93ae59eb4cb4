/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations to oneself, among four processes, from four threads, between contexts. */
#include <pthread.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"

/* Every form and size, to itself. */
static void self(struct api *a)
{
	static const size_t lens[] = {0, 1, 8, 25, 4096, 4097, 65536, (1 << 20) + 3};
	struct rma r;
	int seed = 0;

	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	for (size_t i = 0; i < API_COUNT(lens) * RMA_FORMS; i++) {
		enum rma_form form = (enum rma_form)(i % RMA_FORMS);
		struct rma_buf here = rma_buf_new(api_long(lens[i / RMA_FORMS]), 1, false);
		struct rma_buf there = rma_buf_new(here.len, 1, true);
		struct fid_mr *mr = rma_reg(&r, there.memory, there.total, RMA_REMOTE);
		struct rma_key key = rma_key(&r, mr, there.memory, there.total);
		struct fi_rma_iov to;

		seed++;
		rma_ranges(&there, &key, &to);
		rma_buf_set(&here, rma_reads(form) ? RMA_EMPTY : seed);
		rma_buf_set(&there, rma_reads(form) ? seed : RMA_EMPTY);
		if (!rma_injects(form) || here.len <= r.o.info->tx_attr->inject_size) {
			RMA_RUN(&r, &(struct rma_op){.form = form,
						     .iov = here.iov,
						     .count = 1,
						     .to = &to,
						     .to_count = 1,
						     .peer = r.addr[0],
						     .data = RMA_CQ_DATA,
						     .context = &here});
			if (form == RMA_DATA || form == RMA_INJECTDATA)
				RMA_NOTIFIED(&r, r.in, RMA_CQ_DATA, here.len);
			RMA_EXPECT(&here, seed);
			RMA_EXPECT(&there, seed);
		}
		CLOSE(mr);
		rma_buf_free(&here);
		rma_buf_free(&there);
	}
	rma_close(&r);
}

/* ---- Four processes that write to and read from each other, themselves included -------------- */

#define SLOTS 20
#define SLOT  6000 /* bytes; longer ones take another path */
#define LONG  40000
#define RANKS 4

static size_t slot_len(size_t n)
{
	static const size_t lens[] = {8, 64, 1000, 4096, 5999};

	return lens[n % API_COUNT(lens)];
}

static unsigned int slot_seed(int from, int to, size_t n)
{
	return (unsigned int)((size_t)(from * RANKS + to) * SLOTS + n);
}

struct mesh {
	struct rma r;
	unsigned char *memory; /* [from][slot]: written by peers, then read by them */
	size_t total;
	struct fid_mr *mr;
	struct rma_key keys[API_RANKS];
};

static void mesh_open(struct mesh *m, struct api *a)
{
	struct rma_key mine;

	rma_open(&m->r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	m->total = RANKS * SLOTS * SLOT + LONG;
	m->memory = calloc(1, m->total);
	CHECK(m->memory != NULL);
	data_fill(m->memory + m->total - LONG, LONG, 1000 + (unsigned int)a->rank);
	m->mr = rma_reg(&m->r, m->memory, m->total, RMA_REMOTE);
	mine = rma_key(&m->r, m->mr, m->memory, m->total);
	api_swap(a, &mine, m->keys, sizeof(mine));
}

static void mesh_op(struct mesh *m, enum rma_form form, int peer, struct iovec *iov,
		    uint64_t offset)
{
	struct rma_key *key = &m->keys[peer];
	struct fi_rma_iov to = {key->base + offset, iov->iov_len, key->key};

	rma_start(&m->r, &(struct rma_op){.form = form,
					  .iov = iov,
					  .count = 1,
					  .to = &to,
					  .to_count = 1,
					  .peer = m->r.addr[peer]});
	m->r.done[rma_reads(form)]++;
}

/* Posts all operations before it waits for the first. */
static void mesh_write(struct mesh *m)
{
	static unsigned char out[RANKS][SLOTS][SLOT];
	int me = m->r.a->rank;

	for (size_t n = 0; n < SLOTS; n++)
		for (int to = 0; to < RANKS; to++) {
			struct iovec iov = {out[to][n], slot_len(n)};

			data_fill(out[to][n], slot_len(n), slot_seed(me, to, n));
			mesh_op(m, RMA_WRITE, to, &iov, ((size_t)me * SLOTS + n) * SLOT);
		}
	api_at(__FILE__, __LINE__);
	rma_counted(&m->r);
}

static void mesh_read(struct mesh *m)
{
	static unsigned char in[RANKS][LONG];

	for (int from = 0; from < RANKS; from++)
		for (size_t at = 0; at < LONG; at += at < 5000 ? 1000 : LONG - 5000) {
			struct iovec iov = {in[from] + at, at < 5000 ? 1000 : LONG - 5000};

			mesh_op(m, RMA_READ, from, &iov, m->total - LONG + at);
		}
	api_at(__FILE__, __LINE__);
	rma_counted(&m->r);
	for (int from = 0; from < RANKS; from++)
		data_check(in[from], LONG, 1000 + (unsigned int)from);
}

static void all_to_all(struct api *a)
{
	struct mesh m = {0};

	mesh_open(&m, a);
	mesh_write(&m);
	mesh_read(&m);
	api_meet(a);
	for (int from = 0; from < RANKS; from++)
		for (size_t n = 0; n < SLOTS; n++) {
			unsigned char *at = m.memory + ((size_t)from * SLOTS + n) * SLOT;

			data_check(at, slot_len(n), slot_seed(from, a->rank, n));
			CHECK(data_all(at + slot_len(n), SLOT - slot_len(n), 0));
		}
	CLOSE(m.mr);
	rma_close(&m.r);
	free(m.memory);
}

/* ---- Four threads on one endpoint, at both ends ---------------------------------------------- */

#define THREADS 4
#define ROUNDS  (4 * api_times(75)) /* the last round writes all bytes */
#define OWN     20000               /* bytes of the peer's memory for each thread */

struct worker {
	struct rma *r;
	struct rma_key *key; /* of the peer */
	size_t id;
	bool done; /* atomic: set by the thread that reads the completion */
};

static void worker_reap(struct worker *w)
{
	struct fi_cq_tagged_entry e[4];
	ssize_t n = fi_cq_read(w->r->o.cq, e, API_COUNT(e));

	CHECK(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++) {
		struct worker *whose = e[i].op_context;

		CHECK(!__atomic_exchange_n(&whose->done, true, __ATOMIC_RELEASE));
	}
	if (n < 0)
		sched_yield();
}

static void worker_run(struct worker *w, enum rma_form form, void *buf, size_t len)
{
	struct iovec iov = {buf, len};
	struct fi_rma_iov to = {w->key->base + w->id * OWN, len, w->key->key};
	struct rma_op op = {.form = form,
			    .iov = &iov,
			    .count = 1,
			    .to = &to,
			    .to_count = 1,
			    .peer = w->r->addr[!w->r->a->rank],
			    .context = w};
	ssize_t ret;

	__atomic_store_n(&w->done, false, __ATOMIC_RELAXED);
	while ((ret = rma_post(w->r->o.ep, &op)) == -FI_EAGAIN)
		worker_reap(w);
	CHECK_EQ(ret, 0);
	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE))
		worker_reap(w);
}

static void *worker(void *arg)
{
	static const size_t lens[] = {8, 100, 5000, OWN};
	unsigned char *out = malloc(OWN), *in = malloc(OWN);
	struct worker *w = arg;

	CHECK(out && in);
	for (unsigned int n = 0; n < ROUNDS; n++) {
		size_t len = lens[n % API_COUNT(lens)];

		data_fill(out, len, (unsigned int)w->id * ROUNDS + n);
		memset(in, 0, len);
		worker_run(w, RMA_WRITE, out, len);
		worker_run(w, RMA_READ, in, len);
		RMA_SAME(in, out, len);
	}
	free(out);
	free(in);
	return NULL;
}

static void threads(struct api *a)
{
	static unsigned char memory[THREADS * OWN];
	struct worker workers[THREADS];
	struct rma_key mine, keys[2];
	pthread_t ids[THREADS];
	struct fid_mr *mr;
	struct rma r;

	alarm(3 * api_limit()); /* there may be far fewer cores than threads */
	rma_open(&r, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .threading = FI_THREAD_SAFE});
	mr = rma_reg(&r, memory, sizeof(memory), RMA_REMOTE);
	mine = rma_key(&r, mr, memory, sizeof(memory));
	api_swap(a, &mine, keys, sizeof(mine));
	for (size_t i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){&r, &keys[!a->rank], i, false};
		OK(pthread_create(&ids[i], NULL, worker, &workers[i]));
	}
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_join(ids[i], NULL));
	r.done[0] = r.done[1] = THREADS * ROUNDS;
	rma_counted(&r);
	api_meet(a);
	for (unsigned int i = 0; i < THREADS; i++)
		data_check(memory + (size_t)i * OWN, OWN, i * ROUNDS + ROUNDS - 1);
	CLOSE(mr);
	rma_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"self", self, 1, {0}},
		{"all_to_all", all_to_all, RANKS, {0}},
		{"threads", threads, 2, {0}},
		{"self_no_cma", self, 1, {"FI_SHM_DISABLE_CMA=1"}},
		{"all_to_all_no_cma", all_to_all, RANKS, {"FI_SHM_DISABLE_CMA=1"}},
		{"threads_no_cma", threads, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
