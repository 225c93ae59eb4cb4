/* SPDX-License-Identifier: BSD-2-Clause */
/* What fi_trigger(3) and fi_collective(3) forbid. */
#include "obj.h"
#include "lib/rig.h"
#include "lib/misuse.h"

/* ---- Triggered operations ---- */

static ssize_t triggered(struct bench *b, void *context, uint64_t flags)
{
	struct iovec iov = {b->bytes, 8};
	struct fi_msg m = {.msg_iov = &iov, .iov_count = 1, .addr = b->r.self, .context = context};

	return fi_sendmsg(EP(b), &m, flags | FI_TRIGGER);
}

static struct fi_triggered_context2 at(struct fid_cntr *cntr, size_t threshold)
{
	return (struct fi_triggered_context2){
		.trigger.threshold = {.cntr = cntr, .threshold = threshold}};
}

MISUSE(trigger_no_context, REFUSED, triggered(b, NULL, 0));
MISUSE(trigger_no_counter, REFUSED, triggered(b, &(struct fi_triggered_context2){0}, 0));
MISUSE(trigger_event, REFUSED,
       triggered(b, &(struct fi_triggered_context2){.event_type = (enum fi_trigger_event)99}, 0));
MISUSE(trigger_device, REFUSED,
       triggered(b, &(struct fi_triggered_context2){.event_type = FI_TRIGGER_XPU}, 0));
MISUSE(trigger_queue, REFUSED,
       triggered(b, (struct fi_triggered_context2[]){at((void *)b->r.o.cq, 5)}, 0));
MISUSE(trigger_foreign_counter, REFUSED, ({
	       struct fid_cntr *c = obj_cntr(&b->other, FI_WAIT_NONE);
	       struct fi_triggered_context2 context = at(c, 5);
	       ssize_t ret_ = triggered(b, &context, 0);

	       CLOSE(c);
	       ret_;
       }));

static ssize_t triggered_receive(struct bench *b, uint64_t flags, size_t iov_count)
{
	struct fi_triggered_context2 context = at(b->r.sent, 5);
	struct fi_msg m = {.iov_count = iov_count, .addr = FI_ADDR_UNSPEC, .context = &context};

	return fi_recvmsg(EP(b), &m, flags | FI_TRIGGER);
}

MISUSE(trigger_peek, REFUSED, triggered_receive(b, FI_PEEK, 0));
MISUSE(trigger_receive_no_list, REFUSED, triggered_receive(b, 0, 1));
MISUSE(trigger_receive_long_list, REFUSED, triggered_receive(b, 0, SIZE_MAX));
MISUSE(trigger_recv, REFUSED,
       (fi_control(&b->idle->fid, FI_SETOPSFLAG, &(uint64_t){FI_TRIGGER | FI_RECV}) ?: -FI_EINVAL));

/* ---- Deferred work ---- */

static ssize_t queue(struct bench *b, struct fi_deferred_work work)
{
	static struct fi_deferred_work kept;

	kept = work;
	return fi_control(&DOMAIN(b)->fid, FI_QUEUE_WORK, &kept);
}

/* A message from `ep`, deferred; the rest is right. */
static struct fi_deferred_work message(struct bench *b, struct fid_ep *ep)
{
	static struct iovec iov;
	static struct fi_op_msg op;

	iov = (struct iovec){b->bytes, 8};
	op = (struct fi_op_msg){.ep = ep,
				.msg = {.msg_iov = &iov, .iov_count = 1, .addr = b->r.self}};
	return (struct fi_deferred_work){.threshold = 1000,
					 .triggering_cntr = b->r.sent,
					 .op_type = FI_OP_SEND,
					 .op.msg = &op};
}

static ssize_t queue_with(struct bench *b, size_t member, void *value)
{
	struct fi_deferred_work work = message(b, EP(b));

	*(void **)((char *)&work + member) = value;
	return queue(b, work);
}

MISUSE(work_nothing, REFUSED, fi_control(&DOMAIN(b)->fid, FI_QUEUE_WORK, NULL));
MISUSE(work_bare, REFUSED, queue(b, (struct fi_deferred_work){0}));
MISUSE(work_no_operation, REFUSED, queue_with(b, offsetof(struct fi_deferred_work, op), NULL));
MISUSE(work_no_counter, REFUSED,
       queue_with(b, offsetof(struct fi_deferred_work, triggering_cntr), NULL));
MISUSE(work_counter_of_class, REFUSED,
       queue_with(b, offsetof(struct fi_deferred_work, triggering_cntr), b->r.o.cq));
MISUSE(work_completion_of_class, REFUSED,
       queue_with(b, offsetof(struct fi_deferred_work, completion_cntr), b->r.o.cq));
MISUSE(work_no_endpoint, REFUSED, queue(b, message(b, NULL)));
MISUSE(work_idle_endpoint, -FI_EOPBADSTATE, queue(b, message(b, b->idle)));
MISUSE(work_foreign_endpoint, REFUSED, queue(b, message(b, b->other.ep)));
MISUSE(work_endpoint_of_class, REFUSED, queue(b, message(b, (void *)b->r.o.cq)));

static ssize_t queue_type(struct bench *b, enum fi_op_type type, void *op)
{
	return queue(b, (struct fi_deferred_work){.threshold = 1000,
						  .triggering_cntr = b->r.sent,
						  .op_type = type,
						  .op.msg = op});
}

MISUSE(work_type, REFUSED, queue_type(b, (enum fi_op_type)99, &(struct fi_op_msg){.ep = EP(b)}));
MISUSE(work_negative_type, REFUSED,
       queue_type(b, (enum fi_op_type) - 1, &(struct fi_op_msg){.ep = EP(b)}));
MISUSE(work_count_no_operation, REFUSED, queue_type(b, FI_OP_CNTR_ADD, NULL));
MISUSE(work_count_nothing, REFUSED, queue_type(b, FI_OP_CNTR_ADD, &(struct fi_op_cntr){0}));
MISUSE(work_count_of_class, REFUSED,
       queue_type(b, FI_OP_CNTR_SET, &(struct fi_op_cntr){.cntr = (void *)b->r.o.cq}));
MISUSE(work_write_bare, REFUSED, queue_type(b, FI_OP_WRITE, &(struct fi_op_rma){.ep = EP(b)}));
MISUSE(work_read_no_list, REFUSED,
       queue_type(b, FI_OP_READ, &(struct fi_op_rma){.ep = EP(b), .msg = {.iov_count = 1}}));
MISUSE(work_atomic_bare, REFUSED, queue_type(b, FI_OP_ATOMIC, &(struct fi_op_atomic){.ep = EP(b)}));
MISUSE(work_fetch_bare, REFUSED,
       queue_type(b, FI_OP_FETCH_ATOMIC, &(struct fi_op_fetch_atomic){.ep = EP(b)}));
MISUSE(work_compare_bare, REFUSED,
       queue_type(b, FI_OP_COMPARE_ATOMIC, &(struct fi_op_compare_atomic){.ep = EP(b)}));
MISUSE(work_receive_no_list, REFUSED,
       queue_type(b, FI_OP_RECV, &(struct fi_op_msg){.ep = EP(b), .msg = {.iov_count = 1}}));
MISUSE(work_triggered, REFUSED,
       queue_type(b, FI_OP_TSEND, &(struct fi_op_tagged){.ep = EP(b), .flags = FI_TRIGGER}));

static ssize_t queued_twice(struct bench *b)
{
	struct fi_deferred_work work = message(b, EP(b));
	ssize_t ret;

	OK(fi_control(&DOMAIN(b)->fid, FI_QUEUE_WORK, &work));
	ret = fi_control(&DOMAIN(b)->fid, FI_QUEUE_WORK, &work);
	while (!fi_control(&DOMAIN(b)->fid, FI_CANCEL_WORK, &work))
		;
	return ret;
}

MISUSE(work_twice, ANY, queued_twice(b));
MISUSE(work_cancel_nothing, REFUSED, fi_control(&DOMAIN(b)->fid, FI_CANCEL_WORK, NULL));
MISUSE(work_cancel_unknown, -FI_ENOENT,
       fi_control(&DOMAIN(b)->fid, FI_CANCEL_WORK, &(struct fi_deferred_work){0}));
MISUSE(work_flush_none, FINE, fi_control(&DOMAIN(b)->fid, FI_FLUSH_WORK, b->bytes));

/* ---- Collectives ---- */

#define NOWHERE UINT64_C(0x1234567890)

MISUSE(query_nothing, REFUSED, fi_query_collective(DOMAIN(b), FI_BARRIER, NULL, 0));
MISUSE(query_kind, REFUSED,
       fi_query_collective(DOMAIN(b), (enum fi_collective_op)99, &(struct fi_collective_attr){0},
			   0));
MISUSE(query_flags, REFUSED,
       fi_query_collective(DOMAIN(b), FI_BARRIER, &(struct fi_collective_attr){0}, ~UINT64_C(0)));
MISUSE(query_type, REFUSED,
       fi_query_collective(DOMAIN(b), FI_ALLREDUCE,
			   &(struct fi_collective_attr){.datatype = (enum fi_datatype)99}, 0));
MISUSE(barrier_nowhere, REFUSED, fi_barrier(EP(b), NOWHERE, b));
MISUSE(barrier_notavail, REFUSED, fi_barrier(EP(b), FI_ADDR_NOTAVAIL, b));
MISUSE(barrier_zero, REFUSED, fi_barrier(EP(b), 0, b));
MISUSE(barrier_idle, REFUSED, fi_barrier(b->idle, NOWHERE, b));
MISUSE(broadcast_nowhere, REFUSED,
       fi_broadcast(EP(b), b->bytes, 8, NULL, NOWHERE, 0, FI_UINT8, 0, b));

/* A group of one. */
static fi_addr_t join(struct bench *b, struct fid_av_set **set, struct fid_mc **mc)
{
	struct fi_av_set_attr attr = {.start_addr = FI_ADDR_NOTAVAIL, .end_addr = FI_ADDR_NOTAVAIL};
	struct fi_eq_entry entry;
	struct fid_ep *ep;
	uint32_t event;

	(void)ep;
	OK(fi_av_set(b->r.o.av, &attr, set, NULL));
	OK(fi_av_set_insert(*set, b->r.self));
	OK(fi_join_collective(EP(b), FI_ADDR_NOTAVAIL, *set, 0, mc, NULL));
	OBJ_UNTIL(fi_eq_read(b->eq, &event, &entry, sizeof(entry), 0) == sizeof(entry),
		  rig_progress(&b->r));
	CHECK_EQ(event, FI_JOIN_COMPLETE);
	return fi_mc_addr(*mc);
}

static ssize_t in_group(struct bench *b, int what)
{
	struct fid_av_set *set;
	struct fid_mc *mc, *other;
	struct fi_msg_collective m = {.iov_count = 1};
	fi_addr_t to;
	ssize_t ret = 0;

	/* The event queue is bound late. */
	OK(fi_ep_bind(EP(b), &b->eq->fid, 0));
	to = m.coll_addr = join(b, &set, &mc);
	switch (what) {
	case 0:
		ret = fi_allreduce(EP(b), NULL, 1, NULL, b->bytes, NULL, to, FI_UINT64, FI_SUM, 0,
				   b);
		break;
	case 1:
		ret = fi_allreduce(EP(b), b->bytes, 1, NULL, NULL, NULL, to, FI_UINT64, FI_SUM, 0,
				   b);
		break;
	case 2:
		ret = fi_broadcast(EP(b), NULL, 8, NULL, to, b->r.self, FI_UINT8, 0, b);
		break;
	case 3:
		ret = fi_broadcast(EP(b), b->bytes, 8, NULL, to, 12345, FI_UINT8, 0, b);
		break;
	case 4:
		ret = fi_allreduce(EP(b), b->bytes, SIZE_MAX, NULL, b->bytes, NULL, to, FI_UINT64,
				   FI_SUM, 0, b);
		break;
	case 5:
		ret = fi_allreduce(EP(b), b->bytes, 1, NULL, b->bytes, NULL, to,
				   (enum fi_datatype) - 1, FI_SUM, 0, b);
		break;
	case 6:
		ret = fi_allreduce(EP(b), b->bytes, 1, NULL, b->bytes, NULL, to, FI_UINT64,
				   (enum fi_op)99, 0, b);
		break;
	case 7:
		ret = fi_barrier2(EP(b), to, ~UINT64_C(0), b);
		break;
	case 8:
		m.coll = FI_ALLREDUCE;
		ret = EP(b)->collective->msg(EP(b), &m, NULL, NULL, 1, 0);
		break;
	case 9:
		m.coll = (enum fi_collective_op)99;
		m.iov_count = 0;
		ret = EP(b)->collective->msg(EP(b), &m, NULL, NULL, 0, 0);
		break;
	case 10:
		ret = EP(b)->collective->msg(EP(b), NULL, NULL, NULL, 0, 0);
		break;
	case 11:
		ret = fi_join_collective(EP(b), FI_ADDR_NOTAVAIL, set, 0, &other, NULL);
		break;
	case 12:
		ret = fi_alltoall(EP(b), NULL, 8, NULL, b->bytes, NULL, to, FI_UINT8, 0, b);
		break;
	case 13:
		ret = fi_gather(EP(b), b->bytes, 8, NULL, NULL, NULL, to, b->r.self, FI_UINT8, 0,
				b);
		break;
	case 14:
		ret = fi_close(&EP(b)->fid);
		if (!ret)
			EP(b) = NULL;
		break;
	}
	CLOSE(mc);
	CLOSE(set);
	/* The endpoint holds the queue. */
	if (EP(b))
		CLOSE(EP(b));
	EP(b) = NULL;
	return ret;
}

MISUSE(allreduce_nothing, REFUSED, in_group(b, 0));
MISUSE(allreduce_nowhere, REFUSED, in_group(b, 1));
MISUSE(broadcast_nothing, REFUSED, in_group(b, 2));
MISUSE(broadcast_root, REFUSED, in_group(b, 3));
MISUSE(allreduce_long, REFUSED, in_group(b, 4));
MISUSE(allreduce_type, REFUSED, in_group(b, 5));
MISUSE(allreduce_op, REFUSED, in_group(b, 6));
MISUSE(barrier_flags, REFUSED, in_group(b, 7));
MISUSE(collective_no_lists, REFUSED, in_group(b, 8));
MISUSE(collective_kind, REFUSED, in_group(b, 9));
MISUSE(collective_no_message, REFUSED, in_group(b, 10));
MISUSE(join_twice, -FI_EALREADY, in_group(b, 11));
MISUSE(alltoall_nothing, REFUSED, in_group(b, 12));
MISUSE(gather_nowhere, REFUSED, in_group(b, 13));
MISUSE(close_of_member, ANY, in_group(b, 14));

int main(int argc, char **argv)
{
	return misuse_main(argc, argv);
}
