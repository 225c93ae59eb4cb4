/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_PROGRESS_AUTO: operations complete without library calls, and an idle process uses no CPU.
 * FI_PROGRESS_MANUAL: the calls that make progress. fi_domain(3).
 */
#include "obj.h"

#define LONG_LEN (6u << 20)

static void open_progress(struct obj *o, enum fi_progress data)
{
	o->hints = obj_hints(FI_MSG | FI_TAGGED);
	o->hints->domain_attr->data_progress = data;
	o->hints->domain_attr->control_progress = data;
	obj_domain(o);
	CHECK_EQ(o->info->domain_attr->data_progress, data);
	obj_open(o);
}

/*
 * Rank 1 posts receives and makes no library call until rank 0's sends have completed with
 * FI_DELIVERY_COMPLETE. The data must then be in the buffers.
 */
static void receiver_sleeps(struct api *a, size_t len, enum fi_progress sender)
{
	struct obj o = {0};
	char *buf = malloc(4 * len);
	fi_addr_t peer;

	open_progress(&o, a->rank == 0 ? sender : FI_PROGRESS_AUTO);
	peer = obj_swap(a, o.ep, o.av);
	for (unsigned int n = 0; n < 4; n++) {
		char *at = buf + n * len;
		struct iovec iov = {at, len};
		struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = peer, .context = at};

		if (a->rank == 1) {
			OK(fi_recv(o.ep, at, len, NULL, FI_ADDR_UNSPEC, at));
			continue;
		}
		data_fill(at, len, n);
		if (n == 0)
			api_meet(a);
		POST(o.cq, fi_sendmsg(o.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		obj_done(o.cq, at);
	}
	if (a->rank == 1)
		api_meet(a);
	api_meet(a); /* rank 1 waits in this barrier */
	for (unsigned int n = 0; a->rank == 1 && n < 4; n++) {
		struct fi_cq_tagged_entry e;

		CHECK_EQ(fi_cq_read(o.cq, &e, 1), 1);
		CHECK(e.op_context == buf + n * len);
		CHECK_EQ(e.len, len);
		data_check(buf + n * len, len, n);
	}
	api_meet(a);
	obj_close(&o);
	free(buf);
}

static void small_to_sleeper(struct api *a)
{
	receiver_sleeps(a, 8, FI_PROGRESS_MANUAL);
}

static void mib_to_sleeper(struct api *a)
{
	receiver_sleeps(a, 1 << 20, FI_PROGRESS_MANUAL);
}

static void long_to_sleeper(struct api *a)
{
	receiver_sleeps(a, LONG_LEN, FI_PROGRESS_AUTO);
}

/* Rank 0 posts sends and makes no call until rank 1 has received all. */
static void sender_sleeps(struct api *a, size_t len)
{
	struct obj o = {0};
	char *buf = malloc(4 * len);
	fi_addr_t peer;

	open_progress(&o, a->rank == 0 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL);
	peer = obj_swap(a, o.ep, o.av);
	for (unsigned int n = 0; n < 4; n++) {
		char *at = buf + n * len;

		if (a->rank == 0) {
			data_fill(at, len, n);
			OBJ_UNTIL(fi_send(o.ep, at, len, NULL, peer, at) == 0, obj_sleep_us(1000));
			continue;
		}
		OK(fi_recv(o.ep, at, len, NULL, FI_ADDR_UNSPEC, at));
		obj_done(o.cq, at);
		data_check(at, len, n);
	}
	api_meet(a);
	for (unsigned int n = 0; a->rank == 0 && n < 4; n++)
		obj_done(o.cq, buf + n * len);
	api_meet(a);
	obj_close(&o);
	free(buf);
}

static void small_from_sleeper(struct api *a)
{
	sender_sleeps(a, 100);
}

static void long_from_sleeper(struct api *a)
{
	sender_sleeps(a, LONG_LEN);
}

/* Neither process calls the library after posting; the data is unexpected first. */
static void both_sleep(struct api *a)
{
	struct obj o = {0};
	char *buf = malloc(LONG_LEN);
	struct fi_cq_tagged_entry e;
	fi_addr_t peer;

	open_progress(&o, FI_PROGRESS_AUTO);
	peer = obj_swap(a, o.ep, o.av);
	data_fill(buf, LONG_LEN, 3);
	if (a->rank == 0)
		OBJ_UNTIL(fi_tsend(o.ep, buf, LONG_LEN, NULL, peer, 5, buf) == 0,
			  obj_sleep_us(1000));
	obj_sleep_us(100000);
	if (a->rank == 1) {
		memset(buf, 0, LONG_LEN);
		OK(fi_trecv(o.ep, buf, LONG_LEN, NULL, peer, 5, 0, buf));
	}
	/* A receive buffer is read only after its completion. */
	obj_sleep_us(650000 * obj_slower());
	CHECK_EQ(fi_cq_read(o.cq, &e, 1), 1);
	CHECK(e.op_context == buf);
	data_check(buf, LONG_LEN, 3);
	api_meet(a);
	obj_close(&o);
	free(buf);
}

/* After some traffic, one idle second costs almost no CPU time: the thread sleeps. */
static void idle_is_free(struct api *a)
{
	struct obj o = {0};
	uint64_t before, used;
	fi_addr_t peer;
	int word = 1;

	open_progress(&o, FI_PROGRESS_AUTO);
	peer = obj_swap(a, o.ep, o.av);
	for (int n = 0; n < 10; n++) {
		int got;

		POST(o.cq, fi_inject(o.ep, &word, sizeof(word), peer));
		OK(fi_recv(o.ep, &got, sizeof(got), NULL, FI_ADDR_UNSPEC, &got));
		obj_done(o.cq, &got);
	}
	api_meet(a);
	obj_sleep_us(100000);
	before = obj_cpu_us();
	obj_sleep_us(1000000);
	used = obj_cpu_us() - before;
	if (used > 10000) {
		fprintf(stderr, "%" PRIu64 " us of CPU in a second of sleep\n", used);
		api_fail("an idle process is busy");
	}
	api_meet(a);
	obj_close(&o);
}

/* Each call that fi_domain(3) names makes progress by itself. */
static void calls_move(enum fi_progress progress)
{
	struct obj o = {0};
	struct fid_cntr *cntr;
	struct fid_ep *ep;
	fi_addr_t to;
	int got[2] = {0}, word = 9;

	open_progress(&o, progress);
	cntr = obj_cntr(&o, FI_WAIT_NONE);
	ep = obj_ep(&o);
	OK(fi_ep_bind(ep, &o.av->fid, 0));
	OK(fi_ep_bind(ep, &o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(ep, &cntr->fid, FI_RECV));
	OK(fi_enable(ep));
	to = obj_insert_ep(o.av, ep);
	for (int n = 0; n < 2; n++)
		OK(fi_recv(ep, &got[n], sizeof(int), NULL, FI_ADDR_UNSPEC, NULL));
	POST(o.cq, fi_inject(o.ep, &word, sizeof(word), to));
	OBJ_UNTIL(((volatile int *)got)[0] == 9, fi_cq_read(o.cq, NULL, 0));
	POST(o.cq, fi_inject(o.ep, &word, sizeof(word), to));
	OBJ_UNTIL(fi_cntr_read(cntr) == 2, );
	CHECK_EQ(got[1], 9);
	CLOSE(ep);
	CLOSE(cntr);
	obj_close(&o);
}

static void manual_calls(struct api *a)
{
	(void)a;
	calls_move(FI_PROGRESS_MANUAL);
}

/* The same with one thread that does all. */
static void unified_calls(struct api *a)
{
	(void)a;
	if (api_other())
		api_skip("FI_PROGRESS_CONTROL_UNIFIED is younger");
	calls_move(FI_PROGRESS_CONTROL_UNIFIED);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"small_to_sleeper", small_to_sleeper, 2, {0}},
		{"mib_to_sleeper", mib_to_sleeper, 2, {0}},
		{"long_to_sleeper", long_to_sleeper, 2, {0}},
		{"small_from_sleeper", small_from_sleeper, 2, {0}},
		{"long_from_sleeper", long_from_sleeper, 2, {0}},
		{"both_sleep", both_sleep, 2, {0}},
		{"idle_is_free", idle_is_free, 2, {0}},
		{"manual_calls", manual_calls, 1, {0}},
		{"unified_calls", unified_calls, 1, {0}},
		{"no_cma_to_sleeper", long_to_sleeper, 2, {"FI_SHM_DISABLE_CMA=1"}},
		{"no_cma_from_sleeper", long_from_sleeper, 2, {"FI_SHM_DISABLE_CMA=1"}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
