/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers of the tests of one-sided operations. Processes know each other's endpoints and exchange
 * the keys of regions. rma_post wraps each form of read and write. The helpers wait for the
 * completion, if there is one, and for the counter. Needs obj.h.
 */
#ifndef API_RMA_H
#define API_RMA_H

#include <rdma/fi_rma.h>

#include "pair.h"

#define RMA_REMOTE   (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define RMA_PROVIDED (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY) /* keys by the library */

struct rma_opts {
	uint64_t caps;    /* 0: FI_MSG | FI_RMA */
	uint32_t version; /* of the API; 0: 1.17 */
	int mr_mode;
	uint64_t order;   /* msg_order to ask for */
	uint64_t cq_bind; /* beside FI_TRANSMIT */
	enum fi_wait_obj wait;
	enum fi_progress progress;
	enum fi_threading threading;
	bool no_cq;
};

struct rma {
	struct api *a;
	struct obj o;                    /* o.cq: operations initiated here */
	struct fid_cq *in;               /* remote CQ data and messages */
	struct fid_cntr *reads, *writes; /* operations initiated here */
	struct fid_cntr *messages;       /* without queues: sends and receives */
	struct fid_cntr *by_others[2];   /* writes and reads by peers, if bound */
	uint64_t done[2], failed[2]; /* [0] writes, [1] reads: expected values of the counters */
	fi_addr_t addr[API_RANKS];
	uint64_t next_key;
	struct pair pair;
};

/* Needed by a peer to access a region: remote address of its first byte, key, length. */
struct rma_key {
	uint64_t base, key;
	size_t len;
};

/* ---- Opening --------------------------------------------------------------------------------- */

static inline void rma_progress(void *arg)
{
	struct rma *r = arg;

	if (r->o.cq) {
		fi_cq_read(r->o.cq, NULL, 0);
		fi_cq_read(r->in, NULL, 0);
	} else {
		fi_cntr_read(r->writes);
	}
	sched_yield(); /* there may be fewer cores than processes */
}

static inline void rma_domain(struct rma *r, const struct rma_opts *o)
{
	struct fi_info *hints = obj_hints(o->caps ? o->caps : FI_MSG | FI_RMA);

	hints->ep_attr->type = pair_type();
	hints->domain_attr->mr_mode = pair_mr_mode(o->mr_mode);
	hints->domain_attr->data_progress = hints->domain_attr->control_progress = o->progress;
	hints->domain_attr->threading = o->threading;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = o->order;
	r->o.hints = hints;
	if (pair_bare() && hints->caps & ~PAIR_BARE_CAPS)
		api_skip("not what a bare queue pair does");
	if (!obj_find(&r->o, o->version ? o->version : FI_VERSION(1, 17)) && !api_other())
		api_fail("one-sided transfers are not offered as wanted");
	/* A domain goes by what it is opened with, also where fi_getinfo has cleared bits that are of no use. */
	if (!api_other() && !pair_bare())
		r->o.info->domain_attr->mr_mode = o->mr_mode & ~FI_MR_LOCAL;
	obj_domain(&r->o);
}

static inline void rma_endpoint(struct rma *r, const struct rma_opts *o)
{
	r->o.av = obj_av(&r->o, FI_AV_UNSPEC, 0);
	r->o.ep = pair_endpoint(&r->pair, r->a, r->o.fabric, r->o.domain, r->o.info);
	r->reads = obj_cntr(&r->o, o->wait);
	r->writes = obj_cntr(&r->o, o->wait);
	OK(fi_ep_bind(r->o.ep, &r->o.av->fid, 0));
	OK(fi_ep_bind(r->o.ep, &r->reads->fid, FI_READ));
	OK(fi_ep_bind(r->o.ep, &r->writes->fid, FI_WRITE));
	if (o->no_cq) {
		r->messages = obj_cntr(&r->o, o->wait);
		OK(fi_ep_bind(r->o.ep, &r->messages->fid, FI_SEND | FI_RECV));
		return;
	}
	r->o.cq = obj_cq(&r->o, o->wait);
	r->in = obj_cq(&r->o, FI_WAIT_NONE);
	OK(fi_ep_bind(r->o.ep, &r->o.cq->fid, FI_TRANSMIT | o->cq_bind));
	OK(fi_ep_bind(r->o.ep, &r->in->fid, FI_RECV));
}

/* Enables the endpoint and exchanges addresses. Tests that bind more objects call it themselves. */
static inline void rma_enable(struct rma *r)
{
	struct obj_name mine, all[API_RANKS];

	OK(fi_enable(r->o.ep));
	r->a->progress = rma_progress;
	r->a->progress_arg = r;
	if (pair_wanted()) {
		pair_meet(&r->pair, r->a, r->o.ep);
		for (int i = 0; i < r->a->ranks; i++)
			r->addr[i] = pair_addr(i);
		return;
	}
	mine = obj_name(&r->o.ep->fid);
	api_swap(r->a, &mine, all, r->a->ranks > 1 ? sizeof(mine) : 0);
	if (r->a->ranks == 1)
		all[0] = mine;
	for (int i = 0; i < r->a->ranks; i++)
		r->addr[i] = obj_insert(r->o.av, &all[i]);
}

static inline void rma_prepare(struct rma *r, struct api *a, const struct rma_opts *o)
{
	*r = (struct rma){.a = a, .next_key = 0x5eed};
	rma_domain(r, o);
	rma_endpoint(r, o);
}

static inline void rma_open(struct rma *r, struct api *a, const struct rma_opts *o)
{
	rma_prepare(r, a, o);
	rma_enable(r);
}

/* Closes all without waiting for the other processes. */
static inline void rma_leave(struct rma *r)
{
	r->a->progress = NULL;
	if (r->o.ep)
		CLOSE(r->o.ep);
	r->o.ep = NULL;
	pair_close(&r->pair);
	CLOSE(r->reads);
	CLOSE(r->writes);
	if (r->messages)
		CLOSE(r->messages);
	for (int i = 0; i < 2; i++)
		if (r->by_others[i])
			CLOSE(r->by_others[i]);
	if (r->in)
		CLOSE(r->in);
	obj_close(&r->o);
}

static inline void rma_close(struct rma *r)
{
	api_meet(r->a);
	rma_leave(r);
}

/* ---- Regions --------------------------------------------------------------------------------- */

/* Returns whether the domain has the registration mode `bit`. */
static inline bool rma_mode(const struct rma *r, int bit)
{
	int mode = r->o.info->domain_attr->mr_mode;

	if (mode == FI_MR_BASIC)
		mode = RMA_PROVIDED;
	return mode != FI_MR_SCALABLE && (mode & bit);
}

static inline struct fid_mr *rma_regv(struct rma *r, const struct iovec *iov, size_t count,
				      uint64_t access)
{
	struct fid_mr *mr;

	OK(fi_mr_regv(r->o.domain, iov, count, access, 0, r->next_key++, 0, &mr, NULL));
	return mr;
}

static inline struct fid_mr *rma_reg(struct rma *r, void *buf, size_t len, uint64_t access)
{
	struct iovec iov = {buf, len};

	return rma_regv(r, &iov, 1, access);
}

static inline struct rma_key rma_key(const struct rma *r, struct fid_mr *mr, const void *buf,
				     size_t len)
{
	bool virt = rma_mode(r, FI_MR_VIRT_ADDR);

	return (struct rma_key){virt ? (uintptr_t)buf : 0, fi_mr_key(mr), len};
}

/* Gives the key of rank `owner` to all ranks. */
static inline struct rma_key rma_share(struct rma *r, int owner, const struct rma_key *mine)
{
	struct rma_key all[API_RANKS], none = {0};

	if (r->a->ranks == 1)
		return *mine;
	api_swap(r->a, r->a->rank == owner ? mine : &none, all, sizeof(none));
	return all[owner];
}

/* ---- Operations ------------------------------------------------------------------------------ */

enum rma_form {
	RMA_WRITE,
	RMA_WRITEV,
	RMA_WRITEMSG,
	RMA_INJECT,
	RMA_DATA,
	RMA_INJECTDATA,
	RMA_READ,
	RMA_READV,
	RMA_READMSG,
	RMA_FORMS
};

/* A read or write. Only ...msg forms use all ranges; forms without a list use the first piece. */
struct rma_op {
	enum rma_form form;
	const struct iovec *iov;
	size_t count;
	const struct fi_rma_iov *to;
	size_t to_count;
	fi_addr_t peer;
	uint64_t data, flags;
	void *context;
};

static inline bool rma_reads(enum rma_form form)
{
	return form >= RMA_READ;
}

static inline bool rma_injects(enum rma_form form)
{
	return form == RMA_INJECT || form == RMA_INJECTDATA;
}

static inline bool rma_has_data(const struct rma_op *op)
{
	return op->form == RMA_DATA || op->form == RMA_INJECTDATA ||
	       (op->form == RMA_WRITEMSG && (op->flags & FI_REMOTE_CQ_DATA));
}

static inline uint64_t rma_kind(enum rma_form form)
{
	return FI_RMA | (rma_reads(form) ? FI_READ : FI_WRITE);
}

static inline ssize_t rma_post_msg(struct fid_ep *ep, const struct rma_op *op)
{
	struct fi_msg_rma msg = {.msg_iov = op->iov,
				 .iov_count = op->count,
				 .addr = op->peer,
				 .rma_iov = op->to,
				 .rma_iov_count = op->to_count,
				 .context = op->context,
				 .data = op->data};

	return op->form == RMA_READMSG ? fi_readmsg(ep, &msg, op->flags)
				       : fi_writemsg(ep, &msg, op->flags);
}

static inline ssize_t rma_post(struct fid_ep *ep, const struct rma_op *op)
{
	void *buf = op->iov ? op->iov->iov_base : NULL;
	size_t len = op->iov ? op->iov->iov_len : 0;
	uint64_t at = op->to ? op->to->addr : 0, key = op->to ? op->to->key : 0;

	switch (op->form) {
	case RMA_WRITE:
		return fi_write(ep, buf, len, NULL, op->peer, at, key, op->context);
	case RMA_WRITEV:
		return fi_writev(ep, op->iov, NULL, op->count, op->peer, at, key, op->context);
	case RMA_INJECT:
		return fi_inject_write(ep, buf, len, op->peer, at, key);
	case RMA_DATA:
		return fi_writedata(ep, buf, len, NULL, op->data, op->peer, at, key, op->context);
	case RMA_INJECTDATA:
		return fi_inject_writedata(ep, buf, len, op->data, op->peer, at, key);
	case RMA_READ:
		return fi_read(ep, buf, len, NULL, op->peer, at, key, op->context);
	case RMA_READV:
		return fi_readv(ep, op->iov, NULL, op->count, op->peer, at, key, op->context);
	default:
		return rma_post_msg(ep, op);
	}
}

/* Posts `op`; repeats the call while it returns -FI_EAGAIN. */
static inline void rma_start(struct rma *r, const struct rma_op *op)
{
	ssize_t ret;

	OBJ_UNTIL((ret = rma_post(r->o.ep, op)) != -FI_EAGAIN, rma_progress(r));
	api_check_eq(ret, 0, "posting a read or write");
}

/* ---- Outcomes -------------------------------------------------------------------------------- */

#define RMA_KINDS                                                                                  \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE |        \
	 FI_REMOTE_READ | FI_REMOTE_WRITE)

/* Waits until the counters have the expected values, and checks these. */
static inline void rma_counted(struct rma *r)
{
	OBJ_UNTIL(fi_cntr_read(r->writes) >= r->done[0] && fi_cntr_read(r->reads) >= r->done[1],
		  rma_progress(r));
	api_check_eq((int64_t)fi_cntr_read(r->writes), (int64_t)r->done[0], "writes counted");
	api_check_eq((int64_t)fi_cntr_read(r->reads), (int64_t)r->done[1], "reads counted");
	api_check_eq((int64_t)fi_cntr_readerr(r->writes), (int64_t)r->failed[0], "failed writes");
	api_check_eq((int64_t)fi_cntr_readerr(r->reads), (int64_t)r->failed[1], "failed reads");
}

static inline void rma_check_entry(const struct rma_op *op, const void *context, uint64_t flags)
{
	api_check_eq((intptr_t)context, rma_injects(op->form) ? 0 : (intptr_t)op->context,
		     "context of the completion");
	api_check_eq((int64_t)(flags & RMA_KINDS), (int64_t)rma_kind(op->form),
		     "flags of the completion");
}

/* Waits for the next completion, which must be that of `op`. */
static inline void rma_completed(struct rma *r, const struct rma_op *op)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(r->o.cq, &e, 1)) != -FI_EAGAIN, rma_progress(r));
	if (ret != 1)
		obj_cq_failed(r->o.cq, ret);
	rma_check_entry(op, e.op_context, e.flags);
}

/* Posts `op` and waits for its end. */
static inline void rma_run(struct rma *r, const struct rma_op *op)
{
	rma_start(r, op);
	if (r->o.cq && !rma_injects(op->form))
		rma_completed(r, op);
	r->done[rma_reads(op->form)]++;
	rma_counted(r);
}

/* Posts `op`, which must fail with `err`. A failed injected operation also writes a CQ error. */
static inline void rma_fails(struct rma *r, const struct rma_op *op, int err)
{
	struct fi_cq_tagged_entry unused;
	struct fi_cq_err_entry e = {0};
	ssize_t ret;

	rma_start(r, op);
	OBJ_UNTIL((ret = fi_cq_read(r->o.cq, &unused, 1)) != -FI_EAGAIN, rma_progress(r));
	api_check_eq(ret, -FI_EAVAIL, "fi_cq_read");
	api_check_eq(fi_cq_readerr(r->o.cq, &e, 0), 1, "fi_cq_readerr");
	api_check_eq(e.err, err, "err of the completion");
	rma_check_entry(op, e.op_context, e.flags);
	r->failed[rma_reads(op->form)]++;
	OBJ_UNTIL(fi_cntr_readerr(rma_reads(op->form) ? r->reads : r->writes) >=
			  r->failed[rma_reads(op->form)],
		  rma_progress(r));
	rma_counted(r);
}

/* Waits for the target's completion of a write of `len` bytes with remote CQ data. */
static inline void rma_notified(struct rma *r, struct fid_cq *cq, uint64_t data, size_t len)
{
	struct fi_cq_tagged_entry e;
	ssize_t ret;

	OBJ_UNTIL((ret = fi_cq_read(cq, &e, 1)) != -FI_EAGAIN, rma_progress(r));
	if (ret != 1)
		obj_cq_failed(cq, ret);
	api_check_eq((intptr_t)e.op_context, 0, "context at the target");
	api_check_eq((int64_t)(e.flags & (RMA_KINDS | FI_REMOTE_CQ_DATA)),
		     (int64_t)(FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA),
		     "flags at the target");
	api_check_eq((int64_t)e.data, (int64_t)data, "remote CQ data");
	api_check_eq((int64_t)e.len, (int64_t)len, "bytes that were written");
}

/* Runs an operation with one local piece and one remote range. */
static inline void rma_plain(struct rma *r, enum rma_form form, void *buf, size_t len,
			     const struct rma_key *key, uint64_t offset)
{
	struct iovec iov = {buf, len};
	struct fi_rma_iov to = {key->base + offset, len, key->key};

	rma_run(r, &(struct rma_op){.form = form,
				    .iov = &iov,
				    .count = 1,
				    .to = &to,
				    .to_count = 1,
				    .peer = r->addr[r->a->ranks > 1 ? !r->a->rank : 0],
				    .context = rma_injects(form) ? NULL : buf});
}

#define RMA_RUN(...)      (api_at(__FILE__, __LINE__), rma_run(__VA_ARGS__))
#define RMA_FAILS(...)    (api_at(__FILE__, __LINE__), rma_fails(__VA_ARGS__))
#define RMA_NOTIFIED(...) (api_at(__FILE__, __LINE__), rma_notified(__VA_ARGS__))
#define RMA_PLAIN(...)    (api_at(__FILE__, __LINE__), rma_plain(__VA_ARGS__))

#endif
