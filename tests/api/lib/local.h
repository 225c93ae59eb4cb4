/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registers local buffers for endpoints of a domain with FI_MR_LOCAL, so that tests need no
 * descriptors. local_wrap replaces the endpoint's operation tables. The new functions register the
 * pages of each buffer, then call the original ones. Closing the endpoint closes the registrations.
 * Needs api.h.
 */
#ifndef API_LOCAL_H
#define API_LOCAL_H

#include <malloc.h>
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#define LOCAL_EPS  64
#define LOCAL_IOV  16
#define LOCAL_PAGE 4096u
#define LOCAL_LAST 64                   /* regions searched for one to reuse */
#define LOCAL_IN   (FI_RECV | FI_READ)  /* the device writes */
#define LOCAL_OUT  (FI_SEND | FI_WRITE) /* the device only reads: constant memory is allowed */

struct local_mr {
	struct fid_mr *mr;
	uintptr_t from, to;
	uint64_t access;
};

struct local {
	struct fid_ep *ep;
	struct fid_domain *domain;
	struct fi_ops *fid_ops;
	struct fi_ops_msg *msg;
	struct fi_ops_rma *rma;
	struct fi_ops_atomic *atomic;
	struct fi_ops my_fid_ops;
	struct fi_ops_msg my_msg;
	struct fi_ops_rma my_rma;
	struct fi_ops_atomic my_atomic;
	struct local_mr *mr; /* mr, count, room: under `local_lock` */
	size_t count, room;
};

static struct local local_all[LOCAL_EPS];
static pthread_mutex_t local_lock = PTHREAD_MUTEX_INITIALIZER;

static inline struct local *local_of(const void *ep)
{
	for (int i = 0; i < LOCAL_EPS; i++)
		if (local_all[i].ep == ep)
			return &local_all[i];
	api_fail("an endpoint that nobody wrapped");
}

/* Appends `mr` to the list of the endpoint. local_lock held. */
static inline struct fid_mr *local_note(struct local *l, struct local_mr mr)
{
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->mr = realloc(l->mr, l->room * sizeof(*l->mr));
		if (!l->mr)
			api_fail("no memory");
	}
	l->mr[l->count++] = mr;
	return mr.mr;
}

/* Returns a region that covers the range; registers one if needed. local_lock held. */
static inline struct fid_mr *local_region(struct local *l, uintptr_t from, uintptr_t to,
					  uint64_t access)
{
	struct local_mr mr = {.from = from, .to = to, .access = access};

	for (size_t i = l->count; i && i + LOCAL_LAST > l->count; i--) {
		const struct local_mr *old = &l->mr[i - 1];

		if (old->access == access && old->from <= from && to <= old->to)
			return old->mr;
	}
	api_check_eq(fi_mr_reg(l->domain, (void *)from, to - from, access, 0, 0, 0, &mr.mr, NULL),
		     0, "fi_mr_reg");
	return local_note(l, mr);
}

static inline void *local_desc(struct local *l, const void *buf, size_t len, uint64_t access)
{
	uintptr_t from = (uintptr_t)buf & ~(uintptr_t)(LOCAL_PAGE - 1);
	uintptr_t to = ((uintptr_t)buf + len + LOCAL_PAGE - 1) & ~(uintptr_t)(LOCAL_PAGE - 1);
	struct fid_mr *mr;

	if (!len)
		return NULL;
	pthread_mutex_lock(&local_lock);
	mr = local_region(l, from, to, access);
	pthread_mutex_unlock(&local_lock);
	return fi_mr_desc(mr);
}

static inline void **local_descs(struct local *l, const struct iovec *iov, size_t count,
				 uint64_t access, void **descs)
{
	for (size_t i = 0; i < count && i < LOCAL_IOV; i++)
		descs[i] = local_desc(l, iov[i].iov_base, iov[i].iov_len, access);
	return descs;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static inline ssize_t local_recv(struct fid_ep *ep, void *buf, size_t len, void *desc,
				 fi_addr_t peer, void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->msg->recv(ep, buf, len, local_desc(l, buf, len, LOCAL_IN), peer, context);
}

static inline ssize_t local_recvv(struct fid_ep *ep, const struct iovec *iov, void **desc,
				  size_t count, fi_addr_t peer, void *context)
{
	struct local *l = local_of(ep);
	void *descs[LOCAL_IOV];

	(void)desc;
	return l->msg->recvv(ep, iov, local_descs(l, iov, count, LOCAL_IN, descs), count, peer,
			     context);
}

static inline ssize_t local_recvmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct local *l = local_of(ep);
	struct fi_msg m = *msg;
	void *descs[LOCAL_IOV];

	m.desc = local_descs(l, m.msg_iov, m.iov_count, LOCAL_IN, descs);
	return l->msg->recvmsg(ep, &m, flags);
}

static inline ssize_t local_send(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				 fi_addr_t peer, void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->msg->send(ep, buf, len, local_desc(l, buf, len, LOCAL_OUT), peer, context);
}

static inline ssize_t local_sendv(struct fid_ep *ep, const struct iovec *iov, void **desc,
				  size_t count, fi_addr_t peer, void *context)
{
	struct local *l = local_of(ep);
	void *descs[LOCAL_IOV];

	(void)desc;
	return l->msg->sendv(ep, iov, local_descs(l, iov, count, LOCAL_OUT, descs), count, peer,
			     context);
}

static inline ssize_t local_sendmsg(struct fid_ep *ep, const struct fi_msg *msg, uint64_t flags)
{
	struct local *l = local_of(ep);
	struct fi_msg m = *msg;
	void *descs[LOCAL_IOV];

	m.desc = local_descs(l, m.msg_iov, m.iov_count, LOCAL_OUT, descs);
	return l->msg->sendmsg(ep, &m, flags);
}

static inline ssize_t local_senddata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				     uint64_t data, fi_addr_t peer, void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->msg->senddata(ep, buf, len, local_desc(l, buf, len, LOCAL_OUT), data, peer,
				context);
}

/* ---- One-sided transfers --------------------------------------------------------------------- */

static inline ssize_t local_read(struct fid_ep *ep, void *buf, size_t len, void *desc,
				 fi_addr_t peer, uint64_t at, uint64_t key, void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->rma->read(ep, buf, len, local_desc(l, buf, len, LOCAL_IN), peer, at, key,
			    context);
}

static inline ssize_t local_readv(struct fid_ep *ep, const struct iovec *iov, void **desc,
				  size_t count, fi_addr_t peer, uint64_t at, uint64_t key,
				  void *context)
{
	struct local *l = local_of(ep);
	void *descs[LOCAL_IOV];

	(void)desc;
	return l->rma->readv(ep, iov, local_descs(l, iov, count, LOCAL_IN, descs), count, peer, at,
			     key, context);
}

static inline ssize_t local_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct local *l = local_of(ep);
	struct fi_msg_rma m = *msg;
	void *descs[LOCAL_IOV];

	m.desc = local_descs(l, m.msg_iov, m.iov_count, LOCAL_IN, descs);
	return l->rma->readmsg(ep, &m, flags);
}

static inline ssize_t local_write(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				  fi_addr_t peer, uint64_t at, uint64_t key, void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->rma->write(ep, buf, len, local_desc(l, buf, len, LOCAL_OUT), peer, at, key,
			     context);
}

static inline ssize_t local_writev(struct fid_ep *ep, const struct iovec *iov, void **desc,
				   size_t count, fi_addr_t peer, uint64_t at, uint64_t key,
				   void *context)
{
	struct local *l = local_of(ep);
	void *descs[LOCAL_IOV];

	(void)desc;
	return l->rma->writev(ep, iov, local_descs(l, iov, count, LOCAL_OUT, descs), count, peer,
			      at, key, context);
}

static inline ssize_t local_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
				     uint64_t flags)
{
	struct local *l = local_of(ep);
	struct fi_msg_rma m = *msg;
	void *descs[LOCAL_IOV];

	m.desc = local_descs(l, m.msg_iov, m.iov_count, LOCAL_OUT, descs);
	return l->rma->writemsg(ep, &m, flags);
}

static inline ssize_t local_writedata(struct fid_ep *ep, const void *buf, size_t len, void *desc,
				      uint64_t data, fi_addr_t peer, uint64_t at, uint64_t key,
				      void *context)
{
	struct local *l = local_of(ep);

	(void)desc;
	return l->rma->writedata(ep, buf, len, local_desc(l, buf, len, LOCAL_OUT), data, peer, at,
				 key, context);
}

/* ---- The tables ------------------------------------------------------------------------------ */

static inline int local_close(struct fid *fid)
{
	struct local *l = local_of(fid);
	int err;

	l->ep->fid.ops = l->fid_ops;
	err = fi_close(fid);
	while (l->count)
		api_check_eq(fi_close(&l->mr[--l->count].mr->fid), 0, "fi_close");
	free(l->mr);
	*l = (struct local){0};
	return err;
}

static inline void local_tables(struct local *l)
{
	l->my_fid_ops.close = local_close;
	l->my_msg.recv = local_recv;
	l->my_msg.recvv = local_recvv;
	l->my_msg.recvmsg = local_recvmsg;
	l->my_msg.send = local_send;
	l->my_msg.sendv = local_sendv;
	l->my_msg.sendmsg = local_sendmsg;
	l->my_msg.senddata = local_senddata;
	l->my_rma.read = local_read;
	l->my_rma.readv = local_readv;
	l->my_rma.readmsg = local_readmsg;
	l->my_rma.write = local_write;
	l->my_rma.writev = local_writev;
	l->my_rma.writemsg = local_writemsg;
	l->my_rma.writedata = local_writedata;
}

/* Wraps the tables of an enabled endpoint. Further calls do nothing. */
static inline void local_wrap(struct fid_domain *domain, const struct fi_info *info,
			      struct fid_ep *ep)
{
	struct local *l;

	if (!info || !(info->domain_attr->mr_mode & FI_MR_LOCAL) ||
	    ep->fid.ops->close == local_close)
		return;
	/* Keep freed memory mapped: a registration refers to physical pages, not to addresses. */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT32_MAX);
	l = local_of(NULL);
	*l = (struct local){.ep = ep,
			    .domain = domain,
			    .fid_ops = ep->fid.ops,
			    .msg = ep->msg,
			    .rma = ep->rma,
			    .my_fid_ops = *ep->fid.ops,
			    .my_msg = *ep->msg,
			    .my_rma = *ep->rma};
	local_tables(l);
	ep->fid.ops = &l->my_fid_ops;
	ep->msg = &l->my_msg;
	ep->rma = &l->my_rma;
}

#endif
