/* SPDX-License-Identifier: BSD-2-Clause */
/* The layers that FI_HOOK names, which hook.c tells of each call. fi_hook(7). */
#ifndef WEFT_HOOK_LAYERS_H
#define WEFT_HOOK_LAYERS_H

#include <rdma/fi_errno.h>

#include "hook/call.h"
#include "hook/tally_page.h"

/* "monitor": figures of all calls, for fi_mon_sampler to read meanwhile. */
void monitor_start(void);
void monitor_call(const struct call *call);

/* "perf": how many calls move and complete data, and how long they take. */
void perf_start(void);
void perf_call(const struct call *call);
/* Logs the figures since the last report. */
void perf_report(void);
/*
 * From now on each thread counts an event, as perf_event_open(2) names it by type and config. 0, or the
 * negative errno with which the kernel refuses.
 */
int perf_event_start(uint32_t type, uint64_t config);
/* Returns what the processor has counted of this thread so far; 0: nothing is counted. */
uint64_t perf_events(void);

/* "profile": lengths of what is sent, received, read and written. */
void profile_call(const struct call *call);
/* Logs the figures since the last report. */
void profile_report(void);

/* "trace": a line of the log for each call, and a file for Perfetto. */
void trace_call(const struct call *call);

/* Adding a call to the figures of its kind. */
static inline void tally_field(uint64_t *field, uint64_t value)
{
	if (value)
		__atomic_fetch_add(field, value, __ATOMIC_RELAXED);
}

static inline void tally_add(struct tally *t, const struct call *call)
{
	bool failed = call_failed(call);
	bool again = failed && (int64_t)*call_result(call) == -FI_EAGAIN;

	tally_field(&t->calls, 1);
	tally_field(&t->again, again);
	tally_field(&t->failed, failed && !again);
	tally_field(&t->bytes, failed ? 0 : call->bytes);
	tally_field(&t->ns, call->ended.ns - call->began.ns);
	tally_field(&t->events, call->ended.events - call->began.events);
}

#endif
