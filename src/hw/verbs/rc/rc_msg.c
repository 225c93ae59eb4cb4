/* SPDX-License-Identifier: BSD-2-Clause */
/* What the calls of the msg table of a bare queue pair do. */
#include <arpa/inet.h>

#include "entry/args.h"
#include "hw/verbs/rc/rc_post.h"

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
static __attribute__((noinline, cold)) ssize_t rc_msg_give_up(struct ep *ep, const void *buf,
							      size_t len, void *desc, void *context)
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
RC_INLINE ssize_t send_plain(struct ep *ep, const void *buf, size_t len, void *desc, void *context)
{
	struct rc *rc = rc_of_ep(ep);
	struct rc_op op = {.flags = ep->tx_flags, .context = context, .len = len};
	unsigned int send_flags = IBV_SEND_INLINE;
	uint32_t lkey = 0;
	int err;

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
		return rc_msg_give_up(ep, buf, len, desc, context);
	rc->one_sge.lkey = lkey;
	err = send_ready(rc, buf, op, send_flags);
	if (__builtin_expect(err, 0))
		return give_failed(rc, err);
	lock_give(rc->lock);
	return 0;
unusual:
	return send_unusual(ep, buf, len, desc, context);
}

RC_INLINE ssize_t msg_send_one(struct ep *ep, struct entry_msg m)
{
	if (!m.kind)
		return send_plain(ep, m.buf, m.len, m.desc, m.context);
	return send_one(ep, rc_sge(m.buf, m.len, m.desc), m.desc,
			(struct rc_op){.flags = m.kind & FI_INJECT ? FI_INJECT : rc_send_flags(ep),
				       .context = m.context,
				       .len = m.len},
			m.kind & FI_REMOTE_CQ_DATA ? &m.data : NULL);
}

static ssize_t msg_send_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
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

RC_INLINE ssize_t msg_recv_one(struct ep *ep, void *buf, size_t len, void *desc, fi_addr_t src,
			       void *context)
{
	struct ibv_sge sge = rc_sge(buf, len, desc);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = len != 0};
	(void)src;

	if (__builtin_expect((!desc && len) || len > RULES_RC_MSG_MAX, 0))
		return -FI_EINVAL;
	return post_recv(
		ep, &wr,
		&(struct rc_work){.context = context, .flags = ep_rx_flags(ep), .buf = buf});
}

static ssize_t msg_recv_list(struct ep *ep, const struct fi_msg *msg, uint64_t flags)
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

#define ENTRY_SEND_FLAGS rc_send_flags
#include "entry/entry_msg.h"

static const struct fi_ops_msg msg_ops = ENTRY_MSG_OPS;
const struct entry_tables rc_entries = {.msg = &msg_ops,
					.tagged = &refuse_support.tagged,
					.rma = &rc_rma_ops,
					.atomic = &rc_atomic_ops};
