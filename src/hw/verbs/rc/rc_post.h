/* SPDX-License-Identifier: BSD-2-Clause */
/* Posts to the device: shared by the entry functions. rc_lock protects the queue pair. */
#ifndef WEFT_HW_RC_POST_H
#define WEFT_HW_RC_POST_H

#include "core/mr.h"
#include "hw/verbs/rc/rc.h"

/* Flags that the fast path of posting does not handle. */
#define RC_SPECIAL                                                                                 \
	(FI_FENCE | FI_MORE | FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE | FI_MATCH_COMPLETE |      \
	 FI_TRIGGER)

/* One operation, from the arguments of an entry function. */
struct rc_op {
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_FENCE ... */
	uint64_t kind;  /* FI_MSG | FI_SEND ... */
	void *context;
	size_t len;
};

static inline struct ibv_sge rc_sge(const void *buf, size_t len, void *desc)
{
	return (struct ibv_sge){.addr = (uintptr_t)buf,
				.length = (uint32_t)len,
				.lkey = desc ? ((const struct mr *)desc)->lkey : 0};
}

/* Returns the error if nothing can be posted now. */
static inline int rc_no_space(const struct rc *rc)
{
	if (rc->state == RC_UP)
		return -FI_EAGAIN;
	return rc->removed ? -FI_ENODEV : -FI_ENOTCONN;
}

static inline int rc_error(int err)
{
	return err == ENOMEM ? -FI_EAGAIN : -err;
}

/* Devices offer commit completion for writes, not for messages. */
static inline uint64_t rc_send_flags(const struct ep *ep)
{
	return ep->tx_flags & ~FI_COMMIT_COMPLETE;
}

#define RC_INLINE static inline __attribute__((always_inline))

/* Fills the next work request's slot, and `wr` with number and flags. Locked; there is space. */
RC_INLINE void rc_note(struct rc *rc, struct ibv_send_wr *wr, struct rc_op op,
		       unsigned int send_flags)
{
	uint32_t posted = rc->tx.posted;
	struct rc_work *work = &rc->tx.work[posted & rc->tx.mask];

	work->context = op.context;
	work->flags = op.kind | op.flags;
	work->len = op.len;
	if (__builtin_expect((op.flags & FI_COMPLETION) != 0, 1) || !(posted & rc->unsignaled))
		send_flags |= IBV_SEND_SIGNALED;
	wr->wr_id = posted;
	wr->send_flags = send_flags;
}

/* Posts a request in the batch, or with a confirming read. 0 or a negative error. Locked. */
int rc_post_special(struct rc *rc, const struct ibv_send_wr *wr, struct rc_op op,
		    unsigned int send_flags);

/* As rc_post_special, for eight bytes that the device writes atomically (rc->ex). */
int rc_post_word(struct rc *rc, struct ibv_send_wr *wr, struct rc_op op);

/* Posts a request. `send_flags` lacks only IBV_SEND_SIGNALED. Domain locked. */
RC_INLINE int rc_post_locked(struct rc *rc, struct ibv_send_wr *wr, struct rc_op op,
			     unsigned int send_flags)
{
	struct ibv_send_wr *bad;
	int err;

	if (__builtin_expect(rc->tx.posted == rc->gate || op.flags & RC_SPECIAL, 0))
		return rc_post_special(rc, wr, op, send_flags);
	rc_note(rc, wr, op, send_flags);
	err = ibv_post_send(rc->qp, wr, &bad);
	if (__builtin_expect(err, 0))
		return rc_error(err);
	rc->tx.posted++;
	return 0;
}

/* The lock that protects a device's endpoint: it stays in the main shard. */
RC_INLINE struct lock *rc_lock(const struct ep *ep)
{
	return &ep->dom->main_shard->lock;
}

RC_INLINE ssize_t rc_post(struct ep *ep, struct ibv_send_wr *wr, struct rc_op op,
			  unsigned int send_flags)
{
	int err;

	lock_take(rc_lock(ep));
	err = rc_post_locked(rc_of_ep(ep), wr, op, send_flags);
	lock_give(rc_lock(ep));
	return err;
}

/* As rc_post for outgoing data; short data goes inline. `keyed`: all data is registered. */
RC_INLINE ssize_t rc_post_out(struct ep *ep, struct ibv_send_wr *wr, struct rc_op op, bool keyed)
{
	const struct rc *rc = rc_of_ep(ep);

	if (op.len <= rc->inline_most)
		return rc_post(ep, wr, op, IBV_SEND_INLINE);
	if (__builtin_expect(op.flags & FI_INJECT || op.len > rc->message_most, 0))
		return -FI_EMSGSIZE;
	return __builtin_expect(keyed, 1) ? rc_post(ep, wr, op, 0) : -FI_EINVAL;
}

/* An I/O vector in the device's form. */
struct rc_list {
	struct ibv_sge sge[RULES_RC_IOV_MAX];
	size_t len;
	bool keyed;
};

/* Fills `list`. 0, -FI_EINVAL or -FI_EMSGSIZE. */
static inline int rc_gather(struct rc_list *list, const struct iovec *iov, void **desc,
			    size_t count)
{
	list->len = 0;
	list->keyed = true;
	if (count > RULES_RC_IOV_MAX || (count && !iov))
		return -FI_EINVAL;
	for (size_t i = 0; i < count; i++) {
		void *d = desc ? desc[i] : NULL;

		list->sge[i] = rc_sge(iov[i].iov_base, iov[i].iov_len, d);
		list->keyed &= d || !iov[i].iov_len;
		list->len += iov[i].iov_len;
		if (iov[i].iov_len > RULES_RC_MSG_MAX)
			return -FI_EMSGSIZE;
	}
	return 0;
}

#endif
