/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deferred work: operations queued on a domain. A counter starts them at a threshold, another one
 * counts their completion. fi_trigger(3).
 */
#include <pthread.h>

#include "obj.h"
#include "lib/rig.h"
#include "lib/job.h"

static const struct rig_opts usual = {.progress = FI_PROGRESS_MANUAL};

/*
 * Checks that deferred work changed no counter of the endpoint and wrote no completion, apart from
 * messages of the test itself.
 */
static void endpoint_untouched(struct rig *r, uint64_t sent, uint64_t received)
{
	rig_counts(r->sent, sent, 0);
	rig_counts(r->received, received, 0);
	rig_counts(r->reads, 0, 0);
	rig_counts(r->writes, 0, 0);
}

/* Each kind starts at its threshold, and counts only on its completion counter. */
static void every_kind(struct api *a)
{
	struct fid_cntr *start, *done;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		uint64_t sent = fi_cntr_read(r.sent), received = fi_cntr_read(r.received);
		struct rig_op op;
		struct job job;

		start = obj_cntr(&r.o, FI_WAIT_NONE);
		done = obj_cntr(&r.o, FI_WAIT_NONE);
		rig_op(&r, &op, kind, kind);
		job_of(&r, &job, &op, start, 3, done);
		OK(job_queue(&r, &job));
		rig_meet(&r, &op);
		for (int n = 0; n < 3; n++) {
			rig_progress_calls(&r);
			CHECK(!rig_happened(&op));
			CHECK_EQ(fi_cntr_read(done), 0);
			OK(fi_cntr_add(start, 1));
		}
		rig_counts(done, 1, 0); /* reading this counter alone makes progress */
		rig_verify(&r, &op);
		/* The opposite call is the endpoint's only ordinary operation. */
		endpoint_untouched(&r, sent + rig_is_receive(kind),
				   received + (kind == RIG_SEND || kind == RIG_TSEND));
		if (kind == RIG_SEND || kind == RIG_TSEND)
			CHECK(!obj_next(r.o.cq, NULL).op_context);
		obj_quiet(r.o.cq, 2);
		CLOSE(start);
		CLOSE(done);
	}
	rig_close(&r);
}

/*
 * FI_COMPLETION writes a completion to the endpoint's queue; the endpoint's counters do not change.
 */
static void with_completions(struct api *a)
{
	static const uint64_t binds[] = {0, FI_SELECTIVE_COMPLETION};
	struct fid_cntr *start, *done;
	struct rig r;

	(void)a;
	for (unsigned int way = 0; way < 2; way++) {
		rig_open(&r,
			 &(struct rig_opts){.progress = FI_PROGRESS_MANUAL, .cq_bind = binds[way]});
		start = obj_cntr(&r.o, FI_WAIT_NONE);
		done = obj_cntr(&r.o, FI_WAIT_NONE);
		for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
			struct fi_cq_tagged_entry e;
			struct rig_op op;
			struct job job;

			rig_op(&r, &op, kind, kind);
			job_of(&r, &job, &op, start, kind + 1, done);
			job_flags(&job, FI_COMPLETION);
			OK(job_queue(&r, &job));
			rig_meet(&r, &op);
			OK(fi_cntr_add(start, 1));
			do
				e = obj_next(r.o.cq, NULL);
			while (!e.op_context);
			CHECK(e.op_context == &op);
			CHECK_EQ(e.flags & RIG_FLAG_BITS, rig_flags(kind));
			rig_counts(done, kind + 1, 0);
			rig_verify(&r, &op);
		}
		endpoint_untouched(&r, 2, 2);
		CLOSE(start);
		CLOSE(done);
		rig_close(&r);
	}
}

/* A counter bound to the endpoint can be the completion counter too. */
static void endpoint_counter(struct api *a)
{
	struct fid_cntr *start;
	struct rig_op op;
	struct job job;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	rig_op(&r, &op, RIG_WRITE, 0);
	job_of(&r, &job, &op, start, 1, r.writes);
	OK(job_queue(&r, &job));
	OK(fi_cntr_add(start, 1));
	rig_counts(r.writes, 1, 0);
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(r.writes), 1);
	CLOSE(start);
	rig_close(&r);
}

/* A failure adds to the error value; the queue gets it only with FI_COMPLETION. */
static void failures(struct api *a)
{
	static const enum rig_kind kinds[] = {RIG_TSEND, RIG_WRITE, RIG_FETCH};
	struct fid_cntr *start, *done;
	struct fi_cq_err_entry err;
	uint64_t n = 0;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_UNSPEC);
	for (unsigned int way = 0; way < 12; way++) {
		bool reported = way % 2, nobody = way / 2 % 2;
		struct rig_op op;
		struct job job;

		rig_op(&r, &op, kinds[way / 4], 0);
		if (!nobody && op.kind == RIG_TSEND)
			continue;
		r.self += nobody ? 5 : 0;
		op.rma.key += nobody ? 0 : 1;
		op.rma_ioc.key += nobody ? 0 : 1;
		job_of(&r, &job, &op, start, ++n, done);
		r.self -= nobody ? 5 : 0;
		if (reported)
			job_flags(&job, FI_COMPLETION);
		OK(job_queue(&r, &job));
		OK(fi_cntr_add(start, 1));
		if (n % 2)
			CHECK_EQ(fi_cntr_wait(done, 1, OBJ_PATIENCE_MS), -FI_EAVAIL);
		rig_counts(done, 0, n);
		CHECK(!rig_happened(&op));
		if (!reported) {
			obj_quiet(r.o.cq, 2);
			continue;
		}
		err = obj_error(r.o.cq);
		CHECK(err.op_context == &op);
		CHECK_EQ(err.err, nobody ? FI_EINVAL : FI_EACCES);
		CHECK_EQ(err.flags & RIG_FLAG_BITS, rig_flags(op.kind));
	}
	endpoint_untouched(&r, 0, 0);
	CLOSE(start);
	CLOSE(done);
	rig_close(&r);
}

/* Work starts by threshold, then in order of queueing, together with triggered operations. */
static void order(struct api *a)
{
	static const unsigned int thresholds[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
	static const unsigned int want[] = {1, 3, 6, 0, 9, 2, 4, 8, 10, 7, 11, 5};
	uint64_t got[API_COUNT(want)];
	struct rig_op ops[API_COUNT(want)];
	struct job jobs[API_COUNT(want)];
	struct fi_triggered_context trigger = {.event_type = FI_TRIGGER_THRESHOLD};
	struct fid_cntr *start;
	struct rig r;

	(void)a;
	rig_open(&r, &(struct rig_opts){.caps = FI_TRIGGER, .progress = FI_PROGRESS_MANUAL});
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	trigger.trigger.threshold.cntr = start;
	for (unsigned int n = 0; n < API_COUNT(want); n++) {
		OK(fi_recv(r.o.ep, &got[n], sizeof(got[n]), NULL, FI_ADDR_UNSPEC, NULL));
		rig_op(&r, &ops[n], RIG_SEND, 0);
		ops[n].local = n;
		job_of(&r, &jobs[n], &ops[n], start, thresholds[n], NULL);
		if (n == 4) {
			struct fi_msg msg = rig_msg(&r, &ops[n]);

			trigger.trigger.threshold.threshold = thresholds[n];
			msg.context = &trigger;
			OK(fi_sendmsg(r.o.ep, &msg, FI_TRIGGER));
			continue;
		}
		OK(job_queue(&r, &jobs[n]));
	}
	OK(fi_cntr_add(start, 100));
	rig_counts(r.received, API_COUNT(want), 0);
	for (unsigned int n = 0; n < API_COUNT(want); n++)
		CHECK_EQ(got[n], want[n]);
	CLOSE(start);
	rig_close(&r);
}

/* Work of several counters starts in the order in which these reached their thresholds. */
static void order_of_counters(struct api *a)
{
	struct fid_cntr *start, *next[4];
	uint64_t got[4];
	struct rig_op ops[4];
	struct job jobs[8];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < 4; n++) {
		next[n] = obj_cntr(&r.o, FI_WAIT_NONE);
		OK(fi_recv(r.o.ep, &got[n], sizeof(got[n]), NULL, FI_ADDR_UNSPEC, NULL));
		rig_op(&r, &ops[n], RIG_SEND, 0);
		ops[n].local = n;
		job_of(&r, &jobs[n], &ops[n], next[n], 1, NULL);
		OK(job_queue(&r, &jobs[n]));
		job_counter(&jobs[4 + n], FI_OP_CNTR_ADD, start, 1, next[n], 1);
		OK(job_queue(&r, &jobs[4 + n]));
	}
	OK(fi_cntr_add(start, 1));
	rig_counts(r.received, 4, 0);
	for (unsigned int n = 0; n < 4; n++) {
		CHECK_EQ(got[n], n);
		CLOSE(next[n]);
	}
	CLOSE(start);
	rig_close(&r);
}

/* ---- Counters -------------------------------------------------------------------------------- */

#define CHAIN 10000

/* Each addition starts the addition to the next counter; one call runs the whole chain. */
static void chain(struct api *a)
{
	struct fid_cntr **cntrs = calloc(CHAIN + 1, sizeof(struct fid_cntr *));
	struct job *jobs = calloc(CHAIN, sizeof(*jobs));
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	for (int n = 0; n <= CHAIN; n++)
		cntrs[n] = obj_cntr(&r.o, FI_WAIT_NONE);
	for (int n = 0; n < CHAIN; n++) {
		job_counter(&jobs[n], FI_OP_CNTR_ADD, cntrs[n], 2, cntrs[n + 1], 2);
		OK(job_queue(&r, &jobs[n]));
	}
	OK(fi_cntr_add(cntrs[0], 1));
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(cntrs[1]), 0);
	OK(fi_cntr_add(cntrs[0], 1));
	for (int n = 0; n <= CHAIN; n++) {
		CHECK_EQ(fi_cntr_read(cntrs[n]), 2);
		CLOSE(cntrs[n]);
	}
	rig_close(&r);
	free(cntrs);
	free(jobs);
}

/* The same on one counter, with the work queued in reverse order. */
static void one_counter(struct api *a)
{
	struct job *jobs = calloc(CHAIN, sizeof(*jobs));
	struct fid_cntr *cntr;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	cntr = obj_cntr(&r.o, FI_WAIT_NONE);
	for (uint64_t n = CHAIN; n-- > 0;) {
		job_counter(&jobs[n], FI_OP_CNTR_ADD, cntr, n + 1, cntr, 1);
		OK(job_queue(&r, &jobs[n]));
	}
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(cntr), 0);
	OK(fi_cntr_add(cntr, 1));
	CHECK_EQ(fi_cntr_read(cntr), CHAIN + 1);
	CLOSE(cntr);
	rig_close(&r);
	free(jobs);
}

/*
 * Setting a counter starts work at its threshold. Setting it back does not stop work that is due.
 */
static void set_counters(struct api *a)
{
	struct fid_cntr *first, *second, *third;
	struct job jobs[5];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	first = obj_cntr(&r.o, FI_WAIT_NONE);
	second = obj_cntr(&r.o, FI_WAIT_NONE);
	third = obj_cntr(&r.o, FI_WAIT_NONE);
	job_counter(&jobs[0], FI_OP_CNTR_SET, first, 1, second, 40);
	job_counter(&jobs[1], FI_OP_CNTR_SET, first, 2, first, 0); /* while more is due */
	job_counter(&jobs[2], FI_OP_CNTR_ADD, first, 3, third, 1);
	job_counter(&jobs[3], FI_OP_CNTR_ADD, second, 40, third, 10);
	job_counter(&jobs[4], FI_OP_CNTR_ADD, first, 4, third, 100); /* not reached */
	for (int n = 0; n < 5; n++)
		OK(job_queue(&r, &jobs[n]));
	OK(fi_cntr_add(first, 3));
	CHECK_EQ(fi_cntr_read(first), 0);
	CHECK_EQ(fi_cntr_read(second), 40);
	CHECK_EQ(fi_cntr_read(third), 11);
	OK(fi_cntr_add(first, 4));
	CHECK_EQ(fi_cntr_read(third), 111);
	CLOSE(first);
	CLOSE(second);
	CLOSE(third);
	rig_close(&r);
}

/* A threshold reached before queueing starts the work in the call; 0 is always reached. */
static void already_met(struct api *a)
{
	struct fid_cntr *start, *done;
	struct rig_op ops[2];
	struct job jobs[3];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	rig_op(&r, &ops[0], RIG_READ, 0);
	job_of(&r, &jobs[0], &ops[0], start, 0, done);
	OK(job_queue(&r, &jobs[0]));
	rig_counts(done, 1, 0);
	OK(fi_cntr_adderr(start, 5));
	rig_op(&r, &ops[1], RIG_ATOMIC, 1);
	job_of(&r, &jobs[1], &ops[1], start, 5, done);
	OK(job_queue(&r, &jobs[1]));
	rig_counts(done, 2, 0);
	job_counter(&jobs[2], FI_OP_CNTR_ADD, start, 4, done, 10);
	OK(job_queue(&r, &jobs[2]));
	CHECK_EQ(fi_cntr_read(done), 12);
	for (int n = 0; n < 2; n++)
		rig_verify(&r, &ops[n]);
	CLOSE(start);
	CLOSE(done);
	rig_close(&r);
}

/* ---- Cancelling ------------------------------------------------------------------------------ */

static int cancel(struct rig *r, void *work)
{
	return fi_control(&r->o.domain->fid, FI_CANCEL_WORK, work);
}

static int flush(struct rig *r, struct fi_deferred_work *work)
{
	return fi_control(&r->o.domain->fid, FI_FLUSH_WORK, work);
}

static void cancelled(struct api *a)
{
	struct fid_cntr *start, *done;
	struct fi_deferred_work garbage;
	struct rig_op ops[3];
	struct job jobs[3];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	CHECK_EQ(cancel(&r, NULL), -FI_EINVAL);
	memset(&garbage, 0x5a, sizeof(garbage));
	CHECK_EQ(cancel(&r, &garbage), -FI_ENOENT);
	for (unsigned int n = 0; n < 3; n++) {
		rig_op(&r, &ops[n], RIG_WRITE, n);
		job_of(&r, &jobs[n], &ops[n], start, 1 + n, done);
		CHECK_EQ(cancel(&r, &jobs[n].work), -FI_ENOENT);
		OK(job_queue(&r, &jobs[n]));
		CHECK_EQ(cancel(&r, &garbage), -FI_ENOENT);
	}
	OK(cancel(&r, &jobs[1].work));
	CHECK_EQ(cancel(&r, &jobs[1].work), -FI_ENOENT);
	memset(&jobs[1], 0x5a, sizeof(jobs[1])); /* a cancelled item belongs to the caller */
	CHECK_EQ(fi_close(&start->fid), -FI_EBUSY);
	OK(fi_cntr_add(start, 2));
	rig_counts(done, 1, 0);
	CHECK_EQ(cancel(&r, &jobs[0].work), -FI_ENOENT); /* already started */
	OK(cancel(&r, &jobs[2].work));
	OK(fi_cntr_add(start, 2));
	rig_progress_calls(&r);
	rig_verify(&r, &ops[0]);
	CHECK(!rig_happened(&ops[1]) && !rig_happened(&ops[2]));
	rig_counts(done, 1, 0);
	CLOSE(start);
	CLOSE(done);
	rig_close(&r);
}

/* Flushes all work, or the work of one counter; triggered operations are not affected. */
static void flushed(struct api *a)
{
	struct fi_triggered_context trigger = {.event_type = FI_TRIGGER_THRESHOLD};
	struct fi_deferred_work which = {0};
	struct fid_cntr *starts[3], *done;
	struct fi_msg_rma msg;
	struct rig_op ops[12], op;
	struct job jobs[12];
	struct rig r;

	(void)a;
	rig_open(&r, &(struct rig_opts){.caps = FI_TRIGGER, .progress = FI_PROGRESS_MANUAL});
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	for (int n = 0; n < 3; n++)
		starts[n] = obj_cntr(&r.o, FI_WAIT_NONE);
	OK(flush(&r, NULL));
	for (unsigned int n = 0; n < 12; n++) {
		rig_op(&r, &ops[n], RIG_WRITE, n);
		job_of(&r, &jobs[n], &ops[n], starts[n % 3], 1 + n / 6, done);
		OK(job_queue(&r, &jobs[n]));
	}
	trigger.trigger.threshold = (struct fi_trigger_threshold){starts[1], 1};
	rig_op(&r, &op, RIG_WRITE, 20);
	op.context = &trigger;
	msg = rig_rma(&r, &op);
	OK(fi_writemsg(r.o.ep, &msg, FI_TRIGGER));
	which.triggering_cntr = starts[0];
	OK(flush(&r, &which));
	CHECK_EQ(cancel(&r, &jobs[0].work), -FI_ENOENT);
	for (int n = 0; n < 3; n++)
		OK(fi_cntr_add(starts[n], 1));
	rig_counts(done, 4, 0);
	CHECK(obj_next(r.o.cq, NULL).op_context == &trigger);
	OK(fi_writemsg(r.o.ep, &msg, 0));
	CHECK(obj_next(r.o.cq, NULL).op_context == &trigger);
	trigger.trigger.threshold.threshold = 9;
	OK(fi_writemsg(r.o.ep, &msg, FI_TRIGGER));
	OK(flush(&r, NULL));
	for (int n = 0; n < 3; n++)
		OK(fi_cntr_add(starts[n], 8));
	CHECK(obj_next(r.o.cq, NULL).op_context == &trigger);
	rig_progress_calls(&r);
	rig_counts(done, 4, 0);
	for (unsigned int n = 0; n < 12; n++)
		CHECK(rig_happened(&ops[n]) == (n < 6 && n % 3 != 0));
	which.triggering_cntr = (struct fid_cntr *)r.o.cq;
	CHECK_EQ(flush(&r, &which), -FI_EINVAL);
	for (int n = 0; n < 3; n++)
		CLOSE(starts[n]);
	CLOSE(done);
	rig_close(&r);
}

/*
 * Counters in use by work cannot be closed. Closing an endpoint cancels its work and counts that as
 * errors.
 */
static void closes(struct api *a)
{
	struct fid_cntr *start, *done, *chained, *last;
	struct rig_op ops[3];
	struct job jobs[5];
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_UNSPEC);
	chained = obj_cntr(&r.o, FI_WAIT_NONE);
	last = obj_cntr(&r.o, FI_WAIT_NONE);
	/* One item that waits, and one in flight: a posted receive. */
	for (unsigned int n = 0; n < 2; n++) {
		rig_op(&r, &ops[n], n ? RIG_TRECV : RIG_WRITE, n);
		job_of(&r, &jobs[n], &ops[n], start, n ? 0 : 1, done);
		OK(job_queue(&r, &jobs[n]));
	}
	/* Work that waits for these errors. */
	job_counter(&jobs[2], FI_OP_CNTR_ADD, done, 2, chained, 7);
	OK(job_queue(&r, &jobs[2]));
	job_counter(&jobs[3], FI_OP_CNTR_ADD, chained, 8, last, 1);
	OK(job_queue(&r, &jobs[3]));
	rig_progress_calls(&r);
	CHECK_EQ(fi_close(&start->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&done->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&chained->fid), -FI_EBUSY);
	CHECK_EQ(fi_close(&last->fid), -FI_EBUSY);
	CLOSE(r.o.ep);
	r.o.ep = NULL;
	CHECK_EQ(fi_cntr_wait(done, 1, OBJ_PATIENCE_MS), -FI_EAVAIL);
	rig_counts(done, 0, 2);
	rig_counts(chained, 7, 0);
	OK(fi_cntr_add(start, 1));
	rig_counts(done, 0, 2);
	CHECK_EQ(cancel(&r, &jobs[0].work), -FI_ENOENT);
	OK(cancel(&r, &jobs[3].work));
	CLOSE(start);
	CLOSE(done);
	CLOSE(chained);
	CLOSE(last);
	rig_close(&r);
}

/* ---- Refused work ---------------------------------------------------------------------------- */

static void refusals(struct api *a)
{
	struct fid_cntr *start, *done, *foreign;
	struct rig r, other;
	struct rig_op op;
	struct job job, good;
	struct fid_ep *idle;

	(void)a;
	rig_open(&r, &usual);
	rig_open(&other, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	foreign = obj_cntr(&other.o, FI_WAIT_NONE);
	idle = obj_ep(&r.o);
	CHECK_EQ(fi_control(&r.o.domain->fid, FI_QUEUE_WORK, NULL), -FI_EINVAL);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		rig_op(&r, &op, kind, 0);
		job_of(&r, &good, &op, start, 1, done);
		job = good;
		job.work.triggering_cntr = NULL;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.triggering_cntr = foreign;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.triggering_cntr = (struct fid_cntr *)r.o.cq;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.triggering_cntr = start;
		job.work.completion_cntr = foreign;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.completion_cntr = (struct fid_cntr *)r.o.cq;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.completion_cntr = done;
		job.work.op.msg = NULL;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job = good;
		job.work.op_type = (enum fi_op_type)(FI_OP_CNTR_ADD + 1);
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.work.op_type = (enum fi_op_type) - 1;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job_of(&r, &job, &op, start, 1, done);
		job.op.msg.ep = NULL;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.op.msg.ep = other.o.ep;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.op.msg.ep = (struct fid_ep *)r.o.cq;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.op.msg.ep = idle;
		CHECK_EQ(job_queue(&r, &job), -FI_EOPBADSTATE);
		job_of(&r, &job, &op, start, 1, done);
		job_flags(&job, FI_TRIGGER);
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	}
	job_counter(&job, FI_OP_CNTR_ADD, start, 1, done, 1);
	job.work.completion_cntr = done;
	CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	job_counter(&job, FI_OP_CNTR_SET, start, 1, NULL, 1);
	CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	job_counter(&job, FI_OP_CNTR_SET, start, 1, foreign, 1);
	CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	/* No refused item waits, or keeps an object in use. */
	OK(fi_cntr_add(start, 1));
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(done), 0);
	CLOSE(idle);
	CLOSE(foreign);
	CLOSE(start);
	CLOSE(done);
	rig_close(&other);
	rig_close(&r);
}

/* Invalid arguments, and arguments that cannot be deferred. */
static void bad_arguments(struct api *a)
{
	static const uint64_t not_later[] = {FI_PEEK, FI_CLAIM, FI_DISCARD, FI_MULTI_RECV};
	static char big[1 << 16];
	struct fid_cntr *start, *done;
	struct rig_op op;
	struct job job;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	done = obj_cntr(&r.o, FI_WAIT_NONE);
	for (unsigned int n = 0; n < API_COUNT(not_later); n++) {
		rig_op(&r, &op, RIG_TRECV, 0);
		job_of(&r, &job, &op, start, 0, done);
		job_flags(&job, not_later[n]);
		CHECK_EQ(job_queue(&r, &job), -FI_ENOSYS);
	}
	for (enum rig_kind kind = RIG_SEND; kind <= RIG_TRECV; kind++) {
		rig_op(&r, &op, kind, 0);
		job_of(&r, &job, &op, start, 0, done);
		job.op.msg.msg.iov_count = 17;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
		job.op.msg.msg.iov_count = 1;
		job.op.msg.msg.msg_iov = NULL;
		CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	}
	rig_op(&r, &op, RIG_SEND, 0);
	op.iov = (struct iovec){big, sizeof(big)};
	job_of(&r, &job, &op, start, 0, done);
	job_flags(&job, FI_INJECT);
	CHECK_EQ(job_queue(&r, &job), -FI_EMSGSIZE);
	rig_op(&r, &op, RIG_WRITE, 0);
	job_of(&r, &job, &op, start, 0, done);
	op.rma.len++;
	CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	rig_op(&r, &op, RIG_ATOMIC, 0);
	job_of(&r, &job, &op, start, 0, done);
	job.op.atomic.msg.op = (enum fi_op)99;
	CHECK_EQ(job_queue(&r, &job), -FI_EINVAL);
	rig_progress_calls(&r);
	CHECK_EQ(fi_cntr_read(done) + fi_cntr_readerr(done), 0);
	CLOSE(start);
	CLOSE(done);
	rig_close(&r);
}

/* Operations without the capability. */
static void lacking(struct api *a)
{
	struct fid_cntr *start;
	struct obj o = {0};
	struct rig_op op;
	struct job job;
	struct rig r;

	(void)a;
	rig_open(&r, &usual);
	o.domain = r.o.domain;
	o.hints = obj_hints(FI_MSG | FI_SEND);
	CHECK(obj_find(&o, FI_VERSION(1, 17)));
	o.ep = obj_ep(&o);
	OK(fi_ep_bind(o.ep, &r.o.av->fid, 0));
	OK(fi_ep_bind(o.ep, &r.o.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(o.ep));
	start = obj_cntr(&r.o, FI_WAIT_NONE);
	for (enum rig_kind kind = 0; kind < RIG_KINDS; kind++) {
		rig_op(&r, &op, kind, 0);
		job_of(&r, &job, &op, start, 1, NULL);
		job.op.msg.ep = o.ep;
		CHECK_EQ(job_queue(&r, &job), kind == RIG_SEND ? 0 : -FI_ENOSYS);
		if (kind == RIG_SEND)
			OK(cancel(&r, &job.work));
	}
	CLOSE(o.ep);
	fi_freeinfo(o.hints);
	fi_freeinfo(o.info);
	CLOSE(start);
	rig_close(&r);
}

int main(int argc, char **argv)
{
	static const struct api_case cases[] = {
		{"every_kind", every_kind, 1, {0}},
		{"with_completions", with_completions, 1, {0}},
		{"endpoint_counter", endpoint_counter, 1, {0}},
		{"failures", failures, 1, {0}},
		{"order", order, 1, {0}},
		{"order_of_counters", order_of_counters, 1, {0}},
		{"chain", chain, 1, {0}},
		{"one_counter", one_counter, 1, {0}},
		{"set_counters", set_counters, 1, {0}},
		{"already_met", already_met, 1, {0}},
		{"cancelled", cancelled, 1, {0}},
		{"flushed", flushed, 1, {0}},
		{"closes", closes, 1, {0}},
		{"refusals", refusals, 1, {0}},
		{"bad_arguments", bad_arguments, 1, {0}},
		{"lacking", lacking, 1, {0}},
	};

	return api_main(argc, argv, cases, API_COUNT(cases));
}
