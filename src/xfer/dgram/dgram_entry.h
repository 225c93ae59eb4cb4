/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template of the entry functions in the msg table of a datagram endpoint. dgram_st.c and
 * dgram_mt.c include it and define ENTRY_LOCK(ep), ENTRY_UNLOCK(ep) and DGRAM_TABLE, as for
 * entry.h.
 */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/misuse.h"
#include "xfer/dgram/dgram.h"
#include "xfer/msg/tx.h"

static ssize_t post(struct ep *ep, const struct xfer *x)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	ret = dgram_send(ep, x);
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t refuse(struct ep *ep, uint64_t flags, int err)
{
	ENTRY_LOCK(ep);
	err = dgram_refuse(ep, flags, err);
	ENTRY_UNLOCK(ep);
	return err;
}

static ssize_t post_iov(struct ep *ep, struct xfer x)
{
	int err = IOV_ADD_UP(x.iov, iov_len, x.count, WIRE_IOV_MAX, &x.len);

	return err ? refuse(ep, x.flags, err) : post(ep, &x);
}

static ssize_t dgram_msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			      fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return post(ep, &(struct xfer){.flags = ep->tx_flags,
				       .buf = buf,
				       .len = len,
				       .context = context,
				       .addr = dest_addr});
}

static ssize_t dgram_msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return post_iov(ep, (struct xfer){.flags = ep->tx_flags,
					  .iov = iov,
					  .count = count,
					  .context = context,
					  .addr = dest_addr});
}

static ssize_t dgram_msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_sendmsg", msg))
		return -FI_EINVAL;
	return post_iov(ep, (struct xfer){.flags = (flags & ep->tx_msg_mask) | ep->tx_msg_flags,
					  .iov = msg->msg_iov,
					  .count = msg->iov_count,
					  .context = msg->context,
					  .addr = msg->addr});
}

static ssize_t dgram_msg_inject(struct fid_ep *fid, const void *buf, size_t len,
				fi_addr_t dest_addr)
{
	struct ep *ep = ep_of(fid);

	return post(ep, &(struct xfer){.flags = FI_INJECT | (ep->tx_flags & FI_MULTICAST),
				       .buf = buf,
				       .len = len,
				       .addr = dest_addr});
}

/* A datagram has no field for remote CQ data. */
static ssize_t no_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			   uint64_t data, fi_addr_t dest_addr, void *context)
{
	(void)buf, (void)len, (void)desc, (void)data, (void)dest_addr, (void)context;
	return refuse(ep_of(fid), 0, -FI_EOPNOTSUPP);
}

static ssize_t no_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			     fi_addr_t dest_addr)
{
	(void)buf, (void)len, (void)data, (void)dest_addr;
	return refuse(ep_of(fid), 0, -FI_EOPNOTSUPP);
}

static ssize_t receive(struct ep *ep, const struct recv_args *args)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	ret = dgram_recv(ep, args);
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t dgram_msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			      fi_addr_t src_addr, void *context)
{
	struct iovec iov = {buf, len};
	struct ep *ep = ep_of(fid);
	(void)desc, (void)src_addr;

	return receive(ep, &(struct recv_args){.iov = &iov,
					       .iov_count = 1,
					       .flags = ep_rx_flags(ep),
					       .context = context});
}

static ssize_t dgram_msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc,
			       size_t count, fi_addr_t src_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)src_addr;

	return receive(ep, &(struct recv_args){.iov = iov,
					       .iov_count = count,
					       .flags = ep_rx_flags(ep),
					       .context = context});
}

static ssize_t dgram_msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_recvmsg", msg))
		return -FI_EINVAL;
	return receive(ep, &(struct recv_args){.iov = msg->msg_iov,
					       .iov_count = msg->iov_count,
					       .flags = flags | ep_rx_msg_flags(ep),
					       .context = msg->context});
}

const struct fi_ops_msg DGRAM_TABLE = {
	.size = sizeof(struct fi_ops_msg),
	.recv = dgram_msg_recv,
	.recvv = dgram_msg_recvv,
	.recvmsg = dgram_msg_recvmsg,
	.send = dgram_msg_send,
	.sendv = dgram_msg_sendv,
	.sendmsg = dgram_msg_sendmsg,
	.inject = dgram_msg_inject,
	.senddata = no_senddata,
	.injectdata = no_injectdata,
};
