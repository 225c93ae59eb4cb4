/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. All under the domain's lock. fi_cq(3). */
#ifndef WEFT_CORE_CQ_H
#define WEFT_CORE_CQ_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <string.h>

#include "core/domain.h"
#include "core/workers.h"
#include "core/wait.h"

struct worker;

/* A completion as it is kept, whatever format it is read in. */
struct cq_slot {
	void *context;
	uint64_t flags;
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;
	struct cq_error *error; /* NULL: a success */
};

/* The rest of a failed completion; owned by the queue. */
struct cq_error {
	int err;        /* positive FI_E* */
	int prov_errno; /* for fi_cq_strerror */
	size_t olen;    /* bytes that did not fit */
	size_t data_size;
	unsigned char data[]; /* err_data */
};

struct cq {
	struct fid_cq fid;
	struct domain *dom;
	struct cq_slot *ring;
	uint32_t head, tail; /* count up for ever; tail - head entries wait */
	uint32_t limit;      /* the tail may go up to here before anybody looks at the head */
	uint32_t mask;
	uint32_t capacity_asked; /* attr.size as granted */
	enum fi_cq_format format;
	enum fi_cq_wait_cond wait_cond;
	struct waiter wait;
	struct workers workers; /* progressed by a read of the empty queue */
	int signaled;           /* fi_cq_signal came: the next blocking read returns */
	int ref;                /* atomic: endpoints bound */
	void *err_data;         /* what the last readerr handed out by pointer */
	struct cq_error
		*overrun; /* the queue's last entry, once there was no memory for another one */
	bool is_overrun;  /* it is in the ring, and stays; completions are lost */
};

static inline struct cq *cq_of(struct fid_cq *fid)
{
	return (struct cq *)fid;
}

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/* Doubles the ring. false: out of memory, nothing changed. */
bool cq_grow(struct cq *cq);
/*
 * Cold end of cq_slot: learns what was read since, or grows. Where there is no memory for that the queue is
 * overrun: its last entry is FI_EOVERRUN, and the peers it could hear of are disconnected. fi_cq(3)
 */
struct cq_slot *cq_slot_slow(struct cq *cq);

/* Room for one more completion, to be filled completely; the queue is never full. */
static inline struct cq_slot *cq_slot(struct cq *cq)
{
	if (__builtin_expect(cq->tail == cq->limit, 0))
		return cq_slot_slow(cq);
	return &cq->ring[cq->tail++ & cq->mask];
}

static inline void cq_push(struct cq *cq, struct cq_slot entry)
{
	*cq_slot(cq) = entry;
	wait_notify(&cq->wait);
}

/* The cold end of cq_push_done. */
void cq_push_done_slow(struct cq *cq, void *context, uint64_t flags);

/*
 * The same where there is nothing to say but whose it is: built in place, without a copy, and
 * nothing is kept across a call.
 */
static inline void cq_push_done(struct cq *cq, void *context, uint64_t flags)
{
	struct cq_slot *slot;

	if (__builtin_expect(cq->tail == cq->limit, 0)) {
		cq_push_done_slow(cq, context, flags);
		return;
	}
	slot = &cq->ring[cq->tail++ & cq->mask];
	slot->context = context;
	slot->flags = flags;
	memset(&slot->len, 0, sizeof(*slot) - offsetof(struct cq_slot, len));
	wait_notify(&cq->wait);
}

/*
 * A failed completion. entry.error is ignored; `err` positive; err_data is copied. Cold.
 */
void cq_push_error(struct cq *cq, const struct cq_slot *entry, const struct cq_error *why,
		   const void *err_data);

/* Endpoint enable and close: the queue learns which workers a read of it drives. Domain locked. */
int cq_add_worker(struct cq *cq, struct worker *worker);
void cq_del_worker(struct cq *cq, struct worker *worker);

/* For fi_trywait: 0 when a sleeper would be woken by whatever comes, -FI_EAGAIN: read first. */
int cq_arm(struct cq *cq);
/* Makes progress once; true when there is something to read. */
bool cq_ready(struct cq *cq);

#endif
