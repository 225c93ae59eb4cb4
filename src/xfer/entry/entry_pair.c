/* SPDX-License-Identifier: BSD-2-Clause */
/* Connected endpoints: the address is ignored, the one peer is peers[0]. */
#define ENTRY_LOCK(ep)   shard_take(&(ep)->shard)
#define ENTRY_UNLOCK(ep) shard_give(&(ep)->shard)
#define ENTRY_TABLE      entry_pair
#define ENTRY_ADDR(addr) ((void)(addr), 0)
#include "xfer/entry/entry.h"
