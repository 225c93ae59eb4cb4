/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: the entries of a msg table, fi_msg(3). The including file is the implementation. It
 * includes entry/args.h and core/ep.h, and defines before:
 *   msg_send_one(ep, struct entry_msg)            sends one buffer
 *   msg_send_list(ep, fi_msg, flags)              sends a list of segments
 *   msg_recv_one(ep, buf, len, desc, src, context)    receives into one buffer, by the default flags
 *   msg_recv_list(ep, fi_msg, flags)              receives into a list of segments
 *   ENTRY_SEND_FLAGS(ep)                          the default flags of a send
 */

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, void *context)
{
	return msg_send_one(ep_of(fid), (struct entry_msg){.buf = buf,
							   .len = len,
							   .desc = desc,
							   .addr = dest_addr,
							   .context = context});
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, void *context)
{
	return msg_send_one(ep_of(fid), (struct entry_msg){.buf = buf,
							   .len = len,
							   .desc = desc,
							   .addr = dest_addr,
							   .kind = FI_REMOTE_CQ_DATA,
							   .data = data,
							   .context = context});
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr)
{
	return msg_send_one(
		ep_of(fid),
		(struct entry_msg){.buf = buf, .len = len, .addr = dest_addr, .kind = FI_INJECT});
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr)
{
	return msg_send_one(ep_of(fid), (struct entry_msg){.buf = buf,
							   .len = len,
							   .addr = dest_addr,
							   .kind = FI_INJECT | FI_REMOTE_CQ_DATA,
							   .data = data});
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);

	return msg_send_list(ep,
			     &(struct fi_msg){.msg_iov = iov,
					      .desc = desc,
					      .iov_count = count,
					      .addr = dest_addr,
					      .context = context},
			     ENTRY_SEND_FLAGS(ep));
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_sendmsg", msg))
		return -FI_EINVAL;
	return msg_send_list(ep, msg, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			void *context)
{
	return msg_recv_one(ep_of(fid), buf, len, desc, src_addr, context);
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, void *context)
{
	struct ep *ep = ep_of(fid);

	return msg_recv_list(ep,
			     &(struct fi_msg){.msg_iov = iov,
					      .desc = desc,
					      .iov_count = count,
					      .addr = src_addr,
					      .context = context},
			     ep_rx_flags(ep));
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_recvmsg", msg))
		return -FI_EINVAL;
	return msg_recv_list(ep, msg, (flags & ~EP_ENDED) | ep_rx_msg_flags(ep));
}
