/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the atomic table; included after entry_rma.h. */

#define ENTRY_FETCH_FLAGS(ep) ((ep)->tx_flags)

static inline ssize_t atomic_one(struct ep *ep, struct entry_atomic e)
{
	struct iovec operand = {.iov_base = (void *)(uintptr_t)e.operand},
		     compare = {.iov_base = (void *)(uintptr_t)e.compare},
		     result = {.iov_base = e.result};
	struct fi_rma_iov remote = {.addr = e.remote, .key = e.key};
	struct rma o;
	int err;

	/* Assigned member by member as in rma_one; rma_from_plain fills in the others. */
	o.amo = (struct wire_amo){.form = (uint8_t)e.form};
	o.flags = e.flags;
	o.addr = e.addr;
	o.context = e.context;
	o.data = 0;
	o.iov = &operand;
	o.compare = &compare;
	o.result = &result;
	o.remote = &remote;
	o.work = NULL;
	err = rma_from_plain(&o, e.type, e.op, e.count);
	if (err)
		return err;
	operand.iov_len = compare.iov_len = result.iov_len = remote.len = o.len;
	return post_rma(ep, &o);
}

static ssize_t atomic_lists(struct ep *ep, const struct entry_atomic_msg *m, uint64_t flags)
{
	struct rma_store store;
	struct rma o;
	int err = rma_from_atomic(&o, &store, m, flags);

	return err ? err : post_rma(ep, &o);
}

#define atomic_valid rma_atomic_valid
#include "link/entry_atomic.h"
