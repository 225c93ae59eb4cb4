/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that are posted together: batches, if the application says that more follow (FI_MORE),
 * and writes with a read that confirms them. A write's acknowledgement does not say that its data
 * is in the target's memory; the result of a read behind it does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOG_PROV "verbs"
#include "base/log.h"
#include "hw/verbs/rc/rc_post.h"

#define CONFIRMED (FI_DELIVERY_COMPLETE | FI_COMMIT_COMPLETE)

/* ---- The batch ------------------------------------------------------------------------------- */

/*
 * The device refuses the batch entry at index `at`: removes it, and if it is the first of two requests the second, too,
 * and moves later entries up. The operation completes with `err`, unless it is the last one and the caller returns the
 * error (`own`). Returns the number of removed entries.
 */
static uint32_t leave_out(struct rc *rc, uint32_t at, uint32_t count, bool own, int err)
{
	struct rc_ring *tx = &rc->tx;
	uint32_t first = tx->posted - (count - at), none;
	struct rc_work *before = &tx->work[(first - 1) & tx->mask];

	none = tx->work[first & tx->mask].flags == RC_HALF ? 2 : 1;
	LOG_WARN(LOG_EP_DATA, "the device refuses a batched request: %s", fi_strerror(err));
	if (!own || at + none < count)
		rc_unsent(rc, &tx->work[(first + none - 1) & tx->mask], err, err);
	if (first != tx->over && before->flags == RC_HALF)
		before->flags = 0;
	for (uint32_t i = at + none; i < count; i++) {
		uint32_t to = first + i - at - none;

		tx->work[to & tx->mask] = tx->work[(to + none) & tx->mask];
		rc->batch[i].wr.wr_id = to;
	}
	if (at + none < count)
		rc->batch[at + none].wr.send_flags |=
			(rc->batch[at].wr.send_flags | rc->batch[at + none - 1].wr.send_flags) &
			IBV_SEND_SIGNALED;
	tx->posted -= none;
	return none;
}

/* Posts the entries from *at on by one call. 0 or the device's error: *at is the refused entry. */
static int post_from(struct rc *rc, uint32_t *at, uint32_t count)
{
	struct ibv_send_wr *bad = &rc->batch[*at].wr;
	int err;

	for (uint32_t i = *at; i < count; i++)
		rc->batch[i].wr.next = i + 1 < count ? &rc->batch[i + 1].wr : NULL;
	err = ibv_post_send(rc->qp, &rc->batch[*at].wr, &bad);
	if (err)
		*at = (uint32_t)((struct rc_batch *)bad - rc->batch);
	return err;
}

/* Posts the whole batch. Returns the error of the last entry if `own`, else 0. */
static int post_batch(struct rc *rc, bool own)
{
	uint32_t count = rc->batch_count, at = 0;
	int err = 0;

	rc->batch_count = 0;
	rc_set_gate(rc);
	while (at < count) {
		err = post_from(rc, &at, count);
		if (!err)
			return 0;
		at += leave_out(rc, at, count, own, err);
	}
	return own && err ? rc_error(err) : 0;
}

void rc_flush_batch(struct rc *rc)
{
	post_batch(rc, false);
}

/* Copies the caller's list of segments, which is on the stack. */
static void add_to_batch(struct rc *rc, const struct ibv_send_wr *wr, struct rc_op op,
			 unsigned int send_flags)
{
	struct rc_batch *entry = &rc->batch[rc->batch_count++];

	entry->wr = *wr;
	entry->wr.sg_list = entry->sge;
	memcpy(entry->sge, wr->sg_list, (size_t)wr->num_sge * sizeof(entry->sge[0]));
	rc_note(rc, &entry->wr, op, send_flags);
	rc->tx.posted++;
	rc_set_gate(rc);
}

/* Makes space for `count` requests in the queue and the batch. 0 or a negative error. */
static int rc_more_make_space(struct rc *rc, uint32_t count)
{
	if (rc->tx.limit - rc->tx.posted < count)
		return rc_no_space(rc);
	if (!rc->batch)
		rc->batch = malloc(RC_BATCH_MAX * sizeof(*rc->batch));
	if (!rc->batch)
		return -FI_ENOMEM;
	if (rc->batch_count + count > RC_BATCH_MAX)
		rc_flush_batch(rc);
	return 0;
}

/* ---- Confirmation ---------------------------------------------------------------------------- */

/* Registers `ping`. 0 or a negative error. */
static int make_placement(struct rc *rc)
{
	const struct verbs_dev *dev = rc->path->dev;

	if (!rc->ping_mr)
		rc->ping_mr = dev->lib->reg_mr(dev->pd, &rc->ping, sizeof(rc->ping),
					       IBV_ACCESS_LOCAL_WRITE);
	return rc->ping_mr ? 0 : -errno;
}

/*
 * Must a read confirm the operation? The acknowledgement of a message shows its delivery, and a
 * result that of a fetch; the acknowledgement of a write does not.
 */
static bool is_confirmed(const struct rc_op *op)
{
	if (!op->len || !(op->flags & CONFIRMED))
		return false;
	return op->kind & FI_WRITE || (op->kind & FI_ATOMIC && op->flags & FI_COMMIT_COMPLETE);
}

/* Can device and peer give the asked completion level? 0 or a negative error. */
static int rc_more_check(const struct rc *rc, const struct rc_op *op)
{
	if (op->flags & (FI_MATCH_COMPLETE | FI_TRIGGER))
		return -FI_EOPNOTSUPP;
	if (op->flags & FI_COMMIT_COMPLETE && !(op->kind & (FI_WRITE | FI_ATOMIC)))
		return -FI_EOPNOTSUPP;
	if (is_confirmed(op) && rc->state == RC_UP && !rc->reads) {
		LOG_INFO(LOG_EP_DATA,
			 "the peer permits no RDMA reads: a write cannot be confirmed");
		return -FI_EOPNOTSUPP;
	}
	return 0;
}

/* Returns a read of the last written byte, with the write's key. */
static struct ibv_send_wr rc_more_reading(const struct rc *rc, const struct ibv_send_wr *wr,
					  const struct rc_op *op, struct ibv_sge *sge)
{
	struct ibv_send_wr read = {.sg_list = sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};
	bool fetching = op->kind & FI_READ;

	*sge = (struct ibv_sge){
		.addr = (uintptr_t)&rc->ping, .length = 1, .lkey = rc->ping_mr->lkey};
	read.wr.rdma.remote_addr =
		(fetching ? wr->wr.atomic.remote_addr : wr->wr.rdma.remote_addr) + op->len - 1;
	read.wr.rdma.rkey = fetching ? wr->wr.atomic.rkey : wr->wr.rdma.rkey;
	return read;
}

static int hold_confirmed(struct rc *rc, const struct ibv_send_wr *wr, struct rc_op op,
			  unsigned int send_flags)
{
	struct ibv_send_wr read;
	struct ibv_sge sge;
	int err = make_placement(rc);

	if (!err)
		err = rc_more_make_space(rc, 2);
	if (err)
		return err;
	read = rc_more_reading(rc, wr, &op, &sge);
	add_to_batch(rc, wr, (struct rc_op){.kind = RC_HALF}, send_flags);
	add_to_batch(rc, &read, op, 0);
	return 0;
}

/* Injected operations do not wait in a batch: their memory is the caller's again on return. */
int rc_post_special(struct rc *rc, const struct ibv_send_wr *wr, struct rc_op op,
		    unsigned int send_flags)
{
	bool confirmed = is_confirmed(&op);
	int err = rc_more_check(rc, &op);

	if (err)
		return err;
	if (op.flags & FI_FENCE)
		send_flags |= IBV_SEND_FENCE;
	if (confirmed) {
		err = hold_confirmed(rc, wr, op, send_flags);
	} else {
		err = rc_more_make_space(rc, 1);
		if (!err)
			add_to_batch(rc, wr, op, send_flags);
	}
	if (err || (op.flags & FI_MORE && !(op.flags & FI_INJECT)))
		return err;
	return post_batch(rc, true);
}

/* ---- Writing a number atomically ------------------------------------------------------------- */

static int start_word(struct rc *rc, const struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *ex = rc->ex;

	ibv_wr_start(ex);
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags;
	ibv_wr_atomic_write(
		ex, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
		(const void *)(uintptr_t)wr->sg_list->addr); // NOLINT(performance-no-int-to-ptr)
	return ibv_wr_complete(ex);
}

int rc_post_word(struct rc *rc, struct ibv_send_wr *wr, struct rc_op op)
{
	unsigned int send_flags = op.flags & FI_FENCE ? IBV_SEND_FENCE : 0;
	struct rc_op half = {.kind = RC_HALF};
	bool confirmed = is_confirmed(&op);
	struct ibv_send_wr read;
	struct ibv_sge sge;
	int err = rc_more_check(rc, &op);

	if (!err && confirmed)
		err = make_placement(rc);
	if (!err)
		err = rc_more_make_space(rc, confirmed ? 2 : 1);
	if (err)
		return err;
	if (rc->batch_count)
		rc_flush_batch(rc);
	rc_note(rc, wr, confirmed ? half : op, send_flags);
	err = start_word(rc, wr);
	if (err)
		return rc_error(err);
	rc->tx.posted++;
	if (!confirmed)
		return 0;
	read = rc_more_reading(rc, wr, &op, &sge);
	add_to_batch(rc, &read, op, 0);
	return post_batch(rc, false);
}
