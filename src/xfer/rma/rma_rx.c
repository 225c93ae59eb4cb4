/* SPDX-License-Identifier: BSD-2-Clause */
/* Target of one-sided operations: each request is checked as a whole, then performed. */
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/copy.h"
#include "base/log.h"
#include "base/once.h"
#include "cntr/cntr.h"
#include "conn/conn.h"
#include "xfer/rma/rma_target.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

/* Takes `len` bytes off the payload, each read once. False: there are fewer. */
static bool rma_rx_take(struct rma_request *r, void *to, size_t len)
{
	if (r->len < len)
		return false;
	once_copy(to, r->payload, len);
	r->payload += len;
	r->len -= len;
	return true;
}

/* Takes `count` ranges. A request without ranges would write remote CQ data without a key. */
static bool take_ranges(struct rma_request *r, size_t count)
{
	if (!count || count > WIRE_IOV_MAX ||
	    !rma_rx_take(r, r->range, count * sizeof(r->range[0])))
		return false;
	r->count = count;
	for (size_t i = 0; i < count; i++)
		if (__builtin_add_overflow(r->total, r->range[i].len, &r->total))
			return false;
	return true;
}

/* Parses the heads that precede the data. False: the packet contradicts itself. */
static bool parse_heads(struct rma_request *r, const struct packet *p)
{
	struct wire_ranges ranges;

	if (r->flags & WIRE_LONG) {
		if (!rma_rx_take(r, &ranges, offsetof(struct wire_ranges, range)) ||
		    !take_ranges(r, ranges.count))
			return false;
		r->offset = ranges.offset;
	}
	if (r->flags & WIRE_CQ && !rma_rx_take(r, &r->cq, sizeof(r->cq)))
		return false;
	if (r->op == WIRE_AMO && !rma_rx_take(r, &r->amo, sizeof(r->amo)))
		return false;
	if (r->flags & WIRE_LONG)
		return true;
	r->count = 1;
	r->range[0] = (struct wire_range){.addr = p->tag, .len = r->len, .key = p->data};
	if (r->op == WIRE_AMO)
		r->range[0].len = r->amo.len;
	else if (r->op == WIRE_GET && !rma_rx_take(r, &r->range[0].len, sizeof(uint64_t)))
		return false;
	r->total = r->range[0].len;
	return true;
}

bool rma_parse(struct rma_request *r, struct peer *peer, const struct packet *p)
{
	r->peer = peer;
	r->op = wire_op(p->head);
	r->flags = wire_flags(p->head);
	r->seq = wire_id(p->head);
	r->index = wire_rx(p->head);
	r->payload = p->payload;
	r->len = p->len;
	r->total = r->offset = r->cq = 0;
	if (!(r->flags & WIRE_LONG) != !!(r->flags & WIRE_DATA) || !parse_heads(r, p))
		return false;
	switch (r->op) {
	case WIRE_PUT:
		return r->offset <= r->total && r->len <= r->total - r->offset;
	case WIRE_AMO:
		return r->offset == 0 && rma_amo_parse(r);
	default:
		return r->offset == 0 && r->len == 0;
	}
}

int rma_check(struct rma_request *r, uint64_t access)
{
	struct domain *dom = r->peer->conn.station->driven.dom;

	for (size_t i = 0; i < r->count; i++) {
		int err = mr_check(dom, r->range[i].key, r->range[i].addr, r->range[i].len, access,
				   &r->mr[i]);

		if (err == -FI_ENOKEY && !mr_closed_lately(dom, r->range[i].key))
			conn_wrong_key(&r->peer->conn, r->range[i].key);
		if (err)
			return err;
		if (r->flags & WIRE_COMMIT && !(r->mr[i]->flags & FI_RMA_PMEM)) {
			LOG_PEER(LOG_EP_DATA,
				 "FI_COMMIT_COMPLETE: region %#llx is not registered with "
				 "FI_RMA_PMEM",
				 (unsigned long long)r->range[i].key);
			return -FI_EINVAL;
		}
	}
	return 0;
}

void rma_refuse(const struct rma_request *r, int err)
{
	/* err reports an unknown key as FI_EACCES, like a missing right; prov_errno tells the two apart. */
	uint64_t reason = (uint64_t)-err, shown = reason == FI_ENOKEY ? FI_EACCES : reason;

	if (r->flags & WIRE_ORPHAN)
		return;
	tx_control(r->peer, WIRE_HEAD(WIRE_FAILED, 0, 0, r->seq), shown | reason << 16);
}

void rma_done(struct rma_request *r)
{
	if (!(r->flags & WIRE_ORPHAN))
		rma_mark_done(r->peer, WIRE_HEAD(r->op, r->flags, 0, r->seq));
}

void rma_acknowledge(struct worker *worker)
{
	struct list *node;

	while ((node = list_pop(&worker->acks_pending))) {
		struct peer *peer = LIST_ENTRY(node, struct peer, target.in_acks_pending);
		struct peer_target *t = &peer->target;
		/* Of several the initiator may wait for room, whatever they say. */
		bool single = t->done_seq - t->acked_seq == 1;
		unsigned int flags = single ? wire_flags(t->common) & WIRE_LATER : 0;

		t->common = UINT64_MAX;
		t->acked_seq = t->done_seq;
		tx_control(peer, WIRE_HEAD(WIRE_DONE, flags, 0, t->done_seq), 0);
	}
}

static struct rx *context_of(const struct worker *worker, unsigned int index)
{
	return index < WORKER_RX_MAX ? worker->rx[index] : NULL;
}

/* Pushes remote CQ data of a write of `len` bytes. */
static void push_data(struct rx *rx, uint64_t kind, size_t len, uint64_t data)
{
	if (rx && rx->cq)
		cq_push(rx->cq, (struct cq_slot){.flags = kind | FI_REMOTE_CQ_DATA,
						 .len = len,
						 .data = data,
						 .src = FI_ADDR_NOTAVAIL});
	else
		LOG_PEER(
			LOG_EP_DATA,
			"remote CQ data %#llx dropped: no such context, or no queue; bind one with FI_RECV",
			(unsigned long long)data);
}

static struct cntr *region_counter(const struct mr *mr, uint64_t events)
{
	return mr && mr->cntr_flags & events ? mr->cntr : NULL;
}

/* Has an earlier range of the operation counted on the same counter? */
static bool counted_before(const struct rma_request *r, size_t i, uint64_t events)
{
	for (size_t j = 0; j < i; j++)
		if (region_counter(r->mr[j], events) == region_counter(r->mr[i], events))
			return true;
	return false;
}

/*
 * Counts an operation once on each counter, however many ranges it has. `event`: its kind for the
 * endpoint's counter; `more`: what counters of regions also count it as.
 */
static void count_access(const struct rma_request *r, const struct rx *rx, uint64_t event,
			 uint64_t more)
{
	struct cntr *own = NULL;

	if (rx)
		own = event == FI_REMOTE_READ ? rx->read_cntr : rx->write_cntr;
	if (own)
		cntr_done(own, r->total);
	for (size_t i = 0; i < r->count; i++) {
		struct cntr *cntr = region_counter(r->mr[i], event | more);

		if (cntr && cntr != own && !counted_before(r, i, event | more))
			cntr_done(cntr, r->total);
	}
}

void rma_event(struct rma_request *r, uint64_t kind, uint64_t more)
{
	struct rx *rx = context_of(peer_worker(r->peer), r->index);

	count_access(r, rx, kind & (FI_REMOTE_READ | FI_REMOTE_WRITE), more);
	if (r->flags & WIRE_CQ)
		push_data(rx, kind, r->total, r->cq);
}

void *rma_fragment(const struct rma_spot *spot, size_t skip, size_t *len)
{
	uint64_t at = spot->at + skip;

	for (size_t i = 0; i < spot->count; i++) {
		if (at < spot->iov[i].iov_len) {
			if (*len > spot->iov[i].iov_len - at)
				*len = spot->iov[i].iov_len - at;
			return (char *)spot->iov[i].iov_base + at;
		}
		at -= spot->iov[i].iov_len;
	}
	*len = 0;
	return NULL;
}

struct rma_spot rma_spot(const struct rma_request *r, size_t i)
{
	const struct mr *mr = r->mr[i];

	return (struct rma_spot){mr->iov, mr->iov_count, r->range[i].addr - mr->offset};
}

/* Copies `len` bytes between `buf` and the memory `skip` bytes behind the spot. */
static void rma_rx_copy(const struct rma_spot *spot, size_t skip, char *buf, size_t len, bool in)
{
	while (len) {
		size_t fragment = len;
		void *at = rma_fragment(spot, skip, &fragment);

		if (!fragment)
			return;
		if (in)
			copy_bytes(at, buf, fragment);
		else
			copy_bytes(buf, at, fragment);
		skip += fragment;
		buf += fragment;
		len -= fragment;
	}
}

void rma_copy(const struct rma_request *r, size_t offset, char *buf, size_t len, bool in)
{
	for (size_t i = 0; i < r->count && len; i++) {
		struct rma_spot spot = rma_spot(r, i);
		size_t fragment = r->range[i].len;

		if (offset >= fragment) {
			offset -= fragment;
			continue;
		}
		fragment -= offset;
		if (fragment > len)
			fragment = len;
		rma_rx_copy(&spot, offset, buf, fragment, in);
		buf += fragment;
		len -= fragment;
		offset = 0;
	}
}

/* Writes the pages of all ranges through to their files. 0 or -FI_EIO. */
static int rma_rx_commit(const struct rma_request *r)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	for (size_t i = 0; i < r->count; i++) {
		struct rma_spot spot = rma_spot(r, i);

		for (size_t done = 0, fragment; done < r->range[i].len; done += fragment) {
			uintptr_t at, from;

			fragment = r->range[i].len - done;
			at = (uintptr_t)rma_fragment(&spot, done, &fragment);
			from = at & ~(page - 1);
			if (!fragment || msync((void *)from, at + fragment - from, MS_SYNC))
				return -FI_EIO;
		}
	}
	return 0;
}

int rma_finish(struct rma_request *r, uint64_t kind, uint64_t more)
{
	int err = r->flags & WIRE_COMMIT ? rma_rx_commit(r) : 0;

	if (!err)
		rma_event(r, kind, more);
	return err;
}

static int rma_rx_put(struct rma_request *r)
{
	int err = rma_check(r, FI_REMOTE_WRITE);

	if (err)
		return err;
	rma_copy(r, r->offset, (char *)(uintptr_t)r->payload, r->len, true);
	if (r->offset + r->len < r->total)
		return 0; /* more fragments will come */
	err = rma_finish(r, FI_RMA | FI_REMOTE_WRITE, 0);
	if (!err)
		rma_done(r);
	return err;
}

/*
 * Handles WIRE_NOTIFY: the peer has accessed our memory directly. Its keys must grant the access,
 * or have granted it until their regions were closed: without that nothing is counted or written.
 */
static void on_notify(struct worker *worker, struct peer *peer, const struct packet *p)
{
	uint64_t event = wire_flags(p->head) & WIRE_LONG ? FI_REMOTE_READ : FI_REMOTE_WRITE;
	struct rx *rx = context_of(worker, wire_rx(p->head));
	struct rma_request r = {.payload = p->payload, .len = p->len};

	if (p->len % sizeof(r.range[0]) || !take_ranges(&r, p->len / sizeof(r.range[0]))) {
		LOG_PEER(LOG_EP_DATA, "a notification of %zu bytes dropped: not 1 to %d ranges",
			 p->len, WIRE_IOV_MAX);
		return;
	}
	for (size_t i = 0; i < r.count; i++) {
		int err = mr_check_past(worker->conn.driven.dom, r.range[i].key, r.range[i].addr,
					r.range[i].len, event, &r.mr[i]);

		if (err == -FI_ENOKEY)
			conn_wrong_key(&peer->conn, r.range[i].key);
		if (err) {
			LOG_PEER(LOG_EP_DATA,
				 "a notification dropped: key %#llx does not grant %#llx to %llu "
				 "bytes at %#llx",
				 (unsigned long long)r.range[i].key, (unsigned long long)event,
				 (unsigned long long)r.range[i].len,
				 (unsigned long long)r.range[i].addr);
			return;
		}
	}
	count_access(&r, rx, event, 0);
	if (wire_flags(p->head) & WIRE_DATA)
		push_data(rx, FI_RMA | FI_REMOTE_WRITE, r.total, p->data);
}

void rma_serve_any(struct worker *worker, struct peer *peer, const struct packet *p)
{
	struct rma_request r;
	int err;

	if (wire_op(p->head) == WIRE_NOTIFY) {
		on_notify(worker, peer, p);
		return;
	}
	if (!rma_parse(&r, peer, p)) {
		LOG_PEER(LOG_EP_DATA, "%s: a one-sided request of %zu bytes contradicts itself",
			 contact_text(&peer->conn), p->len);
		err = -FI_EINVAL;
	} else if (r.op == WIRE_PUT) {
		err = rma_rx_put(&r);
	} else if (r.op == WIRE_GET) {
		err = rma_check(&r, FI_REMOTE_READ);
		if (!err)
			err = rma_reply(&r);
	} else {
		err = rma_amo(&r);
	}
	if (err)
		rma_refuse(&r, err);
}
