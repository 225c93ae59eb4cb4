/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: the address is ignored, the one peer is peers[0]. One-sided calls look that up in any case. */
#define ENTRY_LOCK(ep)   shard_take(&(ep)->shard)
#define ENTRY_UNLOCK(ep) shard_give(&(ep)->shard)
#define ENTRY_ADDR(addr) ((void)(addr), 0)
#include "xfer/entry/entry.h"

const struct entry_tables entry_pair = {
	.msg = &msg_ops, .tagged = &tagged_ops, .rma = &entry_rma_mt, .atomic = &entry_atomic_mt};
