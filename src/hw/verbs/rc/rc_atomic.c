/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entry functions of the atomic table of a bare queue pair: fetch-and-add, compare-and-swap and
 * write of one 64-bit number, which devices support. A device without an atomic write gets a plain
 * write of eight aligned inline bytes, which travel in one packet.
 */
#include <string.h>

#include "atomic/atomic.h"
#include "hw/verbs/rc/rc_post.h"
#include "entry/args.h"

#define FETCHES (FI_ATOMIC | FI_READ)
#define WRITES  (FI_ATOMIC | FI_WRITE)

int rc_atomic_valid(int form, int datatype, int op, size_t *count, size_t *size)
{
	bool known = (form == ATOMIC_BASE && op == FI_ATOMIC_WRITE) ||
		     (form == ATOMIC_FETCH && op == FI_SUM) ||
		     (form == ATOMIC_COMPARE && op == FI_CSWAP);

	if (datatype < 0 || op < 0)
		return -FI_EINVAL;
	if (!known || (datatype != FI_INT64 && datatype != FI_UINT64))
		return -FI_EOPNOTSUPP;
	*count = 1;
	*size = sizeof(uint64_t);
	return 0;
}

static uint64_t rc_atomic_number(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Checks an operation's arguments. 0 or a negative error. */
static int rc_atomic_check(const struct entry_atomic *a, uint64_t flags)
{
	size_t count, size;
	int err = rc_atomic_valid(a->form, (int)a->type, (int)a->op, &count, &size);

	if (err)
		return err;
	if (flags & (FI_REMOTE_CQ_DATA | FI_TAGGED))
		return -FI_EOPNOTSUPP;
	if (a->count != 1 || a->remote % sizeof(uint64_t) || !a->operand ||
	    (a->form != ATOMIC_BASE && (!a->result || !a->result_desc)) ||
	    (a->form == ATOMIC_COMPARE && !a->compare))
		return -FI_EINVAL;
	return 0;
}

static ssize_t post_write(struct ep *ep, const struct entry_atomic *a, struct rc_op op)
{
	struct ibv_sge sge = rc_sge(a->operand, sizeof(uint64_t), NULL);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct rc *rc = rc_of_ep(ep);
	int err;

	wr.wr.rdma.remote_addr = a->remote;
	wr.wr.rdma.rkey = (uint32_t)a->key;
	if (!rc->ex || !rc->reads) {
		if (rc->inline_most < sizeof(uint64_t))
			return -FI_EOPNOTSUPP;
		return rc_post(ep, &wr, op, IBV_SEND_INLINE | IBV_SEND_FENCE);
	}
	lock_take(rc_lock(ep));
	err = rc_post_word(rc, &wr, op);
	lock_give(rc_lock(ep));
	return err;
}

static ssize_t post_fetch(struct ep *ep, const struct entry_atomic *a, struct rc_op op)
{
	struct ibv_sge sge = rc_sge(a->result, sizeof(uint64_t), a->result_desc);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	wr.wr.atomic.remote_addr = a->remote;
	wr.wr.atomic.rkey = (uint32_t)a->key;
	wr.wr.atomic.compare_add = rc_atomic_number(a->operand);
	if (a->form == ATOMIC_COMPARE) {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.compare_add = rc_atomic_number(a->compare);
		wr.wr.atomic.swap = rc_atomic_number(a->operand);
	}
	return rc_post(ep, &wr, op, 0);
}

static inline ssize_t atomic_one(struct ep *ep, struct entry_atomic e)
{
	struct rc_op op = {.flags = e.flags,
			   .kind = e.form == ATOMIC_BASE ? WRITES : FETCHES,
			   .context = e.context,
			   .len = sizeof(uint64_t)};
	int err = rc_atomic_check(&e, e.flags);

	if (err)
		return err;
	return e.form == ATOMIC_BASE ? post_write(ep, &e, op) : post_fetch(ep, &e, op);
}

/* Devices take exactly one element of each list. */
static ssize_t atomic_lists(struct ep *ep, const struct entry_atomic_msg *m, uint64_t flags)
{
	const struct fi_msg_atomic *msg = m->msg;

	if (msg->iov_count != 1 || msg->rma_iov_count != 1 || !msg->msg_iov || !msg->rma_iov ||
	    (m->form != ATOMIC_BASE && (m->result_count != 1 || !m->result)) ||
	    (m->form == ATOMIC_COMPARE && (m->compare_count != 1 || !m->compare)))
		return -FI_EINVAL;
	if (msg->rma_iov->count != msg->msg_iov->count ||
	    (m->result && m->result->count != msg->msg_iov->count))
		return -FI_EINVAL;
	return atomic_one(
		ep, (struct entry_atomic){.form = m->form,
					  .type = msg->datatype,
					  .op = msg->op,
					  .operand = msg->msg_iov->addr,
					  .compare = m->compare ? m->compare->addr : NULL,
					  .result = m->result ? m->result->addr : NULL,
					  .result_desc = m->result_desc ? *m->result_desc : NULL,
					  .count = msg->msg_iov->count,
					  .remote = msg->rma_iov->addr,
					  .key = msg->rma_iov->key,
					  .flags = flags,
					  .context = msg->context});
}

static int atomic_valid(enum atomic_form form, enum fi_datatype datatype, enum fi_op op,
			size_t *count)
{
	size_t size;

	return count ? rc_atomic_valid((int)form, (int)datatype, (int)op, count, &size)
		     : -FI_EINVAL;
}

/* Operands are read during the call; results cannot be injected. */
#define ENTRY_FETCH_FLAGS(ep) ((ep)->tx_flags & ~FI_INJECT)
#define ENTRY_MSG_FLAGS(ep, flags)                                                                 \
	(((flags) & ((ep)->tx_msg_mask | FI_TAGGED)) | (ep)->tx_msg_flags)
#include "entry/entry_atomic.h"

const struct fi_ops_atomic rc_atomic_ops = ENTRY_ATOMIC_OPS;
