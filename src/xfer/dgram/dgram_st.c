/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   shard_enter_alone(&(ep)->shard, __func__)
#define ENTRY_UNLOCK(ep) shard_leave_alone(&(ep)->shard)
#define DGRAM_TABLE      dgram_st
#include "xfer/dgram/dgram_entry.h"
