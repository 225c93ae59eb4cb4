/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomics at their target: on regions, or on posted tagged receives (FI_TAGGED). fi_atomic(3). */
#include <rdma/fi_errno.h>

#include "base/iov.h"
#include "base/log.h"
#include "xfer/rma/rma_target.h"
#include "xfer/msg/rx.h"
#include "xfer/msg/tx.h"

bool rma_amo_parse(const struct rma_request *r)
{
	size_t size = atomic_size(r->amo.type);
	size_t values = r->amo.form == ATOMIC_COMPARE ? 2 : 1; /* sent for each element */

	if (!atomic_find(r->amo.form, r->amo.op, r->amo.type) || r->amo.len != r->total ||
	    !r->total || r->total > WIRE_AMO_MAX)
		return false;
	for (size_t i = 0; i < r->count; i++)
		if (r->range[i].len % size)
			return false;
	return r->len == (r->amo.op == FI_ATOMIC_READ ? 0 : values * r->total);
}

/* Would an eight-byte write be torn? Other threads poll on such values and must never see half of one. */
static bool rma_amo_torn(const struct wire_amo *amo, const void *at)
{
	return amo->op == FI_ATOMIC_WRITE && atomic_size(amo->type) == 8 && (uintptr_t)at % 8;
}

static int refuse_element(const struct wire_amo *amo, const void *at)
{
	LOG_PEER(LOG_EP_DATA, "atomic: an element of %zu bytes at %p is %s", atomic_size(amo->type),
		 at, rma_amo_torn(amo, at) ? "not aligned" : "not in one segment");
	return -FI_EINVAL;
}

/* Is each element aligned and in one segment? 0 or -FI_EINVAL. */
static int check_spot(const struct wire_amo *amo, const struct rma_spot *spot, size_t len)
{
	size_t size = atomic_size(amo->type), fragment;

	for (size_t done = 0; done < len; done += fragment) {
		const void *at;

		fragment = len - done;
		at = rma_fragment(spot, done, &fragment);
		if (!fragment || fragment % size || rma_amo_torn(amo, at))
			return refuse_element(amo, at);
	}
	return 0;
}

/*
 * Applies the atomic to all elements of a spot; `done`: bytes of earlier spots. `result` gets the
 * old values, or is NULL.
 */
static void rma_amo_apply(const struct rma_request *r, const struct rma_spot *spot, size_t len,
			  size_t done, char *result)
{
	atomic_kernel *kernel = atomic_find(r->amo.form, r->amo.op, r->amo.type);
	size_t size = atomic_size(r->amo.type), fragment;

	for (size_t skip = 0; skip < len; skip += fragment) {
		const char *operand = r->payload + done + skip;

		fragment = len - skip;
		kernel(&(struct atomic_args){.target = rma_fragment(spot, skip, &fragment),
					     .operand = operand,
					     .compare = operand + r->total,
					     .result = result ? result + done + skip : NULL,
					     .count = fragment / size});
	}
}

uint64_t rma_amo_access(const struct wire_amo *amo)
{
	if (amo->form == ATOMIC_BASE)
		return FI_REMOTE_WRITE;
	return amo->op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_READ | FI_REMOTE_WRITE;
}

/*
 * Ends an atomic whose memory is changed: counts, and answers with the old values if `result` is not NULL. 0 or a
 * negative error. For the endpoint's counters an atomic with a result is a read (fi_endpoint(3)); for a region's
 * counters it is also a write (fi_mr(3)), because a thread that sleeps on one waits for the memory to change.
 */
static int rma_amo_conclude(struct rma_request *r, const char *result)
{
	uint64_t kind = FI_ATOMIC | (result ? FI_REMOTE_READ : FI_REMOTE_WRITE);
	uint64_t more = r->amo.op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE;
	int err = rma_finish(r, kind, more);

	if (err)
		return err;
	if (result)
		rma_reply_bytes(r, result, r->total);
	else
		rma_done(r);
	return 0;
}

/* Applies the atomic to the spots of all ranges, unless an element of one is unfit. 0 or -FI_EINVAL. */
static int rma_amo_each(const struct rma_request *r, const struct rma_spot *spot, char *result)
{
	size_t done = 0;
	int err = 0;

	for (size_t i = 0; !err && i < r->count; i++)
		err = check_spot(&r->amo, &spot[i], r->range[i].len);
	for (size_t i = 0; !err && i < r->count; i++) {
		rma_amo_apply(r, &spot[i], r->range[i].len, done, result);
		done += r->range[i].len;
	}
	return err;
}

/* Slow path: several ranges or segments. */
static int amo_scattered(struct rma_request *r)
{
	char room[WIRE_AMO_MAX], *result = r->amo.form == ATOMIC_BASE ? NULL : room;
	struct rma_spot spot[WIRE_IOV_MAX];
	int err;

	for (size_t i = 0; i < r->count; i++)
		spot[i] = rma_spot(r, i);
	err = rma_amo_each(r, spot, result);
	return err ? err : rma_amo_conclude(r, result);
}

/* Fast path: contiguous elements. */
static int amo_in_a_row(struct rma_request *r, void *at)
{
	char room[WIRE_AMO_MAX], *result = r->amo.form == ATOMIC_BASE ? NULL : room;

	if (rma_amo_torn(&r->amo, at))
		return refuse_element(&r->amo, at);
	atomic_find(r->amo.form, r->amo.op, r->amo.type)(
		&(struct atomic_args){.target = at,
				      .operand = r->payload,
				      .compare = r->payload + r->total,
				      .result = result,
				      .count = r->total / atomic_size(r->amo.type)});
	return rma_amo_conclude(r, result);
}

int rma_amo(struct rma_request *r)
{
	int err = rma_check(r, rma_amo_access(&r->amo));
	struct rma_spot spot;
	size_t fragment = r->total;
	void *at;

	if (err)
		return err;
	if (r->count != 1)
		return amo_scattered(r);
	spot = rma_spot(r, 0);
	at = rma_fragment(&spot, 0, &fragment);
	return fragment == r->total ? amo_in_a_row(r, at) : amo_scattered(r);
}

/* Restores the packet of an atomic message, see rma_match. */
static struct packet rma_amo_packet_of(const struct message *m)
{
	return (struct packet){.head = m->head,
			       .tag = m->data,
			       .data = m->tag,
			       .payload = m->payload,
			       .len = m->len};
}

struct message rma_match(struct peer *peer, const struct packet *p)
{
	struct message m = {.peer = peer,
			    .src = contact_addr(&peer->conn),
			    .head = p->head,
			    .tag = p->data,
			    .data = p->tag,
			    .len = p->len,
			    .payload = p->payload};
	struct rma_request r;

	if (wire_flags(p->head) & WIRE_LONG && rma_parse(&r, peer, p) && r.count)
		m.tag = r.range[0].key;
	return m;
}

bool rma_match_valid(struct peer *peer, const struct packet *p)
{
	struct rma_request r;

	if (!rma_parse(&r, peer, p))
		return false;
	for (size_t i = 1; i < r.count; i++)
		if (r.range[i].key != r.range[0].key)
			return false;
	return true;
}

/* Returns the bytes of a buffer that the request reaches to; SIZE_MAX: an overflow. */
static size_t rma_amo_reach(const struct rma_request *r)
{
	uint64_t end, max = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (__builtin_add_overflow(r->range[i].addr, r->range[i].len, &end))
			return SIZE_MAX;
		if (end > max)
			max = end;
	}
	return max;
}

size_t rma_match_len(const struct message *m)
{
	struct packet p = rma_amo_packet_of(m);
	struct rma_request r;

	return rma_parse(&r, m->peer, &p) ? rma_amo_reach(&r) : 0;
}

static void rma_amo_answer(struct peer *peer, uint64_t head, int err, const void *buf, size_t len)
{
	struct packet p = {.head = WIRE_HEAD(WIRE_ATS, 0, 0, wire_id(head)),
			   .tag = (uint64_t)err,
			   .payload = buf,
			   .len = len};

	if (peer)
		tx_control_data(peer, &p);
}

/* Applies the atomic to the segments of a receive. 0 or a negative error. */
static int apply_all(const struct rma_request *r, const struct iovec *iov, size_t count,
		     char *result)
{
	struct rma_spot spot[WIRE_IOV_MAX];
	size_t room = iov_bytes(iov, count);

	if (rma_amo_reach(r) > room) {
		LOG_PEER(LOG_EP_DATA,
			 "atomic on tag %#llx: it reaches to byte %llu, the receive has %zu",
			 (unsigned long long)r->range[0].key, (unsigned long long)rma_amo_reach(r),
			 room);
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < r->count; i++)
		spot[i] = (struct rma_spot){iov, count, r->range[i].addr};
	return rma_amo_each(r, spot, r->amo.form == ATOMIC_BASE ? NULL : result);
}

struct rma_matched rma_match_apply(const struct message *m, const struct iovec *iov, size_t count)
{
	struct packet p = rma_amo_packet_of(m);
	char result[WIRE_AMO_MAX];
	struct rma_request r;
	int err = rma_parse(&r, m->peer, &p) ? 0 : -FI_EINVAL;

	if (!err)
		err = apply_all(&r, iov, count, result);
	rma_amo_answer(m->peer, m->head, -err, result,
		       err || r.amo.form == ATOMIC_BASE ? 0 : r.total);
	return (struct rma_matched){
		.err = -err, .has_data = !err && r.flags & WIRE_CQ, .data = err ? 0 : r.cq};
}

void rma_match_refuse(struct peer *peer, uint64_t head)
{
	rma_amo_answer(peer, head, FI_ECANCELED, NULL, 0);
}
