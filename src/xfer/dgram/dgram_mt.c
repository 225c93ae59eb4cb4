/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_take(&(ep)->shard)
#define ENTRY_UNLOCK(ep) shard_give(&(ep)->shard)
#define DGRAM_TABLE      dgram_mt
#include "xfer/dgram/dgram_entry.h"
