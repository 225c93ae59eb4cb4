/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the msg table of a bare queue pair. */
#include <arpa/inet.h>

#include "base/misuse.h"
#include "hw/verbs/rc/rc_post.h"
#include "hw/verbs/rc/rc_srx.h"

#define KIND (FI_MSG | FI_SEND)

/* Leaves fields of `wr` that a send does not use uninitialized. num_sge is 1 even without data. */
RC_INLINE ssize_t send_one(struct ep *ep, struct ibv_sge sge, bool keyed, struct rc_op op,
			   const uint64_t *data)
{
	struct ibv_send_wr wr;

	wr.next = NULL;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	if (data) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htonl((uint32_t)*data);
	}
	op.kind = KIND;
	return rc_post_out(ep, &wr, op, keyed);
}

static __attribute__((noinline, cold)) ssize_t send_unusual(struct ep *ep, const void *buf,
							    size_t len, void *desc, void *context)
{
	return send_one(ep, rc_sge(buf, len, desc), desc,
			(struct rc_op){.flags = rc_send_flags(ep), .context = context, .len = len},
			NULL);
}

/* Posts the prepared request. Domain locked, space checked. 0 or the device's error. */
RC_INLINE int send_ready(struct rc *rc, const void *buf, struct rc_op op, unsigned int send_flags)
{
	int err;

	rc->one_sge.addr = (uintptr_t)buf;
	rc->one_sge.length = (uint32_t)op.len;
	op.kind = KIND;
	rc_note(rc, &rc->one, op, send_flags);
	err = ibv_post_send(rc->qp, &rc->one, &rc->bad);
	if (__builtin_expect(!err, 1))
		rc->tx.posted++;
	return err;
}

/* Releases the lock, then takes the slow path. */
static __attribute__((noinline, cold)) ssize_t give_up(struct ep *ep, const void *buf, size_t len,
						       void *desc, void *context)
{
	lock_give(rc_of_ep(ep)->lock);
	return send_unusual(ep, buf, len, desc, context);
}

/* Releases the lock. Returns the error of a refused post. */
static __attribute__((noinline, cold)) ssize_t give_failed(struct rc *rc, int err)
{
	lock_give(rc->lock);
	return rc_error(err);
}

/* Only `rc` is live across a call, which saves instructions. */
static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	struct rc *rc = rc_of_ep(ep);
	struct rc_op op = {.flags = ep->tx_flags, .context = context, .len = len};
	unsigned int send_flags = IBV_SEND_INLINE;
	uint32_t lkey = 0;
	int err;
	(void)dest_addr;

	if (__builtin_expect(op.flags & (RC_SPECIAL | FI_INJECT), 0))
		goto unusual;
	if (len > rc->inline_most) {
		if (__builtin_expect(!desc || len > rc->message_most, 0))
			goto unusual;
		send_flags = 0;
		lkey = ((const struct mr *)desc)->lkey;
	}
	if (__builtin_expect(!lock_try(rc->lock), 0))
		goto unusual;
	if (__builtin_expect(rc->tx.posted == rc->gate, 0))
		return give_up(ep, buf, len, desc, context);
	rc->one_sge.lkey = lkey;
	err = send_ready(rc, buf, op, send_flags);
	if (__builtin_expect(err, 0))
		return give_failed(rc, err);
	lock_give(rc->lock);
	return 0;
unusual:
	return send_unusual(ep, buf, len, desc, context);
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t dest_addr)
{
	(void)dest_addr;
	return send_one(ep_of(fid), rc_sge(buf, len, NULL), false,
			(struct rc_op){.flags = FI_INJECT, .len = len}, NULL);
}

static ssize_t msg_senddata(struct fid_ep *fid, const void *buf, size_t len, void *desc,
			    uint64_t data, fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)dest_addr;

	return send_one(ep, rc_sge(buf, len, desc), desc,
			(struct rc_op){.flags = rc_send_flags(ep), .context = context, .len = len},
			&data);
}

static ssize_t msg_injectdata(struct fid_ep *fid, const void *buf, size_t len, uint64_t data,
			      fi_addr_t dest_addr)
{
	(void)dest_addr;
	return send_one(ep_of(fid), rc_sge(buf, len, NULL), false,
			(struct rc_op){.flags = FI_INJECT, .len = len}, &data);
}

static ssize_t send_vector(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct rc_list list;
	int err = rc_gather(&list, msg->msg_iov, msg->desc, msg->iov_count);

	if (err)
		return err;
	wr.sg_list = list.sge;
	wr.num_sge = (int)msg->iov_count;
	if (flags & FI_REMOTE_CQ_DATA) {
		wr.opcode = IBV_WR_SEND_WITH_IMM;
		wr.imm_data = htonl((uint32_t)msg->data);
	}
	return rc_post_out(
		ep, &wr,
		(struct rc_op){
			.flags = flags, .kind = KIND, .context = msg->context, .len = list.len},
		list.keyed);
}

static ssize_t msg_sendv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t dest_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)dest_addr;

	return send_vector(
		ep,
		&(struct fi_msg){
			.msg_iov = iov, .desc = desc, .iov_count = count, .context = context},
		rc_send_flags(ep));
}

static ssize_t msg_sendmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_sendmsg", msg))
		return -FI_EINVAL;
	return send_vector(ep, msg, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

/* ---- Receives -------------------------------------------------------------------------------- */

/* After the connection has ended some devices do not flush new receives: flushes this one here. */
static __attribute__((noinline, cold)) int no_receive(struct rc *rc, const struct rc_work *work)
{
	if (rc->state != RC_OVER)
		return -FI_EAGAIN;
	rc_give_back(rc, work);
	return 0;
}

static int post_recv_locked(struct rc *rc, struct ibv_recv_wr *wr, const struct rc_work *work)
{
	struct rc_ring *rx = &rc->rx;
	struct ibv_recv_wr *bad;
	int err;

	if (__builtin_expect(rx->posted == rx->limit, 0))
		return no_receive(rc, work);
	rx->work[rx->posted & rx->mask] = *work;
	wr->wr_id = RC_RECEIVE | rx->posted;
	err = ibv_post_recv(rc->qp, wr, &bad);
	if (__builtin_expect(err, 0))
		return rc_error(err);
	rx->posted++;
	return 0;
}

static ssize_t post_recv(struct ep *ep, struct ibv_recv_wr *wr, const struct rc_work *work)
{
	int err;

	if (__builtin_expect((work->flags & (FI_MULTI_RECV | FI_TRIGGER)) != 0, 0))
		return -FI_EOPNOTSUPP;
	lock_take(rc_lock(ep));
	err = ep->device_srx ? rc_srx_post(ep->device_srx, wr, work)
			     : post_recv_locked(rc_of_ep(ep), wr, work);
	lock_give(rc_lock(ep));
	return err;
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t src_addr,
			void *context)
{
	struct ep *ep = ep_of(fid);
	struct ibv_sge sge = rc_sge(buf, len, desc);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = len != 0};
	(void)src_addr;

	if (__builtin_expect((!desc && len) || len > RULES_RC_MSG_MAX, 0))
		return -FI_EINVAL;
	return post_recv(
		ep, &wr,
		&(struct rc_work){.context = context, .flags = ep_rx_flags(ep), .buf = buf});
}

static ssize_t recv_vector(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct rc_list list;
	struct ibv_recv_wr wr = {.sg_list = list.sge, .num_sge = (int)msg->iov_count};
	int err = rc_gather(&list, msg->msg_iov, msg->desc, msg->iov_count);

	if (err || !list.keyed)
		return err ? err : -FI_EINVAL;
	return post_recv(ep, &wr,
			 &(struct rc_work){.context = msg->context,
					   .flags = flags,
					   .buf = msg->iov_count ? msg->msg_iov->iov_base : NULL});
}

static ssize_t msg_recvv(struct fid_ep *fid, const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src_addr, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)src_addr;

	return recv_vector(
		ep,
		&(struct fi_msg){
			.msg_iov = iov, .desc = desc, .iov_count = count, .context = context},
		ep_rx_flags(ep));
}

static ssize_t msg_recvmsg(struct fid_ep *fid, const struct fi_msg *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	if (MISUSED_MSG("fi_recvmsg", msg))
		return -FI_EINVAL;
	return recv_vector(ep, msg, flags | ep_rx_msg_flags(ep));
}

const struct fi_ops_msg rc_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = msg_recv,
	.recvv = msg_recvv,
	.recvmsg = msg_recvmsg,
	.send = msg_send,
	.sendv = msg_sendv,
	.sendmsg = msg_sendmsg,
	.inject = msg_inject,
	.senddata = msg_senddata,
	.injectdata = msg_injectdata,
};
