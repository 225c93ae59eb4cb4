/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of the atomic table of a bare queue pair: what devices know, which is fetch-and-add and
 * compare-and-swap of one number of 64 bits, and writing one. A device that cannot write a number
 * atomically writes eight aligned bytes, which it has with the request, as one fragment.
 */
#include <string.h>

#include "atomic/atomic.h"
#include "hw/verbs/rc/rc_post.h"

#define FETCHES (FI_ATOMIC | FI_READ)
#define WRITES  (FI_ATOMIC | FI_WRITE)

/* One atomic: what it is, where it acts, what it is given and where the old value goes. */
struct act {
	struct fi_rma_iov remote;
	const void *operand, *compare;
	void *result, *desc;
	size_t count;
	enum atomic_form form;
	enum fi_datatype type;
	enum fi_op op;
};

int rc_atomic_valid(int form, int datatype, int op, size_t *count, size_t *size)
{
	bool known = (form == ATOMIC_BASE && op == FI_ATOMIC_WRITE) ||
		     (form == ATOMIC_FETCH && op == FI_SUM) ||
		     (form == ATOMIC_COMPARE && op == FI_CSWAP);

	if (datatype < 0 || op < 0)
		return -FI_EINVAL;
	if (!known || (datatype != FI_INT64 && datatype != FI_UINT64))
		return -FI_EOPNOTSUPP;
	*count = 1;
	*size = sizeof(uint64_t);
	return 0;
}

static uint64_t number(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* 0 or a negative error. */
static int check(const struct act *a, uint64_t flags)
{
	size_t count, size;
	int err = rc_atomic_valid(a->form, (int)a->type, (int)a->op, &count, &size);

	if (err)
		return err;
	if (flags & (FI_REMOTE_CQ_DATA | FI_TAGGED))
		return -FI_EOPNOTSUPP;
	if (a->count != 1 || a->remote.addr % sizeof(uint64_t) || !a->operand ||
	    (a->form != ATOMIC_BASE && (!a->result || !a->desc)) ||
	    (a->form == ATOMIC_COMPARE && !a->compare))
		return -FI_EINVAL;
	return 0;
}

static ssize_t post_write(struct ep *ep, const struct act *a, struct rc_op op)
{
	struct ibv_sge sge = rc_sge(a->operand, sizeof(uint64_t), NULL);
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};
	struct rc *rc = rc_of_ep(ep);
	int err;

	wr.wr.rdma.remote_addr = a->remote.addr;
	wr.wr.rdma.rkey = (uint32_t)a->remote.key;
	if (!rc->ex || !rc->reads) {
		if (rc->inline_most < sizeof(uint64_t))
			return -FI_EOPNOTSUPP;
		return rc_post(ep, &wr, op, IBV_SEND_INLINE | IBV_SEND_FENCE);
	}
	lock_take(&ep->dom->lock);
	err = rc_post_word(rc, &wr, op);
	lock_give(&ep->dom->lock);
	return err;
}

static ssize_t post_fetch(struct ep *ep, const struct act *a, struct rc_op op)
{
	struct ibv_sge sge = rc_sge(a->result, sizeof(uint64_t), a->desc);
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD};

	wr.wr.atomic.remote_addr = a->remote.addr;
	wr.wr.atomic.rkey = (uint32_t)a->remote.key;
	wr.wr.atomic.compare_add = number(a->operand);
	if (a->form == ATOMIC_COMPARE) {
		wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
		wr.wr.atomic.compare_add = number(a->compare);
		wr.wr.atomic.swap = number(a->operand);
	}
	return rc_post(ep, &wr, op, 0);
}

static ssize_t post(struct ep *ep, const struct act *a, uint64_t flags, void *context)
{
	struct rc_op op = {.flags = flags,
			   .kind = a->form == ATOMIC_BASE ? WRITES : FETCHES,
			   .context = context,
			   .len = sizeof(uint64_t)};
	int err = check(a, flags);

	if (err)
		return err;
	return a->form == ATOMIC_BASE ? post_write(ep, a, op) : post_fetch(ep, a, op);
}

/* Flags of an entry that has none: operands are read at once, results cannot be injected. */
static uint64_t usual(const struct ep *ep)
{
	return ep->tx_flags & ~FI_INJECT;
}

static ssize_t atomic_write(struct fid_ep *fid, const void *buf, size_t count, void *desc,
			    fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)dest_addr;

	return post(ep,
		    &(struct act){.remote = {.addr = addr, .key = key},
				  .operand = buf,
				  .count = count,
				  .form = ATOMIC_BASE,
				  .type = datatype,
				  .op = op},
		    ep->tx_flags, context);
}

static ssize_t atomic_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t dest_addr,
			     uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	(void)dest_addr;
	return post(ep_of(fid),
		    &(struct act){.remote = {.addr = addr, .key = key},
				  .operand = buf,
				  .count = count,
				  .form = ATOMIC_BASE,
				  .type = datatype,
				  .op = op},
		    FI_INJECT, NULL);
}

static ssize_t atomic_readwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				void *result, void *result_desc, fi_addr_t dest_addr, uint64_t addr,
				uint64_t key, enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)dest_addr;

	return post(ep,
		    &(struct act){.remote = {.addr = addr, .key = key},
				  .operand = buf,
				  .result = result,
				  .desc = result_desc,
				  .count = count,
				  .form = ATOMIC_FETCH,
				  .type = datatype,
				  .op = op},
		    usual(ep), context);
}

static ssize_t atomic_compwrite(struct fid_ep *fid, const void *buf, size_t count, void *desc,
				const void *compare, void *compare_desc, void *result,
				void *result_desc, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	(void)desc, (void)compare_desc, (void)dest_addr;

	return post(ep,
		    &(struct act){.remote = {.addr = addr, .key = key},
				  .operand = buf,
				  .compare = compare,
				  .result = result,
				  .desc = result_desc,
				  .count = count,
				  .form = ATOMIC_COMPARE,
				  .type = datatype,
				  .op = op},
		    usual(ep), context);
}

/* The lists of a ...msg or ...v call. One of each, or it is no atomic of ours. */
struct lists {
	const struct fi_ioc *compare;
	size_t compare_count;
	const struct fi_ioc *result;
	void **desc;
	size_t result_count;
};

static ssize_t post_msg(struct ep *ep, const struct fi_msg_atomic *msg, const struct lists *l,
			enum atomic_form form, uint64_t flags)
{
	struct act a = {.form = form, .type = msg->datatype, .op = msg->op};

	if (msg->iov_count != 1 || msg->rma_iov_count != 1 || !msg->msg_iov || !msg->rma_iov ||
	    (form != ATOMIC_BASE && (l->result_count != 1 || !l->result)) ||
	    (form == ATOMIC_COMPARE && (l->compare_count != 1 || !l->compare)))
		return -FI_EINVAL;
	a.remote = (struct fi_rma_iov){.addr = msg->rma_iov->addr, .key = msg->rma_iov->key};
	a.operand = msg->msg_iov->addr;
	a.count = msg->msg_iov->count;
	a.compare = l->compare ? l->compare->addr : NULL;
	a.result = l->result ? l->result->addr : NULL;
	a.desc = l->desc ? *l->desc : NULL;
	if (msg->rma_iov->count != a.count || (l->result && l->result->count != a.count))
		return -FI_EINVAL;
	return post(ep, &a, flags, msg->context);
}

static ssize_t atomic_writev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
			     size_t count, fi_addr_t dest_addr, uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {.addr = addr, .count = 1, .key = key};
	(void)desc, (void)dest_addr;

	return post_msg(ep,
			&(struct fi_msg_atomic){.msg_iov = iov,
						.iov_count = count,
						.rma_iov = &remote,
						.rma_iov_count = 1,
						.datatype = datatype,
						.op = op,
						.context = context},
			&(struct lists){.result_count = 0}, ATOMIC_BASE, ep->tx_flags);
}

static ssize_t atomic_writemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return post_msg(ep, msg, &(struct lists){.result_count = 0}, ATOMIC_BASE,
			(flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static ssize_t atomic_readwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {.addr = addr, .count = 1, .key = key};
	(void)desc, (void)dest_addr;

	return post_msg(ep,
			&(struct fi_msg_atomic){.msg_iov = iov,
						.iov_count = count,
						.rma_iov = &remote,
						.rma_iov_count = 1,
						.datatype = datatype,
						.op = op,
						.context = context},
			&(struct lists){.result = resultv,
					.desc = result_desc,
					.result_count = result_count},
			ATOMIC_FETCH, usual(ep));
}

static ssize_t atomic_readwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc, size_t result_count,
				   uint64_t flags)
{
	struct ep *ep = ep_of(fid);

	return post_msg(ep, msg,
			&(struct lists){.result = resultv,
					.desc = result_desc,
					.result_count = result_count},
			ATOMIC_FETCH, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static ssize_t atomic_compwritev(struct fid_ep *fid, const struct fi_ioc *iov, void **desc,
				 size_t count, const struct fi_ioc *comparev, void **compare_desc,
				 size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, fi_addr_t dest_addr, uint64_t addr,
				 uint64_t key, enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct ep *ep = ep_of(fid);
	struct fi_rma_ioc remote = {.addr = addr, .count = 1, .key = key};
	(void)desc, (void)compare_desc, (void)dest_addr;

	return post_msg(
		ep,
		&(struct fi_msg_atomic){.msg_iov = iov,
					.iov_count = count,
					.rma_iov = &remote,
					.rma_iov_count = 1,
					.datatype = datatype,
					.op = op,
					.context = context},
		&(struct lists){comparev, compare_count, resultv, result_desc, result_count},
		ATOMIC_COMPARE, usual(ep));
}

static ssize_t atomic_compwritemsg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
				   const struct fi_ioc *comparev, void **compare_desc,
				   size_t compare_count, struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct ep *ep = ep_of(fid);
	(void)compare_desc;

	return post_msg(
		ep, msg,
		&(struct lists){comparev, compare_count, resultv, result_desc, result_count},
		ATOMIC_COMPARE, (flags & ep->tx_msg_mask) | ep->tx_msg_flags);
}

static int valid(enum atomic_form form, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	size_t size;

	return count ? rc_atomic_valid((int)form, (int)datatype, (int)op, count, &size)
		     : -FI_EINVAL;
}

static int atomic_writevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
			     size_t *count)
{
	(void)fid;
	return valid(ATOMIC_BASE, datatype, op, count);
}

static int atomic_readwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(ATOMIC_FETCH, datatype, op, count);
}

static int atomic_compwritevalid(struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	(void)fid;
	return valid(ATOMIC_COMPARE, datatype, op, count);
}

const struct fi_ops_atomic rc_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = atomic_write,
	.writev = atomic_writev,
	.writemsg = atomic_writemsg,
	.inject = atomic_inject,
	.readwrite = atomic_readwrite,
	.readwritev = atomic_readwritev,
	.readwritemsg = atomic_readwritemsg,
	.compwrite = atomic_compwrite,
	.compwritev = atomic_compwritev,
	.compwritemsg = atomic_compwritemsg,
	.writevalid = atomic_writevalid,
	.readwritevalid = atomic_readwritevalid,
	.compwritevalid = atomic_compwritevalid,
};
