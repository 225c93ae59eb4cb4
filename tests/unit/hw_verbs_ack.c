/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proves that a send over a software RDMA device (a fake here) waits for its acknowledgement, and
 * that other completions polled meanwhile are handled later, in their order.
 */
#include <string.h>

#include "base/clock.h"
#include "hw/verbs/rdm/verbs.h"
#include "xfer/events.h"
#include "xfer/worker.h"
#include "suite.h"

#define QPN      7u
#define DIRECT   8u /* number of the queue pair for RDMA operations */
#define SCRIPT   512
#define BOUND_MS 100 /* a send waits this long, within a tick of the clock */
#define TICK_MS  20
#define ALL      1000

/* Results of polls in order: the slot of a receive, or one of these. */
enum { NONE = -1, ACK = -2, BREAK = -3, WRITTEN = -4 };

static int script[SCRIPT];
static unsigned int scripted, polled, idle; /* entries; entries read; polls that found nothing */
static unsigned int posted, signaled, last_flags; /* sends */
static unsigned int reposted;
static uint64_t slot[SCRIPT]; /* slots posted again, in order: their receives were handled */
static unsigned char memory[VERBS_CHUNK * VERBS_SLOT];

static struct ibv_context ctx = {.async_fd = -1};
static struct ibv_cq cq = {.context = &ctx};
static struct ibv_srq srq = {.context = &ctx};
static struct ibv_qp qp = {.context = &ctx, .qp_num = QPN};
static struct ibv_qp direct = {.context = &ctx, .qp_num = DIRECT};
static struct ibv_mr mr;
/* Without an endpoint: it knows no peer. */
static struct worker worker = {.conn.opener.events = &worker_events};
static struct verbs_dev dev = {.ctx = &ctx, .nodes_fd = -1, .cache_asked = true};
static struct verbs v;
static struct verbs_link *l;

static void fill(struct ibv_wc *wc, int what)
{
	uint64_t number = (uint64_t)pool_id(l) << 32 | posted;

	*wc = (struct ibv_wc){.wr_id = what < 0 ? number : (uint64_t)what, .qp_num = QPN};
	if (what == BREAK)
		wc->status = IBV_WC_WR_FLUSH_ERR;
	if (what == WRITTEN) {
		wc->wr_id = (uint64_t)pool_id(l) << 32 | l->direct.posted;
		wc->qp_num = DIRECT;
	}
}

static int poll_cq(struct ibv_cq *of, int most, struct ibv_wc *wc)
{
	int n = 0;

	(void)of;
	for (; n < most && polled < scripted && script[polled] != NONE; polled++)
		fill(&wc[n++], script[polled]);
	if (n)
		return n;
	idle++;
	polled += polled < scripted;
	return 0;
}

static int post_send(struct ibv_qp *on, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	(void)bad;
	posted += on == &qp;
	last_flags = wr->send_flags;
	signaled += !!(wr->send_flags & IBV_SEND_SIGNALED);
	return 0;
}

static int post_srq_recv(struct ibv_srq *on, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)on;
	(void)bad;
	slot[reposted++] = wr->wr_id;
	return 0;
}

static void setup(void)
{
	ctx.ops.poll_cq = poll_cq;
	ctx.ops.post_send = post_send;
	ctx.ops.post_srq_recv = post_srq_recv;
	scripted = polled = idle = posted = signaled = reposted = 0;
	v = (struct verbs){.up = true, .path = {.dev = &dev}, .cq = &cq, .srq = &srq};
	v.opener = &worker.conn.opener;
	v.recv.size = VERBS_SLOT;
	v.recv.chunk[0].mem = memory;
	v.recv.chunk[0].mr = &mr;
	pool_init(&v.links, sizeof(struct verbs_link));
	list_init(&v.all);
	list_init(&v.attend);
	l = pool_get(&v.links);
	*l = (struct verbs_link){.link = {.eager_max = VERBS_PACKET_MAX},
				 .own = &v,
				 .qp = &qp,
				 .credits = ALL,
				 .inline_max = VERBS_INLINE,
				 .software = true,
				 .heard = true,
				 .ended = true}; /* its end is not told: there is no engine */
	memset(l->slots, 0xff, sizeof(l->slots));
	list_init(&l->in_attend);
	list_init(&l->direct.rdma_posted);
	l->direct.qp = &direct;
	l->direct.inline_max = VERBS_RDMA_INLINE;
	l->direct.write_max = VERBS_WRITE_MAX;
	verbs_rdma_pool(&v.rdma_posted);
}

static void teardown(void)
{
	verbs_ack_drop(&v);
	pool_fini(&v.links);
	pool_fini(&v.rdma_posted);
}

static void will_find(int what)
{
	script[scripted++] = what;
}

static int send_op(unsigned int op)
{
	return verbs_send(&l->link, "x", 1, 0, WIRE_HEAD(op, 0, 0, 0), 0);
}

/* Makes progress until nothing is left; checks that slots 0 to count - 1 were handled in order. */
static void calls_bring(unsigned int count)
{
	while (verbs_progress(&v))
		;
	ck_assert_uint_eq(reposted, count);
	for (unsigned int i = 0; i < count; i++)
		ck_assert_uint_eq(slot[i], i);
}

/* A send ends when acknowledged, and tells the engine nothing. */
START_TEST(waits)
{
	static const unsigned int ops[] = {WIRE_MSG, WIRE_PUT, WIRE_AMO};
	unsigned int op = ops[_i];

	for (int i = 0; i < 5; i++)
		will_find(NONE);
	will_find(0);
	will_find(NONE);
	will_find(1);
	will_find(ACK);
	will_find(2);
	ck_assert_int_eq(send_op(op), 0);
	ck_assert_uint_eq(idle, 6);
	ck_assert_uint_eq(polled, 9);
	ck_assert_uint_eq(signaled, 1);
	ck_assert_uint_eq(l->arrived, 1);
	ck_assert_uint_eq(reposted, 0);
	ck_assert(!verbs_arm(&v));
	calls_bring(3);
}
END_TEST

static int write_now_or_later(bool now)
{
	const struct iovec ours = {memory, 8};
	const struct fi_rma_iov theirs = {.len = 8};
	const struct link_copy m = {.id = UINT64_C(1) << 32,
				    .write = true,
				    .now = now,
				    .local = &ours,
				    .local_count = 1,
				    .remote = &theirs,
				    .remote_count = 1};

	return verbs_rdma(&l->link, &m);
}

static void write_directly(void)
{
	ck_assert_int_eq(write_now_or_later(false), LINK_UNDER_WAY);
}

/* A short RDMA write also waits; its completion is reported in the next progress call. */
START_TEST(write_waits)
{
	will_find(NONE);
	will_find(0);
	will_find(WRITTEN);
	will_find(1);
	write_directly();
	ck_assert_uint_eq(polled, 3);
	ck_assert_uint_eq(reposted, 0);
	ck_assert_uint_eq(l->direct.arrived, 0);
	ck_assert(verbs_rdma_writes(l));
	calls_bring(2);
	ck_assert_uint_eq(l->direct.arrived, 1);
	ck_assert(!verbs_rdma_writes(l));
}
END_TEST

/*
 * An injected write is posted to the device within the call or refused; other writes may be queued.
 */
START_TEST(injected_write_does_not_queue)
{
	l->software = false;
	l->direct.reads = 1;
	ck_assert_int_eq(write_now_or_later(true), -FI_EAGAIN);
	ck_assert(!verbs_rdma_writes(l));
	write_directly();
	ck_assert_uint_eq(l->direct.posted, 0);
	l->direct.reads = 0;
	ck_assert_int_eq(write_now_or_later(true), -FI_EAGAIN); /* behind the queued write */
	verbs_rdma_on(l);
	ck_assert_uint_eq(l->direct.posted, 1);
	ck_assert_int_eq(write_now_or_later(true), LINK_UNDER_WAY);
	ck_assert_uint_eq(l->direct.posted, 2);
}
END_TEST

/* Control messages do not wait for an acknowledgement. */
START_TEST(control_does_not_wait)
{
	ck_assert_int_eq(send_op(WIRE_RTS), 0);
	ck_assert_int_eq(send_op(WIRE_ATS), 0);
	ck_assert_int_eq(send_op(WIRE_XOFF), 0);
	ck_assert_uint_eq(posted, 3);
	ck_assert_uint_eq(idle, 0);
}
END_TEST

/* On hardware no send polls for completions, and one of VERBS_SIGNAL sends is signaled. */
START_TEST(hardware_does_not_wait)
{
	l->software = false;
	l->unsignaled = VERBS_SIGNAL - 1;
	write_directly();
	for (unsigned int i = 1; i <= 2 * VERBS_SIGNAL; i++) {
		ck_assert_int_eq(send_op(WIRE_MSG), 0);
		ck_assert_int_eq(!!(last_flags & IBV_SEND_SIGNALED), i % VERBS_SIGNAL == 0);
	}
	ck_assert_uint_eq(idle, 0);
}
END_TEST

/* A send waits BOUND_MS for an unreachable peer once, and again after the peer has answered. */
START_TEST(bounded)
{
	uint64_t begin = clock_us() / 1000, took;
	unsigned int before;

	ck_assert_int_eq(send_op(WIRE_MSG), 0);
	took = clock_us() / 1000 - begin;
	ck_assert_uint_ge(took, BOUND_MS - TICK_MS);
	ck_assert_uint_eq(l->arrived, 0);
	for (unsigned int i = 0; i < 10; i++) {
		before = idle;
		ck_assert_int_eq(send_op(WIRE_MSG), 0);
		ck_assert_uint_eq(idle, before + 1);
	}
	will_find(ACK);
	verbs_progress(&v);
	ck_assert_uint_eq(l->arrived, 11);
	before = idle;
	for (int i = 0; i < 5; i++)
		will_find(NONE);
	will_find(ACK);
	ck_assert_int_eq(send_op(WIRE_MSG), 0);
	ck_assert_uint_eq(idle, before + 5);
	ck_assert_uint_eq(l->arrived, 12);
}
END_TEST

/* A broken queue pair ends the wait; receives that came before are still handled first. */
START_TEST(broken)
{
	will_find(0);
	will_find(BREAK);
	ck_assert_int_eq(send_op(WIRE_MSG), 0);
	ck_assert_uint_eq(idle, 0);
	ck_assert_int_eq(l->err, 0);
	ck_assert_uint_eq(reposted, 0);
	calls_bring(1);
	ck_assert_int_ne(l->err, 0);
}
END_TEST

/* Completions are handled in order: those read by arming, by sends, then by progress. */
START_TEST(in_order)
{
	unsigned int next = 0;

	while (next < 3)
		fill(&v.wc[v.got++], (int)next++);
	for (int i = 0; i < 3; i++) {
		for (int n = 0; n < 60; n++)
			will_find((int)next++ % VERBS_CHUNK);
		will_find(ACK);
		ck_assert_int_eq(send_op(WIRE_MSG), 0);
		ck_assert(verbs_progress(&v));
	}
	will_find((int)next++ % VERBS_CHUNK);
	while (verbs_progress(&v))
		;
	ck_assert_uint_eq(reposted, next);
	for (unsigned int i = 0; i < next; i++)
		ck_assert_uint_eq(slot[i], i % VERBS_CHUNK);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("hw_verbs_ack");
	TCase *c = tcase_create("all");

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, waits, 0, 3);
	tcase_add_test(c, write_waits);
	tcase_add_test(c, injected_write_does_not_queue);
	tcase_add_test(c, control_does_not_wait);
	tcase_add_test(c, hardware_does_not_wait);
	tcase_add_test(c, bounded);
	tcase_add_test(c, broken);
	tcase_add_test(c, in_order);
	suite_add_tcase(s, c);
	return suite_run(s);
}
