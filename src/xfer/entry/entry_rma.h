/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the rma table; see entry.h for how this file is included. */
#include "xfer/rma/rma_short.h"

#define ENTRY_READ_FLAGS(ep)       ((ep)->tx_flags & ~(FI_INJECT | FI_COMMIT_COMPLETE))
#define ENTRY_MSG_FLAGS(ep, flags) ((flags) | (ep)->tx_msg_flags)

static inline __attribute__((always_inline)) ssize_t post_rma(struct ep *ep, const struct rma *o)
{
	ssize_t ret;

	ENTRY_LOCK(ep);
	if (o->flags & FI_TRIGGER)
		before_trigger(ep);
	ret = rma_post(ep, o);
	ENTRY_UNLOCK(ep);
	return ret;
}

/*
 * The way of all operations that rma_short_post does not take; the lock is held. The argument is
 * passed by value, so that callers put it into memory here only.
 */
static __attribute__((noinline)) ssize_t rma_one_full(struct ep *ep, struct rma_short s,
						      uint64_t data)
{
	const bool write = s.wire == WIRE_PUT;
	const struct iovec local = {write ? (void *)(uintptr_t)s.payload : s.result, s.len};
	const struct fi_rma_iov remote = {s.remote, s.len, s.key};
	const struct rma o = {.wire = s.wire,
			      .kind = s.kind,
			      .flags = s.flags,
			      .addr = s.addr,
			      .context = s.context,
			      .data = data,
			      .len = s.len,
			      .iov = write ? &local : NULL,
			      .count = write,
			      .result = write ? NULL : &local,
			      .result_count = !write,
			      .remote = &remote,
			      .remote_count = 1};

	if (o.flags & FI_TRIGGER)
		before_trigger(ep);
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

	if (MISUSED_BUFFER(write ? "write" : "read", e.local->iov_base, len))
		return -FI_EINVAL;
	ENTRY_LOCK(ep);
	if (!rma_short_post(ep, s))
		ret = rma_one_full(ep, s, e.data);
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t rma_lists(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	struct rma o;
	int err = rma_from_rma(&o, msg, flags, write);

	return err ? err : post_rma(ep, &o);
}

#include "entry/entry_rma.h"
