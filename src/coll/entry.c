/* SPDX-License-Identifier: BSD-2-Clause */
/* The collective calls: check the arguments, begin an operation; what is offered. fi_collective(3). */
#include <complex.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "coll/op.h"
#include "core/ep.h"
#include "xfer/engine.h"
#include "link/wire.h"
#include "xfer/worker.h"

#define FLAGS                                                                                      \
	(FI_COMPLETION | FI_MORE | FI_FENCE | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |          \
	 FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

#define BYTES_MAX (SIZE_MAX / 4) /* limit for the elements of all members together */

/* ---- What is offered: fi_query_collective --------------------------------------------------------- */

/* Return the bytes of an element, and the alignment that reductions need. */
static size_t entry_width(enum fi_datatype type)
{
	return type == FI_VOID ? 1 : atomic_size(type);
}

static size_t entry_align(enum fi_datatype type)
{
	switch (type) {
	case FI_FLOAT_COMPLEX:
		return _Alignof(float complex);
	case FI_DOUBLE_COMPLEX:
		return _Alignof(double complex);
	case FI_LONG_DOUBLE_COMPLEX:
		return _Alignof(long double complex);
	default:
		return entry_width(type);
	}
}

/* Returns 0, -FI_EOPNOTSUPP, or -FI_EINVAL: no such collective. Accepts any numbers. */
static int entry_valid(enum fi_collective_op coll, enum fi_datatype type, enum fi_op op)
{
	bool offered;

	if ((unsigned int)coll > FI_GATHER)
		return -FI_EINVAL;
	if (coll == FI_BARRIER)
		offered = type == FI_VOID && op == FI_NOOP;
	else if (plan_reduces(coll))
		offered = op != FI_DIFF &&
			  plain_find(op, type); /* FI_DIFF depends on the order of operands */
	else
		/* Collectives that only move data accept operators that leave it unchanged. */
		offered = (op == FI_NOOP || op == FI_ATOMIC_READ || op == FI_ATOMIC_WRITE) &&
			  type != FI_VOID && atomic_size(type);
	return offered ? 0 : -FI_EOPNOTSUPP;
}

int coll_query(enum fi_collective_op coll, struct fi_collective_attr *attr, uint64_t flags)
{
	int err;

	if (!attr || attr->mode)
		return LOG_REFUSE(-FI_EINVAL, LOG_DOMAIN,
				  "fi_query_collective: no attributes, or mode %#llx is not 0",
				  attr ? (unsigned long long)attr->mode : 0);
	if (flags && flags != FI_SCATTER)
		return -FI_EBADFLAGS;
	/* FI_SCATTER selects the scattering form of a reduction. */
	if (flags && coll != FI_REDUCE && coll != FI_REDUCE_SCATTER)
		return -FI_EINVAL;
	if (flags)
		coll = FI_REDUCE_SCATTER;
	err = entry_valid(coll, attr->datatype, attr->op);
	if (err)
		return err;
	attr->datatype_attr.size = coll == FI_BARRIER ? 0 : entry_width(attr->datatype);
	attr->datatype_attr.count = coll == FI_BARRIER ? 0 : BYTES_MAX / attr->datatype_attr.size;
	attr->max_members = (size_t)1 << WIRE_GROUP_RANK_BITS;
	return 0;
}

/* ---- Calls ---------------------------------------------------------------------------------------- */

/* The arguments of a call, in the most common order. */
struct call {
	enum fi_collective_op kind;
	const void *buf;
	size_t count;
	void *result;
	fi_addr_t coll_addr, root;
	enum fi_datatype type;
	enum fi_op op;
	uint64_t flags;
	void *context;
};

#define NO_ROOT FI_ADDR_UNSPEC

/* Buffer sizes of each kind of collective, in units of `count`: a whole per member, or one. */
enum share { NONE, ONE, EACH, ONE_AT_ROOT, EACH_AT_ROOT };

static const struct {
	enum share in, out;
} kinds[] = {
	[FI_BARRIER] = {NONE, NONE},       [FI_BROADCAST] = {NONE, ONE},
	[FI_ALLTOALL] = {EACH, EACH},      [FI_ALLREDUCE] = {ONE, ONE},
	[FI_ALLGATHER] = {ONE, EACH},      [FI_REDUCE_SCATTER] = {EACH, ONE},
	[FI_REDUCE] = {ONE, ONE_AT_ROOT},  [FI_SCATTER] = {EACH_AT_ROOT, ONE},
	[FI_GATHER] = {ONE, EACH_AT_ROOT},
};

static size_t entry_elements(enum share share, const struct group *g, const struct op_args *a)
{
	switch (share) {
	case ONE:
		return a->count;
	case EACH:
		return a->count * g->size;
	case ONE_AT_ROOT:
		return g->rank == a->root ? a->count : 0;
	case EACH_AT_ROOT:
		return g->rank == a->root ? a->count * g->size : 0;
	default:
		return 0;
	}
}

static int check_memory(const struct call *c, const struct op_args *a)
{
	size_t align = plan_reduces(c->kind) ? entry_align(c->type) : 1;

	if ((a->in_count && !a->in) || (a->out_count && !a->out))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "collective %d of %zu elements: %s is NULL", (int)c->kind,
				  c->count, a->in_count && !a->in ? "buf" : "result");
	if (((uintptr_t)a->in | (uintptr_t)a->out) % align)
		return LOG_REFUSE(
			-FI_EINVAL, LOG_EP_DATA,
			"collective %d: %p or %p is not aligned to the %zu bytes of type %d",
			(int)c->kind, a->in, a->out, align, (int)c->type);
	return 0;
}

static int check_root(struct group *g, const struct call *c, struct op_args *a)
{
	if (!plan_rooted(c->kind))
		return 0;
	a->root = group_rank_of(g, c->root);
	if (a->root < g->size)
		return 0;
	return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
			  "collective %d: the root, fi_addr %llu, is no member of the group",
			  (int)c->kind, (unsigned long long)c->root);
}

/*
 * A member that joined only to send or only to receive may do so as its side of a rooted
 * collective. Data that a member keeps for itself does not count.
 */
static int entry_check_ways(const struct group *g, const struct call *c, const struct op_args *a)
{
	bool from_root = c->kind == FI_BROADCAST || c->kind == FI_SCATTER;
	uint64_t needs = FI_SEND | FI_RECV;

	if (plan_rooted(c->kind))
		needs = (g->rank == a->root) == from_root ? FI_SEND : FI_RECV;
	if (!(needs & ~g->ways))
		return 0;
	return LOG_REFUSE(-FI_EACCES, LOG_EP_DATA,
			  "collective %d: this member has joined only to %s", (int)c->kind,
			  g->ways & FI_SEND ? "send" : "receive");
}

static int entry_check(struct group *g, const struct call *c, struct op_args *a)
{
	int err = c->kind == FI_BARRIER ? 0 : entry_valid(c->kind, c->type, c->op);

	if (err)
		return LOG_REFUSE(err, LOG_EP_DATA,
				  "collective %d is not offered for type %d and operator %d",
				  (int)c->kind, (int)c->type, (int)c->op);
	if (g->flags && !(g->flags & FI_BARRIER_SET << c->kind))
		return LOG_REFUSE(
			-FI_EOPNOTSUPP, LOG_EP_DATA,
			"collective %d: not permitted by the flags %#llx of the group's set",
			(int)c->kind, (unsigned long long)g->flags);
	if (c->kind == FI_BARRIER) {
		a->width = 1;
		return 0; /* a barrier uses no other arguments */
	}
	err = check_root(g, c, a);
	if (!err)
		err = entry_check_ways(g, c, a);
	if (err)
		return err;
	a->width = entry_width(c->type);
	if (c->count > BYTES_MAX / a->width / g->size)
		return LOG_REFUSE(-FI_EMSGSIZE, LOG_EP_DATA,
				  "collective %d: %zu elements for each of %u members are too many",
				  (int)c->kind, c->count, g->size);
	a->count = c->count;
	a->in_count = entry_elements(kinds[c->kind].in, g, a);
	a->out_count = entry_elements(kinds[c->kind].out, g, a);
	a->in = a->in_count ? (void *)(uintptr_t)c->buf : NULL;
	a->out = a->out_count ? c->result : NULL;
	return check_memory(c, a);
}

static int entry_start(struct ep *ep, const struct call *c)
{
	struct op_args a = {.kind = c->kind,
			    .type = c->type,
			    .op = c->op,
			    .flags = c->flags & ep->tx_msg_mask,
			    .context = c->context};
	struct group *g = group_of(ep->worker->coll, c->coll_addr);
	int err;

	if (!g)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "collective %d: %#llx is not the address of a group",
				  (int)c->kind, (unsigned long long)c->coll_addr);
	if (g->err)
		return -g->err;
	if (!g->id)
		return -FI_EOPBADSTATE;
	err = entry_check(g, c, &a);
	if (!err && !g->laid_out)
		err = group_lay_out(g);
	if (!err)
		err = op_post(ep, g, &a);
	if (err == -FI_EAGAIN) {
		worker_progress(ep->worker);
		err = g->err ? -g->err : op_post(ep, g, &a);
	}
	return err;
}

static ssize_t entry_post_group(struct fid_ep *fid, struct call *c)
{
	struct ep *ep = ep_of(fid);
	uint64_t wrong = (c->flags | (ep->tx_flags & FI_TRIGGER)) & ~FLAGS;
	int err;

	if (wrong)
		return LOG_REFUSE(-FI_EBADFLAGS, LOG_EP_DATA,
				  "collective %d: flags %#llx are not for collectives",
				  (int)c->kind, (unsigned long long)wrong);
	c->flags |= ep->tx_flags;
	shard_take(&ep->shard);
	err = entry_start(ep, c);
	shard_give(&ep->shard);
	return err;
}

static ssize_t entry_barrier2(struct fid_ep *fid, fi_addr_t coll_addr, uint64_t flags,
			      void *context)
{
	return entry_post_group(fid, &(struct call){FI_BARRIER, NULL, 0, NULL, coll_addr, NO_ROOT,
						    FI_VOID, FI_NOOP, flags, context});
}

static ssize_t entry_barrier(struct fid_ep *fid, fi_addr_t coll_addr, void *context)
{
	return entry_barrier2(fid, coll_addr, 0, context);
}

static ssize_t entry_broadcast(struct fid_ep *fid, void *buf, size_t count, void *desc,
			       fi_addr_t coll_addr, fi_addr_t root_addr, enum fi_datatype datatype,
			       uint64_t flags, void *context)
{
	(void)desc;
	return entry_post_group(fid, &(struct call){FI_BROADCAST, NULL, count, buf, coll_addr,
						    root_addr, datatype, FI_NOOP, flags, context});
}

/* The calls from one buffer to another: they differ in whether they name a root and an operator. */
#define ENTRY_CALL(name, kind, root, op, ...)                                                      \
	static ssize_t entry_##name(struct fid_ep *fid, const void *buf, size_t count, void *desc, \
				    void *result, void *result_desc, fi_addr_t coll_addr,          \
				    __VA_ARGS__, uint64_t flags, void *context)                    \
	{                                                                                          \
		(void)desc, (void)result_desc;                                                     \
		return entry_post_group(fid, &(struct call){kind, buf, count, result, coll_addr,   \
							    root, datatype, op, flags, context});  \
	}

ENTRY_CALL(alltoall, FI_ALLTOALL, NO_ROOT, FI_NOOP, enum fi_datatype datatype)
ENTRY_CALL(allreduce, FI_ALLREDUCE, NO_ROOT, op, enum fi_datatype datatype, enum fi_op op)
ENTRY_CALL(allgather, FI_ALLGATHER, NO_ROOT, FI_NOOP, enum fi_datatype datatype)
ENTRY_CALL(reduce_scatter, FI_REDUCE_SCATTER, NO_ROOT, op, enum fi_datatype datatype, enum fi_op op)
ENTRY_CALL(reduce, FI_REDUCE, root, op, fi_addr_t root, enum fi_datatype datatype, enum fi_op op)
ENTRY_CALL(scatter, FI_SCATTER, root, FI_NOOP, fi_addr_t root, enum fi_datatype datatype)
ENTRY_CALL(gather, FI_GATHER, root, FI_NOOP, fi_addr_t root, enum fi_datatype datatype)

/* Each buffer may have one segment; its count is the call's `count`. */
static ssize_t entry_collective_msg(struct fid_ep *fid, const struct fi_msg_collective *m,
				    struct fi_ioc *resultv, void **result_desc, size_t result_count,
				    uint64_t flags)
{
	struct call c;

	(void)result_desc;
	if (!m || (m->iov_count && !m->msg_iov) || (result_count && !resultv))
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "collective: no message, or a list that is missing");
	if (m->iov_count > 1 || result_count > 1)
		return LOG_REFUSE(-FI_EINVAL, LOG_EP_DATA,
				  "collective %d: %zu and %zu segments, at most one of each buffer",
				  (int)m->coll, m->iov_count, result_count);
	c = (struct call){.kind = m->coll,
			  .coll_addr = m->coll_addr,
			  .root = m->root_addr,
			  .type = m->datatype,
			  .op = m->op,
			  .flags = flags,
			  .context = m->context};
	if (result_count) {
		c.result = resultv->addr;
		c.count = resultv->count;
	}
	if (m->iov_count) {
		c.buf = m->msg_iov->addr;
		c.count = m->msg_iov->count;
	}
	if (c.kind == FI_BROADCAST && m->iov_count)
		c.result = m->msg_iov->addr;
	return entry_post_group(fid, &c);
}

const struct fi_ops_collective coll_entries = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = entry_barrier,
	.broadcast = entry_broadcast,
	.alltoall = entry_alltoall,
	.allreduce = entry_allreduce,
	.allgather = entry_allgather,
	.reduce_scatter = entry_reduce_scatter,
	.reduce = entry_reduce,
	.scatter = entry_scatter,
	.gather = entry_gather,
	.msg = entry_collective_msg,
	.barrier2 = entry_barrier2,
};
