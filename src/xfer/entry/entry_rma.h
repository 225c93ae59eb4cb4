/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the rma table; see entry.h for how this file is included. */
#include <rdma/fi_errno.h>

#include "link/entry_args.h"
#include "xfer/entry/entry_tables.h"
#include "xfer/rma/rma_short.h"

#define ENTRY_READ_FLAGS(ep)       ((ep)->tx_flags & ~(FI_INJECT | FI_COMMIT_COMPLETE))
#define ENTRY_MSG_FLAGS(ep, flags) ((flags) | (ep)->tx_msg_flags)

static inline __attribute__((always_inline)) ssize_t post_rma(struct ep *ep, const struct rma *o)
{
	ssize_t ret;

	ENTRY_LOCK(ep->dom);
	ret = rma_post(ep, o);
	ENTRY_UNLOCK(ep->dom);
	return ret;
}

/*
 * The way of all operations that rma_short_post does not take; the lock is held. The argument is
 * passed by value, so that callers put it into memory here only. Assigns member by member: clearing
 * the whole struct takes as long as a quarter of a short write.
 */
static __attribute__((noinline)) ssize_t rma_one_full(struct ep *ep, struct rma_short s,
						      uint64_t data)
{
	const bool write = s.wire == WIRE_PUT;
	const struct iovec local = {write ? (void *)(uintptr_t)s.payload : s.result, s.len};
	const struct fi_rma_iov remote = {s.remote, s.len, s.key};
	struct rma o;

	o.wire = s.wire;
	o.amo = (struct wire_amo){0};
	o.kind = s.kind;
	o.flags = s.flags;
	o.addr = s.addr;
	o.context = s.context;
	o.data = data;
	o.len = s.len;
	*(write ? &o.iov : &o.result) = &local; /* the other list has no segments */
	o.count = write;
	o.compare_count = 0;
	o.result_count = !write;
	o.remote = &remote;
	o.remote_count = 1;
	o.work = NULL;
	return rma_post(ep, &o);
}

static inline __attribute__((always_inline)) ssize_t rma_one(struct ep *ep, struct entry_rma e,
							     bool write)
{
	uint64_t len = e.local->iov_len;
	struct rma_short s = {.wire = write ? WIRE_PUT : WIRE_GET,
			      .kind = FI_RMA | (write ? FI_WRITE : FI_READ),
			      .flags = e.flags,
			      .addr = e.addr,
			      .remote = e.remote->addr,
			      .key = e.remote->key,
			      .len = len,
			      .payload = write ? e.local->iov_base : &len,
			      .payload_len = write ? len : sizeof(len),
			      .result = write ? NULL : e.local->iov_base,
			      .context = e.context};
	ssize_t ret = 0;

	ENTRY_LOCK(ep->dom);
	if (!rma_short_post(ep, s))
		ret = rma_one_full(ep, s, e.data);
	ENTRY_UNLOCK(ep->dom);
	return ret;
}

static ssize_t rma_lists(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	struct rma o;
	int err = rma_from_rma(&o, msg, flags, write);

	return err ? err : post_rma(ep, &o);
}

#include "link/entry_rma.h"
