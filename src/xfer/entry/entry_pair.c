/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: the address is ignored, the one peer is peers[0]. */
#define ENTRY_LOCK(dom)   lock_take(&(dom)->lock)
#define ENTRY_UNLOCK(dom) lock_give(&(dom)->lock)
#define ENTRY_TABLE       entry_pair
#define ENTRY_ADDR(addr)  ((void)(addr), 0)
#include "xfer/entry/entry.h"
