/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long messages one after another without other calls: a transport may delay some to send them
 * together. The sender need not know. fi_endpoint(3), fi_domain(3), fi_cq(3).
 */
#include <malloc.h>

#include "obj.h"
#include "lib/cm.h"
#include "lib/row.h"

/* ---- The sender does something else ---------------------------------------------------------- */

static void receive_and_wake(struct row *r)
{
	uint64_t word = ROW;

	row_post(r, ROW);
	row_take(r, ROW);
	api_tell(r->a, 0, "", 1);
	POST(r->rx, fi_inject(r->o.ep, &word, sizeof(word), r->to));
}

static void acknowledged_as(struct api *a, enum fi_progress progress)
{
	static const uint64_t flags[] = {0, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE};
	struct row r;

	row_open(&r, a, &(struct row_opts){.progress = progress});
	for (size_t i = 0; i < (pair_bare() ? 2 : API_COUNT(flags)); i++) {
		if (a->rank)
			receive_and_wake(&r);
		else
			row_send_beside_sleeper(&r, flags[i]);
		api_meet(a);
	}
	row_close(&r);
}

static void acknowledged(struct api *a)
{
	acknowledged_as(a, FI_PROGRESS_MANUAL);
}

static void acknowledged_auto(struct api *a)
{
	acknowledged_as(a, FI_PROGRESS_AUTO);
}

/* No thread is in a library call; the library's own thread makes progress. */
static void asleep_auto(struct api *a)
{
	struct row r;

	row_open(&r, a, &(struct row_opts){.progress = FI_PROGRESS_AUTO});
	if (a->rank) {
		row_post(&r, ROW);
		row_take(&r, ROW);
		api_tell(a, 0, "", 1);
	} else {
		row_send(&r, 0);
		row_wait(&r);
		for (int i = 0; i < ROW; i++)
			obj_done(r.o.cq, row_out[i]);
	}
	row_close(&r);
}

/* ---- Many messages whose completions are not read -------------------------------------------- */

#define STREAM     ((long)api_times(row_sent_whole() ? 6000 : 600))
#define STREAM_LEN 20000
#define WARM       500        /* messages until all caches and buffers are full */
#define AHEAD      64         /* maximum messages that the receiver is behind */
#define BEHIND_US  2000       /* maximum wait for the receiver; the next send may make progress */
#define GROWTH     (1u << 20) /* bytes: more than the backlog of a delayed receiver */

/* Waits for a slow receiver. Without sends by copy, makes progress meanwhile to answer requests. */
static void keep_pace(struct row *r, long sent)
{
	uint64_t end = obj_now_us() + BEHIND_US;
	const long *received = r->a->shared;

	for (; sent - __atomic_load_n(received, __ATOMIC_ACQUIRE) > AHEAD; sched_yield()) {
		if (!row_sent_whole())
			row_call(r);
		else if (obj_now_us() >= end)
			return;
	}
}

static void stream_out(struct row *r)
{
	size_t before = 0, now;

	data_fill(row_out[0], STREAM_LEN, 7);
	for (long i = 0; i < STREAM; i++) {
		if (i == WARM)
			before = mallinfo2().uordblks;
		POST(r->o.cq, fi_send(r->o.ep, row_out[0], STREAM_LEN, NULL, r->to, NULL));
		keep_pace(r, i);
	}
	now = mallinfo2().uordblks;
	if (row_sent_whole() && before && now > before + GROWTH) {
		fprintf(stderr, "  %zu KiB in use, then %zu\n", before >> 10, now >> 10);
		api_fail("memory in use grows with the number of messages");
	}
}

static void stream_in(struct row *r)
{
	long *received = r->a->shared;

	for (long posted = 0, i = 0; i < STREAM; i++) {
		for (; posted < STREAM && posted < i + ROW_MOST; posted++)
			OK(fi_recv(r->o.ep, row_in[posted % ROW_MOST], STREAM_LEN, NULL,
				   FI_ADDR_UNSPEC, NULL));
		CHECK_EQ(obj_next(r->rx, NULL).len, STREAM_LEN);
		data_check(row_in[i % ROW_MOST], 64, 7);
		__atomic_store_n(received, i + 1, __ATOMIC_RELEASE);
	}
}

/*
 * Only calls fi_send; reads queues only after -FI_EAGAIN or on transports where the receiver
 * fetches.
 */
static void unread(struct api *a)
{
	struct row r;

	row_open(&r, a, &(struct row_opts){.tx_bind = FI_SELECTIVE_COMPLETION});
	if (a->rank)
		stream_in(&r);
	else
		stream_out(&r);
	row_close(&r);
}

/* ---- Injected all ---------------------------------------------------------------------------- */

/* Injects the row. Returns how many were sent: all, or 0 if too long. */
static int inject_row(struct row *r)
{
	int too_long = 0;
	ssize_t ret;

	api_meet_still(r->a);
	for (int i = 0; i < ROW_MOST; i++) {
		data_fill(row_out[0], ROW_LEN, (unsigned int)i);
		OBJ_UNTIL((ret = fi_send(r->o.ep, row_out[0], ROW_LEN, NULL, r->to, NULL)) !=
				  -FI_EAGAIN,
			  row_call(r));
		memset(row_out[0], 0xee, ROW_LEN);
		too_long += ret == -FI_EMSGSIZE;
		CHECK_EQ(ret, too_long ? -FI_EMSGSIZE : 0);
		CHECK(!too_long || too_long == i + 1);
	}
	return ROW_MOST - too_long;
}

static void inject_default(struct api *a)
{
	int count[2], mine = 0;
	struct row r;

	row_open(&r, a, &(struct row_opts){.tx_flags = FI_INJECT});
	if (a->rank)
		row_post(&r, ROW_MOST);
	else
		mine = inject_row(&r);
	api_swap(a, &mine, count, sizeof(mine));
	if (a->rank)
		row_take(&r, count[0]);
	row_close(&r);
}

/* ---- The end --------------------------------------------------------------------------------- */

enum fate { NEVER_SAID, GOOD, FAILED };

/* Reads what became of each buffer. */
static void read_fates(struct cm *c, struct fid_cq *cq, const unsigned char *bufs, enum fate *fates,
		       int count)
{
	for (int i = 0; i < count; i++) {
		struct fi_cq_tagged_entry entry = {0};
		struct fi_cq_err_entry err = {0};
		size_t at;
		ssize_t ret;

		OBJ_UNTIL((ret = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN, cm_progress(c));
		if (ret != 1)
			CHECK_EQ(fi_cq_readerr(cq, &err, 0), 1);
		at = (uintptr_t)(ret == 1 ? entry.op_context : err.op_context) - (uintptr_t)bufs;
		at /= ROW_LEN;
		CHECK(at < (size_t)count && fates[at] == NEVER_SAID);
		fates[at] = ret == 1 ? GOOD : FAILED;
	}
}

static void end_of(struct cm *c, int count)
{
	enum fate sent[ROW_MOST] = {0}, got[ROW_MOST] = {0};
	struct cm_end active, passive;

	cm_both(c, &active, &passive);
	for (int i = 0; i < count; i++)
		OK(fi_recv(passive.ep, row_in[i], ROW_LEN, NULL, 0, row_in[i]));
	for (int i = 0; i < count; i++) {
		data_fill(row_out[i], ROW_LEN, (unsigned int)i);
		POST(active.cq, fi_send(active.ep, row_out[i], ROW_LEN, NULL, 0, row_out[i]));
	}
	OK(fi_shutdown(active.ep, 0));
	read_fates(c, active.cq, row_out[0], sent, count);
	for (int i = 0; i < count; i++)
		if (sent[i] == FAILED)
			memset(row_out[i], 0xee, ROW_LEN); /* free for reuse */
	read_fates(c, passive.cq, row_in[0], got, count);
	for (int i = 0; i < count; i++) {
		if (sent[i] == GOOD || row_sent_whole())
			CHECK_EQ(got[i], sent[i]);
		if (got[i] == GOOD)
			data_check(row_in[i], ROW_LEN, (unsigned int)i);
	}
	cm_close_end(c, &active);
	cm_close_end(c, &passive);
}

/* Sends that succeeded have arrived; sends that failed have not. */
static void end_by_shutdown(struct api *a)
{
	struct cm c;

	(void)a;
	cm_domain(&c, 0, NULL);
	end_of(&c, ROW);
	end_of(&c, ROW_MOST);
	cm_close(&c);
}

int main(int argc, char **argv)
{
	/* Otherwise the timer that checks for dead peers wakes sleepers. */
	static const char timer[] = "FI_WEFT_PEER_TIMEOUT=0";
	static const struct api_case cases[] = {
		{"acknowledged", acknowledged, 2, {timer}},
		{"acknowledged-auto", acknowledged_auto, 2, {timer}},
		{"asleep-auto", asleep_auto, 2, {timer}},
		{"unread", unread, 2, {0}},
		{"inject-default", inject_default, 2, {0}},
		{"shutdown", end_by_shutdown, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
