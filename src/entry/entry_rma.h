/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: the entries of an rma table, fi_rma(3). The including file is the implementation. It
 * includes entry/args.h and core/ep.h, and defines before:
 *   ENTRY_READ_FLAGS(ep)          the default flags of a read
 *   ENTRY_MSG_FLAGS(ep, flags)    the flags of a ...msg call
 *   rma_one(ep, struct entry_rma, write)       posts an operation on one buffer and one range
 *   rma_lists(ep, fi_msg_rma, flags, write)    posts one on lists
 */

/* Posts an operation on a list and one range of the same length. `msg` lacks the range. */
static ssize_t rma_vector(struct ep *ep, struct fi_msg_rma *msg, struct fi_rma_iov range,
			  uint64_t flags, bool write)
{
	int err = IOV_ADD_UP(msg->msg_iov, iov_len, msg->iov_count, WIRE_IOV_MAX, &range.len);

	msg->rma_iov = &range;
	msg->rma_iov_count = 1;
	return err ? err : rma_lists(ep, msg, flags, write);
}

static ssize_t rma_read(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);

	return rma_one(ep,
		       (struct entry_rma){.local = &(struct iovec){buf, len},
					  .remote = &(struct fi_rma_iov){addr, len, key},
					  .desc = desc,
					  .addr = src_addr,
					  .flags = ENTRY_READ_FLAGS(ep),
					  .context = context},
		       false);
}

static ssize_t rma_readv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);

	return rma_vector(ep,
			  &(struct fi_msg_rma){.msg_iov = iov,
					       .desc = desc,
					       .iov_count = count,
					       .addr = src_addr,
					       .context = context},
			  (struct fi_rma_iov){.addr = addr, .key = key}, ENTRY_READ_FLAGS(ep),
			  false);
}

static ssize_t rma_readmsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_readmsg", msg))
		return -FI_EINVAL;
	return rma_lists(ep, msg, ENTRY_MSG_FLAGS(ep, flags), false);
}

static ssize_t rma_write(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);

	return rma_one(ep,
		       (struct entry_rma){.local = &(struct iovec){(void *)(uintptr_t)buf, len},
					  .remote = &(struct fi_rma_iov){addr, len, key},
					  .desc = desc,
					  .addr = dest_addr,
					  .flags = ep->tx_flags,
					  .context = context},
		       true);
}

static ssize_t rma_writev(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	struct ep *ep = ep_of(fid);

	return rma_vector(ep,
			  &(struct fi_msg_rma){.msg_iov = iov,
					       .desc = desc,
					       .iov_count = count,
					       .addr = dest_addr,
					       .context = context},
			  (struct fi_rma_iov){.addr = addr, .key = key}, ep->tx_flags, true);
}

static ssize_t rma_writemsg(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_writemsg", msg))
		return -FI_EINVAL;
	return rma_lists(ep, msg, ENTRY_MSG_FLAGS(ep, flags), true);
}

static ssize_t rma_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key)
{
	return rma_one(ep_of(fid),
		       (struct entry_rma){.local = &(struct iovec){(void *)(uintptr_t)buf, len},
					  .remote = &(struct fi_rma_iov){addr, len, key},
					  .addr = dest_addr,
					  .flags = FI_INJECT},
		       true);
}

static ssize_t rma_writedata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     void *context)
{
	struct ep *ep = ep_of(fid);

	return rma_one(ep,
		       (struct entry_rma){.local = &(struct iovec){(void *)(uintptr_t)buf, len},
					  .remote = &(struct fi_rma_iov){addr, len, key},
					  .desc = desc,
					  .addr = dest_addr,
					  .flags = ep->tx_flags | FI_REMOTE_CQ_DATA,
					  .data = data,
					  .context = context},
		       true);
}

static ssize_t rma_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return rma_one(ep_of(fid),
		       (struct entry_rma){.local = &(struct iovec){(void *)(uintptr_t)buf, len},
					  .remote = &(struct fi_rma_iov){addr, len, key},
					  .addr = dest_addr,
					  .flags = FI_INJECT | FI_REMOTE_CQ_DATA,
					  .data = data},
		       true);
}
