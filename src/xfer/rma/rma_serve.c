/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short path of one-sided requests at their target: one range in one segment, nothing to count,
 * no remote CQ data. All else, and all that has to be refused, takes rma_serve_any.
 */
#include <string.h>

#include "base/copy.h"
#include "base/once.h"
#include "xfer/rma/rma_target.h"
#include "xfer/worker.h"
#include "xfer/msg/rx.h"

/* Returns the memory of the range that the packet names; NULL: it takes rma_serve_any. */
static void *rma_serve_memory(const struct worker *worker, const struct packet *p, size_t len,
			      uint64_t access)
{
	const struct mr *mr = mr_granted(worker->conn.driven.dom, p->data, p->tag, len, access);

	if (!mr || mr->iov_count != 1 || mr->cntr)
		return NULL;
	return (char *)mr->iov->iov_base + (p->tag - mr->offset);
}

static bool rma_serve_put(struct worker *worker, struct peer *peer, const struct packet *p)
{
	void *at = rma_serve_memory(worker, p, p->len, FI_REMOTE_WRITE);

	if (!at)
		return false;
	if (p->len == 8)
		memcpy(at, p->payload, 8);
	else
		copy_bytes(at, p->payload, p->len);
	rma_mark_done(peer, p->head);
	return true;
}

static bool rma_serve_get(struct worker *worker, struct peer *peer, const struct packet *p)
{
	uint64_t len;
	const void *at;

	if (p->len != sizeof(len) || !peer->conn.real)
		return false;
	once_copy(&len, p->payload, sizeof(len));
	if (len > peer->conn.real->packet_max)
		return false;
	at = rma_serve_memory(worker, p, len, FI_REMOTE_READ);
	if (!at)
		return false;
	rma_send_result(peer, wire_id(p->head), at, len);
	return true;
}

/* Performs an atomic on one aligned element of four or eight bytes. */
static bool rma_serve_amo(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct {
		struct wire_amo amo;
		char value[16];
	} own;
	const size_t heads = sizeof(own.amo);
	atomic_kernel *kernel;
	char result[8];
	void *at;

	if (p->len <= heads || p->len > sizeof(own))
		return false;
	once_copy(&own, p->payload, p->len);
	kernel = atomic_find(own.amo.form, own.amo.op, own.amo.type);
	if (!kernel || (own.amo.len != 8 && own.amo.len != 4) ||
	    own.amo.len != atomic_size(own.amo.type) || own.amo.op == FI_ATOMIC_READ ||
	    p->len - heads != (size_t)own.amo.len << (own.amo.form == ATOMIC_COMPARE))
		return false;
	at = rma_serve_memory(worker, p, own.amo.len, rma_amo_access(&own.amo));
	if (!at || (uintptr_t)at % own.amo.len)
		return false;
	kernel(&(struct atomic_args){.target = at,
				     .operand = own.value,
				     .compare = own.value + own.amo.len,
				     .result = own.amo.form == ATOMIC_BASE ? NULL : result,
				     .count = 1});
	if (own.amo.form == ATOMIC_BASE)
		rma_mark_done(peer, p->head);
	else
		rma_send_result(peer, wire_id(p->head), result, own.amo.len);
	return true;
}

/* Does the context count accesses? One that does not exist counts nothing. */
static bool rma_serve_counts(const struct worker *worker, unsigned int index)
{
	const struct rx *rx = index < WORKER_RX_MAX ? worker->rx[index] : NULL;

	return rx && (rx->read_cntr || rx->write_cntr);
}

/* Performs and answers a request of the short form that asks for nothing special. False: nothing was done. */
static inline bool serve_short(struct worker *worker, struct peer *peer, const struct packet *p)
{
	if ((wire_flags(p->head) & ~WIRE_LATER) != WIRE_DATA ||
	    rma_serve_counts(worker, wire_rx(p->head)))
		return false;
	switch (wire_op(p->head)) {
	case WIRE_PUT:
		return rma_serve_put(worker, peer, p);
	case WIRE_GET:
		return rma_serve_get(worker, peer, p);
	case WIRE_AMO:
		return rma_serve_amo(worker, peer, p);
	default:
		return false;
	}
}

void rma_serve(struct worker *worker, struct peer *peer, const struct packet *p)
{
	if (!serve_short(worker, peer, p))
		rma_serve_any(worker, peer, p);
}
