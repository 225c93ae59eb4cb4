/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Automatic progress of a domain whose endpoints are not all read. An endpoint is served in time
 * while the application polls another one, or sleeps on it, and CPU time is not wasted.
 * fi_domain(3).
 */
#include <pthread.h>
#include <rdma/fi_atomic.h>

#include "obj.h"
#include "lib/rma.h"

#define FETCHES 50
#define SOON_US 1500 /* a target that is polled only now and then takes several times as long */

/* Rank 0 fetches from the target of rank 1, which is busy with another endpoint. */
struct two {
	struct api *a;
	struct obj o; /* o.ep: the target */
	struct fid_ep *ep;
	struct fid_cq *cq; /* of ep */
	struct fid_cntr *cntr, *fetched;
	struct fid_mr *mr;
	struct rma_key key;
	fi_addr_t to;
};

static uint64_t memory[8];

static void domain_open(struct two *t, struct api *a)
{
	*t = (struct two){.a = a};
	if (api_other())
		api_skip("how soon is nobody's to say");
	t->o.hints = obj_hints(FI_MSG | FI_RMA | FI_ATOMIC);
	t->o.hints->domain_attr->mr_mode = RMA_PROVIDED;
	t->o.hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
	t->o.hints->domain_attr->control_progress = FI_PROGRESS_AUTO;
	obj_domain(&t->o);
	t->o.av = obj_av(&t->o, FI_AV_UNSPEC, 0);
	t->o.cq = obj_cq(&t->o, FI_WAIT_NONE);
}

static void target_open(struct two *t)
{
	t->o.ep = obj_ep(&t->o);
	t->fetched = obj_cntr(&t->o, FI_WAIT_UNSPEC);
	OK(fi_ep_bind(t->o.ep, &t->o.av->fid, 0));
	OK(fi_ep_bind(t->o.ep, &t->o.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(t->o.ep, &t->fetched->fid, FI_READ));
	OK(fi_enable(t->o.ep));
}

static void second_open(struct two *t)
{
	t->cq = obj_cq(&t->o, FI_WAIT_UNSPEC);
	t->cntr = obj_cntr(&t->o, FI_WAIT_UNSPEC);
	t->ep = obj_ep(&t->o);
	OK(fi_ep_bind(t->ep, &t->o.av->fid, 0));
	OK(fi_ep_bind(t->ep, &t->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(t->ep, &t->cntr->fid, FI_WRITE | FI_READ));
	OK(fi_enable(t->ep));
}

static void meet_target(struct two *t)
{
	struct obj_name names[2], name = obj_name(&t->o.ep->fid);
	bool virt = rma_mode(&(struct rma){.o = t->o}, FI_MR_VIRT_ADDR);
	struct rma_key keys[2], key = {virt ? (uintptr_t)memory : 0, 0, sizeof(memory)};

	OK(fi_mr_reg(t->o.domain, memory, sizeof(memory), RMA_REMOTE, 0, 9, 0, &t->mr, NULL));
	key.key = fi_mr_key(t->mr);
	api_swap(t->a, &name, names, sizeof(name));
	api_swap(t->a, &key, keys, sizeof(key));
	t->key = keys[1];
	t->to = obj_insert(t->o.av, &names[1]);
}

/* Fetches and adds, one at a time; the last result gives the number of operations so far. */
static uint64_t fetch(struct two *t, uint64_t count)
{
	uint64_t one = 1, old = 0, start = obj_now_us();

	for (uint64_t i = 0; i < count; i++) {
		uint64_t done = fi_cntr_read(t->fetched);

		POST(t->o.cq, fi_fetch_atomic(t->o.ep, &one, 1, NULL, &old, NULL, t->to,
					      t->key.base, t->key.key, FI_UINT64, FI_SUM, NULL));
		OK(fi_cntr_wait(t->fetched, done + 1, OBJ_PATIENCE_MS));
	}
	return obj_now_us() - start;
}

static void two_open(struct two *t, struct api *a)
{
	domain_open(t, a);
	target_open(t);
	if (a->rank == 1)
		second_open(t);
	meet_target(t);
	if (a->rank == 0)
		fetch(t, 1); /* connects */
	api_meet(a);
}

static void two_close(struct two *t)
{
	CLOSE(t->mr);
	CLOSE(t->o.ep);
	t->o.ep = NULL;
	CLOSE(t->fetched);
	if (t->ep) {
		CLOSE(t->ep);
		CLOSE(t->cntr);
		CLOSE(t->cq);
	}
	obj_close(&t->o);
}

/*
 * Rank 0 fetches while rank 1 is busy until rank 0 is done. Rank 1's calls are too rare to serve
 * the target by chance, and too frequent for the progress thread to take over.
 */
static bool is_over(struct api *a)
{
	return __atomic_load_n((int *)a->shared, __ATOMIC_ACQUIRE);
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A few fetches may be delayed by other processes; if the endpoint is served late, most are. */
static void fetch_soon(struct two *t)
{
	uint64_t took[FETCHES];

	obj_sleep_us(20000); /* the other process is busy by now */
	for (int i = 0; i < FETCHES; i++) {
		obj_sleep_us(2000 + 37 * (uint64_t)i); /* varies the phase */
		took[i] = fetch(t, 1);
	}
	__atomic_store_n((int *)t->a->shared, 1, __ATOMIC_RELEASE);
	qsort(took, FETCHES, sizeof(took[0]), by_size);
	if (took[FETCHES / 3] > SOON_US * obj_slower()) {
		fprintf(stderr, "two of three fetches took %" PRIu64 " us and more\n",
			took[FETCHES / 3]);
		api_fail("the endpoint nobody reads is served late");
	}
}

static void while_busy(struct api *a, void (*busy)(struct two *))
{
	struct two t;

	two_open(&t, a);
	if (a->rank == 0)
		fetch_soon(&t);
	else
		busy(&t);
	api_meet(a);
	two_close(&t);
}

static void wait_for_counter(struct two *t)
{
	while (!is_over(t->a))
		CHECK_EQ(fi_cntr_wait(t->cntr, 1, 8), -FI_ETIMEDOUT);
}

static void wait_for_queue(struct two *t)
{
	struct fi_cq_tagged_entry e;

	while (!is_over(t->a))
		CHECK_EQ(fi_cq_sread(t->cq, &e, 1, NULL, 8), -FI_EAGAIN);
}

static void poll_counter(struct two *t)
{
	while (!is_over(t->a)) {
		fi_cntr_read(t->cntr);
		obj_sleep_us(100);
	}
}

static void poll_queue(struct two *t)
{
	struct fi_cq_tagged_entry e;

	while (!is_over(t->a)) {
		CHECK_EQ(fi_cq_read(t->cq, &e, 1), -FI_EAGAIN);
		obj_sleep_us(100);
	}
}

static void counter_wait(struct api *a)
{
	while_busy(a, wait_for_counter);
}

static void queue_wait(struct api *a)
{
	while_busy(a, wait_for_queue);
}

static void counter_poll(struct api *a)
{
	while_busy(a, poll_counter);
}

static void queue_poll(struct api *a)
{
	while_busy(a, poll_queue);
}

/* Two threads sleep in turns, for short times: one of them always serves the target. */
static void *wait_beside(void *arg)
{
	wait_for_queue(arg);
	return NULL;
}

static void wait_twice(struct two *t)
{
	pthread_t thread;

	CHECK_EQ(pthread_create(&thread, NULL, wait_beside, t), 0);
	wait_for_counter(t);
	pthread_join(thread, NULL);
}

static void two_waits(struct api *a)
{
	while_busy(a, wait_twice);
}

/* Opens the target while a thread already sleeps on another endpoint. */
static void *wait_first(void *arg)
{
	struct two *t = arg;

	while (!is_over(t->a))
		CHECK_EQ(fi_cntr_wait(t->cntr, 1, 8), -FI_ETIMEDOUT);
	return NULL;
}

static void opened_later(struct api *a)
{
	pthread_t thread;
	struct two t;

	domain_open(&t, a);
	if (a->rank == 1) {
		second_open(&t);
		CHECK_EQ(pthread_create(&thread, NULL, wait_first, &t), 0);
		obj_sleep_us(20000);
	}
	target_open(&t);
	meet_target(&t);
	if (a->rank == 0) {
		fetch(&t, 1);
		fetch_soon(&t);
	} else {
		pthread_join(thread, NULL);
	}
	api_meet(a);
	two_close(&t);
}

/* A one-second wait, interrupted by the peer's operations, uses almost no CPU time. */
static void sleep_is_free(struct api *a)
{
	struct two t;

	two_open(&t, a);
	if (a->rank == 0) {
		for (int i = 0; i < 10; i++) {
			fetch(&t, 1);
			obj_sleep_us(80000);
		}
	} else {
		uint64_t before = obj_cpu_us(), used;

		CHECK_EQ(fi_cntr_wait(t.cntr, 1, 1000), -FI_ETIMEDOUT);
		used = obj_cpu_us() - before;
		if (used > 20000) {
			fprintf(stderr, "%" PRIu64 " us of CPU in a second of sleep\n", used);
			api_fail("a process that sleeps is busy");
		}
	}
	api_meet(a);
	two_close(&t);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"counter_wait", counter_wait, 2, {0}},   {"queue_wait", queue_wait, 2, {0}},
		{"counter_poll", counter_poll, 2, {0}},   {"queue_poll", queue_poll, 2, {0}},
		{"two_waits", two_waits, 2, {0}},         {"opened_later", opened_later, 2, {0}},
		{"sleep_is_free", sleep_is_free, 2, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
