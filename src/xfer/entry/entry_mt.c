/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_take(&(ep)->shard)
#define ENTRY_UNLOCK(ep) shard_give(&(ep)->shard)
#define ENTRY_TABLE      entry_mt
#define ENTRY_ADDR(addr) (addr)
#define ENTRY_RMA        entry_rma_mt
#define ENTRY_ATOMIC     entry_atomic_mt
#include "xfer/entry/entry.h"
#include "xfer/entry/entry_rma.h"
#include "xfer/entry/entry_atomic.h"
