/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An endpoint for triggered and deferred operations. It has counters, a region of words as target,
 * and sends to itself. Each operation works on a word of its own, and all kinds have the same
 * effect. Needs obj.h.
 */
#ifndef API_RIG_H
#define API_RIG_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#define RIG_WORDS 64

struct rig {
	struct obj o;
	struct fid_cntr *sent, *received, *reads, *writes; /* bound to o.ep */
	struct fid_mr *mr;
	uint64_t words[RIG_WORDS]; /* the registered region */
	uint64_t base, key;        /* remote address of words[0] */
	fi_addr_t self;
};

struct rig_opts {
	uint64_t caps; /* beside FI_MSG, FI_TAGGED, FI_RMA, FI_ATOMIC */
	enum fi_progress progress;
	enum fi_threading threading;
	uint64_t cq_bind;
	enum fi_wait_obj wait;
};

static inline void rig_domain(struct rig *r, const struct rig_opts *o)
{
	struct fi_info *hints = obj_hints(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | o->caps);

	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = o->progress;
	hints->domain_attr->threading = o->threading;
	r->o.hints = hints;
	obj_domain(&r->o);
}

static inline void rig_region(struct rig *r)
{
	int mode = r->o.info->domain_attr->mr_mode;

	OK(fi_mr_reg(r->o.domain, r->words, sizeof(r->words), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
		     7, 0, &r->mr, NULL));
	r->key = fi_mr_key(r->mr);
	r->base = mode == FI_MR_BASIC || (mode != FI_MR_SCALABLE && mode & FI_MR_VIRT_ADDR)
			  ? (uintptr_t)r->words
			  : 0;
}

static inline void rig_open(struct rig *r, const struct rig_opts *o)
{
	memset(r, 0, sizeof(*r));
	rig_domain(r, o);
	r->o.av = obj_av(&r->o, FI_AV_UNSPEC, 0);
	r->o.cq = obj_cq(&r->o, o->wait);
	r->o.ep = obj_ep(&r->o);
	r->sent = obj_cntr(&r->o, o->wait);
	r->received = obj_cntr(&r->o, o->wait);
	r->reads = obj_cntr(&r->o, o->wait);
	r->writes = obj_cntr(&r->o, o->wait);
	OK(fi_ep_bind(r->o.ep, &r->o.av->fid, 0));
	OK(fi_ep_bind(r->o.ep, &r->o.cq->fid, FI_TRANSMIT | FI_RECV | o->cq_bind));
	OK(fi_ep_bind(r->o.ep, &r->sent->fid, FI_SEND));
	OK(fi_ep_bind(r->o.ep, &r->received->fid, FI_RECV));
	OK(fi_ep_bind(r->o.ep, &r->reads->fid, FI_READ));
	OK(fi_ep_bind(r->o.ep, &r->writes->fid, FI_WRITE));
	OK(fi_enable(r->o.ep));
	r->self = obj_insert_ep(r->o.av, r->o.ep);
	rig_region(r);
}

/* A test that closes an object itself sets the member to NULL. */
static inline void rig_close(struct rig *r)
{
	struct fid_cntr *cntrs[] = {r->sent, r->received, r->reads, r->writes};

	if (r->o.ep)
		CLOSE(r->o.ep);
	r->o.ep = NULL;
	CLOSE(r->mr);
	for (size_t i = 0; i < API_COUNT(cntrs); i++)
		CLOSE(cntrs[i]);
	obj_close(&r->o);
}

/* Makes progress as an application does that waits for something else. */
static inline void rig_progress(struct rig *r)
{
	fi_cq_read(r->o.cq, NULL, 0);
}

/* Makes enough progress calls for all pending operations to finish. */
static inline void rig_progress_calls(struct rig *r)
{
	for (int i = 0; i < 300; i++)
		rig_progress(r);
}

/* Waits for the two values of a counter, and checks that they do not exceed them. */
static inline void rig_counts(struct fid_cntr *cntr, uint64_t value, uint64_t error)
{
	OBJ_UNTIL(fi_cntr_read(cntr) >= value && fi_cntr_readerr(cntr) >= error, );
	CHECK_EQ(fi_cntr_read(cntr), value);
	CHECK_EQ(fi_cntr_readerr(cntr), error);
}

/* ---- Operations ------------------------------------------------------------------------------ */

enum rig_kind {
	RIG_SEND, /* a message needs the opposite call: see rig_meet */
	RIG_TSEND,
	RIG_RECV,
	RIG_TRECV,
	RIG_WRITE,
	RIG_READ,
	RIG_ATOMIC,  /* adds */
	RIG_FETCH,   /* adds */
	RIG_COMPARE, /* swaps where equal to RIG_OLD */
	RIG_KINDS
};

#define RIG_OLD 1    /* value of a word before */
#define RIG_NEW 1000 /* operand of an operation; FI_SUM gives RIG_NEW + RIG_OLD */

/* One operation with its lists and buffers. The caller keeps it until the operation is done. */
struct rig_op {
	enum rig_kind kind;
	uint64_t *word;          /* target of writes and atomics, source of reads */
	uint64_t local, compare; /* local: the operation's own buffer */
	uint64_t result;
	uint64_t other; /* buffer of the opposite call (rig_meet) */
	struct iovec iov;
	struct fi_ioc ioc, compare_ioc, result_ioc;
	struct fi_rma_iov rma;
	struct fi_rma_ioc rma_ioc;
	void *context;
};

#define RIG_TAG 77

static inline bool rig_is_receive(enum rig_kind kind)
{
	return kind == RIG_RECV || kind == RIG_TRECV;
}

/* Prepares an operation on word `n` of the region. */
static inline void rig_op(struct rig *r, struct rig_op *op, enum rig_kind kind, unsigned int n)
{
	*op = (struct rig_op){.kind = kind, .word = &r->words[n], .compare = RIG_OLD};
	*op->word = RIG_OLD;
	op->local = rig_is_receive(kind) || kind == RIG_READ ? 0 : RIG_NEW;
	op->other = rig_is_receive(kind) ? RIG_NEW : 0;
	if (kind == RIG_READ)
		*op->word = RIG_NEW;
	op->iov = (struct iovec){&op->local, sizeof(op->local)};
	op->ioc = (struct fi_ioc){&op->local, 1};
	op->compare_ioc = (struct fi_ioc){&op->compare, 1};
	op->result_ioc = (struct fi_ioc){&op->result, 1};
	op->rma = (struct fi_rma_iov){r->base + n * sizeof(uint64_t), sizeof(uint64_t), r->key};
	op->rma_ioc = (struct fi_rma_ioc){r->base + n * sizeof(uint64_t), 1, r->key};
	op->context = op;
}

static inline struct fi_msg rig_msg(const struct rig *r, const struct rig_op *op)
{
	return (struct fi_msg){.msg_iov = &op->iov,
			       .iov_count = 1,
			       .addr = rig_is_receive(op->kind) ? FI_ADDR_UNSPEC : r->self,
			       .context = op->context};
}

static inline struct fi_msg_tagged rig_tagged(const struct rig *r, const struct rig_op *op)
{
	return (struct fi_msg_tagged){.msg_iov = &op->iov,
				      .iov_count = 1,
				      .addr = rig_is_receive(op->kind) ? FI_ADDR_UNSPEC : r->self,
				      .tag = RIG_TAG,
				      .context = op->context};
}

static inline struct fi_msg_rma rig_rma(const struct rig *r, const struct rig_op *op)
{
	return (struct fi_msg_rma){.msg_iov = &op->iov,
				   .iov_count = 1,
				   .addr = r->self,
				   .rma_iov = &op->rma,
				   .rma_iov_count = 1,
				   .context = op->context};
}

static inline struct fi_msg_atomic rig_atomic(const struct rig *r, const struct rig_op *op)
{
	return (struct fi_msg_atomic){.msg_iov = &op->ioc,
				      .iov_count = 1,
				      .addr = r->self,
				      .rma_iov = &op->rma_ioc,
				      .rma_iov_count = 1,
				      .datatype = FI_UINT64,
				      .op = op->kind == RIG_COMPARE ? FI_CSWAP : FI_SUM,
				      .context = op->context};
}

/* Makes the opposite call of a message, without a completion where that is possible. */
static inline void rig_meet(struct rig *r, struct rig_op *op)
{
	switch (op->kind) {
	case RIG_SEND:
		OK(fi_recv(r->o.ep, &op->other, sizeof(op->other), NULL, FI_ADDR_UNSPEC, NULL));
		break;
	case RIG_TSEND:
		OK(fi_trecv(r->o.ep, &op->other, sizeof(op->other), NULL, FI_ADDR_UNSPEC, RIG_TAG,
			    0, NULL));
		break;
	case RIG_RECV:
		POST(r->o.cq, fi_inject(r->o.ep, &op->other, sizeof(op->other), r->self));
		break;
	case RIG_TRECV:
		POST(r->o.cq, fi_tinject(r->o.ep, &op->other, sizeof(op->other), r->self, RIG_TAG));
		break;
	default:
		break;
	}
}

/* Returns whether the operation took effect. A partial effect is a failure. */
static inline bool rig_happened(struct rig_op *op)
{
	uint64_t word = __atomic_load_n(op->word, __ATOMIC_ACQUIRE);

	switch (op->kind) {
	case RIG_SEND:
	case RIG_TSEND:
		CHECK(op->other == 0 || op->other == RIG_NEW);
		return op->other == RIG_NEW;
	case RIG_RECV:
	case RIG_TRECV:
	case RIG_READ:
		CHECK(op->local == 0 || op->local == RIG_NEW);
		return op->local == RIG_NEW;
	case RIG_WRITE:
	case RIG_COMPARE:
		CHECK(word == RIG_OLD || word == RIG_NEW);
		return word == RIG_NEW;
	default:
		CHECK(word == RIG_OLD || word == RIG_NEW + RIG_OLD);
		return word != RIG_OLD;
	}
}

/* Checks the effect of a completed operation. A sent message may still be in flight. */
static inline void rig_verify(struct rig *r, struct rig_op *op)
{
	if (op->kind == RIG_SEND || op->kind == RIG_TSEND)
		OBJ_UNTIL(rig_happened(op), rig_progress(r));
	CHECK(rig_happened(op));
	if (op->kind == RIG_FETCH || op->kind == RIG_COMPARE)
		CHECK_EQ(op->result, RIG_OLD);
}

static inline uint64_t rig_flags(enum rig_kind kind)
{
	static const uint64_t flags[RIG_KINDS] = {
		[RIG_SEND] = FI_SEND | FI_MSG,       [RIG_TSEND] = FI_SEND | FI_TAGGED,
		[RIG_RECV] = FI_RECV | FI_MSG,       [RIG_TRECV] = FI_RECV | FI_TAGGED,
		[RIG_WRITE] = FI_RMA | FI_WRITE,     [RIG_READ] = FI_RMA | FI_READ,
		[RIG_ATOMIC] = FI_ATOMIC | FI_WRITE, [RIG_FETCH] = FI_ATOMIC | FI_READ,
		[RIG_COMPARE] = FI_ATOMIC | FI_READ};

	return flags[kind];
}

#define RIG_FLAG_BITS                                                                              \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

/* Returns the endpoint's counter for this kind of operation. */
static inline struct fid_cntr *rig_counter(const struct rig *r, enum rig_kind kind)
{
	if (rig_is_receive(kind))
		return r->received;
	if (kind == RIG_SEND || kind == RIG_TSEND)
		return r->sent;
	return kind == RIG_WRITE || kind == RIG_ATOMIC ? r->writes : r->reads;
}

/* Waits for the completion of `op`. Completions of opposite calls have no context. */
static inline void rig_completed(struct rig *r, const struct rig_op *op)
{
	struct fi_cq_tagged_entry e;

	do
		e = obj_next(r->o.cq, NULL);
	while (!e.op_context);
	CHECK((const void *)e.op_context == op->context);
	CHECK_EQ(e.flags & RIG_FLAG_BITS, rig_flags(op->kind));
}

#endif
