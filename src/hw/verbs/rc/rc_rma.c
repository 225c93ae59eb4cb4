/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the rma table of a bare queue pair. */
#include <arpa/inet.h>

#include "hw/verbs/rc/rc_post.h"
#include "entry/args.h"

#define WRITE (FI_RMA | FI_WRITE)
#define READ  (FI_RMA | FI_READ)

/* Flags that a read does not have. */
#define NOT_READ (FI_INJECT | FI_REMOTE_CQ_DATA | FI_COMMIT_COMPLETE)

static inline ssize_t rc_rma_write(struct ep *ep, struct ibv_send_wr *wr, struct rc_op op,
				   bool keyed, uint64_t data)
{
	op.kind = WRITE;
	wr->opcode = IBV_WR_RDMA_WRITE;
	if (op.flags & FI_REMOTE_CQ_DATA) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->imm_data = htonl((uint32_t)data);
	}
	return rc_post_out(ep, wr, op, keyed);
}

static inline ssize_t rc_rma_read(struct ep *ep, struct ibv_send_wr *wr, struct rc_op op,
				  bool keyed)
{
	op.kind = READ;
	wr->opcode = IBV_WR_RDMA_READ;
	if (__builtin_expect((op.flags & FI_REMOTE_CQ_DATA) != 0, 0))
		return -FI_EOPNOTSUPP;
	if (__builtin_expect(!keyed || op.len > rc_of_ep(ep)->message_most, 0))
		return keyed ? -FI_EMSGSIZE : -FI_EINVAL;
	return rc_post(ep, wr, op, 0);
}

static inline ssize_t rma_one(struct ep *ep, struct entry_rma e, bool write)
{
	struct ibv_sge sge = rc_sge(e.local->iov_base, e.local->iov_len, e.desc);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = e.local->iov_len != 0};
	struct rc_op op = {.flags = e.flags, .context = e.context, .len = e.local->iov_len};
	bool keyed = e.desc || !op.len;

	wr.wr.rdma.remote_addr = e.remote->addr;
	wr.wr.rdma.rkey = (uint32_t)e.remote->key;
	return write ? rc_rma_write(ep, &wr, op, keyed, e.data) : rc_rma_read(ep, &wr, op, keyed);
}

/* The device takes one remote range, of the same length as the segments. */
static ssize_t rma_lists(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	struct ibv_send_wr wr = {.num_sge = (int)msg->iov_count};
	struct rc_op op = {.flags = flags, .context = msg->context};
	struct rc_list list;
	int err = rc_gather(&list, msg->msg_iov, msg->desc, msg->iov_count);

	if (!err && (msg->rma_iov_count != 1 || !msg->rma_iov || msg->rma_iov->len != list.len))
		err = -FI_EINVAL;
	if (err)
		return err;
	op.len = list.len;
	wr.sg_list = list.sge;
	wr.wr.rdma.remote_addr = msg->rma_iov->addr;
	wr.wr.rdma.rkey = (uint32_t)msg->rma_iov->key;
	return write ? rc_rma_write(ep, &wr, op, list.keyed, msg->data)
		     : rc_rma_read(ep, &wr, op, list.keyed);
}

#define ENTRY_READ_FLAGS(ep)       ((ep)->tx_flags & ~NOT_READ)
#define ENTRY_MSG_FLAGS(ep, flags) (((flags) & (ep)->tx_msg_mask) | (ep)->tx_msg_flags)
#include "entry/entry_rma.h"

const struct fi_ops_rma rc_rma_ops = ENTRY_RMA_OPS;
