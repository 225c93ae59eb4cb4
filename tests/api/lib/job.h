/* SPDX-License-Identifier: BSD-2-Clause */
/* Deferred work made of the operations of rig.h. Include rig.h first. */
#ifndef API_JOB_H
#define API_JOB_H

/* Memory of a deferred work item, kept by the application until the item is done. */
struct job {
	struct fi_deferred_work work;
	union {
		struct fi_op_msg msg;
		struct fi_op_tagged tagged;
		struct fi_op_rma rma;
		struct fi_op_atomic atomic;
		struct fi_op_fetch_atomic fetch;
		struct fi_op_compare_atomic compare;
		struct fi_op_cntr cntr;
	} op;
	struct iovec iov; /* for tests without a struct rig_op */
};

static inline enum fi_op_type job_type(enum rig_kind kind)
{
	static const enum fi_op_type types[RIG_KINDS] = {[RIG_SEND] = FI_OP_SEND,
							 [RIG_TSEND] = FI_OP_TSEND,
							 [RIG_RECV] = FI_OP_RECV,
							 [RIG_TRECV] = FI_OP_TRECV,
							 [RIG_WRITE] = FI_OP_WRITE,
							 [RIG_READ] = FI_OP_READ,
							 [RIG_ATOMIC] = FI_OP_ATOMIC,
							 [RIG_FETCH] = FI_OP_FETCH_ATOMIC,
							 [RIG_COMPARE] = FI_OP_COMPARE_ATOMIC};

	return types[kind];
}

static inline void job_fill(const struct rig *r, struct job *job, struct rig_op *op)
{
	switch (op->kind) {
	case RIG_SEND:
	case RIG_RECV:
		job->op.msg = (struct fi_op_msg){r->o.ep, rig_msg(r, op), 0};
		break;
	case RIG_TSEND:
	case RIG_TRECV:
		job->op.tagged = (struct fi_op_tagged){r->o.ep, rig_tagged(r, op), 0};
		break;
	case RIG_WRITE:
	case RIG_READ:
		job->op.rma = (struct fi_op_rma){r->o.ep, rig_rma(r, op), 0};
		break;
	case RIG_ATOMIC:
		job->op.atomic = (struct fi_op_atomic){r->o.ep, rig_atomic(r, op), 0};
		break;
	case RIG_FETCH:
		job->op.fetch = (struct fi_op_fetch_atomic){
			r->o.ep, rig_atomic(r, op), {&op->result_ioc, NULL, 1}, 0};
		break;
	default:
		job->op.compare = (struct fi_op_compare_atomic){r->o.ep,
								rig_atomic(r, op),
								{&op->result_ioc, NULL, 1},
								{&op->compare_ioc, NULL, 1},
								0};
	}
}

/*
 * Prepares `op` to start when `start` reaches `threshold`. `done` counts its completion; may be
 * NULL.
 */
static inline void job_of(const struct rig *r, struct job *job, struct rig_op *op,
			  struct fid_cntr *start, uint64_t threshold, struct fid_cntr *done)
{
	memset(job, 0x5a, sizeof(*job)); /* other fields must not be read */
	job->work.threshold = threshold;
	job->work.triggering_cntr = start;
	job->work.completion_cntr = done;
	job->work.op_type = job_type(op->kind);
	job->work.op.msg = &job->op.msg;
	job_fill(r, job, op);
}

static inline void job_flags(struct job *job, uint64_t flags)
{
	switch (job->work.op_type) {
	case FI_OP_SEND:
	case FI_OP_RECV:
		job->op.msg.flags = flags;
		break;
	case FI_OP_TSEND:
	case FI_OP_TRECV:
		job->op.tagged.flags = flags;
		break;
	case FI_OP_WRITE:
	case FI_OP_READ:
		job->op.rma.flags = flags;
		break;
	case FI_OP_ATOMIC:
		job->op.atomic.flags = flags;
		break;
	case FI_OP_FETCH_ATOMIC:
		job->op.fetch.flags = flags;
		break;
	default:
		job->op.compare.flags = flags;
	}
}

/* Prepares FI_OP_CNTR_SET or FI_OP_CNTR_ADD (`type`) of `value` to `cntr`. */
static inline void job_counter(struct job *job, enum fi_op_type type, struct fid_cntr *start,
			       uint64_t threshold, struct fid_cntr *cntr, uint64_t value)
{
	memset(job, 0x5a, sizeof(*job));
	job->op.cntr = (struct fi_op_cntr){cntr, value};
	job->work.threshold = threshold;
	job->work.triggering_cntr = start;
	job->work.completion_cntr = NULL;
	job->work.op_type = type;
	job->work.op.cntr = &job->op.cntr;
}

static inline int job_queue(const struct rig *r, struct job *job)
{
	return fi_control(&r->o.domain->fid, FI_QUEUE_WORK, &job->work);
}

#endif
