/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer "profile": lengths of what is sent, received, read and written. fi_hook(7). */
#ifndef WEFT_HOOK_PROFILE_H
#define WEFT_HOOK_PROFILE_H

#include "hook/call.h"

void profile_call(const struct call *call);
/* Logs the figures since the last report. */
void profile_report(void);

#endif
