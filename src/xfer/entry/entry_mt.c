/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_take(&(ep)->shard)
#define ENTRY_UNLOCK(ep) shard_give(&(ep)->shard)
#define ENTRY_ADDR(addr) (addr)
#include "xfer/entry/entry.h"
#include "xfer/entry/entry_rma.h"
#include "xfer/entry/entry_atomic.h"

const struct fi_ops_rma entry_rma_mt = ENTRY_RMA_OPS;
const struct fi_ops_atomic entry_atomic_mt = ENTRY_ATOMIC_OPS;
const struct entry_tables entry_mt = {
	.msg = &msg_ops, .tagged = &tagged_ops, .rma = &entry_rma_mt, .atomic = &entry_atomic_mt};
