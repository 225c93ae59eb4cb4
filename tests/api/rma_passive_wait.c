/* SPDX-License-Identifier: BSD-2-Clause */
/* The initiator sleeps too while it waits for operations on a target that makes no call. */
#include <pthread.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"
#include "lib/rma_passive.h"

/* Posts an operation and waits for it by `wait`. */
static void slept(struct passive *p, void (*wait)(struct passive *p, bool reads))
{
	static unsigned char buf[70000];
	static const size_t lens[] = {8, 64, 4096, 70000};
	struct rma_key *key = &p->t.key;

	for (unsigned int n = 0; n < 2 * API_COUNT(lens); n++) {
		size_t len = lens[n / 2];
		struct iovec iov = {buf, len};
		struct fi_rma_iov to = {key->base, len, key->key};
		struct rma_op op = {.form = n % 2 ? RMA_READ : RMA_WRITE,
				    .iov = &iov,
				    .count = 1,
				    .to = &to,
				    .to_count = 1,
				    .peer = p->r.addr[1],
				    .context = buf};

		if (n % 2 == 0) {
			data_fill(buf, len, n);
			memcpy(p->model, buf, len);
		} else {
			memset(buf, 0, len);
		}
		rma_start(&p->r, &op);
		p->r.done[n % 2]++;
		wait(p, n % 2);
		RMA_SAME(buf, p->model, len);
		rma_counted(&p->r);
	}
}

static void in_cntr_wait(struct passive *p, bool reads)
{
	struct fid_cntr *cntr = reads ? p->r.reads : p->r.writes;
	struct fi_cq_tagged_entry e;

	OK(fi_cntr_wait(cntr, p->r.done[reads], OBJ_PATIENCE_MS));
	OBJ_UNTIL(fi_cq_read(p->r.o.cq, &e, 1) == 1, );
}

static void in_cq_sread(struct passive *p, bool reads)
{
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_cq_sread(p->r.o.cq, &e, 1, NULL, OBJ_PATIENCE_MS), 1);
	CHECK_EQ(e.flags & RMA_KINDS, FI_RMA | (reads ? FI_READ : FI_WRITE));
}

/* Sleeps in poll whenever fi_trywait permits it; the completion must wake the sleeper. */
static void in_poll(struct passive *p, bool reads)
{
	struct fid *fids[] = {&p->r.o.cq->fid};
	struct pollfd fd = {.events = POLLIN};
	struct fi_cq_tagged_entry e;

	(void)reads;
	OK(fi_control(&p->r.o.cq->fid, FI_GETWAIT, &fd.fd));
	while (fi_cq_read(p->r.o.cq, &e, 1) != 1)
		if (fi_trywait(p->r.o.fabric, fids, 1) == 0)
			CHECK_EQ(poll(&fd, 1, OBJ_PATIENCE_MS / 2), 1);
}

static void do_cntr_wait(struct passive *p)
{
	slept(p, in_cntr_wait);
}

static void do_cq_sread(struct passive *p)
{
	slept(p, in_cq_sread);
}

static void do_poll(struct passive *p)
{
	slept(p, in_poll);
}

static void cntr_wait(struct api *a)
{
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .wait = FI_WAIT_UNSPEC},
		    do_cntr_wait);
}

static void cq_sread(struct api *a)
{
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .wait = FI_WAIT_UNSPEC},
		    do_cq_sread);
}

static void poll_fd(struct api *a)
{
	passive_needs_all();
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .wait = FI_WAIT_FD}, do_poll);
}

/* The initiator's own threads complete the operation. */
static void do_auto(struct passive *p)
{
	struct rma_key *key = &p->t.key;
	unsigned char buf[64];
	struct fi_cq_tagged_entry e;

	data_fill(buf, sizeof(buf), 9);
	memcpy(p->model, buf, sizeof(buf));
	obj_sleep_us(100000); /* the threads sleep, and reading the queue wakes none */
	CHECK_EQ(fi_cq_read(p->r.o.cq, &e, 1), -FI_EAGAIN);
	OK(fi_write(p->r.o.ep, buf, sizeof(buf), NULL, p->r.addr[1], key->base, key->key, buf));
	obj_sleep_us(1000000);
	CHECK_EQ(fi_cq_read(p->r.o.cq, &e, 1), 1);
	CHECK(e.op_context == buf);
}

static void auto_initiator(struct api *a)
{
	enum fi_progress progress = a->rank ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;

	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED, .progress = progress}, do_auto);
}

/* One thread already sleeps on the queue when another thread posts. */
static void *sleeps_on_cq(void *arg)
{
	struct passive *p = arg;
	uint64_t start = obj_now_us();
	struct fi_cq_tagged_entry e;

	CHECK_EQ(fi_cq_sread(p->r.o.cq, &e, 1, NULL, OBJ_PATIENCE_MS), 1);
	CHECK(e.op_context == arg);
	CHECK(obj_now_us() - start < OBJ_PATIENCE_MS * 500); /* not the timeout */
	return NULL;
}

static void do_other_thread(struct passive *p)
{
	struct rma_key *key = &p->t.key;
	static unsigned char buf[70000];
	pthread_t thread;

	for (unsigned int n = 0; n < 4; n++) {
		size_t len = n % 2 ? sizeof(buf) : 64;

		data_fill(buf, len, n);
		memcpy(p->model, buf, len);
		OK(pthread_create(&thread, NULL, sleeps_on_cq, p));
		obj_sleep_us(50000);
		OK(fi_write(p->r.o.ep, buf, len, NULL, p->r.addr[1], key->base, key->key, p));
		OK(pthread_join(thread, NULL));
	}
}

static void other_thread(struct api *a)
{
	if (api_other())
		api_skip("what a thread does wakes no other one there");
	passive_run(a,
		    &(struct rma_opts){.mr_mode = RMA_PROVIDED,
				       .wait = FI_WAIT_UNSPEC,
				       .threading = FI_THREAD_SAFE},
		    do_other_thread);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"cntr_wait", cntr_wait, 2, {0}},
		{"cq_sread", cq_sread, 2, {0}},
		{"poll_fd", poll_fd, 2, {0}},
		{"other_thread", other_thread, 2, {0}},
		{"auto_initiator", auto_initiator, 2, {0}},
	};

	if (api_networked()) {
		puts("across a network memory is not reached without its owner");
		return API_SKIP;
	}
	return api_main(argc, argv, cases, API_COUNT(cases));
}
