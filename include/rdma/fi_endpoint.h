/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints fi_endpoint(3) and plain messages fi_msg(3).
 *
 * Calls return 0 or a negative FI_E* unless said otherwise.  A transfer that returns 0 is under
 * way: its buffers, and context where the mode FI_CONTEXT is set, belong to the library until the
 * completion; its arrays (iov, desc, struct fi_msg) only until the call returns.  -FI_EAGAIN: no
 * room now, read the completion queue and post again.  Lengths are bytes.
 */
#ifndef RDMA_FI_ENDPOINT_H
#define RDMA_FI_ENDPOINT_H

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Level of fi_getopt and fi_setopt. */
enum {
	FI_OPT_ENDPOINT
};

/* Options of that level, with the type optval points to. */
enum {
	/*
	 * size_t, bytes: less free space releases a FI_MULTI_RECV buffer; default 4096 on shm, else
	 * 16384
	 */
	FI_OPT_MIN_MULTI_RECV,
	FI_OPT_CM_DATA_SIZE,            /* size_t, read only: bytes of user data, see fi_connect */
	FI_OPT_BUFFERED_MIN,            /* size_t, API 1.x */
	FI_OPT_BUFFERED_LIMIT,          /* size_t, API 1.x */
	FI_OPT_SEND_BUF_SIZE,           /* size_t: socket buffer */
	FI_OPT_RECV_BUF_SIZE,           /* size_t: socket buffer */
	FI_OPT_TX_SIZE,                 /* size_t: maximum transmits in flight */
	FI_OPT_RX_SIZE,                 /* size_t: maximum posted receives */
	FI_OPT_FI_HMEM_P2P,             /* int: FI_HMEM_P2P_*; _REQUIRED is refused */
	FI_OPT_XPU_TRIGGER,             /* struct fi_trigger_xpu, read only */
	FI_OPT_CUDA_API_PERMITTED,      /* bool: the library may call CUDA */
	FI_OPT_SHARED_MEMORY_PERMITTED, /* bool: shared memory may be used within a host */
	FI_OPT_MAX_MSG_SIZE,            /* size_t: longest message ... */
	FI_OPT_MAX_TAGGED_SIZE,
	FI_OPT_MAX_RMA_SIZE,
	FI_OPT_MAX_ATOMIC_SIZE,
	FI_OPT_INJECT_MSG_SIZE,         /* size_t: longest injected message ...; up to inject_size */
	FI_OPT_INJECT_TAGGED_SIZE,
	FI_OPT_INJECT_RMA_SIZE,
	FI_OPT_INJECT_ATOMIC_SIZE,
	FI_OPT_FIREWALL_ADDR            /* bool: peers cannot connect to this endpoint, it connects */
};

/* Values of FI_OPT_FI_HMEM_P2P: transfers between a device and the NIC without the CPU. */
enum {
	FI_HMEM_P2P_ENABLED,   /* where it is faster */
	FI_HMEM_P2P_REQUIRED,  /* else the transfer fails */
	FI_HMEM_P2P_PREFERRED, /* else copied */
	FI_HMEM_P2P_DISABLED
};

/* ---- Objects --------------------------------------------------------------------------------- */

struct fi_ops_ep {
	size_t size; /* bytes of this table that its writer knows; so in each table below */
	ssize_t (*cancel)(fid_t fid, void *context);
	int (*getopt)(fid_t fid, int level, int optname, void *optval, size_t *optlen);
	int (*setopt)(fid_t fid, int level, int optname, const void *optval, size_t optlen);
	int (*tx_ctx)(struct fid_ep *sep, int idx, struct fi_tx_attr *attr, struct fid_ep **tx_ep,
		      void *context);
	int (*rx_ctx)(struct fid_ep *sep, int idx, struct fi_rx_attr *attr, struct fid_ep **rx_ep,
		      void *context);
	ssize_t (*rx_size_left)(struct fid_ep *ep);
	ssize_t (*tx_size_left)(struct fid_ep *ep);
#ifdef WEFT_API_2_7
	int (*export_xpu)(void); /* parameters not settled; -FI_ENOSYS */
#endif
};

/* Message of fi_sendmsg and fi_recvmsg. */
struct fi_msg {
	const struct iovec *msg_iov;
	void **desc;      /* one for each iov entry, or NULL; see fi_mr_desc */
	size_t iov_count; /* up to iov_limit */
	fi_addr_t addr;   /* destination, or the source to receive from */
	void *context;
	uint64_t data; /* sent with FI_REMOTE_CQ_DATA */
};

struct fi_ops_msg {
	size_t size;
	ssize_t (*recv)(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			void *context);
	ssize_t (*recvv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, void *context);
	ssize_t (*recvmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, void *context);
	ssize_t (*sendv)(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, void *context);
	ssize_t (*sendmsg)(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags);
	ssize_t (*inject)(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr);
	ssize_t (*senddata)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, void *context);
	ssize_t (*injectdata)(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr);
};

struct fi_ops_cm;
struct fi_ops_rma;
struct fi_ops_tagged;
struct fi_ops_atomic;
struct fi_ops_collective;

/* An endpoint, a scalable endpoint, or a transmit, receive or shared receive context. */
struct fid_ep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_tagged *tagged;
	struct fi_ops_atomic *atomic;
	struct fi_ops_collective *collective;
};

/* A passive endpoint, which listens. */
struct fid_pep {
	struct fid fid;
	struct fi_ops_ep *ops;
	struct fi_ops_cm *cm;
};

/* A transmit context that several endpoints share. */
struct fid_stx {
	struct fid fid;
	struct fi_ops_ep *ops;
};

/* ---- Calls: opening, binding, control -------------------------------------------------------- */

/*
 * Opens a passive endpoint as info describes. Bind an event queue, then call fi_listen.
 * fi_endpoint(3)
 */
WEFT_CALL int fi_passive_ep(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
			    void *context)
{
	return fabric->ops->passive_ep(fabric, info, pep, context);
}

/*
 * Opens an endpoint as info describes; info is only read. To accept a connection, pass the info of
 * FI_CONNREQ. Bind queues and an address vector, then call fi_enable. fi_endpoint(3)
 */
WEFT_CALL int fi_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			  void *context)
{
	return domain->ops->endpoint(domain, info, ep, context);
}

/*
 * As fi_endpoint; flags: FI_PEER_TRANSFER, context then is a struct fi_peer_transfer_context.
 * fi_endpoint(3)
 */
WEFT_CALL int fi_endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
			   uint64_t flags, void *context)
{
	if (!flags)
		return fi_endpoint(domain, info, ep, context);
	if (!FI_CHECK_OP(domain->ops, struct fi_ops_domain, endpoint2))
		return -FI_ENOSYS;
	return domain->ops->endpoint2(domain, info, ep, flags, context);
}

/*
 * Opens an endpoint with one address and several transmit and receive contexts: tx_ctx_cnt and
 * rx_ctx_cnt of info->ep_attr. fi_endpoint(3)
 */
WEFT_CALL int fi_scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **sep,
			     void *context)
{
	return domain->ops->scalable_ep(domain, info, sep, context);
}

/*
 * Binds bfid to the endpoint, before fi_enable: a completion queue (flags FI_TRANSMIT, FI_RECV,
 * FI_SELECTIVE_COMPLETION), a counter (FI_SEND FI_RECV FI_READ FI_WRITE FI_REMOTE_*), an event
 * queue, an address vector or a shared context (0). One queue and one counter per kind of
 * operation.
 * After fi_enable, queues, counters and shared transmit contexts can still be bound; they serve
 * operations posted, or messages received, from then on. -FI_EOPBADSTATE then for: an address
 * vector; a shared receive context; queues and counters if a device has the endpoint's queue pair;
 * the first counter of FI_REMOTE_* once a peer has connected over RDMA.
 * A shared transmit context may be closed before the endpoint. -FI_EINVAL, -FI_EDOMAIN.
 * fi_endpoint(3)
 */
WEFT_CALL int fi_ep_bind(struct fid_ep *ep, struct fid *bfid, uint64_t flags)
{
	return ep->fid.ops->bind(&ep->fid, bfid, flags);
}

/* Binds an event queue to a passive endpoint; flags 0. fi_endpoint(3) */
WEFT_CALL int fi_pep_bind(struct fid_pep *pep, struct fid *bfid, uint64_t flags)
{
	return pep->fid.ops->bind(&pep->fid, bfid, flags);
}

/* Binds an address vector to a scalable endpoint and all its contexts; flags 0. fi_endpoint(3) */
WEFT_CALL int fi_scalable_ep_bind(struct fid_ep *sep, struct fid *bfid, uint64_t flags)
{
	return sep->fid.ops->bind(&sep->fid, bfid, flags);
}

/*
 * Enables the endpoint or context for transfers; 0 also if it is enabled. -FI_ENOCQ, -FI_ENOAV,
 * -FI_ENOEQ: a queue or address vector must be bound first. fi_endpoint(3)
 */
WEFT_CALL int fi_enable(struct fid_ep *ep)
{
	return ep->fid.ops->control(&ep->fid, FI_ENABLE, NULL);
}

/*
 * Cancels one operation posted with this context, if still possible: it completes with
 * FI_ECANCELED. Returns 0 also if it is too late. fid: an endpoint or context. fi_endpoint(3)
 */
WEFT_CALL ssize_t fi_cancel(fid_t fid, void *context)
{
	struct fid_ep *ep = (struct fid_ep *) fid;

	return ep->ops->cancel(fid, context);
}

/*
 * Sets option FI_OPT_* to the optlen bytes at optval. fid: an endpoint, passive endpoint or
 * context. -FI_ENOPROTOOPT: unknown option, or read only; -FI_EINVAL: wrong optlen or value;
 * -FI_EOPNOTSUPP: value not supported. fi_endpoint(3)
 */
WEFT_CALL int fi_setopt(fid_t fid, int level, int optname, const void *optval, size_t optlen)
{
	struct fid_ep *ep = (struct fid_ep *) fid;

	return ep->ops->setopt(fid, level, optname, optval, optlen);
}

/*
 * Reads an option into optval. *optlen: space on entry, bytes written on return. -FI_ETOOSMALL,
 * -FI_ENOPROTOOPT. fi_endpoint(3)
 */
WEFT_CALL int fi_getopt(fid_t fid, int level, int optname, void *optval, size_t *optlen)
{
	struct fid_ep *ep = (struct fid_ep *) fid;

	return ep->ops->getopt(fid, level, optname, optval, optlen);
}

/*
 * Opens a second handle to the endpoint with other default flags: FI_TRANSMIT or FI_RECV, and the
 * flags for that side. Close it like an endpoint. fi_endpoint(3)
 */
WEFT_CALL int fi_ep_alias(struct fid_ep *ep, struct fid_ep **alias_ep, uint64_t flags)
{
	struct fid *alias;
	int ret = fi_alias(&ep->fid, &alias, flags);

	if (!ret)
		*alias_ep = (struct fid_ep *) alias;
	return ret;
}

/* Opens transmit context idx, from 0, of a scalable endpoint; attr may be NULL.  fi_endpoint(3) */
WEFT_CALL int fi_tx_context(struct fid_ep *ep, int idx, struct fi_tx_attr *attr,
			    struct fid_ep **tx_ep, void *context)
{
	return ep->ops->tx_ctx(ep, idx, attr, tx_ep, context);
}

/* Opens receive context idx, from 0, of a scalable endpoint; attr may be NULL.  fi_endpoint(3) */
WEFT_CALL int fi_rx_context(struct fid_ep *ep, int idx, struct fi_rx_attr *attr,
			    struct fid_ep **rx_ep, void *context)
{
	return ep->ops->rx_ctx(ep, idx, attr, rx_ep, context);
}

/* Opens a transmit context that endpoints with FI_SHARED_CONTEXT can share.  fi_endpoint(3) */
WEFT_CALL int fi_stx_context(struct fid_domain *domain, struct fi_tx_attr *attr,
			     struct fid_stx **stx, void *context)
{
	return domain->ops->stx_ctx(domain, attr, stx, context);
}

/* Opens a receive context that endpoints with FI_SHARED_CONTEXT can share.  fi_endpoint(3) */
WEFT_CALL int fi_srx_context(struct fid_domain *domain, struct fi_rx_attr *attr,
			     struct fid_ep **rx_ep, void *context)
{
	return domain->ops->srx_ctx(domain, attr, rx_ep, context);
}

/* Returns a number of receives that can be posted without -FI_EAGAIN. API 1.x. fi_endpoint(3) */
FI_DEPRECATED_FUNC WEFT_CALL ssize_t fi_rx_size_left(struct fid_ep *ep)
{
	return ep->ops->rx_size_left(ep);
}

/* Returns a number of transmits that can be posted without -FI_EAGAIN. API 1.x. fi_endpoint(3) */
FI_DEPRECATED_FUNC WEFT_CALL ssize_t fi_tx_size_left(struct fid_ep *ep)
{
	return ep->ops->tx_size_left(ep);
}

/* ---- Calls: messages ------------------------------------------------------------------------- */

/*
 * Posts a buffer for one message. desc: fi_mr_desc of its region; NULL without FI_MR_LOCAL.
 * src_addr: the only source, with FI_DIRECTED_RECV; FI_ADDR_UNSPEC: any. A longer message fails
 * with FI_ETRUNC. fi_msg(3)
 */
WEFT_CALL ssize_t fi_recv(struct fid_ep *ep, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			  void *context)
{
	return ep->msg->recv(ep, buf, len, desc, src_addr, context);
}

/* As fi_recv, into count segments in order, at most iov_limit. fi_msg(3) */
WEFT_CALL ssize_t fi_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t src_addr, void *context)
{
	return ep->msg->recvv(ep, iov, desc, count, src_addr, context);
}

/*
 * As fi_recv, with arguments in msg; flags: FI_COMPLETION FI_MORE FI_MULTI_RECV. FI_AUTH_KEY with a
 * key as the source is refused, -FI_EOPNOTSUPP. fi_msg(3)
 */
WEFT_CALL ssize_t fi_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->recvmsg(ep, msg, flags);
}

/*
 * Sends len bytes, at most max_msg_size, as one message. dest_addr is ignored if ep is connected.
 * op_flags of struct fi_tx_attr say what the completion guarantees. fi_msg(3)
 */
WEFT_CALL ssize_t fi_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			  fi_addr_t dest_addr, void *context)
{
	return ep->msg->send(ep, buf, len, desc, dest_addr, context);
}

/* As fi_send, from count segments in order, at most iov_limit. fi_msg(3) */
WEFT_CALL ssize_t fi_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc, size_t count,
			   fi_addr_t dest_addr, void *context)
{
	return ep->msg->sendv(ep, iov, desc, count, dest_addr, context);
}

/*
 * As fi_send, with arguments in msg; flags: FI_COMPLETION FI_MORE FI_INJECT FI_REMOTE_CQ_DATA
 * FI_FENCE FI_MULTICAST and one of FI_*_COMPLETE; they replace op_flags. fi_msg(3)
 */
WEFT_CALL ssize_t fi_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return ep->msg->sendmsg(ep, msg, flags);
}

/*
 * Sends up to inject_size bytes. The caller may reuse buf at once, and success gives no completion.
 * fi_msg(3)
 * 0 means that the message is delivered if the receiver lives, even if the sender ends. So the call
 * returns -FI_EAGAIN until the peer is connected; the first call begins to connect, and progress
 * calls finish that. If connecting fails, the next call returns the error.
 */
WEFT_CALL ssize_t fi_inject(struct fid_ep *ep, const void *buf, size_t len, fi_addr_t dest_addr)
{
	return ep->msg->inject(ep, buf, len, dest_addr);
}

/* As fi_send; the receiver's completion carries cq_data_size bytes of data.  fi_msg(3) */
WEFT_CALL ssize_t fi_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			      uint64_t data, fi_addr_t dest_addr, void *context)
{
	return ep->msg->senddata(ep, buf, len, desc, data, dest_addr, context);
}

/* fi_inject and fi_senddata in one.  fi_msg(3) */
WEFT_CALL ssize_t fi_injectdata(struct fid_ep *ep, const void *buf, size_t len, uint64_t data,
				fi_addr_t dest_addr)
{
	return ep->msg->injectdata(ep, buf, len, data, dest_addr);
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_ENDPOINT_H */
