/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations on a target that sleeps and makes no call. */
#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"
#include "lib/rma_passive.h"
#include "lib/rma_stream.h"

static const size_t sizes[] = {1, 8, 25, 64, 4096, 4097, 65536, 1 << 20};

static void do_writes(struct passive *p)
{
	for (unsigned int n = 0; n < 3 * API_COUNT(sizes); n++)
		passive_put(p, n % 2 ? RMA_WRITE : RMA_WRITEV, sizes[n % API_COUNT(sizes)],
			    4097 * n, n);
}

static void writes(struct api *a)
{
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED}, do_writes);
}

static void writes_by_offset(struct api *a)
{
	passive_needs_all();
	passive_run(a, &(struct rma_opts){.mr_mode = FI_MR_PROV_KEY}, do_writes);
}

static void do_reads(struct passive *p)
{
	unsigned char *buf = malloc(1 << 20);

	CHECK(buf != NULL);
	for (unsigned int n = 0; n < 3 * API_COUNT(sizes); n++) {
		size_t len = sizes[n % API_COUNT(sizes)];

		memset(buf, 0, len);
		RMA_PLAIN(&p->r, n % 2 ? RMA_READ : RMA_READV, buf, len, &p->t.key, 333 * n);
		RMA_SAME(buf, p->model + 333 * n, len);
	}
	free(buf);
}

static void reads(struct api *a)
{
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED}, do_reads);
}

/* Injected writes, one at a time and many at once, counted by the counter alone. */
static void do_injects(struct passive *p)
{
	struct rma_key *key = &p->t.key;

	passive_put(p, RMA_INJECT, 8, 0, 2);
	passive_put(p, RMA_INJECT, 64, 77, 3);
	passive_put(p, RMA_INJECT, 1, 150, 4);
	for (unsigned int n = 0; n < 3000; n++) {
		size_t len = 8 + n % 57, at = 200 + n * 31;
		struct fi_rma_iov to = {key->base + at, len, key->key};
		unsigned char word[64];
		struct iovec iov = {word, len};

		data_fill(word, len, n);
		memcpy(p->model + at, word, len);
		rma_start(&p->r, &(struct rma_op){.form = RMA_INJECT,
						  .iov = &iov,
						  .count = 1,
						  .to = &to,
						  .to_count = 1,
						  .peer = p->r.addr[1]});
		p->r.done[0]++;
	}
	rma_counted(&p->r);
	obj_quiet(p->r.o.cq, 2);
}

static void injects(struct api *a)
{
	passive_needs_all();
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED}, do_injects);
}

static void run_stream(struct passive *p, unsigned int seed, unsigned int reads)
{
	static struct stream s;

	s = (struct stream){.r = &p->r,
			    .peer = p->r.addr[p->r.a->ranks - 1],
			    .key = p->t.key,
			    .model = p->model,
			    .seed = seed,
			    .reads = reads};
	STREAM_RUN(&s);
}

static void do_mixed(struct passive *p)
{
	run_stream(p, 1, 0);
	run_stream(p, 2, 40);
}

static void mixed(struct api *a)
{
	passive_needs_all();
	passive_run(a, &(struct rma_opts){.mr_mode = RMA_PROVIDED}, do_mixed);
}

/* ---- Other operations in flight -------------------------------------------------------------- */

/* A message that the sleeper has not received blocks no operation, and arrives when it wakes. */
static void behind_message(struct api *a)
{
	static unsigned char note[100], rts[300001];
	struct passive p;

	passive_open(&p, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 1) {
		passive_sleep(&p);
		OK(fi_recv(p.r.o.ep, note, sizeof(note), NULL, FI_ADDR_UNSPEC, note));
		OK(fi_recv(p.r.o.ep, rts, sizeof(rts), NULL, FI_ADDR_UNSPEC, rts));
		obj_done(p.r.in, note);
		obj_done(p.r.in, rts);
		data_check(note, sizeof(note), 21);
		data_check(rts, sizeof(rts), 22);
	} else {
		api_meet(a);
		data_fill(note, sizeof(note), 21);
		data_fill(rts, sizeof(rts), 22);
		POST(p.r.o.cq, fi_inject(p.r.o.ep, note, sizeof(note), p.r.addr[1]));
		POST(p.r.o.cq, fi_send(p.r.o.ep, rts, sizeof(rts), NULL, p.r.addr[1], rts));
		do_writes(&p);
		passive_wake(&p);
		obj_done(p.r.o.cq, rts);
	}
	passive_close(&p);
}

/* Operations done while the target slept are not repeated when it processes its packets. */
static void not_twice(struct api *a)
{
	struct passive p;

	passive_needs_all();
	passive_open(&p, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 1) {
		uint64_t end;

		passive_sleep(&p);
		data_fill(passive_memory, PASSIVE_SIZE, 50);
		end = obj_now_us() + 50000;
		while (obj_now_us() < end)
			rma_progress(&p.r);
		data_check(passive_memory, PASSIVE_SIZE, 50);
	} else {
		api_meet(a);
		do_injects(&p);
		do_mixed(&p);
		passive_wake(&p);
	}
	passive_close(&p);
}

/* The target alternates between sleeping and working. */
static void alternating(struct api *a)
{
	struct passive p;

	passive_needs_all();
	passive_open(&p, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	for (unsigned int n = 0; n < 5; n++) {
		if (a->rank == 1) {
			passive_sleep(&p);
			api_meet(a);
			continue;
		}
		api_meet(a);
		run_stream(&p, 10 + n, 30);
		passive_wake(&p);
		api_meet(a); /* the target is awake and makes progress in this barrier */
		passive_put(&p, RMA_WRITE, 64, 5, n);
		passive_put(&p, RMA_WRITE, 70000, 500, n);
	}
	passive_close(&p);
}

/* Two initiators write to the sleeper, each to its half. */
static void two_initiators(struct api *a)
{
	struct passive p;
	char byte = 1;

	passive_needs_all();
	passive_open(&p, a, &(struct rma_opts){.mr_mode = RMA_PROVIDED});
	if (a->rank == 2) {
		passive_sleep(&p);
	} else {
		api_meet(a);
		p.t.key.base += (size_t)a->rank * (PASSIVE_SIZE / 2);
		p.model += (size_t)a->rank * (PASSIVE_SIZE / 2);
		for (unsigned int n = 0; n < 3; n++)
			run_stream(&p, 20 + n, 25);
		if (a->rank == 1) {
			api_tell(a, 0, &byte, 1);
		} else {
			api_hear(a, 1, &byte, 1);
			passive_wake(&p);
		}
	}
	passive_close(&p);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"writes", writes, 2, {0}},
		{"writes_by_offset", writes_by_offset, 2, {0}},
		{"reads", reads, 2, {0}},
		{"injects", injects, 2, {0}},
		{"mixed", mixed, 2, {0}},
		{"behind_message", behind_message, 2, {0}},
		{"not_twice", not_twice, 2, {0}},
		{"by_turns", alternating, 2, {0}},
		{"two_initiators", two_initiators, 3, {0}},
	};

	if (api_networked()) {
		puts("across a network memory is not reached without its owner");
		return API_SKIP;
	}
	return api_main(argc, argv, cases, API_COUNT(cases));
}
