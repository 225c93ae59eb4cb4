/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A parallel language's runtime with threads: FI_THREAD_DOMAIN, one scalable endpoint whose transmit contexts have a
 * queue and a counter each, an endpoint apart that receives into multi-receive buffers served by one thread. Threads
 * share a context under the runtime's own lock while others use other contexts.
 */
#include <pthread.h>
#include <sched.h>

#include "order.h"

#define CONTEXTS 2
#define THREADS  4
#define CALLS    2000
#define BUFFER   (1 << 20) /* holds all messages */

struct context {
	pthread_mutex_t lock;
	struct side side; /* ep: the transmit context, cq: its queue */
	struct fid_cntr *done;
	uint64_t posted;
};

static struct context contexts[CONTEXTS];
static struct fid_ep *sep;
static struct region target;
static uint64_t heap[THREADS * CALLS];

static void open_context(struct side *s, int i)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct context *c = &contexts[i];

	pthread_mutex_init(&c->lock, NULL);
	c->side = *s;
	c->side.cq = side_cq(s, FI_CQ_FORMAT_DATA);
	OK(fi_tx_context(sep, i, NULL, &c->side.ep, NULL));
	OK(fi_cntr_open(s->domain, &attr, &c->done, NULL));
	OK(fi_ep_bind(c->side.ep, &c->side.cq->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_ep_bind(c->side.ep, &c->done->fid, FI_WRITE));
	OK(fi_enable(c->side.ep));
}

static void open_runtime(struct side *s)
{
	struct fi_info *hints = side_hints(s, FI_RMA | FI_MSG | FI_MULTI_RECV);
	struct fi_info *plain;

	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
	hints->ep_attr->tx_ctx_cnt = CONTEXTS;
	side_domain(s, hints);
	s->av = side_av(s);
	OK(fi_scalable_ep(s->domain, s->info, &sep, NULL));
	OK(fi_scalable_ep_bind(sep, &s->av->fid, 0));
	for (int i = 0; i < CONTEXTS; i++)
		open_context(s, i);
	OK(fi_enable(sep));
	CHECK(plain = fi_dupinfo(s->info));
	plain->ep_attr->tx_ctx_cnt = plain->ep_attr->rx_ctx_cnt = 1;
	s->cq = side_cq(s, FI_CQ_FORMAT_DATA);
	OK(fi_endpoint(s->domain, plain, &s->ep, NULL));
	OK(fi_ep_bind(s->ep, &s->av->fid, 0));
	OK(fi_ep_bind(s->ep, &s->cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(s->ep));
	fi_freeinfo(plain);
	target = region_open(s, heap, sizeof(heap));
	s->peer = side_introduce(s, s->ep, s->av);
}

/* Writes a word and sends a message through a context; its lock is the runtime's. */
static void call(struct context *c, uint64_t index)
{
	struct fi_context2 context;
	uint64_t word = index + 1;

	pthread_mutex_lock(&c->lock);
	POST(&c->side, fi_write(c->side.ep, &word, sizeof(word), NULL, c->side.peer,
				target.base + index * sizeof(word), target.key, &context));
	c->posted++;
	while (fi_cntr_read(c->done) < c->posted) {
		CHECK(!side_read(&c->side));
		pthread_mutex_unlock(&c->lock);
		sched_yield();
		pthread_mutex_lock(&c->lock);
	}
	POST(&c->side, fi_inject(c->side.ep, &word, sizeof(word), c->side.peer));
	pthread_mutex_unlock(&c->lock);
}

static void *task(void *arg)
{
	size_t me = (size_t)arg;

	for (size_t i = 0; i < CALLS; i++)
		call(&contexts[me % CONTEXTS], me * CALLS + i);
	return NULL;
}

/* The one thread that serves messages. */
static void *serve(void *arg)
{
	struct side *s = arg;
	char *buffer = malloc(BUFFER);
	struct iovec iov = {buffer, BUFFER};
	struct fi_context2 context;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &context};
	uint64_t sum = 0, word;

	POST(s, fi_recvmsg(s->ep, &msg, FI_MULTI_RECV));
	while (s->received < THREADS * CALLS) {
		s->entry.flags = 0;
		if (side_read(s) && s->entry.flags & FI_RECV) {
			memcpy(&word, s->entry.buf, sizeof(word));
			sum += word;
		}
		sched_yield();
	}
	CHECK(sum == (uint64_t)THREADS * CALLS * (THREADS * CALLS + 1) / 2);
	for (uint64_t i = 0; i < THREADS * CALLS; i++)
		CHECK(heap[i] == i + 1);
	return buffer;
}

static void both(struct side *s)
{
	pthread_t threads[THREADS], server;
	void *buffer;

	open_runtime(s);
	for (int i = 0; i < CONTEXTS; i++)
		contexts[i].side.peer = s->peer;
	OK(pthread_create(&server, NULL, serve, s));
	for (size_t i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, task, (void *)i));
	for (int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	OK(pthread_join(server, &buffer));
	meet(s);
	for (int i = 0; i < CONTEXTS; i++) {
		OK(fi_close(&contexts[i].side.ep->fid));
		OK(fi_close(&contexts[i].done->fid));
		OK(fi_close(&contexts[i].side.cq->fid));
	}
	OK(fi_close(&sep->fid));
	side_close(s);
	free(buffer);
}

int main(int argc, char **argv)
{
	return side_play(argv[argc - 1], both, both);
}
