/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Triggered operations and deferred work: transfers posted now and started later, when a counter
 * reaches a threshold or a device writes a variable.  They use existing calls:
 *  - FI_TRIGGER in the flags of a msg call, with a struct fi_triggered_context as its context;
 *  - fi_control() on the domain with FI_QUEUE_WORK, FI_CANCEL_WORK or FI_FLUSH_WORK and a struct
 *    fi_deferred_work (the flush: NULL for all work, or a work whose triggering_cntr selects).
 * Structures passed must stay valid and unchanged until the operation completes, or its
 * cancellation returns 0.  If its endpoint is closed before, a triggered operation ends with
 * FI_ECANCELED, and deferred work counts an error on its completion counter.
 * Man page: fi_trigger(3).
 */
#ifndef FI_TRIGGER_H
#define FI_TRIGGER_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fi_trigger_event {
	FI_TRIGGER_THRESHOLD,	/* a counter reaches a value */
	FI_TRIGGER_XPU,		/* a device writes variables */
};

/* What a struct fi_deferred_work does once its threshold is reached. */
enum fi_op_type {
	FI_OP_RECV,		/* op.msg */
	FI_OP_SEND,		/* op.msg */
	FI_OP_TRECV,		/* op.tagged */
	FI_OP_TSEND,		/* op.tagged */
	FI_OP_READ,		/* op.rma */
	FI_OP_WRITE,		/* op.rma */
	FI_OP_ATOMIC,		/* op.atomic */
	FI_OP_FETCH_ATOMIC,	/* op.fetch_atomic */
	FI_OP_COMPARE_ATOMIC,	/* op.compare_atomic */
	FI_OP_CNTR_SET,		/* op.cntr */
	FI_OP_CNTR_ADD,		/* op.cntr */
};

/*
 * Start when cntr (successes and errors together) is at least threshold.  Operations on one
 * counter start in the order of their thresholds, equal ones in the order they were posted.
 */
struct fi_trigger_threshold {
	struct fid_cntr *cntr;
	size_t threshold;
};

/* A variable that a device writes to start a transfer; variables are written in array order. */
struct fi_trigger_var {
	enum fi_datatype datatype;	/* FI_UINT8 .. FI_UINT64: width of one write */
	int count;			/* values to write; above 1 they are bytes in value.data */
	void *addr;			/* out: where to write */
	union {				/* out: what to write */
		uint8_t val8;
		uint16_t val16;
		uint32_t val32;
		uint64_t val64;
		uint8_t *data;		/* caller's buffer of count bytes */
	} value;
};

/* The device that writes the variables; it must hold the local buffers, see fi_mr(3). */
struct fi_trigger_xpu {
	int count;			/* in: room in var; out: entries to write */
	enum fi_hmem_iface iface;
	union {
		uint64_t reserved;
		int cuda;
		int ze;
	} device;
	struct fi_trigger_var *var;	/* caller's array */
};

/* Context of a triggered operation, unless the endpoint requires FI_CONTEXT2. */
struct fi_triggered_context {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[3];	/* the library's while the operation is out */
	} trigger;
};

/* Context of a triggered operation if the endpoint requires FI_CONTEXT2. */
struct fi_triggered_context2 {
	enum fi_trigger_event event_type;
	union {
		struct fi_trigger_threshold threshold;
		struct fi_trigger_xpu xpu;
		void *internal[7];	/* the library's while the operation is out */
	} trigger;
};

/*
 * Operations of deferred work: an endpoint of the same domain and the arguments of the matching
 * msg call.  flags as there; without FI_COMPLETION no CQ entry is written.
 */
struct fi_op_msg {
	struct fid_ep *ep;
	struct fi_msg msg;
	uint64_t flags;
};

struct fi_op_tagged {
	struct fid_ep *ep;
	struct fi_msg_tagged msg;
	uint64_t flags;
};

struct fi_op_rma {
	struct fid_ep *ep;
	struct fi_msg_rma msg;
	uint64_t flags;
};

struct fi_op_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	uint64_t flags;
};

struct fi_op_fetch_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	uint64_t flags;
};

struct fi_op_compare_atomic {
	struct fid_ep *ep;
	struct fi_msg_atomic msg;
	struct fi_msg_fetch fetch;
	struct fi_msg_compare compare;
	uint64_t flags;
};

/* Counter to set to value, or to add value to; completion_cntr of the work must be NULL. */
struct fi_op_cntr {
	struct fid_cntr *cntr;
	uint64_t value;
};

/*
 * Work queued on a domain.  It starts when triggering_cntr (successes and errors together) is at
 * least threshold.  At its end the success value of completion_cntr (NULL: none) grows by 1, or its
 * error value if the work fails or its endpoint is closed before.  The application must cancel work
 * whose threshold can no longer be reached.  -FI_ENOSYS: the operation cannot be deferred.
 * fi_trigger(3)
 */
struct fi_deferred_work {
	struct fi_context2 context;	/* used by the library while queued */
	uint64_t threshold;
	struct fid_cntr *triggering_cntr;
	struct fid_cntr *completion_cntr;
	enum fi_op_type op_type;	/* which member of op holds */
	union {
		struct fi_op_msg *msg;
		struct fi_op_tagged *tagged;
		struct fi_op_rma *rma;
		struct fi_op_atomic *atomic;
		struct fi_op_fetch_atomic *fetch_atomic;
		struct fi_op_compare_atomic *compare_atomic;
		struct fi_op_cntr *cntr;
	} op;
};

#ifdef __cplusplus
}
#endif

#endif /* FI_TRIGGER_H */
