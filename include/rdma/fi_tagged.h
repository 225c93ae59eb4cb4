/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tagged messages: a send carries a 64-bit tag and goes to the oldest posted receive that matches.
 * A receive matches a message if (message tag & ~ignore) == (receive tag & ~ignore) and, on an
 * endpoint with FI_DIRECTED_RECV, the sender is src_addr or src_addr is FI_ADDR_UNSPEC.
 * Man page: fi_tagged(3).
 *
 * Shared by every call below:
 *  - lengths are bytes, from 0 to fi_ep_attr.max_msg_size; iovec counts go up to the endpoint's
 *    iov_limit;
 *  - desc is fi_mr_desc() of the region that holds the buffer, needed only under FI_MR_LOCAL (or
 *    for device memory), else NULL; a vector form takes one descriptor per element, or NULL;
 *  - dest_addr comes from fi_av_insert(); connected endpoints ignore it, and src_addr too;
 *  - buffers belong to the library from a successful call until the completion; iovec, desc and
 *    msg structures are read before the call returns and may live on the stack;
 *  - context is handed back in the completion; under FI_CONTEXT or FI_CONTEXT2 it points to a
 *    struct fi_context or fi_context2 that the library may write until then;
 *  - 0 means accepted, not done.  -FI_EAGAIN: no room now, read the completion queue and try
 *    again.  -FI_EINVAL, -FI_EMSGSIZE, -FI_EOPNOTSUPP, -FI_EOPBADSTATE and others: refused for
 *    good.  A refused call leaves nothing posted and gives no completion.
 */
#ifndef FI_TAGGED_H
#define FI_TAGGED_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ignore masks for tags laid out by fi_tag_mpi(): any MPI tag, any payload id. */
#define FI_MPI_IGNORE_TAG     UINT64_C(0x00000000ffffffff)
#define FI_MPI_IGNORE_PAYLOAD UINT64_C(0x000000ff00000000)

/* One tagged send or receive as the msg calls take it; `ignore` matters to receives only. */
struct fi_msg_tagged {
	const struct iovec *msg_iov; /* local buffers, in order */
	void **desc;                 /* one per buffer, or NULL */
	size_t iov_count;            /* entries in msg_iov, 0 for an empty message */
	fi_addr_t addr;              /* peer: destination, or the only source wanted */
	uint64_t tag;
	uint64_t ignore; /* tag bits that need not match */
	void *context;
	uint64_t data; /* remote CQ data, sent with FI_REMOTE_CQ_DATA */
};

/* The endpoint's table; `size` is the size known to the library that filled it, no member is NULL. */
struct fi_ops_tagged {
	size_t size;
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
			  uint64_t tag);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr, uint64_t tag);
};

/*
 * Post one buffer for one message.  A message longer than len fills the buffer and completes in
 * error with FI_ETRUNC.  fi_tagged(3)
 */
WEFT_CALL ssize_t fi_trecv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			   uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recv(ep, buf, len, desc, src_addr, tag, ignore, context);
}

/* fi_trecv() into `count` buffers, filled one after the other by a single message.  fi_tagged(3) */
WEFT_CALL ssize_t fi_trecvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	return ep->tagged->recvv(ep, iov, desc, count, src_addr, tag, ignore, context);
}

/*
 * Receive with flags of its own, which replace the endpoint's default rx flags: FI_COMPLETION,
 * FI_MORE, FI_MULTI_RECV, and for messages that already arrived
 *  FI_PEEK		report a matching message in the CQ without receiving it; none there is an
 *			error completion with FI_ENOMSG; nothing stays posted
 *  FI_PEEK|FI_CLAIM	as above, and keep the message for this context (a struct fi_context)
 *  FI_CLAIM		receive the message that the same context claimed before
 *  FI_DISCARD		with FI_PEEK or FI_CLAIM: drop the message instead; buffers are ignored
 * fi_tagged(3)
 */
WEFT_CALL ssize_t fi_trecvmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return ep->tagged->recvmsg(ep, msg, flags);
}

/* Send len bytes as one message with this tag.  fi_tagged(3) */
WEFT_CALL ssize_t fi_tsend(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			   fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->send(ep, buf, len, desc, dest_addr, tag, context);
}

/* fi_tsend() that gathers `count` buffers into one message.  fi_tagged(3) */
WEFT_CALL ssize_t fi_tsendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->sendv(ep, iov, desc, count, dest_addr, tag, context);
}

/*
 * Send with flags of its own, which replace the endpoint's default tx flags: FI_COMPLETION,
 * FI_MORE, FI_INJECT (up to inject_size bytes, buffer free on return), FI_REMOTE_CQ_DATA,
 * FI_FENCE, and one of FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE and
 * FI_MATCH_COMPLETE to say when the send counts as complete.  fi_tagged(3)
 */
WEFT_CALL ssize_t fi_tsendmsg(struct fid_ep *ep, const struct fi_msg_tagged *msg, uint64_t flags)
{
	return ep->tagged->sendmsg(ep, msg, flags);
}

/*
 * Send up to fi_tx_attr.inject_size bytes; buf is the caller's again on return and success gives
 * no CQ entry, whatever the endpoint's flags (counters do count).  fi_tagged(3)
 */
WEFT_CALL ssize_t fi_tinject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr,
			     uint64_t tag)
{
	return ep->tagged->inject(ep, buf, len, dest_addr, tag);
}

/*
 * fi_tsend() that also carries `data` into the receiver's completion.  Only the low
 * fi_domain_attr.cq_data_size bytes of it travel.  fi_tagged(3)
 */
WEFT_CALL ssize_t fi_tsenddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	return ep->tagged->senddata(ep, buf, len, desc, data, dest_addr, tag, context);
}

/* fi_tinject() with remote CQ data, as in fi_tsenddata().  fi_tagged(3) */
WEFT_CALL ssize_t fi_tinjectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest_addr, uint64_t tag)
{
	return ep->tagged->injectdata(ep, buf, len, data, dest_addr, tag);
}

/*
 * The tag of an MPI message on an endpoint whose mem_tag_format is FI_TAG_MPI: payload_id in bits
 * 32 to 39 above the 32 bits of the MPI tag.  Cannot fail.  fi_endpoint(3)
 */
WEFT_CALL uint64_t fi_tag_mpi(int tag, uint8_t payload_id)
{
	return ((uint64_t)payload_id << 32) | (uint32_t)tag;
}

#ifdef __cplusplus
}
#endif

#endif /* FI_TAGGED_H */
