/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where results arrive: event queues fi_eq(3), completion queues fi_cq(3), counters fi_cntr(3), and
 * the wait sets and poll sets of API 1.x, fi_poll(3).
 *
 * Timeouts are milliseconds, negative: without end.  Calls return 0 or a count, or a negative
 * FI_E*.  An object is closed with fi_close, which says -FI_EBUSY while another is bound to it.
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

/* What a thread can sleep on; fi_control FI_GETWAIT hands out the native object. */
enum fi_wait_obj {
	FI_WAIT_NONE,       /* nobody will wait; blocking reads are refused, fi_cntr_wait polls */
	FI_WAIT_UNSPEC,     /* wait only through the calls of this interface */
	FI_WAIT_SET,        /* wait through the wait set in wait_set */
	FI_WAIT_FD,         /* one file descriptor, int */
	FI_WAIT_MUTEX_COND, /* struct fi_mutex_cond */
	FI_WAIT_YIELD,      /* give up the CPU in a loop, no object */
	FI_WAIT_POLLFD      /* several file descriptors, struct fi_wait_pollfd */
};

/* Filled by FI_GETWAIT; both belong to the object that was asked. */
struct fi_mutex_cond {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
};

/* For FI_GETWAIT.  In: nfds entries at fd; out: nfds needed, -FI_ETOOSMALL if that is more. */
struct fi_wait_pollfd {
	uint64_t change_index; /* another value than last time: the set of descriptors changed */
	size_t nfds;
	struct pollfd *fd; /* array of the caller */
};

/* Wait sets, API 1.x. */
struct fi_wait_attr {
	enum fi_wait_obj wait_obj; /* UNSPEC, FD, MUTEX_COND, YIELD or POLLFD */
	uint64_t flags;            /* 0 */
};

struct fi_ops_wait {
	size_t size; /* bytes of this table the filler knows; so in every table below */
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
	size_t size;               /* entries at least; 0: default */
	uint64_t flags;            /* FI_WRITE: fi_eq_write allowed; FI_AFFINITY */
	enum fi_wait_obj wait_obj; /* not POLLFD */
	int signaling_vector;      /* CPU for interrupts, with FI_AFFINITY; a hint */
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
};

/* Which event fi_eq_read returned, and the struct it wrote. */
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
	fid_t fid;     /* object it is about */
	void *context; /* of the operation, else of the object */
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
	__extension__ uint8_t data[]; /* user data of the peer, up to the bytes read */
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

/* The struct fi_cq_read writes; each begins with the one before. */
enum fi_cq_format {
	FI_CQ_FORMAT_UNSPEC,  /* chosen by the library, written back into the attr */
	FI_CQ_FORMAT_CONTEXT, /* struct fi_cq_entry */
	FI_CQ_FORMAT_MSG,     /* struct fi_cq_msg_entry */
	FI_CQ_FORMAT_DATA,    /* struct fi_cq_data_entry */
	FI_CQ_FORMAT_TAGGED   /* struct fi_cq_tagged_entry */
};

struct fi_cq_entry {
	void *op_context; /* of the operation; NULL when nothing was posted here for it */
};

struct fi_cq_msg_entry {
	void *op_context;
	uint64_t flags; /* what completed: FI_SEND FI_RECV FI_MSG FI_TAGGED FI_RMA ... */
	size_t len;     /* bytes received */
};

struct fi_cq_data_entry {
	void *op_context;
	uint64_t flags;
	size_t len;
	void *buf;     /* where a message landed in a FI_MULTI_RECV buffer */
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
 * err_data: with err_data_size > 0 on entry a buffer of the caller that is filled, the size then
 * is what was copied; with 0 (or a fabric opened with API < 1.5) it is set to memory of the queue
 * that holds until the next read.  A fabric opened with API < 1.5 gets no err_data_size, one
 * below 1.20 no src_addr.
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
	fi_addr_t src_addr; /* sender, FI_ADDR_NOTAVAIL when not known */
};

/* What cond of the blocking reads means; a hint, a read may return earlier. */
enum fi_cq_wait_cond {
	FI_CQ_COND_NONE,     /* nothing */
	FI_CQ_COND_THRESHOLD /* (size_t) cond entries are there */
};

struct fi_cq_attr {
	size_t size;    /* entries at least; 0: default */
	uint64_t flags; /* FI_AFFINITY */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj; /* not POLLFD */
	int signaling_vector;      /* CPU for interrupts, with FI_AFFINITY; a hint */
	enum fi_cq_wait_cond wait_cond;
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
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
};

struct fid_cq {
	struct fid fid;
	struct fi_ops_cq *ops;
};

/* ---- Counter --------------------------------------------------------------------------------- */

enum fi_cntr_events {
	FI_CNTR_EVENTS_COMP, /* one for each completion */
	FI_CNTR_EVENTS_BYTES /* bytes transferred */
};

struct fi_cntr_attr {
	enum fi_cntr_events events;
	enum fi_wait_obj wait_obj; /* not POLLFD */
	struct fid_wait *wait_set; /* with FI_WAIT_SET */
	uint64_t flags;            /* 0 */
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
};

struct fid_cntr {
	struct fid fid;
	struct fi_ops_cntr *ops;
};

/* ---- Calls: waiting -------------------------------------------------------------------------- */

/*
 * May the caller block on the native wait objects of these count fids (event queue, completion
 * queue, counter, wait set; all of one kind of wait object)?  0: yes, the next event will signal
 * them; -FI_EAGAIN: read everything first, then ask again.  Needed before each block.  fi_poll(3)
 */
WEFT_CALL int fi_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	return fabric->ops->trywait(fabric, fids, count);
}

/*
 * Sleeps until an object of the wait set may have something.  0, or -FI_ETIMEDOUT.  Of API 1.x:
 * better a file descriptor for each queue, and fi_trywait.  fi_poll(3)
 */
FI_DEPRECATED_FUNC WEFT_CALL int fi_wait(struct fid_wait *waitset, int timeout)
{
	return waitset->ops->wait(waitset, timeout);
}

/*
 * Makes progress on the queues and counters of the set and writes the contexts of up to count of
 * them that may have something; returns how many.  Of API 1.x.  fi_poll(3)
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

/* Takes a completion queue or counter out of the set; flags 0.  Of API 1.x.  fi_poll(3) */
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
 * Takes one event (FI_PEEK in flags: leaves it there).  *event says which, buf of len bytes gets
 * its struct; the return value is the bytes written.  -FI_EAGAIN: none; -FI_EAVAIL: an error
 * waits for fi_eq_readerr; -FI_ETOOSMALL: len does not hold the struct.  fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_read(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			     uint64_t flags)
{
	return eq->ops->read(eq, event, buf, len, flags);
}

/*
 * Takes one error (FI_PEEK: leaves it).  Returns the bytes of the entry, -FI_EAGAIN when there is
 * none.  err_data and err_data_size are read too: set them.  fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_readerr(struct fid_eq *eq, struct fi_eq_err_entry *buf, uint64_t flags)
{
	return eq->ops->readerr(eq, buf, flags);
}

/*
 * Puts an event of the application in, a copy of len bytes of buf; the queue was opened with
 * FI_WRITE.  Returns len, or -FI_EAGAIN when the queue is full.  fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_write(struct fid_eq *eq, uint32_t event, const void *buf, size_t len,
			      uint64_t flags)
{
	return eq->ops->write(eq, event, buf, len, flags);
}

/*
 * As fi_eq_read, waiting up to timeout; then -FI_EAGAIN.  A signal may end the wait early.  Not
 * with FI_WAIT_NONE or FI_WAIT_SET.  fi_eq(3)
 */
WEFT_CALL ssize_t fi_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf, size_t len,
			      int timeout, uint64_t flags)
{
	return eq->ops->sread(eq, event, buf, len, timeout, flags);
}

/*
 * Text for prov_errno and err_data of an error entry; also copied into buf (len bytes) unless
 * buf is NULL.  The string returned belongs to the queue or is buf.  fi_eq(3)
 */
WEFT_CALL const char *fi_eq_strerror(struct fid_eq *eq, int prov_errno, const void *err_data,
				     char *buf, size_t len)
{
	return eq->ops->strerror(eq, prov_errno, err_data, buf, len);
}

/* ---- Calls: completion queue ----------------------------------------------------------------- */

/*
 * Takes up to count completions into buf, an array of the struct of the queue's format.  Returns
 * how many; -FI_EAGAIN: none; -FI_EAVAIL: an error waits for fi_cq_readerr.  Makes progress; count
 * 0 does nothing else.  Where hundreds of calls in a row find nothing, other threads of the same core
 * get it for a moment (sched_yield).  fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return cq->ops->read(cq, buf, count);
}

/*
 * As fi_cq_read; src_addr gets count senders, FI_ADDR_NOTAVAIL where there is none or the address
 * vector does not hold it.  Needs the capability FI_SOURCE.  fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_readfrom(struct fid_cq *cq, void *buf, size_t count, fi_addr_t *src_addr)
{
	return cq->ops->readfrom(cq, buf, count, src_addr);
}

/*
 * Takes one failed operation.  Returns 1, or -FI_EAGAIN when there is none.  buf must have the
 * size this header gives it; err_data and err_data_size are read too: set them.  fi_cq(3)
 */
WEFT_CALL ssize_t fi_cq_readerr(struct fid_cq *cq, struct fi_cq_err_entry *buf, uint64_t flags)
{
	if (buf)
		buf->src_addr = FI_ADDR_NOTAVAIL;
	return cq->ops->readerr(cq, buf, flags);
}

/*
 * As fi_cq_read, waiting up to timeout; then -FI_EAGAIN.  cond: see enum fi_cq_wait_cond.
 * fi_cq_signal or a signal may end the wait early.  Not with FI_WAIT_NONE or FI_WAIT_SET.
 * fi_cq(3)
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

/* How much succeeded so far; makes progress.  fi_cntr(3) */
WEFT_CALL uint64_t fi_cntr_read(struct fid_cntr *cntr)
{
	return cntr->ops->read(cntr);
}

/* How many operations failed so far; makes progress.  fi_cntr(3) */
WEFT_CALL uint64_t fi_cntr_readerr(struct fid_cntr *cntr)
{
	return cntr->ops->readerr(cntr);
}

/* Adds to the value of success.  fi_cntr(3) */
WEFT_CALL int fi_cntr_add(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->add(cntr, value);
}

/* Adds to the value of failure; -FI_ENOSYS where the counter cannot.  fi_cntr(3) */
WEFT_CALL int fi_cntr_adderr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, adderr))
		return -FI_ENOSYS;
	return cntr->ops->adderr(cntr, value);
}

/* Sets the value of success; only while nothing else may change it.  fi_cntr(3) */
WEFT_CALL int fi_cntr_set(struct fid_cntr *cntr, uint64_t value)
{
	return cntr->ops->set(cntr, value);
}

/* Sets the value of failure; -FI_ENOSYS where the counter cannot.  fi_cntr(3) */
WEFT_CALL int fi_cntr_seterr(struct fid_cntr *cntr, uint64_t value)
{
	if (!FI_CHECK_OP(cntr->ops, struct fi_ops_cntr, seterr))
		return -FI_ENOSYS;
	return cntr->ops->seterr(cntr, value);
}

/*
 * Waits until the value of success is threshold or more.  -FI_ETIMEDOUT after timeout; -FI_EAVAIL
 * when the value of failure changes first.  With FI_WAIT_NONE it polls.  Not with FI_WAIT_SET.
 * fi_cntr(3)
 */
WEFT_CALL int fi_cntr_wait(struct fid_cntr *cntr, uint64_t threshold, int timeout)
{
	return cntr->ops->wait(cntr, threshold, timeout);
}

#ifdef __cplusplus
}
#endif

#endif /* RDMA_FI_EQ_H */
