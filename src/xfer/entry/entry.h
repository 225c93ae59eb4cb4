/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Template: what the calls of the msg table do, for entry/entry_msg.h, and the entries of the tagged table. Included by entry_st.c (without the lock: the application
 * promised one thread at a time), entry_mt.c and entry_pair.c (with the domain's lock). So no call tests at run time
 * whether to lock. The includer defines ENTRY_LOCK(ep), ENTRY_UNLOCK(ep) and ENTRY_ADDR(addr), the index
 * into worker->conn.peers for an address on the fast path.
 */
#include <rdma/fi_errno.h>

#include "entry/args.h"
#include "xfer/defer/defer.h"
#include "xfer/entry/entry_tables.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Flags of operations that take the slow path. */
#define TX_SLOW                                                                                    \
	(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE | FI_FENCE | FI_TRIGGER | FI_MORE | FI_MULTICAST)

#define MSG_HEAD    WIRE_HEAD(WIRE_MSG, 0, 0, 0)
#define TAGGED_HEAD WIRE_HEAD(WIRE_MSG, WIRE_TAGGED, 0, 0)
#define DATA_HEAD   WIRE_HEAD(0, WIRE_DATA, 0, 0)

/* Deferred work touches all of its domain: before it is posted there is one shard. Locked. */
static inline void before_trigger(struct ep *ep)
{
	if (ep->shard.shard == ep->dom->main_shard)
		return;
	ENTRY_UNLOCK(ep);
	shard_unite_now(ep->dom);
	ENTRY_LOCK(ep);
}

/* The slow path; releases the lock that the fast path took. */
static __attribute__((noinline, cold)) ssize_t post_slow(struct ep *ep, struct xfer x)
{
	ssize_t ret;

	if (x.flags & FI_TRIGGER)
		before_trigger(ep);
	ret = tx_slow(ep, x);
	ENTRY_UNLOCK(ep);
	return ret;
}

/*
 * x.flags holds the TX_KIND flags of the operation, a constant; *flags are the application's. An address with a receive
 * context index is larger than any index of worker->conn.peers, so it takes the slow path.
 */
static inline __attribute__((always_inline)) ssize_t entry_post(struct ep *ep, struct xfer x,
								const uint64_t *flags)
{
	/* Arguments for the slow path. In memory: registers would have to be saved and restored on the fast path. */
	volatile struct {
		const void *buf;
		size_t len;
		uint64_t tag;
		fi_addr_t addr;
	} again;
	struct worker *worker;
	struct link *link;

	if (MISUSED_BUFFER("send", x.iov || x.buf, x.len) || MISUSED_LIST("send", x.iov, x.count))
		return -FI_EINVAL;
	again.buf = x.buf;
	again.len = x.len;
	again.tag = x.tag;
	again.addr = x.addr;
	/* cppcheck-suppress selfAssignment ; in one table it is none */
	x.addr = ENTRY_ADDR(x.addr);
	ENTRY_LOCK(ep);
	worker = ep->worker;
	link = x.addr < worker->conn.peer_count ? worker->conn.peers[x.addr]->link
						: &contact_full_link;
	if (__builtin_expect(x.iov || *flags & TX_SLOW ||
				     link->ops->send(link, x.buf, x.len, x.data, x.head, x.tag),
			     0))
		/* Copied by member here, so that the fast path needs no memory for the struct. */
		return post_slow(ep, (struct xfer){.head = x.head,
						   .flags = x.flags | *flags,
						   .tag = again.tag,
						   .data = x.data,
						   .buf = again.buf,
						   .iov = x.iov,
						   .count = x.count,
						   .len = again.len,
						   .context = x.context,
						   .addr = again.addr});
	tx_complete(ep, x.flags, *flags, x.context);
	if (__builtin_expect(ep->tx_cntr != NULL, 0))
		tx_count(ep, again.len);
	ENTRY_UNLOCK(ep);
	return 0;
}

/* Plain sends use the endpoint's default flags. */
static inline __attribute__((always_inline)) ssize_t post_plain(struct ep *ep, struct xfer x)
{
	return entry_post(ep, x, &ep->tx_flags);
}

/* Injected sends have no completion and a bounded size. */
static inline __attribute__((always_inline)) ssize_t post_inject(struct ep *ep, struct xfer x)
{
	uint64_t flags = FI_INJECT;

	if (__builtin_expect(x.len > ep_inject_max(ep, x.flags), 0))
		return -FI_EMSGSIZE;
	return entry_post(ep, x, &flags);
}

/* A vector of one segment is sent like a plain buffer. */
static inline ssize_t entry_post_iov(struct ep *ep, struct xfer x, uint64_t flags,
				     const struct iovec *iov, size_t count)
{
	if (__builtin_expect(count == 1 && iov, 1)) {
		x.buf = iov->iov_base;
		x.len = iov->iov_len;
	} else if (count) {
		int err = IOV_ADD_UP(iov, iov_len, count, WIRE_IOV_MAX, &x.len);

		if (err)
			return err;
		x.iov = iov;
		x.count = count;
	}
	if (flags & FI_INJECT && x.len > ep_inject_max(ep, x.flags))
		return -FI_EMSGSIZE;
	return entry_post(ep, x, &flags);
}

/* Sends one buffer. `tagged` is a constant, and so are the bits of m.kind. */
static inline __attribute__((always_inline)) ssize_t send_one(struct ep *ep, bool tagged,
							      uint64_t tag, struct entry_msg m)
{
	struct xfer x = {.head = (tagged ? TAGGED_HEAD : MSG_HEAD) |
				 (m.kind & FI_REMOTE_CQ_DATA ? DATA_HEAD : 0),
			 .flags = (tagged ? FI_TAGGED : FI_MSG) | FI_SEND,
			 .tag = tag,
			 .data = m.data,
			 .buf = m.buf,
			 .len = m.len,
			 .context = m.context,
			 .addr = m.addr};

	return m.kind & FI_INJECT ? post_inject(ep, x) : post_plain(ep, x);
}

static inline __attribute__((always_inline)) ssize_t msg_send_one(struct ep *ep, struct entry_msg m)
{
	return send_one(ep, false, 0, m);
}

static ssize_t msg_send_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return entry_post_iov(
		ep,
		(struct xfer){.head = MSG_HEAD | (flags & FI_REMOTE_CQ_DATA ? DATA_HEAD : 0),
			      .flags = FI_MSG | FI_SEND,
			      .data = msg->data,
			      .context = msg->context,
			      .addr = msg->addr},
		flags, msg->msg_iov, msg->iov_count);
}

static ssize_t tagged_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			   fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)desc;
	return send_one(
		ep_of(fid), true, tag,
		(struct entry_msg){.buf = buf, .len = len, .addr = dest_addr, .context = context});
}

static ssize_t tagged_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			       uint64_t data, fi_addr_t dest_addr, uint64_t tag, void *context)
{
	(void)desc;
	return send_one(ep_of(fid), true, tag,
			(struct entry_msg){.buf = buf,
					   .len = len,
					   .addr = dest_addr,
					   .kind = FI_REMOTE_CQ_DATA,
					   .data = data,
					   .context = context});
}

static ssize_t tagged_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t dest_addr, uint64_t tag, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return entry_post_iov(ep,
			      (struct xfer){.head = TAGGED_HEAD,
					    .flags = FI_TAGGED | FI_SEND,
					    .tag = tag,
					    .context = context,
					    .addr = dest_addr},
			      ep->tx_flags, iov, count);
}

static ssize_t tagged_sendmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_tsendmsg", msg))
		return -FI_EINVAL;
	return entry_post_iov(
		ep,
		(struct xfer){.head = TAGGED_HEAD | (flags & FI_REMOTE_CQ_DATA ? DATA_HEAD : 0),
			      .flags = FI_TAGGED | FI_SEND,
			      .tag = msg->tag,
			      .data = msg->data,
			      .context = msg->context,
			      .addr = msg->addr},
		(flags & ep->tx_msg_mask) | ep->tx_msg_flags, msg->msg_iov, msg->iov_count);
}

static ssize_t tagged_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr,
			     uint64_t tag)
{
	return send_one(
		ep_of(fid), true, tag,
		(struct entry_msg){.buf = buf, .len = len, .addr = dest_addr, .kind = FI_INJECT});
}

static ssize_t tagged_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
				 fi_addr_t dest_addr, uint64_t tag)
{
	return send_one(ep_of(fid), true, tag,
			(struct entry_msg){.buf = buf,
					   .len = len,
					   .addr = dest_addr,
					   .kind = FI_INJECT | FI_REMOTE_CQ_DATA,
					   .data = data});
}

static inline ssize_t receive_locked(struct ep *ep, bool tagged, const struct recv_args *args)
{
	if (__builtin_expect((args->flags & FI_TRIGGER) != 0, 0)) {
		before_trigger(ep);
		return defer_recv(ep, tagged, args);
	}
	return rx_post(ep->rx, ep->worker, tagged, args);
}

static ssize_t entry_receive(struct ep *ep, bool tagged, const struct recv_args *args)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	ret = receive_locked(ep, tagged, args);
	ENTRY_UNLOCK(ep);
	return ret;
}

/* The slow path; releases the lock that the fast path took. */
static __attribute__((noinline)) ssize_t receive_slow(struct ep *ep, bool tagged,
						      struct recv_one one)
{
	struct iovec iov = {one.buf, one.len};
	ssize_t ret = receive_locked(ep, tagged,
				     &(struct recv_args){.iov = &iov,
							 .iov_count = 1,
							 .src = one.src,
							 .tag = one.tag,
							 .ignore = one.ignore,
							 .flags = one.flags,
							 .context = one.context});

	ENTRY_UNLOCK(ep);
	return ret;
}

static inline __attribute__((always_inline)) ssize_t receive_one(struct ep *ep, bool tagged,
								 struct recv_one one)
{
	if (MISUSED_BUFFER("receive", one.buf, one.len))
		return -FI_EINVAL;
	ENTRY_LOCK(ep);
	one.flags = ep_rx_flags(ep);
	if (__builtin_expect(!rx_post_one(ep->rx, tagged, one), 0))
		/* Copied by member here, so that the fast path needs no memory for the struct. */
		return receive_slow(ep, tagged,
				    (struct recv_one){.buf = one.buf,
						      .len = one.len,
						      .src = one.src,
						      .tag = one.tag,
						      .ignore = one.ignore,
						      .flags = one.flags,
						      .context = one.context});
	ENTRY_UNLOCK(ep);
	return 0;
}

static inline __attribute__((always_inline)) ssize_t
msg_recv_one(struct ep *ep, void *buf, size_t len, void *desc, fi_addr_t src, void *context)
{
	(void)desc;
	return receive_one(
		ep, false,
		(struct recv_one){.buf = buf, .len = len, .src = src, .context = context});
}

static ssize_t msg_recv_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	return entry_receive(ep, false,
			     &(struct recv_args){.iov = msg->msg_iov,
						 .iov_count = msg->iov_count,
						 .src = msg->addr,
						 .flags = flags,
						 .context = msg->context});
}

#define ENTRY_SEND_FLAGS(ep) ((ep)->tx_flags)
#include "entry/entry_msg.h"

static ssize_t tagged_recv(struct fid_ep *fid, void *buf, size_t len, void *desc,
			   fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	(void)desc;
	return receive_one(ep_of(fid), true,
			   (struct recv_one){.buf = buf,
					     .len = len,
					     .src = src_addr,
					     .tag = tag,
					     .ignore = ignore,
					     .context = context});
}

static ssize_t tagged_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			    fi_addr_t src_addr, uint64_t tag, uint64_t ignore, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc;

	return entry_receive(ep, true,
			     &(struct recv_args){.iov = iov,
						 .iov_count = count,
						 .src = src_addr,
						 .tag = tag,
						 .ignore = ignore,
						 .flags = ep_rx_flags(ep),
						 .context = context});
}

static ssize_t tagged_recvmsg(struct fid_ep *fid, const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_trecvmsg", msg))
		return -FI_EINVAL;
	return entry_receive(ep, true,
			     &(struct recv_args){.iov = msg->msg_iov,
						 .iov_count = msg->iov_count,
						 .src = msg->addr,
						 .tag = msg->tag,
						 .ignore = msg->ignore,
						 .flags = (flags & ~EP_ENDED) | ep_rx_msg_flags(ep),
						 .context = msg->context});
}

static const struct fi_ops_msg msg_ops = ENTRY_MSG_OPS;
static const struct fi_ops_tagged tagged_ops = ENTRY_TAGGED_OPS;
