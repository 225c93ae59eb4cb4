/* SPDX-License-Identifier: BSD-2-Clause */
/* The entries of the rma table; see entry.h for how it is included, ENTRY_RMA is its name. */
#include <rdma/fi_errno.h>

#include "xfer/entry/entry_tables.h"
#include "xfer/rma/rma.h"
#include "xfer/msg/tx.h"

static inline __attribute__((always_inline)) ssize_t post_rma(struct ep *ep, const struct rma *o)
{
	ssize_t ret;

	ENTRY_LOCK(ep->dom);
	ret = rma_post(ep, o);
	ENTRY_UNLOCK(ep->dom);
	return ret;
}

/* One local buffer, one range. */
static inline ssize_t post_write(struct ep *ep, struct rma o, const struct iovec *iov,
				 const struct fi_rma_iov *remote)
{
	o.wire = WIRE_PUT;
	o.kind = FI_RMA | FI_WRITE;
	o.len = iov->iov_len;
	o.iov = iov;
	o.count = 1;
	o.remote = remote;
	o.remote_count = 1;
	return post_rma(ep, &o);
}

static ssize_t post_rma_msg(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	struct rma o;
	int err = rma_from_rma(&o, msg, flags, write);

	return err ? err : post_rma(ep, &o);
}

/* A vector for one range. */
static ssize_t post_vector(struct ep *ep, struct fi_msg_rma *msg, struct fi_rma_iov *remote,
			   bool write)
{
	remote->len = 0;
	for (size_t i = 0; i < msg->iov_count && msg->msg_iov; i++)
		remote->len += msg->msg_iov[i].iov_len;
	msg->rma_iov = remote;
	msg->rma_iov_count = 1;
	return post_rma_msg(ep, msg, ep->tx_flags, write);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	struct iovec iov = {buf, len};
	struct fi_rma_iov remote = {.addr = addr, .len = len, .key = key};
	(void)desc;

	return post_rma(ep, &(struct rma){.wire = WIRE_GET,
					  .kind = FI_RMA | FI_READ,
					  .flags = ep->tx_flags & ~(FI_INJECT | FI_COMMIT_COMPLETE),
					  .addr = src_addr,
					  .context = context,
					  .len = len,
					  .result = &iov,
					  .result_count = 1,
					  .remote = &remote,
					  .remote_count = 1});
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct fi_rma_iov remote = {.addr = addr, .key = key};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = count, .addr = src_addr, .context = context};
	(void)desc;

	return post_vector(ep_of(fid), &msg, &remote, false);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return post_rma_msg(ep, msg, flags | ep->tx_msg_flags, false);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return post_write(
		ep, (struct rma){.flags = ep->tx_flags, .addr = dest_addr, .context = context},
		&(struct iovec){(void *)(uintptr_t)buf, len},
		&(struct fi_rma_iov){.addr = addr, .len = len, .key = key});
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct fi_rma_iov remote = {.addr = addr, .key = key};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = count, .addr = dest_addr, .context = context};
	(void)desc;

	return post_vector(ep_of(fid), &msg, &remote, true);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return post_rma_msg(ep, msg, flags | ep->tx_msg_flags, true);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key)
{
	return post_write(ep_of(fid), (struct rma){.flags = FI_INJECT, .addr = dest_addr},
			  &(struct iovec){(void *)(uintptr_t)buf, len},
			  &(struct fi_rma_iov){.addr = addr, .len = len, .key = key});
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return post_write(ep,
			  (struct rma){.flags = ep->tx_flags | FI_REMOTE_CQ_DATA,
				       .addr = dest_addr,
				       .context = context,
				       .data = data},
			  &(struct iovec){(void *)(uintptr_t)buf, len},
			  &(struct fi_rma_iov){.addr = addr, .len = len, .key = key});
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return post_write(ep_of(fid),
			  (struct rma){.flags = FI_INJECT | FI_REMOTE_CQ_DATA,
				       .addr = dest_addr,
				       .data = data},
			  &(struct iovec){(void *)(uintptr_t)buf, len},
			  &(struct fi_rma_iov){.addr = addr, .len = len, .key = key});
}

const struct fi_ops_rma ENTRY_RMA = {
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
