/* SPDX-License-Identifier: BSD-2-Clause */
/* Of connected endpoints: whatever is given as an address means the one peer. */
#define ENTRY_LOCK(dom)   lock_take(&(dom)->lock)
#define ENTRY_UNLOCK(dom) lock_give(&(dom)->lock)
#define ENTRY_TABLE       entry_pair
#define ENTRY_ADDR(addr)  ((void)(addr), 0)
#include "xfer/entry/entry.h"
