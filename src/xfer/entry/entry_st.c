/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_enter_alone(&(ep)->shard, __func__)
#define ENTRY_UNLOCK(ep) shard_leave_alone(&(ep)->shard)
#define ENTRY_ADDR(addr) (addr)
#include "xfer/entry/entry.h"
#include "xfer/entry/entry_rma.h"
#include "xfer/entry/entry_atomic.h"

static const struct fi_ops_rma rma_ops = ENTRY_RMA_OPS;
static const struct fi_ops_atomic atomic_ops = ENTRY_ATOMIC_OPS;
const struct entry_tables entry_st = {
	.msg = &msg_ops, .tagged = &tagged_ops, .rma = &rma_ops, .atomic = &atomic_ops};
