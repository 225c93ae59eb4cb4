/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(dom)   lock_take(&(dom)->lock)
#define ENTRY_UNLOCK(dom) lock_give(&(dom)->lock)
#define ENTRY_TABLE       entry_mt
#define ENTRY_ADDR(addr)  (addr)
#define ENTRY_RMA         entry_rma_mt
#define ENTRY_ATOMIC      entry_atomic_mt
#include "xfer/entry/entry.h"
#include "xfer/entry/entry_rma.h"
#include "xfer/entry/entry_atomic.h"
