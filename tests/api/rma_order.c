/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order of one-sided operations among themselves, before messages and behind fences. Completions at
 * either end are not early. fi_endpoint(3) msg_order, fi_cq(3).
 */
#include <sys/syscall.h>
#include <sys/uio.h>

#include "obj.h"
#include "lib/rma.h"
#include "lib/rma_buf.h"
#include "lib/rma_stream.h"

#define RMA_ORDERS (FI_ORDER_RMA_RAR | FI_ORDER_RMA_RAW | FI_ORDER_RMA_WAR | FI_ORDER_RMA_WAW)
#define ORDERS                                                                                     \
	(RMA_ORDERS | FI_ORDER_RAR | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_WAW | FI_ORDER_SAW |   \
	 FI_ORDER_SAR | FI_ORDER_SAS)

/* Orders that devices do not guarantee: those after a read. */
#define BARE_NOT (FI_ORDER_RMA_WAR | FI_ORDER_WAR | FI_ORDER_SAR)

static void open_ordered(struct rma *r, struct api *a, uint64_t caps)
{
	uint64_t order = pair_bare() ? ORDERS & ~BARE_NOT : ORDERS;

	rma_open(r, a,
		 &(struct rma_opts){
			 .caps = FI_MSG | FI_RMA | caps, .mr_mode = RMA_PROVIDED, .order = order});
	CHECK_EQ(r->o.info->tx_attr->msg_order & order, order);
	if (api_other() || pair_bare())
		return;
	CHECK_EQ(r->o.info->ep_attr->max_order_raw_size, SIZE_MAX);
	CHECK_EQ(r->o.info->ep_attr->max_order_war_size, SIZE_MAX);
	CHECK_EQ(r->o.info->ep_attr->max_order_waw_size, SIZE_MAX);
}

/* ---- Among themselves ------------------------------------------------------------------------ */

/* Rank 0 streams to rank 1's memory, or with `both` each to the other's. */
static void streams(struct api *a, uint64_t flags, bool both)
{
	static unsigned char memory[STREAM_SIZE], model[STREAM_SIZE];
	static struct stream s;
	struct rma_key mine, keys[2];
	struct fid_mr *mr;
	struct rma r;

	open_ordered(&r, a, flags & FI_FENCE);
	mr = rma_reg(&r, memory, sizeof(memory), RMA_REMOTE);
	mine = rma_key(&r, mr, memory, sizeof(memory));
	api_swap(a, &mine, keys, sizeof(mine));
	for (unsigned int n = 0; n < 3; n++) {
		s = (struct stream){.r = &r,
				    .peer = r.addr[!a->rank],
				    .key = keys[!a->rank],
				    .model = model,
				    .seed = n * 2 + (unsigned int)a->rank + 1,
				    .reads = n % 3 * 30,
				    .flags = flags};
		if (both || a->rank == 0)
			STREAM_RUN(&s);
	}
	memcpy((char *)a->shared + a->rank * STREAM_SIZE, model, STREAM_SIZE);
	api_meet(a);
	if (both || a->rank == 1)
		RMA_SAME(memory, (unsigned char *)a->shared + !a->rank * STREAM_SIZE, STREAM_SIZE);
	CLOSE(mr);
	rma_close(&r);
}

static void one_way(struct api *a)
{
	streams(a, 0, false);
}

static void both_ways(struct api *a)
{
	streams(a, FI_MORE, true);
}

static void fenced(struct api *a)
{
	streams(a, FI_FENCE, false);
}

/* ---- Slots: one operation each, then a notification of the target ---------------------------- */

#define SLOTS 120
#define SLOT  20000

static unsigned char memory[SLOTS * SLOT]; /* of the target */

static size_t slot_len(unsigned int n)
{
	static const size_t lens[] = {8, 64, SLOT, 1000, 4096, 1, 4097};

	return lens[n % API_COUNT(lens)];
}

/* Posts an operation between slot `n` of the target and the same place of local memory. */
static void slot_start(struct rma *r, const struct rma_target *t, unsigned int n,
		       enum rma_form form)
{
	size_t at = (size_t)n * SLOT, len = slot_len(n);
	struct iovec iov = {memory + at, len};
	struct fi_rma_iov to = {t->key.base + at, len, t->key.key};

	rma_start(r, &(struct rma_op){.form = form,
				      .iov = &iov,
				      .count = 1,
				      .to = &to,
				      .to_count = 1,
				      .data = n,
				      .peer = r->addr[1],
				      .context = memory + at});
	r->done[rma_reads(form)]++;
}

/* Waits by counters and drops the completions. */
static void slots_done(struct rma *r)
{
	struct fi_cq_tagged_entry e;

	api_at(__FILE__, __LINE__);
	rma_counted(r);
	while (fi_cq_read(r->o.cq, &e, 1) == 1)
		;
}

/* FI_ORDER_SAW: the receiver of a message sees all writes posted before that message. */
static void send_after_write(struct api *a)
{
	struct rma_target t;
	struct rma r;

	open_ordered(&r, a, 0);
	rma_target_open(&r, &t, memory, sizeof(memory));
	for (unsigned int n = 0; n < SLOTS; n++) {
		unsigned int word = n;

		if (a->rank == 0) {
			data_fill(memory + n * SLOT, slot_len(n), n);
			slot_start(&r, &t, n, n % 2 ? RMA_WRITE : RMA_WRITEV);
			POST(r.o.cq, fi_inject(r.o.ep, &word, sizeof(word), r.addr[1]));
			continue;
		}
		OK(fi_recv(r.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		obj_done(r.in, &word);
		CHECK_EQ(word, n);
		data_check(memory + n * SLOT, slot_len(n), n);
	}
	if (a->rank == 0)
		slots_done(&r);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* FI_ORDER_SAR: the receiver of a message may overwrite data that reads before it returned. */
static void send_after_read(struct api *a)
{
	struct rma_target t;
	struct rma r;

	open_ordered(&r, a, 0);
	for (unsigned int n = 0; a->rank == 1 && n < SLOTS; n++)
		data_fill(memory + n * SLOT, slot_len(n), n);
	rma_target_open(&r, &t, memory, sizeof(memory));
	for (unsigned int n = 0; n < SLOTS; n++) {
		unsigned int word = n;

		if (a->rank == 0) {
			slot_start(&r, &t, n, n % 2 ? RMA_READ : RMA_READV);
			POST(r.o.cq, fi_inject(r.o.ep, &word, sizeof(word), r.addr[1]));
			continue;
		}
		OK(fi_recv(r.o.ep, &word, sizeof(word), NULL, FI_ADDR_UNSPEC, &word));
		obj_done(r.in, &word);
		memset(memory + word * SLOT, 0xff, SLOT);
	}
	if (a->rank == 0)
		slots_done(&r);
	for (unsigned int n = 0; a->rank == 0 && n < SLOTS; n++)
		data_check(memory + n * SLOT, slot_len(n), n);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/*
 * ---- A slow read -------------------------------------------------------------------------------
 */

#define BULK (1u << 20)

static useconds_t copy_us; /* delay (us) added to each copy by the library */

__attribute__((visibility("default"))) ssize_t
process_vm_readv(pid_t pid, const struct iovec *to, unsigned long to_count,
		 const struct iovec *from, unsigned long from_count, unsigned long flags)
{
	if (copy_us)
		usleep(copy_us);
	return syscall(SYS_process_vm_readv, pid, to, to_count, from, from_count, flags);
}

/* A region of one or two pieces on rank 1; both processes are connected. */
static void bulk_open(struct rma *r, struct rma_target *t, struct api *a, size_t pieces)
{
	struct iovec iov[2] = {{memory, BULK / pieces}, {memory + BULK / 2, BULK / 2}};
	char word = 0;

	open_ordered(r, a, 0);
	*t = (struct rma_target){0};
	memset(memory, a->rank ? 'a' : 0, BULK);
	if (a->rank == 1) {
		t->mr = rma_regv(r, iov, pieces, RMA_REMOTE);
		t->key = rma_key(r, t->mr, memory, BULK);
		OK(fi_recv(r->o.ep, &word, 1, NULL, FI_ADDR_UNSPEC, &word));
	}
	t->key = rma_share(r, 1, &t->key);
	if (a->rank == 0)
		POST(r->o.cq, fi_send(r->o.ep, &word, 1, NULL, r->addr[1], &word));
	obj_done(a->rank ? r->in : r->o.cq, &word);
	api_meet(a);
}

/*
 * Rank 0 reads and sends a message; rank 1 overwrites the data as soon as it has the message. With
 * `us`, rank 1 makes no call at first, and rank 0's copies are so slow that rank 1 makes progress
 * again before they end.
 */
static void send_after_slow_read(struct api *a, size_t pieces, size_t len, useconds_t us)
{
	struct rma_target t;
	struct rma r;
	char word = 0;

	bulk_open(&r, &t, a, pieces);
	if (a->rank == 0) {
		OK(fi_read(r.o.ep, memory, len, NULL, r.addr[1], t.key.base, t.key.key, memory));
		copy_us = us;
		api_tell(a, 1, &word, 1);
		POST(r.o.cq, fi_send(r.o.ep, &word, 1, NULL, r.addr[1], &word));
		obj_next(r.o.cq, NULL);
		obj_next(r.o.cq, NULL);
		copy_us = 0;
		CHECK(data_all(memory, len, 'a'));
	} else {
		OK(fi_recv(r.o.ep, &word, 1, NULL, FI_ADDR_UNSPEC, &word));
		a->progress = NULL;
		api_hear(a, 0, &word, 1);
		a->progress = rma_progress;
		obj_sleep_us(us / 3);
		obj_done(r.in, &word);
		memset(memory, 'b', BULK);
	}
	rma_target_close(&r, &t);
	rma_close(&r);
}

static void send_after_bulk_read(struct api *a)
{
	send_after_slow_read(a, 1, BULK, 0);
	send_after_slow_read(a, 2, BULK, 0);
}

static void send_after_helped_read(struct api *a)
{
	send_after_slow_read(a, 1, 4096, 300001);
}

/* ---- Remote CQ data -------------------------------------------------------------------------- */

/* Remote CQ data arrives after its data, and in order. */
static void reported_after_write(struct api *a)
{
	struct rma_target t;
	struct rma r;

	open_ordered(&r, a, 0);
	rma_target_open(&r, &t, memory, sizeof(memory));
	for (unsigned int n = 0; n < SLOTS; n++) {
		bool fits = slot_len(n) <= r.o.info->tx_attr->inject_size;

		if (a->rank == 0) {
			data_fill(memory + n * SLOT, slot_len(n), n);
			slot_start(&r, &t, n, n % 2 && fits ? RMA_INJECTDATA : RMA_DATA);
			continue;
		}
		RMA_NOTIFIED(&r, r.in, n, slot_len(n));
		data_check(memory + n * SLOT, slot_len(n), n);
	}
	if (a->rank == 0)
		slots_done(&r);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* Remote CQ data behind writes without any, in the order of writes. */
static void reported_after_writes(struct api *a)
{
	struct rma_target t;
	struct rma r;

	open_ordered(&r, a, 0);
	rma_target_open(&r, &t, memory, sizeof(memory));
	for (unsigned int n = 0; n < SLOTS; n++) {
		if (a->rank == 0) {
			data_fill(memory + n * SLOT, slot_len(n), n);
			slot_start(&r, &t, n, n % 10 == 9 ? RMA_DATA : RMA_WRITE);
			continue;
		}
		if (n % 10 != 9)
			continue;
		RMA_NOTIFIED(&r, r.in, n, slot_len(n));
		for (unsigned int i = n - 9; i <= n; i++)
			data_check(memory + i * SLOT, slot_len(i), i);
	}
	if (a->rank == 0)
		slots_done(&r);
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* ---- Completions ----------------------------------------------------------------------------- */

/*
 * FI_DELIVERY_COMPLETE: at completion the data is in place. The target's memory is shared, so rank
 * 0 checks that directly, while rank 1 makes progress.
 */
static void delivered(struct api *a)
{
	unsigned char *there = a->shared;
	struct rma_target t;
	struct rma r;

	open_ordered(&r, a, 0);
	rma_target_open(&r, &t, there, API_SHARED);
	for (unsigned int n = 0; a->rank == 0 && n < api_times(20 * SLOTS); n++) {
		size_t len = slot_len(n), at = (size_t)(n % 50) * SLOT;
		struct iovec iov = {memory, len};
		struct fi_rma_iov to = {t.key.base + at, len, t.key.key};

		data_fill(memory, len, n);
		RMA_RUN(&r, &(struct rma_op){.form = RMA_WRITEMSG,
					     .iov = &iov,
					     .count = 1,
					     .to = &to,
					     .to_count = 1,
					     .flags = FI_DELIVERY_COMPLETE,
					     .peer = r.addr[1]});
		RMA_SAME(there + at, memory, len);
	}
	rma_target_close(&r, &t);
	rma_close(&r);
}

/* ---- Fences ---------------------------------------------------------------------------------- */

#define RTS_ID (2u << 20)

/* Three writes: word 1 plain or none, word 2 with a fence, word 3 after it. */
static void behind_fence(struct rma *r, const struct rma_target *t, bool reads)
{
	static uint64_t ones[4] = {0, 1, 1, 1};

	for (unsigned int i = 2; i < 4; i++) {
		struct iovec iov = {&ones[i], 8};
		struct fi_rma_iov to = {t->key.base + 8 * i, 8, t->key.key};

		rma_start(r, &(struct rma_op){.form = reads && i == 2 ? RMA_READMSG : RMA_WRITEMSG,
					      .iov = &iov,
					      .count = 1,
					      .to = &to,
					      .to_count = 1,
					      .peer = r->addr[1],
					      .flags = i == 2 ? FI_FENCE : 0,
					      .context = &ones[i]});
	}
}

/*
 * A long message without receive is not complete: a fenced operation, and those after it, wait,
 * although writes and sends are not ordered otherwise.
 */
static void fence_after_send(struct api *a, bool reads)
{
	static uint64_t words[4];
	unsigned char *rts = malloc(RTS_ID);
	struct rma_target t;
	struct rma r;

	CHECK(rts != NULL);
	open_ordered(&r, a, FI_FENCE);
	rma_target_open(&r, &t, words, sizeof(words));
	if (a->rank == 0) {
		data_fill(rts, RTS_ID, 1);
		POST(r.o.cq, fi_send(r.o.ep, rts, RTS_ID, NULL, r.addr[1], rts));
		behind_fence(&r, &t, reads);
		obj_done(r.o.cq, rts);
		obj_next(r.o.cq, NULL);
		obj_next(r.o.cq, NULL);
	} else {
		obj_quiet(r.in, 50);
		CHECK_EQ(words[2], 0);
		CHECK_EQ(words[3], 0);
		OK(fi_recv(r.o.ep, rts, RTS_ID, NULL, FI_ADDR_UNSPEC, rts));
		obj_done(r.in, rts);
		data_check(rts, RTS_ID, 1);
		OBJ_UNTIL(__atomic_load_n(&words[3], __ATOMIC_ACQUIRE) == 1, rma_progress(&r));
		CHECK_EQ(words[2], !reads);
	}
	rma_target_close(&r, &t);
	rma_close(&r);
	free(rts);
}

static void fenced_write(struct api *a)
{
	fence_after_send(a, false);
}

static void fenced_read(struct api *a)
{
	fence_after_send(a, true);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"one_way", one_way, 2, {0}},
		{"both_ways", both_ways, 2, {0}},
		{"fenced", fenced, 2, {0}},
		{"send_after_write", send_after_write, 2, {0}},
		{"send_after_read", send_after_read, 2, {0}},
		{"send_after_bulk_read", send_after_bulk_read, 2, {0}},
		{"send_after_helped_read", send_after_helped_read, 2, {0}},
		{"told_after_write", reported_after_write, 2, {0}},
		{"told_after_writes", reported_after_writes, 2, {0}},
		{"delivered", delivered, 2, {0}},
		{"fenced_write", fenced_write, 2, {0}},
		{"fenced_read", fenced_read, 2, {0}},
		{"one_way_no_cma", one_way, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"both_ways_no_cma", both_ways, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"send_after_write_no_cma", send_after_write, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"send_after_read_no_cma", send_after_read, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"send_after_bulk_read_no_cma", send_after_bulk_read, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"told_after_write_no_cma", reported_after_write, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"delivered_no_cma", delivered, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"fenced_write_no_cma", fenced_write, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
