/* SPDX-License-Identifier: BSD-2-Clause */
/* Wraps each form of atomic calls in one call. Each process registers a region as target. */
#ifndef API_ATOMIC_H
#define API_ATOMIC_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "../api.h"
#include "data.h"
#include "side.h"

#define AMO_IOV    16         /* maximum entries of a list */
#define AMO_REGION (1u << 20) /* bytes of the region of each process */
#define AMO_CAPS   (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC)
#define AMO_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define AMO_TYPES  (FI_FLOAT8_E5M2 + 1)
#define AMO_OPS    (FI_DIFF + 1)

enum amo_family { AMO_BASE, AMO_FETCH, AMO_COMPARE, AMO_FAMILIES };

enum amo_form {
	AMO_PLAIN,
	AMO_VECTOR, /* fi_atomicv and its like */
	AMO_MSG,    /* fi_atomicmsg and its like, with .flags, .data and all targets */
	AMO_INJECT, /* AMO_BASE only */
	AMO_FORMS
};

struct amo {
	enum amo_family family;
	enum amo_form form;
	enum fi_datatype type;
	enum fi_op op;
	struct fi_ioc buf[AMO_IOV + 1], compare[AMO_IOV + 1], result[AMO_IOV + 1];
	struct fi_rma_ioc target[AMO_IOV + 1];
	size_t bufs, compares, results, targets; /* numbers of entries */
	fi_addr_t peer;
	uint64_t flags, data;
	void *context;
};

static inline struct fi_msg_atomic amo_msg(const struct amo *m)
{
	return (struct fi_msg_atomic){.msg_iov = m->bufs ? m->buf : NULL,
				      .iov_count = m->bufs,
				      .addr = m->peer,
				      .rma_iov = m->target,
				      .rma_iov_count = m->targets,
				      .datatype = m->type,
				      .op = m->op,
				      .context = m->context,
				      .data = m->data};
}

static inline ssize_t amo_post_base(struct fid_ep *ep, const struct amo *m)
{
	const struct fi_rma_ioc *t = m->target;
	struct fi_msg_atomic msg = amo_msg(m);

	switch (m->form) {
	case AMO_VECTOR:
		return fi_atomicv(ep, m->buf, NULL, m->bufs, m->peer, t->addr, t->key, m->type,
				  m->op, m->context);
	case AMO_MSG:
		return fi_atomicmsg(ep, &msg, m->flags);
	case AMO_INJECT:
		return fi_inject_atomic(ep, m->buf->addr, t->count, m->peer, t->addr, t->key,
					m->type, m->op);
	default:
		return fi_atomic(ep, m->buf->addr, t->count, NULL, m->peer, t->addr, t->key,
				 m->type, m->op, m->context);
	}
}

static inline ssize_t amo_post_fetch(struct fid_ep *ep, const struct amo *m)
{
	struct fi_ioc *result = (struct fi_ioc *)(uintptr_t)m->result; /* only read */
	const struct fi_rma_ioc *t = m->target;
	struct fi_msg_atomic msg = amo_msg(m);

	switch (m->form) {
	case AMO_VECTOR:
		return fi_fetch_atomicv(ep, msg.msg_iov, NULL, m->bufs, result, NULL, m->results,
					m->peer, t->addr, t->key, m->type, m->op, m->context);
	case AMO_MSG:
		return fi_fetch_atomicmsg(ep, &msg, result, NULL, m->results, m->flags);
	default:
		return fi_fetch_atomic(ep, m->buf->addr, t->count, NULL, result->addr, NULL,
				       m->peer, t->addr, t->key, m->type, m->op, m->context);
	}
}

static inline ssize_t amo_post_compare(struct fid_ep *ep, const struct amo *m)
{
	struct fi_ioc *result = (struct fi_ioc *)(uintptr_t)m->result;
	const struct fi_rma_ioc *t = m->target;
	struct fi_msg_atomic msg = amo_msg(m);

	switch (m->form) {
	case AMO_VECTOR:
		return fi_compare_atomicv(ep, m->buf, NULL, m->bufs, m->compare, NULL, m->compares,
					  result, NULL, m->results, m->peer, t->addr, t->key,
					  m->type, m->op, m->context);
	case AMO_MSG:
		return fi_compare_atomicmsg(ep, &msg, m->compare, NULL, m->compares, result, NULL,
					    m->results, m->flags);
	default:
		return fi_compare_atomic(ep, m->buf->addr, t->count, NULL, m->compare->addr, NULL,
					 result->addr, NULL, m->peer, t->addr, t->key, m->type,
					 m->op, m->context);
	}
}

static inline ssize_t amo_post(struct fid_ep *ep, const struct amo *m)
{
	return m->family == AMO_BASE    ? amo_post_base(ep, m)
	       : m->family == AMO_FETCH ? amo_post_fetch(ep, m)
					: amo_post_compare(ep, m);
}

static inline int amo_valid(struct fid_ep *ep, enum amo_family family, enum fi_datatype type,
			    enum fi_op op, size_t *count)
{
	return family == AMO_BASE    ? fi_atomicvalid(ep, type, op, count)
	       : family == AMO_FETCH ? fi_fetch_atomicvalid(ep, type, op, count)
				     : fi_compare_atomicvalid(ep, type, op, count);
}

/* ---- The processes --------------------------------------------------------------------------- */

/*
 * The regions lie in memory shared by all processes, so a test can check results directly. After
 * its region each process has AMO_REGION bytes for other uses (amo_scratch).
 */
struct amo_side {
	struct side s;
	struct fid_mr *mr;
	uint64_t key[API_RANKS], base[API_RANKS]; /* of all processes' regions */
};

static inline unsigned char *amo_memory(struct api *a, int rank)
{
	return (unsigned char *)a->shared + (size_t)rank * 2 * AMO_REGION;
}

static inline unsigned char *amo_scratch(struct api *a)
{
	return amo_memory(a, a->rank) + AMO_REGION;
}

static inline void amo_register(struct amo_side *m, struct api *a, uint64_t access)
{
	uint64_t mine[2], all[API_RANKS][2];
	int mode = m->s.info->domain_attr->mr_mode;

	if (mode == FI_MR_BASIC)
		mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY; /* the meaning of FI_MR_BASIC */
	OK(fi_mr_reg(m->s.domain, amo_memory(a, a->rank), AMO_REGION, access, 0,
		     77 + (uint64_t)a->rank, 0, &m->mr, NULL));
	mine[0] = fi_mr_key(m->mr);
	if (!(mode & FI_MR_PROV_KEY))
		CHECK_EQ(mine[0], 77 + a->rank);
	mine[1] = mode & FI_MR_VIRT_ADDR ? (uintptr_t)amo_memory(a, a->rank) : 0;
	api_swap(a, mine, all, sizeof(mine));
	for (int i = 0; i < a->ranks; i++) {
		m->key[i] = all[i][0];
		m->base[i] = all[i][1];
	}
}

static inline void amo_open(struct amo_side *m, struct api *a, const struct side_opts *o,
			    uint64_t access)
{
	struct side_opts opts = *o;

	if (!opts.caps)
		opts.caps = AMO_CAPS;
	side_open(&m->s, a, &opts);
	m->s.yields = true;
	amo_register(m, a, access);
}

/* Opens `m` as most tests need: a completion means that the target memory has changed. */
static inline void amo_open_usual(struct amo_side *m, struct api *a)
{
	amo_open(m, a, &(struct side_opts){.tx_flags = FI_DELIVERY_COMPLETE}, AMO_ACCESS);
}

static inline void amo_close(struct amo_side *m)
{
	api_meet(m->s.a);
	OK(fi_close(&m->mr->fid));
	side_close(&m->s);
}

static inline struct fi_rma_ioc amo_target(const struct amo_side *m, int rank, uint64_t offset,
					   size_t count)
{
	return (struct fi_rma_ioc){m->base[rank] + offset, count, m->key[rank]};
}

/* Sets all lists to one entry, at `offset` of the region of `rank`. The context is `m` itself. */
static inline void amo_aim(struct amo *m, const struct amo_side *to, int rank, uint64_t offset,
			   size_t count)
{
	m->bufs = m->compares = m->results = m->targets = 1;
	m->buf->count = m->compare->count = m->result->count = count;
	m->target[0] = amo_target(to, rank, offset, count);
	m->peer = to->s.addr[rank];
	m->context = m;
}

/* ---- Completions ----------------------------------------------------------------------------- */

#define AMO_FLAGS                                                                                  \
	(FI_ATOMIC | FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SEND |    \
	 FI_RECV | FI_MSG | FI_TAGGED | FI_REMOTE_CQ_DATA)

static inline uint64_t amo_flags(const struct amo *m)
{
	return FI_ATOMIC | (m->family == AMO_BASE ? FI_WRITE : FI_READ);
}

/* Waits for the next completion, which must be that of `m`. */
static inline void amo_done(struct side *s, const struct amo *m)
{
	struct fi_cq_tagged_entry e = side_take(s, s->tx);

	api_check_eq((intptr_t)e.op_context, (intptr_t)m->context, "context of the atomic");
	api_check_eq((int64_t)(e.flags & (AMO_FLAGS & ~FI_TAGGED)), (int64_t)amo_flags(m),
		     "flags of the atomic");
}

/* Waits for the next completion, which must say that `m` failed with `err`. */
static inline struct fi_cq_err_entry amo_failed(struct side *s, const struct amo *m, int err)
{
	struct fi_cq_err_entry e = side_take_err(s, s->tx, err);

	api_check_eq((intptr_t)e.op_context, m->form == AMO_INJECT ? 0 : (intptr_t)m->context,
		     "context of the failed atomic");
	api_check_eq((int64_t)(e.flags & (AMO_FLAGS & ~FI_TAGGED)), (int64_t)amo_flags(m),
		     "flags of the failed atomic");
	return e;
}

#define AMO_DONE(...)   (api_at(__FILE__, __LINE__), amo_done(__VA_ARGS__))
#define AMO_FAILED(...) (api_at(__FILE__, __LINE__), amo_failed(__VA_ARGS__))

/* Posts `m` and waits for its completion. AMO_INJECT has none. */
#define AMO_RUN(s, m)                                                                              \
	do {                                                                                       \
		POST(s, amo_post((s)->ep, m));                                                     \
		if ((m)->form != AMO_INJECT)                                                       \
			AMO_DONE(s, m);                                                            \
	} while (0)

#endif
