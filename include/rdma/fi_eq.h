/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues and counters for results: event queues fi_eq(3), completion queues fi_cq(3), counters
 * fi_cntr(3), and the wait sets and poll sets of API 1.x, fi_poll(3).
 *
 * Timeouts are in milliseconds; negative: none. Calls return 0 or a count, or a negative FI_E*.
 * fi_close closes an object; -FI_EBUSY while another object is bound to it.
 */
#ifndef RDMA_FI_EQ_H
#define RDMA_FI_EQ_H

#include <poll.h>
#include <pthread.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Wait objects: what a thread can sleep on. fi_control with FI_GETWAIT returns the native object.
 */
enum fi_wait_obj {
	FI_WAIT_NONE,       /* no waiting: blocking reads are refused, fi_cntr_wait polls */
	FI_WAIT_UNSPEC,     /* wait only by calls of this interface */
	FI_WAIT_SET,        /* wait by the wait set in wait_set */
	FI_WAIT_FD,         /* one file descriptor, int */
	FI_WAIT_MUTEX_COND, /* struct fi_mutex_cond */
	FI_WAIT_YIELD,      /* yield the CPU in a loop */
	FI_WAIT_POLLFD      /* several file descriptors, struct fi_wait_pollfd */
};

/* Filled in by FI_GETWAIT; the queried object owns both. */
struct fi_mutex_cond {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};

/* For FI_GETWAIT.  In: nfds entries at fd; out: nfds needed, -FI_ETOOSMALL if that is more. */
struct fi_wait_pollfd {
	uint64_t change_index; /* changes when the set of descriptors changes */
	size_t nfds;
	struct pollfd *fd; /* the caller's array */
};

/* Wait sets, API 1.x. */
struct fi_wait_attr {
	enum fi_wait_obj wait_obj; /* UNSPEC, FD, MUTEX_COND, YIELD or POLLFD */
	uint64_t flags;            /* 0 */
};

struct fi_ops_wait {
	size_t size; /* bytes of this table that its writer knows; so in each table below */
	int (*wait)(struct fid_wait *waitset, int timeout);
};

struct fid_wait {
	struct fid fid;
	struct fi_ops_wait *ops;
};

/* Poll sets, API 1.x. */
struct fi_poll_attr {
	uint64_t flags; /* 0 */
};

struct fi_ops_poll {
	size_t size;
	int (*poll)(struct fid_poll *pollset, void **context, int count);
	int (*poll_add)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
	int (*poll_del)(struct fid_poll *pollset, struct fid *event_fid, uint64_t flags);
};

struct fid_poll {
	struct fid fid;
	struct fi_ops_poll *ops;
};

/* ---- Event queue: connections and control operations ----------------------------------------- */

struct fi_eq_attr {
	size_t size;               /* minimum entries; 0: default */
	uint64_t flags;            /* FI_WRITE: fi_eq_write allowed; FI_AFFINITY */
	enum fi_wait_obj wait_obj; /* not POLLFD */
	int signaling_vector;      /* CPU for interrupts, with FI_AFFINITY; a hint */
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
};

/* Events of fi_eq_read, and the struct written for each. */
enum {
	FI_NOTIFY,       /* struct fi_eq_entry */
	FI_CONNREQ,      /* struct fi_eq_cm_entry; fid: passive endpoint; info: for fi_endpoint */
	FI_CONNECTED,    /* struct fi_eq_cm_entry; fid: endpoint */
	FI_SHUTDOWN,     /* struct fi_eq_cm_entry; fid: endpoint */
	FI_MR_COMPLETE,  /* struct fi_eq_entry; fid: memory region */
	FI_AV_COMPLETE,  /* struct fi_eq_entry; fid: address vector; data: addresses inserted */
	FI_JOIN_COMPLETE /* struct fi_eq_entry; fid: fid_mc */
};

struct fi_eq_entry {
	fid_t fid;     /* object of the event */
	void *context; /* context of the operation, else of the object */
	uint64_t data; /* see the event */
};

struct fi_eq_err_entry {
	fid_t fid;
	void *context;
	uint64_t data;  /* FI_AV_COMPLETE: index of the address that failed */
	int err;        /* positive FI_E* */
	int prov_errno; /* for fi_eq_strerror */
	void *err_data; /* as in struct fi_cq_err_entry */
	size_t err_data_size;
};

#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
#endif
struct fi_eq_cm_entry {
	fid_t fid;
	struct fi_info *info; /* FI_CONNREQ: the reader frees it with fi_freeinfo; else NULL */
	__extension__ uint8_t data[]; /* user data of the peer, up to the end of the bytes read */
};
#if defined(__cplusplus) && defined(__clang__)
#pragma clang diagnostic pop
#endif

struct fi_ops_eq {
	size_t size;
	ssize_t (*read)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, uint64_t flags);
	ssize_t (*readerr)(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags);
	ssize_t (*write)(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			 uint64_t flags);
	ssize_t (*sread)(struct fid_eq *eq, uint32_t *event, void *buf, size_t len, int timeout,
			 uint64_t flags);
	const char *(*strerror)(struct fid_eq *eq, int prov_errno, const void *err_data, char *buf,
				size_t len);
};

struct fid_eq {
	struct fid fid;
	struct fi_ops_eq *ops;
};

/* ---- Completion queue: data transfers -------------------------------------------------------- */

/* Structs that fi_cq_read writes; each begins with the one before. */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,  /* chosen by the library: FI_CQ_FORMAT_CONTEXT */
	FI_CQ_FORMAT_CONTEXT, /* struct fi_cq_entry */
	FI_CQ_FORMAT_MSG,     /* struct fi_cq_msg_entry */
	FI_CQ_FORMAT_DATA,    /* struct fi_cq_data_entry */
	FI_CQ_FORMAT_TAGGED   /* struct fi_cq_tagged_entry */
};

struct fi_cq_entry {
	void *op_context; /* context of the operation; NULL: no operation was posted here */
};

struct fi_cq_msg_entry {
	void *op_context;
	uint64_t flags; /* kind of operation: FI_SEND FI_RECV FI_MSG FI_TAGGED FI_RMA ... */
	size_t len;     /* bytes received */
};

struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;     /* start of the message in a FI_MULTI_RECV buffer */
	uint64_t data; /* of the sender, host byte order; valid with FI_REMOTE_CQ_DATA */
};

struct fi_cq_tagged_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag; /* of the message, host byte order */
};

/*
 * err_data: if err_data_size > 0 on entry, a buffer of the caller, which is filled in; the size is
 * then the bytes copied. With 0 (or a fabric opened with API < 1.5) err_data is set to memory of
 * the queue, valid until the next read. A fabric opened with API < 1.5 gets no err_data_size, one
 * with API < 1.20 no src_addr.
 */
struct fi_cq_err_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	size_t olen;    /* FI_ETRUNC: bytes that did not fit */
	int err;        /* positive FI_E* */
	int prov_errno; /* for fi_cq_strerror */
	void *err_data; /* FI_EADDRNOTAVAIL: address of the unknown sender */
	size_t err_data_size;
	fi_addr_t src_addr; /* sender; FI_ADDR_NOTAVAIL: unknown */
};

/* Meaning of cond in the blocking reads; a hint, a read may return earlier. */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,     /* nothing */
	FI_CQ_COND_THRESHOLD /* wait for (size_t) cond entries */
};

struct fi_cq_attr {
	size_t size;    /* minimum entries; 0: default */
	uint64_t flags; /* FI_AFFINITY */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj; /* not POLLFD */
	int signaling_vector;      /* CPU for interrupts, with FI_AFFINITY; a hint */
	enum fi_cq_wait_cond wait_cond;
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
#ifdef WEFT_API_2_7
	void *xpu_ctx; /* NULL here */
#endif
};

struct fi_ops_cq {
	size_t size;
	ssize_t (*read)(struct fid_cq *cq, void *buf, size_t count);
	ssize_t (*readfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr);
	ssize_t (*readerr)(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags);
	ssize_t (*sread)(struct fid_cq *cq, void *buf, size_t count, const void *cond, int timeout);
	ssize_t (*sreadfrom)(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
			     const void *cond, int timeout);
	int (*signal)(struct fid_cq *cq);
	const char *(*strerror)(struct fid_cq *cq, int prov_errno, const void *err_data, char *buf,
				size_t len);
#ifdef WEFT_API_2_7
	int (*export_xpu)(void); /* parameters not settled; -FI_ENOSYS */
#endif
};

struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

/* ---- Counter --------------------------------------------------------------------------------- */

enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP, /* counts completions */
	FI_CNTR_EVENTS_BYTES /* counts bytes transferred */
};

struct fi_cntr_attr {
	enum fi_cntr_events events;
	enum fi_wait_obj wait_obj; /* not POLLFD */
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
	uint64_t flags;            /* 0 */
#ifdef WEFT_API_2_7
	void *xpu_ctx; /* NULL here */
#endif
};

struct fi_ops_cntr {
	size_t size;
	uint64_t (*read)(struct fid_cntr *cntr);
	uint64_t (*readerr)(struct fid_cntr *cntr);
	int (*add)(struct fid_cntr *cntr, uint64_t value);
	int (*set)(struct fid_cntr *cntr, uint64_t value);
	int (*wait)(struct fid_cntr *cntr, uint64_t threshold, int timeout);
	int (*adderr)(struct fid_cntr *cntr, uint64_t value);
	int (*seterr)(struct fid_cntr *cntr, uint64_t value);
#ifdef WEFT_API_2_7
	int (*export_xpu)(void); /* parameters not settled; -FI_ENOSYS */
#endif
};

struct fid_cntr {
	struct fid fid;
	struct fi_ops_cntr *ops;
};

/* ---- Calls: waiting -------------------------------------------------------------------------- */

/*
 * May the caller block on the native wait objects of these count fids (event queues, completion
 * queues, counters, wait sets; all with one kind of wait object)? 0: yes, the next event signals
 * them; -FI_EAGAIN: read all entries first, then ask again. Needed before each block. fi_poll(3)
 */
WEFT_CALL int fi_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	return fabric->ops->trywait(fabric, fids, count);
}

/*
 * Sleeps until an object of the wait set may have an entry. 0, or -FI_ETIMEDOUT. API 1.x; prefer a
 * file descriptor per queue, and fi_trywait. fi_poll(3)
 */
FI_DEPRECATED_FUNC WEFT_CALL int fi_wait(struct fid_wait *waitset, int timeout)
{
	return waitset->ops->wait(waitset, timeout);
}

/*
 * Makes progress on the queues and counters of the set; writes the contexts of up to count objects
 * that may have an entry, and returns their number. API 1.x. fi_poll(3)
 */
FI_DEPRECATED_FUNC WEFT_CALL int fi_poll(struct fid_poll *pollset, void **context, int count)
{
	return pollset->ops->poll(pollset, context, count);
}

/* Adds a completion queue or counter to the set; flags 0.  Of API 1.x.  fi_poll(3) */
FI_DEPRECATED_FUNC WEFT_CALL int fi_poll_add(struct fid_poll *pollset, struct fid *event_fid,
					     uint64_t flags)
{
	return pollset->ops->poll_add(pollset, event_fid, flags);
}

/* Removes a completion queue or counter from the set; flags 0. API 1.x. fi_poll(3) */
FI_DEPRECATED_FUNC WEFT_CALL int fi_poll_del(struct fid_poll *pollset, struct fid *event_fid,
					     uint64_t flags)
{
	return pollset->ops->poll_del(pollset, event_fid, flags);
}

/* ---- Calls: event queue ---------------------------------------------------------------------- */

/* Opens an event queue; attr NULL: all defaults; context goes to (*eq)->fid.context.  fi_eq(3) */
WEFT_CALL int fi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
			 void *context)
{
	return fabric->ops->eq_open(fabric, attr, eq, context);
}

/*
 * Reads and removes one event; with FI_PEEK in flags leaves it. *event is the event, its struct is
 * written to buf of len bytes, and the bytes written are returned. -FI_EAGAIN: none; -FI_EAVAIL:
 * read an error by fi_eq_readerr first; -FI_ETOOSMALL: len is too short. fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			     uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/*
 * Reads and removes one error; with FI_PEEK leaves it. Returns the bytes of the entry; -FI_EAGAIN:
 * none. Set err_data and err_data_size before: the call reads them. fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/*
 * Adds an event of the application, a copy of len bytes of buf; the queue must be opened with
 * FI_WRITE. Returns len; -FI_EAGAIN: the queue is full. fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			      uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/*
 * As fi_eq_read, waiting up to timeout; then -FI_EAGAIN.  A signal may end the wait early.
 * -FI_ENOSYS with FI_WAIT_NONE.  fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			      int timeout, uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/*
 * Returns a text for prov_errno and err_data of an error entry; also copies it to buf (len bytes)
 * unless buf is NULL. The string belongs to the queue, or is buf. fi_eq(3)
 */
WEFT_CALL const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data,
				     char *buf, size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}

/* ---- Calls: completion queue ----------------------------------------------------------------- */

/*
 * Reads and removes up to count completions into buf, an array of the struct of the queue's format.
 * Returns their number; -FI_EAGAIN: none; -FI_EAVAIL: read an error by fi_cq_readerr first. Makes
 * progress; with count 0 nothing else. After hundreds of calls in a row without a completion the
 * call yields the core (sched_yield). fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return cq->ops->read(cq, buf, count);
}

/*
 * As fi_cq_read; also writes the senders to src_addr, FI_ADDR_NOTAVAIL if there is none or it is
 * not in the address vector. Needs the capability FI_SOURCE. fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/*
 * Reads and removes one failed operation. Returns 1; -FI_EAGAIN: none. buf must have the size that
 * this header defines. Set err_data and err_data_size before: the call reads them. fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	if (buf)
		buf->src_addr = FI_ADDR_NOTAVAIL;
	return cq->ops->readerr(cq, buf, flags);
}

/*
 * As fi_cq_read, waiting up to timeout; then -FI_EAGAIN.  cond: see enum fi_cq_wait_cond.
 * fi_cq_signal or a signal may end the wait early.  -FI_ENOSYS with FI_WAIT_NONE.  fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_sread(struct fid_cq *cq, void *buf, size_t count, const void *cond,
			      int timeout)
{
	return cq->ops->sread(cq, buf, count, cond, timeout);
}

/* fi_cq_sread and fi_cq_readfrom in one.  fi_cq(3) */
WEFT_CALL ssize_t fi_cq_sreadfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr,
				  const void *cond, int timeout)
{
	return cq->ops->sreadfrom(cq, buf, count, src_addr, cond, timeout);
}

/* Wakes the threads that wait in fi_cq_sread or fi_cq_sreadfrom.  fi_cq(3) */
WEFT_CALL int fi_cq_signal(struct fid_cq *cq)
{
	return cq->ops->signal(cq);
}

/* As fi_eq_strerror, for a failed operation.  fi_cq(3) */
WEFT_CALL const char *fi_cq_strerror(struct fid_cq *cq, int prov_errno, const void *err_data,
				     char *buf, size_t len)
{
	return cq->ops->strerror(cq, prov_errno, err_data, buf, len);
}

/* ---- Calls: counter.  An update may take a moment until a read shows it. --------------------- */

/* Returns the success value; makes progress. fi_cntr(3) */
WEFT_CALL uint64_t fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

/* Returns the error value, the number of failed operations; makes progress. fi_cntr(3) */
WEFT_CALL uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/* Adds to the success value. fi_cntr(3) */
WEFT_CALL int fi_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->add(cntr, value);
}

/* Adds to the error value; -FI_ENOSYS: not supported by the counter. fi_cntr(3) */
WEFT_CALL int fi_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, adderr))
		return -FI_ENOSYS;
	return cntr->ops->adderr(cntr, value);
}

/* Sets the success value; no operation may change it meanwhile. fi_cntr(3) */
WEFT_CALL int fi_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->set(cntr, value);
}

/* Sets the error value; -FI_ENOSYS: not supported by the counter. fi_cntr(3) */
WEFT_CALL int fi_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, seterr))
		return -FI_ENOSYS;
	return cntr->ops->seterr(cntr, value);
}

/*
 * Waits until the success value is at least threshold. -FI_ETIMEDOUT after timeout; -FI_EAVAIL: the
 * error value changed first. Polls with FI_WAIT_NONE. fi_cntr(3)
 */
WEFT_CALL int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_EQ_H */
