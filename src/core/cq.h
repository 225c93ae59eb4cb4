/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, guarded by the domain's lock. fi_cq(3). */
#ifndef WEFT_CORE_CQ_H
#define WEFT_CORE_CQ_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>
#include <string.h>

#include "core/domain.h"
#include "core/workers.h"
#include "core/wait.h"

/* A stored completion, independent of the format in which it is read. */
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

/* Details of a failed completion; owned by the queue. */
struct cq_error {
	int err;        /* positive FI_E* */
	int prov_errno; /* for fi_cq_strerror */
	size_t olen;    /* bytes that did not fit */
	size_t data_size;
	unsigned char data[]; /* err_data */
};

struct cq {
	union {
		struct fid_cq fid;
		struct waitable waitable;
	};
	struct cq_slot *ring;
	uint32_t head, tail; /* never wrap at the ring's size; tail - head entries are unread */
	uint32_t limit;      /* the tail needs no check against the head up to here */
	uint32_t mask;
	struct domain *dom;
	uint32_t finds; /* calls that found entries since one of them made progress */
	enum fi_cq_format format;
	struct workers workers; /* progressed by a read of the empty queue */
	struct waiter wait;
	uint32_t capacity_asked; /* fi_cq_attr.size as returned to the application */
	enum fi_cq_wait_cond wait_cond;
	struct list in_domain; /* dom->queues */
	int signaled;          /* fi_cq_signal was called: the next blocking read returns */
	int ref;               /* atomic: bound endpoints */
	void *err_data;        /* what the last readerr returned by pointer; ours to free */
	/* The queue's last entry once memory ran out; allocated in advance. */
	struct cq_error *overrun;
	bool is_overrun; /* `overrun` is in the ring and stays; further completions are dropped */
};

_Static_assert(offsetof(struct cq, wait) <= 128, "a read looks at the first two cache lines");

static inline struct cq *cq_of(struct fid_cq *fid)
{
	return (struct cq *)fid;
}

int cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq, void *context);

/*
 * Memory is out for what the queue must tell: its last entry is FI_EOVERRUN, and the peers of its workers are disconnected.
 */
void cq_overrun(struct cq *cq);
/*
 * Slow path of cq_slot: moves `limit` on after reads, or grows the ring. If memory for that is out,
 * the queue overruns. fi_cq(3)
 */
struct cq_slot *cq_slot_slow(struct cq *cq);

/* Does the next completion take the slow path of cq_slot? */
static inline bool cq_full(const struct cq *cq)
{
	return __builtin_expect(cq->tail == cq->limit, 0);
}

/* Returns the next slot of a queue that is not cq_full; the caller fills all of it. */
static inline struct cq_slot *cq_slot_next(struct cq *cq)
{
	return &cq->ring[cq->tail++ & cq->mask];
}

/* Returns a slot for one more completion; the caller fills all of it. Never NULL. */
static inline struct cq_slot *cq_slot(struct cq *cq)
{
	return cq_full(cq) ? cq_slot_slow(cq) : cq_slot_next(cq);
}

/* Each format of an entry is a prefix of the next one, and of struct cq_slot. */
_Static_assert(offsetof(struct cq_slot, context) == offsetof(struct fi_cq_tagged_entry, op_context),
	       "slot and entry agree");
_Static_assert(offsetof(struct cq_slot, flags) == offsetof(struct fi_cq_tagged_entry, flags) &&
		       offsetof(struct cq_slot, len) == offsetof(struct fi_cq_tagged_entry, len) &&
		       offsetof(struct cq_slot, buf) == offsetof(struct fi_cq_tagged_entry, buf) &&
		       offsetof(struct cq_slot, data) ==
			       offsetof(struct fi_cq_tagged_entry, data) &&
		       offsetof(struct cq_slot, tag) == offsetof(struct fi_cq_tagged_entry, tag),
	       "slot and entry agree");

/* Bytes of an entry of this format, as the application reads it. */
static inline size_t cq_entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_TAGGED:
		return sizeof(struct fi_cq_tagged_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	default:
		return sizeof(struct fi_cq_entry);
	}
}

/* Writes a success as an entry of this format. */
static inline void cq_write(void *to, enum fi_cq_format format, const struct cq_slot *slot)
{
	struct fi_cq_tagged_entry *entry = to;

	if (__builtin_expect(format == FI_CQ_FORMAT_TAGGED, 1))
		entry->tag = slot->tag;
	if (__builtin_expect(format >= FI_CQ_FORMAT_DATA, 1)) {
		entry->buf = slot->buf;
		entry->data = slot->data;
	}
	if (__builtin_expect(format >= FI_CQ_FORMAT_MSG, 1)) {
		entry->flags = slot->flags;
		entry->len = slot->len;
	}
	entry->op_context = slot->context;
}

static inline void cq_push(struct cq *cq, struct cq_slot entry)
{
	*cq_slot(cq) = entry;
	wait_notify(&cq->wait);
}

void cq_push_done_slow(struct cq *cq, void *context, uint64_t flags);

/*
 * cq_push for a success without data: fills the slot in place, without a copy, and keeps no
 * register live across a call.
 */
static inline void cq_push_done(struct cq *cq, void *context, uint64_t flags)
{
	struct cq_slot *slot;

	if (cq_full(cq)) {
		cq_push_done_slow(cq, context, flags);
		return;
	}
	slot = cq_slot_next(cq);
	slot->context = context;
	slot->flags = flags;
	memset(&slot->len, 0, sizeof(*slot) - offsetof(struct cq_slot, len));
	wait_notify(&cq->wait);
}

/* Adds a failed completion; entry->error is ignored, why->err is positive, err_data is copied. Cold. */
void cq_push_error(struct cq *cq, const struct cq_slot *entry, const struct cq_error *why,
		   const void *err_data);

/*
 * Adds or removes a worker that reads of the queue drive; called on enable and close of endpoints.
 * 0 or a negative error. Domain locked.
 */
int cq_add_worker(struct cq *cq, struct driven *worker);
void cq_del_worker(struct cq *cq, struct driven *worker);

/* A read of an empty queue: makes the progress call of its only worker that is due, and reads. Shard locked. */
ssize_t cq_read_due(struct cq *cq, void *buf, size_t count, fi_addr_t *src);
/* Sets the queue's operations to those with the lock of its domain, or without. */
void cq_install(struct cq *cq);
/* For fi_trywait, wait sets and poll sets. */
extern const struct waitable_ops cq_waitable_ops;

#endif
