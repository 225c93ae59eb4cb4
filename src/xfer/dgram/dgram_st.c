/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(dom)   ((void)(dom))
#define ENTRY_UNLOCK(dom) ((void)(dom))
#define DGRAM_TABLE       dgram_st
#include "xfer/dgram/dgram_entry.h"
