/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_enter_alone(&(ep)->shard, __func__)
#define ENTRY_UNLOCK(ep) shard_leave_alone(&(ep)->shard)
#define ENTRY_TABLE      entry_st
#define ENTRY_ADDR(addr) (addr)
#define ENTRY_RMA        entry_rma_st
#define ENTRY_ATOMIC     entry_atomic_st
#include "xfer/entry/entry.h"
#include "xfer/entry/entry_rma.h"
#include "xfer/entry/entry_atomic.h"
