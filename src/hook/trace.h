/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer "trace": a line of the log for each call, and a file for Perfetto. fi_hook(7). */
#ifndef WEFT_HOOK_TRACE_H
#define WEFT_HOOK_TRACE_H

#include "hook/call.h"

void trace_call(const struct call *call);

/*
 * trace_file.c: adds the call to the file that FI_WEFT_TRACE_FILE names, if it is set. `name` and
 * `category` are the call's.
 */
void trace_file_add(const struct call *call, const char *name, const char *category);

#endif
