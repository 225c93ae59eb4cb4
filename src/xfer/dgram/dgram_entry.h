/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the calls of a datagram endpoint do, for the template entry/entry_msg.h. dgram_st.c and dgram_mt.c include it
 * and define ENTRY_LOCK(ep), ENTRY_UNLOCK(ep) and DGRAM_TABLE, as for entry.h.
 */
#include <rdma/fi_errno.h>

#include "entry/args.h"
#include "xfer/dgram/dgram.h"
#include "xfer/msg/tx.h"

static ssize_t dgram_entry_post(struct ep *ep, const struct xfer *x)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	ret = dgram_send(ep, x);
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t dgram_entry_refuse(struct ep *ep, uint64_t flags, int err)
{
	ENTRY_LOCK(ep);
	err = dgram_refuse(ep, flags, err);
	ENTRY_UNLOCK(ep);
	return err;
}

/* A datagram has no field for remote CQ data. */
static ssize_t msg_send_one(struct ep *ep, struct entry_msg m)
{
	if (m.kind & FI_REMOTE_CQ_DATA)
		return dgram_entry_refuse(ep, 0, -FI_EOPNOTSUPP);
	return dgram_entry_post(
		ep, &(struct xfer){.flags = m.kind ? m.kind | (ep->tx_flags & FI_MULTICAST)
						   : ep->tx_flags,
				   .buf = m.buf,
				   .len = m.len,
				   .context = m.context,
				   .addr = m.addr});
}

static ssize_t msg_send_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct xfer x = {.flags = flags,
			 .iov = msg->msg_iov,
			 .count = msg->iov_count,
			 .context = msg->context,
			 .addr = msg->addr};
	int err = IOV_ADD_UP(x.iov, iov_len, x.count, WIRE_IOV_MAX, &x.len);

	return err ? dgram_entry_refuse(ep, flags, err) : dgram_entry_post(ep, &x);
}

static ssize_t msg_recv_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	ret = dgram_recv(ep, &(struct recv_args){.iov = msg->msg_iov,
						 .iov_count = msg->iov_count,
						 .flags = flags,
						 .context = msg->context});
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t msg_recv_one(struct ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			    void *context)
{
	struct iovec iov = {buf, len};
	(void)desc, (void)src;

	return msg_recv_list(ep,
			     &(struct fi_msg){.msg_iov = &iov, .iov_count = 1, .context = context},
			     ep_rx_flags(ep));
}

#define ENTRY_SEND_FLAGS(ep) ((ep)->tx_flags)
#include "entry/entry_msg.h"

static const struct fi_ops_msg msg_ops = ENTRY_MSG_OPS;
const struct entry_tables DGRAM_TABLE = {.msg = &msg_ops,
					 .tagged = &refuse_support.tagged,
					 .rma = &refuse_support.rma,
					 .atomic = &refuse_support.atomic};
