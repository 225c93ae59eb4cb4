/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote memory access: read and write registered memory of a peer without calls of the peer.
 * Man page: fi_rma(3).
 *
 * Shared by every call below:
 *  - lengths are bytes, from 0 to fi_ep_attr.max_msg_size;
 *  - (addr, key) name the target: key is the peer's fi_mr_key(); addr is the peer's virtual
 *    address under FI_MR_VIRT_ADDR, else an offset from the start of the region.  The region must
 *    have been registered with FI_REMOTE_READ or FI_REMOTE_WRITE, whichever fits;
 *  - desc is fi_mr_desc() of the local region, needed only under FI_MR_LOCAL (or for device
 *    memory), else NULL; a vector form takes one per element, or NULL;
 *  - the peer's address is ignored by connected endpoints;
 *  - buffers belong to the library until the completion; iovec, desc and msg structures only for
 *    the call;
 *  - 0 means accepted.  -FI_EAGAIN: no space now, read the completion queue and try again.  Other
 *    negative FI_E* are final.  A request that the target refuses gives an error completion and has
 *    changed no memory.  FI_EACCES: the key names no region (prov_errno FI_ENOKEY), or the region
 *    lacks the right; FI_EINVAL: the range is outside the region;
 *  - a completion, or a counter that grows, means that the target's memory holds the data, or
 *    that the data read have arrived, for each completion level.
 */
#ifndef FI_RMA_H
#define FI_RMA_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A range of bytes in a peer's region. */
struct fi_rma_iov {
	uint64_t addr;		/* virtual address or offset, as the region's mr_mode says */
	size_t len;		/* bytes */
	uint64_t key;
};

/* A range of elements in a peer's region, for atomics. */
struct fi_rma_ioc {
	uint64_t addr;		/* as in fi_rma_iov; aligned to the datatype */
	size_t count;		/* elements, not bytes */
	uint64_t key;
};

/* One read or write as the msg calls take it; local and remote byte totals must be equal. */
struct fi_msg_rma {
	const struct iovec *msg_iov;		/* local buffers */
	void **desc;				/* one per local buffer, or NULL */
	size_t iov_count;			/* up to iov_limit */
	fi_addr_t addr;				/* peer */
	const struct fi_rma_iov *rma_iov;	/* remote ranges */
	size_t rma_iov_count;			/* up to rma_iov_limit */
	void *context;
	uint64_t data;				/* remote CQ data, with FI_REMOTE_CQ_DATA */
};

/* The endpoint's table; no member is NULL. */
struct fi_ops_rma {
	size_t size;
	ssize_t (*read)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t addr, uint64_t key, void *context);
	ssize_t (*readv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*readmsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*write)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*writev)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context);
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t addr, uint64_t key);
	ssize_t (*writedata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			     uint64_t data, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t addr, uint64_t key);
};

/* Read len bytes at (addr, key) of src_addr into buf; complete once they are there.  fi_rma(3) */
WEFT_CALL ssize_t
fi_read(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr, uint64_t addr,
	uint64_t key, void *context)
{
	return ep->rma->read(ep, buf, len, desc, src_addr, addr, key, context);
}

/* fi_read() of one contiguous remote range, scattered over `count` local buffers.  fi_rma(3) */
WEFT_CALL ssize_t
fi_readv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	 fi_addr_t src_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->readv(ep, iov, desc, count, src_addr, addr, key, context);
}

/*
 * Read between lists, with flags instead of the endpoint's: FI_COMPLETION, FI_MORE, FI_FENCE.
 * fi_rma(3)
 */
WEFT_CALL ssize_t
fi_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->readmsg(ep, msg, flags);
}

/*
 * Write len bytes to (addr, key) of dest_addr.  The peer sees no event unless its endpoint has
 * FI_RMA_EVENT and a counter bound for it.  fi_rma(3)
 */
WEFT_CALL ssize_t
fi_write(struct fid_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t dest_addr,
	 uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->write(ep, buf, len, desc, dest_addr, addr, key, context);
}

/* fi_write() that gathers `count` local buffers into one contiguous remote range.  fi_rma(3) */
WEFT_CALL ssize_t
fi_writev(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
	  fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writev(ep, iov, desc, count, dest_addr, addr, key, context);
}

/*
 * Write between lists, with flags instead of the endpoint's: FI_COMPLETION, FI_MORE, FI_INJECT,
 * FI_REMOTE_CQ_DATA, FI_FENCE, and one of FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
 * FI_DELIVERY_COMPLETE and FI_COMMIT_COMPLETE (data made durable at the target).  fi_rma(3)
 */
WEFT_CALL ssize_t
fi_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	return ep->rma->writemsg(ep, msg, flags);
}

/*
 * Write up to inject_size bytes; buf is the caller's again on return and success gives no CQ
 * entry.  fi_rma(3)
 */
WEFT_CALL ssize_t
fi_inject_write(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr, uint64_t addr,
		uint64_t key)
{
	return ep->rma->inject(ep, buf, len, dest_addr, addr, key);
}

/*
 * fi_write() that, once the bytes are in place, also puts a completion with `data` (its low
 * cq_data_size bytes) and FI_REMOTE_CQ_DATA into the peer's receive CQ.  fi_rma(3)
 */
WEFT_CALL ssize_t
fi_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc, uint64_t data,
	     fi_addr_t dest_addr, uint64_t addr, uint64_t key, void *context)
{
	return ep->rma->writedata(ep, buf, len, desc, data, dest_addr, addr, key, context);
}

/* fi_inject_write() with remote CQ data, as in fi_writedata().  fi_rma(3) */
WEFT_CALL ssize_t
fi_inject_writedata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
		    fi_addr_t dest_addr, uint64_t addr, uint64_t key)
{
	return ep->rma->injectdata(ep, buf, len, data, dest_addr, addr, key);
}

#ifdef __cplusplus
}
#endif

#endif /* FI_RMA_H */
