/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(dom)   lock_take(&(dom)->lock)
#define ENTRY_UNLOCK(dom) lock_give(&(dom)->lock)
#define DGRAM_TABLE       dgram_mt
#include "xfer/dgram/dgram_entry.h"
