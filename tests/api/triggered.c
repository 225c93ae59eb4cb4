/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggered operations: calls with FI_TRIGGER start when a counter reaches a threshold, and are
 * ordinary operations then. fi_trigger(3).
 */
#include <pthread.h>

#include "obj.h"
#include "lib/rig.h"

static const struct rig_opts usual = {.caps = FI_TRIGGER, .progress = FI_PROGRESS_MANUAL};

static struct fi_triggered_context at(struct fid_cntr *cntr, size_t threshold)
{
	return (struct fi_triggered_context){.event_type = FI_TRIGGER_THRESHOLD,
					     .trigger.threshold = {cntr, threshold}};
}

/* Posts `op` with FI_TRIGGER and `trigger` as its context. */
static ssize_t post(struct rig *r, struct rig_op *op, struct fi_triggered_context *trigger,
		    uint64_t flags)
{
	struct fi_msg msg;
	struct fi_msg_tagged tagged;
	struct fi_msg_rma rma;
	struct fi_msg_atomic atomic;

	op->context = trigger;
	flags |= FI_TRIGGER;
	msg = rig_msg(r, op);
	tagged = rig_tagged(r, op);
	rma = rig_rma(r, op);
	atomic = rig_atomic(r, op);
	switch (op->kind) {
	case RIG_SEND:
		return fi_sendmsg(r->o.ep, &msg, flags);
	case RIG_RECV:
		return fi_recvmsg(r->o.ep, &msg, flags);
	case RIG_TSEND:
		return fi_tsendmsg(r->o.ep, &tagged, flags);
	case RIG_TRECV:
		return fi_trecvmsg(r->o.ep, &tagged, flags);
	case RIG_WRITE:
		return fi_writemsg(r->o.ep, &rma, flags);
	case RIG_READ:
		return fi_readmsg(r->o.ep, &rma, flags);
	case RIG_ATOMIC:
		return fi_atomicmsg(r->o.ep, &atomic, flags);
	case RIG_FETCH:
		return fi_fetch_atomicmsg(r->o.ep, &atomic, &op->result_ioc, NULL, 1, flags);
	default:
		return fi_compare_atomicmsg(r->o.ep, &atomic, &op->compare_ioc, NULL, 1,
					    &op->result_ioc, NULL, 1, flags);
	}
}

/* Each kind starts exactly at its threshold, completes and counts like any other operation. */
static void every_kind(struct api *a)
{
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		uint64_t before = fi_cntr_read(rig_counter(&r, kind));
		struct fi_triggered_context trigger;
		struct rig_op op;

		OK(fi_cntr_set(cntr, 0));
		rig_op(&r, &op, kind, kind);
		trigger = at(cntr, 3);
		OK(post(&r, &op, &trigger, 0));
		rig_meet(&r, &op);
		for (int n = 0; n < 3; n++) {
			rig_progress_calls(&r);
			CHECK(!rig_happened(&op));
			CHECK_EQ(fi_cntr_read(rig_counter(&r, kind)), before);
			OK(fi_cntr_add(cntr, 1));
		}
		rig_completed(&r, &op);
		rig_verify(&r, &op);
		rig_counts(rig_counter(&r, kind), before + 1, 0);
	}
	CLOSE(cntr);
	rig_close(&r);
}

#define ORDERED 64

/* Posts triggered sends with these thresholds. They must arrive in the order `want`, by index. */
static void in_order(struct rig *r, struct fid_cntr *cntr, const size_t *thresholds,
		     const unsigned int *want)
{
	static struct fi_triggered_context triggers[ORDERED];
	static struct rig_op ops[ORDERED];
	uint64_t got[ORDERED];

	for (unsigned int n = 0; n < ORDERED; n++) {
		OK(fi_recv(r->o.ep, &got[n], sizeof(got[n]), NULL, FI_ADDR_UNSPEC, NULL));
		rig_op(r, &ops[n], RIG_SEND, 0);
		ops[n].local = n;
		triggers[n] = at(cntr, thresholds[n]);
		OK(post(r, &ops[n], &triggers[n], 0));
	}
	rig_progress_calls(r);
	CHECK_EQ(fi_cntr_read(r->sent), 0);
	OK(fi_cntr_add(cntr, 1000));
	for (unsigned int n = 0; n < ORDERED;)
		n += !obj_next(r->o.cq, NULL).op_context;
	for (unsigned int n = 0; n < ORDERED; n++)
		CHECK_EQ(got[n], want[n]);
}

/* In order of thresholds, whatever the order of posting, even if the counter skips all at once. */
static void threshold_order(struct api *a)
{
	unsigned int want[ORDERED];
	size_t thresholds[ORDERED];
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < ORDERED; n++) {
		thresholds[n] = 1 + n * 37 % ORDERED;
		want[thresholds[n] - 1] = n;
	}
	in_order(&r, cntr, thresholds, want);
	CLOSE(cntr);
	rig_close(&r);
}

/* Equal thresholds: in order of posting. */
static void equal_thresholds(struct api *a)
{
	unsigned int want[ORDERED];
	size_t thresholds[ORDERED];
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < ORDERED; n++) {
		thresholds[n] = n % 2 ? 5 : 9;
		want[n / 2 + (n % 2 ? 0 : ORDERED / 2)] = n;
	}
	in_order(&r, cntr, thresholds, want);
	CLOSE(cntr);
	rig_close(&r);
}

/* The trigger counts successes and errors together; fi_cntr_set counts too. */
static void sums(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	trigger = at(cntr, 5);
	rig_op(&r, &op, RIG_WRITE, 0);
	OK(post(&r, &op, &trigger, 0));
	OK(fi_cntr_adderr(cntr, 2));
	OK(fi_cntr_add(cntr, 2));
	rig_progress_calls(&r);
	CHECK(!rig_happened(&op));
	OK(fi_cntr_adderr(cntr, 1));
	rig_completed(&r, &op);
	OK(fi_cntr_set(cntr, 0));
	rig_op(&r, &op, RIG_WRITE, 1);
	OK(post(&r, &op, &trigger, 0));
	rig_progress_calls(&r);
	CHECK(!rig_happened(&op));
	OK(fi_cntr_set(cntr, 2));
	rig_completed(&r, &op);
	OK(fi_cntr_set(cntr, 0));
	rig_op(&r, &op, RIG_WRITE, 2);
	OK(post(&r, &op, &trigger, 0));
	rig_progress_calls(&r);
	CHECK(!rig_happened(&op));
	OK(fi_cntr_seterr(cntr, 17));
	rig_completed(&r, &op);
	rig_verify(&r, &op);
	CLOSE(cntr);
	rig_close(&r);
}

/* A threshold reached before: the operation starts at once, and can still report a failure. */
static void already_met(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	OK(fi_cntr_add(cntr, 8));
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		trigger = at(cntr, kind);
		rig_op(&r, &op, kind, kind);
		POST(r.o.cq, post(&r, &op, &trigger, 0));
		rig_meet(&r, &op);
		rig_completed(&r, &op);
		rig_verify(&r, &op);
	}
	CLOSE(cntr);
	rig_close(&r);
}

/* Counters of the endpoint as triggers: each operation starts the next. */
static void by_completions(struct api *a)
{
	struct fi_triggered_context triggers[20];
	struct rig_op ops[20];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	for (int n = 19; n >= 0; n--) {
		rig_op(&r, &ops[n], RIG_WRITE, (unsigned int)n);
		triggers[n] = at(r.writes, (size_t)n);
		if (n)
			OK(post(&r, &ops[n], &triggers[n], 0));
	}
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(r.writes), 0);
	POST(r.o.cq, post(&r, &ops[0], &triggers[0], 0));
	for (int n = 0; n < 20; n++) {
		rig_completed(&r, &ops[n]);
		rig_verify(&r, &ops[n]);
	}
	rig_counts(r.writes, 20, 0);
	rig_close(&r);
}

/*
 * The counter is set back before any progress: operations whose threshold was reached still start.
 */
static void set_back(struct api *a)
{
	struct fi_triggered_context triggers[3];
	struct rig_op ops[3];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	for (unsigned int n = 0; n < 3; n++) {
		rig_op(&r, &ops[n], RIG_WRITE, n);
		triggers[n] = at(r.sent, n + 1);
		OK(post(&r, &ops[n], &triggers[n], 0));
	}
	POST(r.o.cq, fi_inject(r.o.ep, &r, 1, r.self)); /* connects */
	rig_completed(&r, &ops[0]);
	OK(fi_inject(r.o.ep, &r, 1, r.self)); /* counts within the call */
	OK(fi_cntr_set(r.sent, 0));
	rig_completed(&r, &ops[1]);
	rig_progress_calls(&r);
	CHECK(!rig_happened(&ops[2]));
	OK(fi_inject(r.o.ep, &r, 1, r.self));
	OK(fi_inject(r.o.ep, &r, 1, r.self));
	OK(fi_inject(r.o.ep, &r, 1, r.self));
	OK(fi_cntr_seterr(r.sent, 0));
	rig_completed(&r, &ops[2]);
	rig_close(&r);
}

/* The threshold is reached already, but earlier due operations have not started. */
static void behind_others(struct api *a)
{
	struct fi_triggered_context triggers[2];
	struct rig_op ops[2];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	for (unsigned int n = 0; n < 2; n++) {
		rig_op(&r, &ops[n], RIG_WRITE, 0);
		triggers[n] = at(r.sent, 2 - n);
		ops[n].local += n;
	}
	POST(r.o.cq, fi_inject(r.o.ep, &r, 1, r.self)); /* connects */
	rig_counts(r.sent, 1, 0);
	OK(post(&r, &ops[0], &triggers[0], 0));
	OK(fi_inject(r.o.ep, &r, 1,
		     r.self)); /* counts within the call; the next progress call would start it */
	OK(post(&r, &ops[1], &triggers[1], 0));
	rig_completed(&r, &ops[0]);
	rig_completed(&r, &ops[1]);
	CHECK_EQ(*ops[0].word, RIG_NEW + 1);
	rig_close(&r);
}

/* Arguments valid only during the call are copied: lists, and injected data. */
static void lists_are_copied(struct api *a)
{
	struct data out = data_full(3000, 5, 1), in = data_new(3000, 3);
	struct iovec from[DATA_IOV], to[DATA_IOV];
	struct fi_triggered_context send, recv;
	struct fi_msg msg = {.msg_iov = from, .iov_count = out.count, .context = &send};
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	send = at(cntr, 2);
	recv = at(cntr, 1);
	memcpy(from, out.iov, sizeof(from));
	memcpy(to, in.iov, sizeof(to));
	msg.addr = r.self;
	OK(fi_sendmsg(r.o.ep, &msg, FI_TRIGGER | FI_INJECT));
	msg = (struct fi_msg){
		.msg_iov = to, .iov_count = in.count, .addr = FI_ADDR_UNSPEC, .context = &recv};
	OK(fi_recvmsg(r.o.ep, &msg, FI_TRIGGER));
	memset(from, 0xee, sizeof(from));
	memset(to, 0xee, sizeof(to));
	memset(&msg, 0xee, sizeof(msg));
	memset(out.memory, 0xee, out.total);
	OK(fi_cntr_add(cntr, 2));
	obj_next(r.o.cq, NULL);
	obj_next(r.o.cq, NULL);
	DATA_EXPECT(&in, 3000, 1);
	data_free(&out);
	data_free(&in);
	CLOSE(cntr);
	rig_close(&r);
}

/* The same for one-sided operations. */
static void operands_are_copied(struct api *a)
{
	static const enum rig_kind kinds[] = {RIG_WRITE, RIG_ATOMIC, RIG_FETCH, RIG_COMPARE};
	struct fi_triggered_context triggers[4];
	struct rig_op ops[4];
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < 4; n++) {
		rig_op(&r, &ops[n], kinds[n], n);
		triggers[n] = at(cntr, 1);
		OK(post(&r, &ops[n], &triggers[n], FI_INJECT));
		ops[n].local = ops[n].compare = 0xeeee;
		memset(&ops[n].iov, 0xee, sizeof(ops[n].iov));
		memset(&ops[n].ioc, 0xee, sizeof(ops[n].ioc));
		memset(&ops[n].compare_ioc, 0xee, sizeof(ops[n].compare_ioc));
		memset(&ops[n].result_ioc, 0xee, sizeof(ops[n].result_ioc));
		memset(&ops[n].rma, 0xee, sizeof(ops[n].rma));
		memset(&ops[n].rma_ioc, 0xee, sizeof(ops[n].rma_ioc));
	}
	OK(fi_cntr_add(cntr, 1));
	rig_counts(r.writes, 2, 0);
	rig_counts(r.reads, 2, 0);
	for (unsigned int n = 0; n < 4; n++)
		rig_verify(&r, &ops[n]);
	CLOSE(cntr);
	rig_close(&r);
}

/* An operation that cannot start fails like any other: CQ error and error value of the counter. */
static void failures(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fi_cq_err_entry err;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	trigger = at(cntr, 1);
	rig_op(&r, &op, RIG_TSEND, 0);
	r.self += 5; /* no such address */
	OK(post(&r, &op, &trigger, 0));
	OK(fi_cntr_add(cntr, 1));
	err = obj_error(r.o.cq);
	CHECK(err.op_context == &trigger && err.err == FI_EINVAL);
	CHECK_EQ(err.flags & RIG_FLAG_BITS, FI_SEND | FI_TAGGED);
	CHECK_EQ(err.tag, RIG_TAG);
	rig_counts(r.sent, 0, 1);
	rig_op(&r, &op, RIG_READ, 0);
	trigger = at(cntr, 2);
	OK(post(&r, &op, &trigger, 0));
	OK(fi_cntr_add(cntr, 1));
	err = obj_error(r.o.cq);
	CHECK(err.op_context == &trigger && err.err == FI_EINVAL);
	rig_counts(r.reads, 0, 1);
	r.self -= 5;
	rig_op(&r, &op, RIG_WRITE, 0);
	op.rma.key++;
	trigger = at(cntr, 3);
	OK(post(&r, &op, &trigger, 0));
	OK(fi_cntr_add(cntr, 1));
	err = obj_error(r.o.cq);
	CHECK(err.op_context == &trigger && err.err == FI_EACCES);
	rig_counts(r.writes, 0, 1);
	CLOSE(cntr);
	rig_close(&r);
}

static void refusals(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fid_cntr *cntr, *foreign;
	struct rig r, other;
	struct rig_op op;

	(void)a;
	rig_open(&r, &usual);
	rig_open(&other, &(struct rig_opts){.progress = FI_PROGRESS_MANUAL});
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	foreign = obj_cntr(&other.o, FI_WAIT_NONE);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		rig_op(&r, &op, kind, 0);
		CHECK_EQ(post(&r, &op, NULL, 0), -FI_EINVAL);
		trigger = at(NULL, 1);
		CHECK_EQ(post(&r, &op, &trigger, 0), -FI_EINVAL);
		trigger = at(foreign, 1);
		CHECK_EQ(post(&r, &op, &trigger, 0), -FI_EINVAL);
		trigger = at((struct fid_cntr *)r.o.cq, 1);
		CHECK_EQ(post(&r, &op, &trigger, 0), -FI_EINVAL);
		trigger = at(cntr, 1);
		trigger.event_type = FI_TRIGGER_XPU;
		CHECK_EQ(post(&r, &op, &trigger, 0), -FI_ENOSYS);
		trigger.event_type = (enum fi_trigger_event)99;
		CHECK_EQ(post(&r, &op, &trigger, 0), -FI_EINVAL);
		/* An endpoint without the capability. */
		rig_op(&other, &op, kind, 0);
		trigger = at(foreign, 1);
		CHECK_EQ(post(&other, &op, &trigger, 0), -FI_EOPNOTSUPP);
	}
	rig_op(&r, &op, RIG_TRECV, 0);
	trigger = at(cntr, 1);
	CHECK_EQ(post(&r, &op, &trigger, FI_PEEK), -FI_EOPNOTSUPP);
	CHECK_EQ(post(&r, &op, &trigger, FI_CLAIM), -FI_EOPNOTSUPP);
	/* No refused operation waits. */
	OK(fi_cntr_add(cntr, 1));
	OK(fi_cntr_add(foreign, 1));
	obj_quiet(r.o.cq, 5);
	CLOSE(foreign);
	CLOSE(cntr);
	rig_close(&other);
	rig_close(&r);
}

/* fi_cancel ends an operation that has not started; its counter does not start it later. */
static void cancelled(struct api *a)
{
	struct fi_triggered_context triggers[RIG_KINDS], duplicate;
	struct rig_op ops[RIG_KINDS], other;
	struct fi_cq_err_entry err;
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		rig_op(&r, &ops[kind], kind, kind);
		triggers[kind] = at(cntr, 1 + kind % 3);
		OK(post(&r, &ops[kind], &triggers[kind], 0));
	}
	rig_op(&r, &other, RIG_WRITE, RIG_KINDS);
	duplicate = at(cntr, 1);
	OK(post(&r, &other, &duplicate, 0));
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		OK(fi_cancel(&r.o.ep->fid, &triggers[kind]));
		err = obj_error(r.o.cq);
		CHECK(err.op_context == &triggers[kind] && err.err == FI_ECANCELED);
		CHECK_EQ(err.flags & RIG_FLAG_BITS, rig_flags(kind));
		OK(fi_cancel(&r.o.ep->fid, &triggers[kind]));
	}
	OK(fi_cntr_add(cntr, 10));
	rig_completed(&r, &other);
	obj_quiet(r.o.cq, 5);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++)
		CHECK(!rig_happened(&ops[kind]));
	rig_counts(r.writes, 1, 0);
	rig_counts(r.reads, 0, 0);
	CLOSE(cntr);
	rig_close(&r);
}

/*
 * A counter in use cannot be closed. Closing the endpoint ends operations that wait, with errors.
 */
static void closes(struct api *a)
{
	struct fi_triggered_context triggers[RIG_KINDS];
	struct rig_op ops[RIG_KINDS];
	struct fi_cq_err_entry err;
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		rig_op(&r, &ops[kind], kind, kind);
		triggers[kind] = at(cntr, 1);
		OK(post(&r, &ops[kind], &triggers[kind], 0));
	}
	CHECK_EQ(fi_close(&cntr->fid), -FI_EBUSY);
	CLOSE(r.o.ep);
	r.o.ep = NULL;
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		err = obj_error(r.o.cq);
		CHECK(err.op_context == &triggers[kind] && err.err == FI_ECANCELED);
		CHECK_EQ(err.flags & RIG_FLAG_BITS, rig_flags(kind));
	}
	OK(fi_cntr_add(cntr, 1));
	obj_quiet(r.o.cq, 5);
	CLOSE(cntr);
	rig_close(&r);
}

/* Operations posted through an alias survive closing the alias. */
static void alias_closes(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fid_ep *ep, *alias = NULL;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	trigger = at(cntr, 1);
	rig_op(&r, &op, RIG_SEND, 0);
	OK(fi_ep_alias(r.o.ep, &alias, FI_TRANSMIT));
	ep = r.o.ep;
	r.o.ep = alias;
	OK(post(&r, &op, &trigger, 0));
	r.o.ep = ep;
	CLOSE(alias);
	rig_meet(&r, &op);
	OK(fi_cntr_add(cntr, 1));
	rig_completed(&r, &op);
	rig_verify(&r, &op);
	CLOSE(cntr);
	rig_close(&r);
}

/* Triggered receives of a shared context match messages to any of its endpoints. */
static void shared_context(struct api *a)
{
	struct fi_triggered_context trigger;
	struct fid_ep *srx, *ep;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;
	fi_addr_t to;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	OK(fi_srx_context(r.o.domain, NULL, &srx, NULL));
	ep = obj_ep(&r.o);
	OK(fi_ep_bind(ep, &srx->fid, 0));
	OK(fi_ep_bind(ep, &r.o.av->fid, 0));
	OK(fi_ep_bind(ep, &r.o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	to = obj_insert_ep(r.o.av, ep);
	trigger = at(cntr, 1);
	rig_op(&r, &op, RIG_RECV, 0);
	op.context = &trigger;
	for (int n = 0; n < 2; n++) {
		struct fi_msg msg = rig_msg(&r, &op);

		OK(fi_recvmsg(srx, &msg, FI_TRIGGER | FI_COMPLETION));
	}
	POST(r.o.cq, fi_inject(r.o.ep, &op.other, sizeof(op.other), to));
	rig_progress_calls(&r);
	CHECK(!rig_happened(&op));
	OK(fi_cancel(&srx->fid, &trigger)); /* one of two with the same trigger */
	CHECK_EQ(obj_error(r.o.cq).err, FI_ECANCELED);
	OK(fi_cntr_add(cntr, 1));
	rig_completed(&r, &op);
	rig_verify(&r, &op);
	trigger = at(cntr, 5); /* ended by closing its context */
	for (int n = 0; n < 2; n++) {
		struct fi_msg msg = rig_msg(&r, &op);

		OK(fi_recvmsg(srx, &msg, FI_TRIGGER | FI_COMPLETION));
	}
	CLOSE(ep);
	CLOSE(srx);
	CLOSE(cntr);
	rig_close(&r);
}

/* ---- Processes ------------------------------------------------------------------------------- */

#define FLOOD 6000 /* maximum */

/*
 * More operations are due than fit at a peer that does not read. They wait and go in order,
 * although the counter is set back meanwhile. With automatic progress their owner sleeps.
 */
static void flood_with(struct api *a, enum fi_progress progress)
{
	struct rig_opts opts = {.caps = FI_TRIGGER, .progress = progress};
	struct fi_triggered_context *triggers = calloc(FLOOD, sizeof(*triggers));
	const unsigned int count = api_times(FLOOD);
	static uint64_t words[FLOOD];
	struct fid_cntr *cntr;
	fi_addr_t peer;
	struct rig r;

	if (a->rank)
		opts.progress = FI_PROGRESS_MANUAL;
	rig_open(&r, &opts);
	peer = obj_swap(a, r.o.ep, r.o.av);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < count && a->rank == 0; n++) {
		struct iovec iov = {&words[n], sizeof(words[n])};
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = peer, .context = &triggers[n]};

		words[n] = n;
		triggers[n] = at(cntr, n + 1);
		OK(fi_sendmsg(r.o.ep, &msg, FI_TRIGGER));
	}
	obj_progress(a, r.o.cq);
	api_meet(a);
	if (a->rank == 0) {
		POST(r.o.cq, fi_inject(r.o.ep, words, sizeof(words[0]), peer)); /* connects */
	} else {
		OK(fi_recv(r.o.ep, words, sizeof(words[0]), NULL, FI_ADDR_UNSPEC, NULL));
		obj_next(r.o.cq, NULL);
	}
	api_meet(a);
	a->progress = NULL;
	if (a->rank == 0) {
		obj_sleep_us(100000); /* time for the progress thread to fall asleep */
		OK(fi_cntr_add(cntr, count));
		OK(fi_cntr_set(cntr, 0));
	}
	api_meet(a);
	for (unsigned int n = 0; n < count && a->rank; n++) {
		OK(fi_recv(r.o.ep, &words[n], sizeof(words[n]), NULL, FI_ADDR_UNSPEC, NULL));
		obj_next(r.o.cq, NULL);
		CHECK_EQ(words[n], n);
	}
	if (progress == FI_PROGRESS_AUTO)
		api_meet(a);
	for (unsigned int n = 0; n < count && !a->rank; n++)
		CHECK(obj_next(r.o.cq, NULL).op_context == &triggers[n]);
	api_meet(a);
	CLOSE(cntr);
	rig_close(&r);
	free(triggers);
}

static void flood(struct api *a)
{
	flood_with(a, FI_PROGRESS_MANUAL);
}

static void flood_asleep(struct api *a)
{
	flood_with(a, FI_PROGRESS_AUTO);
}

#define ROUNDS 50

/* Rank 1 only sleeps: messages from rank 0 trigger its answers. */
static void owner_sleeps(struct api *a)
{
	struct rig_opts opts = {.caps = FI_TRIGGER, .progress = FI_PROGRESS_AUTO};
	struct fi_triggered_context triggers[ROUNDS];
	uint64_t words[ROUNDS], answers[ROUNDS];
	fi_addr_t peer;
	struct rig r;

	rig_open(&r, &opts);
	peer = obj_swap(a, r.o.ep, r.o.av);
	for (unsigned int n = 0; n < ROUNDS; n++) {
		struct iovec iov = {&answers[n], sizeof(answers[n])};
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = peer, .context = &triggers[n]};

		answers[n] = 100 + n;
		triggers[n] = at(r.received, n + 1);
		OK(fi_recv(r.o.ep, &words[n], sizeof(words[n]), NULL, FI_ADDR_UNSPEC, NULL));
		if (a->rank == 1)
			OK(fi_sendmsg(r.o.ep, &msg, FI_TRIGGER));
	}
	api_meet(a);
	for (unsigned int n = 0; n < ROUNDS && a->rank == 0; n++) {
		POST(r.o.cq, fi_inject(r.o.ep, &answers[n], sizeof(answers[n]), peer));
		OBJ_UNTIL(fi_cntr_read(r.received) == n + 1, );
		CHECK_EQ(words[n], 100 + n);
		if (n % 10 == 9)
			obj_sleep_us(30000); /* time for the peer's thread to sleep */
	}
	api_meet(a); /* rank 1 waits in this barrier */
	rig_counts(r.received, ROUNDS, 0);
	rig_counts(r.sent, ROUNDS, 0);
	api_meet(a);
	rig_close(&r);
}

/* A send counts within its call and starts another one while the sender sleeps. */
static void started_in_a_call(struct api *a)
{
	struct rig_opts opts = {.caps = FI_TRIGGER, .progress = FI_PROGRESS_AUTO};
	struct fi_triggered_context trigger;
	uint64_t words[2] = {0}, word = 7;
	struct iovec iov = {&word, sizeof(word)};
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &trigger};
	struct rig r;

	rig_open(&r, &opts);
	msg.addr = obj_swap(a, r.o.ep, r.o.av);
	for (int n = 0; n < 2; n++)
		OK(fi_recv(r.o.ep, &words[n], sizeof(words[n]), NULL, FI_ADDR_UNSPEC, NULL));
	POST(r.o.cq, fi_inject(r.o.ep, &word, sizeof(word), msg.addr)); /* connects */
	rig_counts(r.received, 1, 0);
	rig_counts(r.sent, 1, 0);
	api_meet(a);
	if (a->rank == 0) {
		trigger = at(r.sent, 2);
		OK(fi_sendmsg(r.o.ep, &msg, FI_TRIGGER));
		obj_sleep_us(100000); /* time for the progress thread to fall asleep */
		OK(fi_inject(r.o.ep, &word, sizeof(word), msg.addr));
	} else {
		OK(fi_recv(r.o.ep, &words[0], sizeof(words[0]), NULL, FI_ADDR_UNSPEC, NULL));
		OBJ_UNTIL(fi_cntr_read(r.received) == 3, );
	}
	api_meet(a); /* rank 0 waits in this barrier */
	rig_close(&r);
}

/* ---- Threads --------------------------------------------------------------------------------- */

#define ADDERS 2
#define STEP   7 /* distance between thresholds; the first follows the last */

static unsigned int added; /* additions per thread */

static void *adder(void *cntr)
{
	for (unsigned int n = 0; n < added; n++) {
		OK(fi_cntr_add(cntr, 1));
		if (n % 16 == 0)
			sched_yield();
	}
	return NULL;
}

/* Two threads add to the counter while a third posts: each operation starts once. */
static void race(struct api *a)
{
	struct rig_opts opts = {
		.caps = FI_TRIGGER, .progress = FI_PROGRESS_MANUAL, .threading = FI_THREAD_SAFE};
	struct fi_triggered_context *triggers;
	pthread_t threads[ADDERS];
	unsigned int raced;
	struct fid_cntr *cntr;
	struct rig_op op;
	struct rig r;

	(void)a;
	added = api_times(1000);
	added += added % STEP == 0; /* otherwise thresholds would repeat */
	raced = ADDERS * added;
	triggers = calloc(raced, sizeof(*triggers));
	rig_open(&r, &opts);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	rig_op(&r, &op, RIG_ATOMIC, 0);
	op.local = 1;
	*op.word = 0;
	for (int n = 0; n < ADDERS; n++)
		OK(pthread_create(&threads[n], NULL, adder, cntr));
	for (unsigned int n = 0; n < raced; n++) {
		triggers[n] = at(cntr, n * STEP % raced + 1);
		POST(r.o.cq, post(&r, &op, &triggers[n], 0));
	}
	for (int n = 0; n < ADDERS; n++)
		pthread_join(threads[n], NULL);
	rig_counts(r.writes, raced, 0);
	CHECK_EQ(*op.word, raced);
	for (unsigned int n = 0; n < raced; n++)
		CHECK(obj_next(r.o.cq, NULL).op_context != NULL);
	obj_quiet(r.o.cq, 5);
	CLOSE(cntr);
	rig_close(&r);
	free(triggers);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"every_kind", every_kind, 1, {0}},
		{"threshold_order", threshold_order, 1, {0}},
		{"equal_thresholds", equal_thresholds, 1, {0}},
		{"sums", sums, 1, {0}},
		{"already_met", already_met, 1, {0}},
		{"by_completions", by_completions, 1, {0}},
		{"set_back", set_back, 1, {0}},
		{"behind_others", behind_others, 1, {0}},
		{"lists_are_copied", lists_are_copied, 1, {0}},
		{"operands_are_copied", operands_are_copied, 1, {0}},
		{"failures", failures, 1, {0}},
		{"refusals", refusals, 1, {0}},
		{"cancelled", cancelled, 1, {0}},
		{"closes", closes, 1, {0}},
		{"alias_closes", alias_closes, 1, {0}},
		{"shared_context", shared_context, 1, {0}},
		{"flood", flood, 2, {0}},
		{"flood_asleep", flood_asleep, 2, {0}},
		{"owner_sleeps", owner_sleeps, 2, {0}},
		{"started_in_a_call", started_in_a_call, 2, {0}},
		{"race", race, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
