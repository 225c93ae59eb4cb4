/* SPDX-License-Identifier: BSD-2-Clause */
/* The layer "perf": how many calls move and complete data, and how long they take. fi_hook(7). */
#ifndef WEFT_HOOK_PERF_H
#define WEFT_HOOK_PERF_H

#include "hook/call.h"

void perf_start(void);
void perf_call(const struct call *call);
/* Logs the figures since the last report. */
void perf_report(void);

/* ---- perf_event.c: what the processor counts --------------------------------------------------- */

/*
 * From now on each thread counts an event, as perf_event_open(2) names it by type and config. 0, or
 * the negative errno with which the kernel refuses.
 */
int perf_event_start(uint32_t type, uint64_t config);
/* Returns the events of this thread so far; 0: none are counted. */
uint64_t perf_events(void);

#endif
