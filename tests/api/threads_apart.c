/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads with endpoints of their own in one domain, while another thread changes what they share:
 * address vectors, regions, endpoints, bindings. All messages and reads arrive once, whole and in
 * order.
 */
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include "obj.h"
#include "lib/data.h"

#define THREADS 3
#define ROUNDS  400 /* messages of a thread while the domain changes */
#define LEN     3000
#define CHANGES 60 /* the most of each kind */

/* Two endpoints and their queues; one thread uses both. */
struct both {
	struct obj *o;
	struct fid_ep *ep[2];
	struct fid_cq *cq[2];
	struct fid_cntr *cntr; /* counts sends of ep[0], or NULL */
	fi_addr_t addr[2];
	unsigned int id;
	unsigned char out[LEN], in[LEN], memory[LEN], copy[LEN];
	struct fid_mr *mr;
};

static unsigned int left; /* atomic: changes still to be made */

static struct fi_cq_tagged_entry take(struct both *b, int from)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	while ((ret = fi_cq_read(b->cq[from], &e, 1)) == -FI_EAGAIN) {
		CHECK_EQ(fi_cq_read(b->cq[!from], NULL, 0), -FI_EAGAIN);
		sched_yield();
	}
	CHECK_EQ(ret, 1);
	return e;
}

/* Repeats a post; the other completions are not read here, so there are few at a time. */
#define UNTIL_POSTED(b, call)                                                                      \
	do {                                                                                       \
		ssize_t posted;                                                                    \
                                                                                                   \
		while ((posted = (call)) == -FI_EAGAIN) {                                          \
			fi_cq_read((b)->cq[0], NULL, 0);                                           \
			fi_cq_read((b)->cq[1], NULL, 0);                                           \
			sched_yield();                                                             \
		}                                                                                  \
		CHECK_EQ(posted, 0);                                                               \
	} while (0)

static void message(struct both *b, unsigned int i, int from)
{
	const size_t len = i % 3 ? LEN : 8;
	struct fi_cq_tagged_entry e;

	data_fill(b->out, len, b->id * 1000 + i);
	UNTIL_POSTED(b, fi_trecv(b->ep[!from], b->in, LEN, NULL, FI_ADDR_UNSPEC, i, 0, b->in));
	UNTIL_POSTED(b, fi_tsend(b->ep[from], b->out, len, NULL, b->addr[!from], i, b->out));
	e = take(b, !from);
	CHECK_EQ((intptr_t)e.op_context, (intptr_t)b->in);
	CHECK_EQ(e.len, len);
	CHECK_EQ(e.tag, i);
	data_check(b->in, len, b->id * 1000 + i);
	e = take(b, from);
	CHECK_EQ((intptr_t)e.op_context, (intptr_t)b->out);
}

static void remote_read(struct both *b)
{
	const uint64_t at =
		b->o->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)b->memory : 0;

	memset(b->copy, 0, LEN);
	UNTIL_POSTED(b, fi_read(b->ep[0], b->copy, LEN, NULL, b->addr[1], at, fi_mr_key(b->mr),
				b->copy));
	CHECK_EQ((intptr_t)take(b, 0).op_context, (intptr_t)b->copy);
	data_check(b->copy, LEN, b->id);
}

static void bind_late(struct both *b)
{
	b->cntr = obj_cntr(b->o, FI_WAIT_NONE);
	OK(fi_ep_bind(b->ep[0], &b->cntr->fid, FI_SEND));
}

static void *use(void *arg)
{
	struct both *b = arg;
	const unsigned int rounds = api_times(ROUNDS);
	unsigned int i = 0;

	/* Goes on until the changes are made, too, so that the two happen together. */
	for (; i < rounds || __atomic_load_n(&left, __ATOMIC_RELAXED); i++) {
		message(b, i, (int)(i & 1));
		if (b->id == 0 && i == rounds / 4)
			bind_late(b);
		if (b->mr && i % 4 == 0)
			remote_read(b);
	}
	if (b->cntr)
		CHECK(fi_cntr_read(b->cntr) > 0);
	return NULL;
}

static void open_both(struct both *b, struct obj *o, unsigned int id)
{
	struct obj_name name;

	*b = (struct both){.o = o, .id = id};
	for (int i = 0; i < 2; i++) {
		b->cq[i] = obj_cq(o, FI_WAIT_NONE);
		b->ep[i] = obj_ep(o);
		OK(fi_ep_bind(b->ep[i], &o->av->fid, 0));
		OK(fi_ep_bind(b->ep[i], &b->cq[i]->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(b->ep[i]));
		name = obj_name(&b->ep[i]->fid);
		b->addr[i] = obj_insert(o->av, &name);
	}
}

static void close_both(struct both *b)
{
	if (b->mr)
		OK(fi_close(&b->mr->fid));
	for (int i = 0; i < 2; i++)
		OK(fi_close(&b->ep[i]->fid));
	for (int i = 0; i < 2; i++)
		OK(fi_close(&b->cq[i]->fid));
	if (b->cntr)
		OK(fi_close(&b->cntr->fid));
}

/* An endpoint comes, is known, gets a message, and goes. */
static void another_endpoint(struct obj *o, unsigned int i)
{
	struct both b;

	open_both(&b, o, 90 + i);
	message(&b, i, 0);
	OK(fi_av_remove(o->av, b.addr, 2, 0));
	close_both(&b);
}

static void another_region(struct obj *o)
{
	static unsigned char memory[4096];
	struct fid_mr *mr;

	OK(fi_mr_reg(o->domain, memory, sizeof(memory), FI_REMOTE_READ, 0, 7777, 0, &mr, NULL));
	OK(fi_close(&mr->fid));
}

/* An alias puts its endpoint and all that this shares something with under one lock. */
static void alias_and_close(struct both *b)
{
	struct fid_ep *alias;

	OK(fi_ep_alias(b->ep[1], &alias, FI_TRANSMIT));
	OK(fi_close(&alias->fid));
}

/* Deferred work does that with all of the domain. */
static void defer_something(struct obj *o)
{
	struct fid_cntr *from = obj_cntr(o, FI_WAIT_NONE), *to = obj_cntr(o, FI_WAIT_NONE);
	struct fi_op_cntr op = {.value = 5};
	struct fi_deferred_work work = {.threshold = 1, .op_type = FI_OP_CNTR_ADD};

	op.cntr = to;
	work.triggering_cntr = from;
	work.op.cntr = &op;
	OK(fi_control(&o->domain->fid, FI_QUEUE_WORK, &work));
	CHECK_EQ(fi_cntr_read(to), 0);
	OK(fi_cntr_add(from, 1));
	while (fi_cntr_read(to) != 5)
		sched_yield();
	OK(fi_close(&from->fid));
	OK(fi_close(&to->fid));
}

static void run(struct api *a, enum fi_threading level, bool unite)
{
	struct obj o = {.hints = obj_hints(FI_TAGGED | FI_RMA)};
	static struct both both[THREADS];
	const unsigned int changes = api_times(CHANGES);
	pthread_t threads[THREADS];

	(void)a;
	o.hints->domain_attr->threading = level;
	o.hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	o.hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	o.hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	obj_domain(&o);
	o.av = obj_av(&o, FI_AV_UNSPEC, 0);
	for (unsigned int i = 0; i < THREADS; i++) {
		open_both(&both[i], &o, i);
		data_fill(both[i].memory, LEN, i);
		OK(fi_mr_reg(o.domain, both[i].memory, LEN, FI_REMOTE_READ, 0, i, 0, &both[i].mr,
			     NULL));
	}
	__atomic_store_n(&left, changes, __ATOMIC_RELAXED);
	for (unsigned int i = 0; i < THREADS; i++)
		OK(pthread_create(&threads[i], NULL, use, &both[i]));
	for (unsigned int i = 0; i < changes; i++) {
		another_endpoint(&o, i);
		another_region(&o);
		if (i == changes / 2)
			alias_and_close(&both[1]);
		if (unite && i == changes / 4 * 3)
			defer_something(&o);
		__atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED);
	}
	for (unsigned int i = 0; i < THREADS; i++)
		OK(pthread_join(threads[i], NULL));
	for (unsigned int i = 0; i < THREADS; i++)
		close_both(&both[i]);
	obj_close(&o);
}

static void safe(struct api *a)
{
	run(a, FI_THREAD_SAFE, false);
}

static void safe_united(struct api *a)
{
	run(a, FI_THREAD_SAFE, true);
}

static void by_endpoint(struct api *a)
{
	run(a, FI_THREAD_ENDPOINT, false);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"safe", safe, 1, {0}},
		{"deferred-work-unites", safe_united, 1, {0}},
		{"by-endpoint", by_endpoint, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
