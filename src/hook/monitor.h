/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer "monitor": figures of all calls, for fi_mon_sampler to read meanwhile. fi_hook(7). */
#ifndef WEFT_HOOK_MONITOR_H
#define WEFT_HOOK_MONITOR_H

#include "hook/call.h"

void monitor_start(void);
void monitor_call(const struct call *call);

#endif
