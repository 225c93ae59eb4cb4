/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of the rma table of a bare queue pair. */
#include <arpa/inet.h>

#include "hw/verbs/rc/rc_post.h"

#define WRITE (FI_RMA | FI_WRITE)
#define READ  (FI_RMA | FI_READ)

/* What a read cannot be. */
#define NOT_READ (FI_INJECT | FI_REMOTE_CQ_DATA | FI_COMMIT_COMPLETE)

static inline ssize_t write_one(struct ep *ep, struct ibv_sge sge, struct fi_rma_iov remote,
				struct rc_op op, const uint64_t *data)
{
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = op.len != 0,
				 .opcode = data ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE};

	wr.wr.rdma.remote_addr = remote.addr;
	wr.wr.rdma.rkey = (uint32_t)remote.key;
	if (data)
		wr.imm_data = htonl((uint32_t)*data);
	op.kind = WRITE;
	return rc_post_out(ep, &wr, op, sge.lkey != 0);
}

static ssize_t post_read(struct ep *ep, struct ibv_send_wr *wr, struct rc_op op, bool keyed)
{
	if (__builtin_expect((op.flags & FI_REMOTE_CQ_DATA) != 0, 0))
		return -FI_EOPNOTSUPP;
	if (__builtin_expect(!keyed || op.len > rc_of_ep(ep)->message_most, 0))
		return keyed ? -FI_EMSGSIZE : -FI_EINVAL;
	return rc_post(ep, wr, op, 0);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	struct ibv_sge sge = rc_sge(buf, len, desc);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = len != 0, .opcode = IBV_WR_RDMA_READ};
	(void)src_addr;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = (uint32_t)key;
	return post_read(ep, &wr,
			 (struct rc_op){.flags = ep->tx_flags & ~NOT_READ,
					.kind = READ,
					.context = context,
					.len = len},
			 desc || !len);
}

/* One range, as long as what is here. */
static int gather(struct rc_list *list, struct ibv_send_wr *wr, const struct fi_msg_rma *msg)
{
	int err = rc_gather(list, msg->msg_iov, msg->desc, msg->iov_count);

	if (!err && (msg->rma_iov_count != 1 || !msg->rma_iov || msg->rma_iov->len != list->len))
		err = -FI_EINVAL;
	if (err)
		return err;
	wr->sg_list = list->sge;
	wr->num_sge = (int)msg->iov_count;
	wr->wr.rdma.remote_addr = msg->rma_iov->addr;
	wr->wr.rdma.rkey = (uint32_t)msg->rma_iov->key;
	return 0;
}

static ssize_t read_vector(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ};
	struct rc_list list;
	int err = gather(&list, &wr, msg);

	if (err)
		return err;
	return post_read(
		ep, &wr,
		(struct rc_op){
			.flags = flags, .kind = READ, .context = msg->context, .len = list.len},
		list.keyed);
}

static ssize_t write_vector(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct rc_list list;
	int err = gather(&list, &wr, msg);

	if (err)
		return err;
	if (flags & FI_REMOTE_CQ_DATA) {
		wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr.imm_data = htonl((uint32_t)msg->data);
	}
	return rc_post_out(
		ep, &wr,
		(struct rc_op){
			.flags = flags, .kind = WRITE, .context = msg->context, .len = list.len},
		list.keyed);
}

static size_t total(const struct iovec *iov, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count && iov; i++)
		len += iov[i].iov_len;
	return len;
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_iov remote = {addr, total(iov, count), key};
	(void)src_addr;

	return read_vector(ep,
			   &(struct fi_msg_rma){.msg_iov = iov,
						.desc = desc,
						.iov_count = count,
						.rma_iov = &remote,
						.rma_iov_count = 1,
						.context = context},
			   ep->tx_flags & ~NOT_READ);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return read_vector(ep, msg, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)dest_addr;

	return write_one(ep, rc_sge(buf, len, desc), (struct fi_rma_iov){addr, len, key},
			 (struct rc_op){.flags = ep->tx_flags, .context = context, .len = len},
			 NULL);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_iov remote = {addr, total(iov, count), key};
	(void)dest_addr;

	return write_vector(ep,
			    &(struct fi_msg_rma){.msg_iov = iov,
						 .desc = desc,
						 .iov_count = count,
						 .rma_iov = &remote,
						 .rma_iov_count = 1,
						 .context = context},
			    ep->tx_flags);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return write_vector(ep, msg, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key)
{
	(void)dest_addr;
	return write_one(ep_of(fid), rc_sge(buf, len, NULL), (struct fi_rma_iov){addr, len, key},
			 (struct rc_op){.flags = FI_INJECT, .len = len}, NULL);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     void *context)
{
	struct ep *ep = ep_of(fid);
	(void)dest_addr;

	return write_one(ep, rc_sge(buf, len, desc), (struct fi_rma_iov){addr, len, key},
			 (struct rc_op){.flags = ep->tx_flags, .context = context, .len = len},
			 &data);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	(void)dest_addr;
	return write_one(ep_of(fid), rc_sge(buf, len, NULL), (struct fi_rma_iov){addr, len, key},
			 (struct rc_op){.flags = FI_INJECT, .len = len}, &data);
}

const struct fi_ops_rma rc_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = rma_read,
	.readv = rma_readv,
	.readmsg = rma_readmsg,
	.write = rma_write,
	.writev = rma_writev,
	.writemsg = rma_writemsg,
	.inject = rma_inject,
	.writedata = rma_writedata,
	.injectdata = rma_injectdata,
};
