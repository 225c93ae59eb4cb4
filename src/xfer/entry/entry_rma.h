/* SPDX-License-Identifier: BSD-2-Clause */
/* Entry functions of the rma table; see entry.h for how this file is included. */
#include <rdma/fi_errno.h>

#include "link/entry_args.h"
#include "xfer/entry/entry_tables.h"
#include "xfer/rma/rma.h"
#include "xfer/msg/tx.h"

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
 * Assigns member by member: clearing the whole struct takes as long as a quarter of a short write.
 */
static inline __attribute__((always_inline)) ssize_t rma_one(struct ep *ep, struct entry_rma e,
							     bool write)
{
	struct rma o;

	o.wire = write ? WIRE_PUT : WIRE_GET;
	o.amo = (struct wire_amo){0};
	o.kind = FI_RMA | (write ? FI_WRITE : FI_READ);
	o.flags = e.flags;
	o.addr = e.addr;
	o.context = e.context;
	o.data = e.data;
	o.len = e.local->iov_len;
	*(write ? &o.iov : &o.result) =
		e.local; /* the other list has no segments and is not read */
	o.count = write;
	o.compare_count = 0;
	o.result_count = !write;
	o.remote = e.remote;
	o.remote_count = 1;
	o.work = NULL;
	return post_rma(ep, &o);
}

static ssize_t rma_lists(struct ep *ep, const struct fi_msg_rma *msg, uint64_t flags, bool write)
{
	struct rma o;
	int err = rma_from_rma(&o, msg, flags, write);

	return err ? err : post_rma(ep, &o);
}

#include "link/entry_rma.h"
