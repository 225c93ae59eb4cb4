/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the atomic table; included after entry_rma.h. */
#include <string.h>

#define ENTRY_FETCH_FLAGS(ep) ((ep)->tx_flags)

/* The way of all atomics that atomic_short does not take; the lock is held. */
static __attribute__((noinline)) ssize_t atomic_one_full(struct ep *ep, struct entry_atomic e)
{
	struct iovec operand = {.iov_base = (void *)(uintptr_t)e.operand},
		     compare = {.iov_base = (void *)(uintptr_t)e.compare},
		     result = {.iov_base = e.result};
	struct fi_rma_iov remote = {.addr = e.remote, .key = e.key};
	struct rma o = {.amo = {.form = (uint8_t)e.form},
			.flags = e.flags,
			.addr = e.addr,
			.context = e.context,
			.iov = &operand,
			.compare = &compare,
			.result = &result,
			.remote = &remote};
	int err = rma_from_plain(&o, e.type, e.op, e.count);

	if (err)
		return err;
	operand.iov_len = compare.iov_len = result.iov_len = remote.len = o.len;
	if (o.flags & FI_TRIGGER)
		before_trigger(ep);
	return rma_post(ep, &o);
}

/* Copies eight bytes or four, lengths that the compiler knows: no call of memcpy. */
static inline void copy_value(char *to, const void *from, size_t size)
{
	if (size == 8)
		memcpy(to, from, 8);
	else
		memcpy(to, from, 4);
}

/* Posts an atomic on one element of eight or four bytes. False: not done, as rma_short_post. */
static inline __attribute__((always_inline)) bool atomic_short(struct ep *ep, struct entry_atomic e)
{
	const bool compares = e.form == ATOMIC_COMPARE, fetches = e.form != ATOMIC_BASE;
	/* What changes the target: not FI_ATOMIC_READ. */
	const enum atomic_form changing = compares ? ATOMIC_COMPARE : ATOMIC_BASE;
	const size_t size = atomic_size_for(changing, e.op, e.type),
		     heads = sizeof(struct wire_amo);
	struct {
		struct wire_amo amo;
		char value[16]; /* the operand, and what it is compared with */
	} flat;

	if (__builtin_expect(e.count != 1 || !(size & (8 | 4)) || !e.operand ||
				     (compares && !e.compare) || (fetches && !e.result),
			     0))
		return false;
	flat.amo = (struct wire_amo){.op = (uint8_t)e.op,
				     .type = (uint8_t)e.type,
				     .form = (uint8_t)e.form,
				     .len = (uint32_t)size};
	copy_value(flat.value, e.operand, size);
	if (compares)
		copy_value(flat.value + size, e.compare, size);
	return rma_short_post(ep,
			      (struct rma_short){.wire = WIRE_AMO,
						 .kind = FI_ATOMIC | (fetches ? FI_READ : FI_WRITE),
						 .flags = e.flags,
						 .addr = e.addr,
						 .remote = e.remote,
						 .key = e.key,
						 .len = size,
						 .payload = &flat,
						 .payload_len = heads + (size << compares),
						 .result = fetches ? e.result : NULL,
						 .form = e.form,
						 .context = e.context});
}

static inline __attribute__((always_inline)) ssize_t atomic_one(struct ep *ep,
								struct entry_atomic e)
{
	ssize_t ret = 0;

	ENTRY_LOCK(ep);
	if (!atomic_short(ep, e))
		ret = atomic_one_full(ep, e);
	ENTRY_UNLOCK(ep);
	return ret;
}

static ssize_t atomic_lists(struct ep *ep, const struct entry_atomic_msg *m, uint64_t flags)
{
	struct rma_store store;
	struct rma o;
	int err = rma_from_atomic(&o, &store, m, flags);

	return err ? err : post_rma(ep, &o);
}

#define atomic_valid rma_atomic_valid
#include "entry/entry_atomic.h"
