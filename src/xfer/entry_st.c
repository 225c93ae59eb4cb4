/* SPDX-License-Identifier: BSD-2-Clause */
#define ENTRY_LOCK(dom)   ((void)(dom))
#define ENTRY_UNLOCK(dom) ((void)(dom))
#define ENTRY_TABLE       entry_st
#include "xfer/entry.h"
