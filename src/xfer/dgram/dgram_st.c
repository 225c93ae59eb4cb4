/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(ep)   ((void)(ep))
#define ENTRY_UNLOCK(ep) ((void)(ep))
#define DGRAM_TABLE      dgram_st
#include "xfer/dgram/dgram_entry.h"
