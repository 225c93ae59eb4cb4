/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/layers.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define PROV       "ofi_hook_trace"
#define LINE_BYTES 6144

/* "cq 0x..., buf 0x..., count 1 = -11 (...), 210 ns". The line is on no stack: that may be short. */
static void log_line(const struct call *call)
{
	struct log_place place = {PROV, FI_LOG_TRACE, calls_subsys(call->id), calls_name(call->id),
				  __LINE__};
	size_t arguments = call->count - 1;
	char *line = malloc(LINE_BYTES);
	struct text t;

	if (!line)
		return;
	text_init(&t, line, LINE_BYTES);
	for (size_t i = 0; i < arguments; i++) {
		text_add(&t, "%s%s ", i ? ", " : "", call->shapes[i].name);
		value_add(&t, &call->shapes[i], call->values[i]);
	}
	text_add(&t, " = ");
	value_add(&t, &call->shapes[arguments], call->values[arguments]);
	text_add(&t, ", %llu ns", (unsigned long long)(call->ended.ns - call->began.ns));
	log_write(&place, "%s", line);
	free(line);
}

/* A call of the function that writes the application's log is not shown. */
static __thread bool showing;

static void trace_show(const struct call *call)
{
	showing = true;
	if (log_allowed(PROV, FI_LOG_TRACE, calls_subsys(call->id)))
		log_line(call);
	trace_file_add(call);
	showing = false;
}

/*
 * A thread that polls makes the same call millions of times, to no effect. The first of them is
 * shown, and the others as one, when the thread makes another call.
 */
static __thread struct {
	struct call call; /* began: the first that was not shown; values: below */
	uint64_t object, times, result;
	bool polls; /* the last call had no effect */
} last;

static bool has_no_effect(const struct call *call)
{
	switch (call->shapes[call->count - 1].show) {
	case SHOW_NUMBER: /* a counter's value */
		return true;
	case SHOW_STATUS:
		return (int64_t)*call_result(call) == -FI_EAGAIN;
	default:
		return false;
	}
}

static bool trace_repeats(const struct call *call)
{
	return last.polls && call->id == last.call.id && call->values[0] == last.object &&
	       *call_result(call) == last.result;
}

static void show_last(void)
{
	struct call call = last.call;
	struct shape shapes[3] = {
		call.shapes[0], {"times", SHOW_NUMBER, 0}, call.shapes[call.count - 1]};
	uint64_t values[3] = {last.object, last.times, last.result};

	last.times = 0;
	call.shapes = shapes;
	call.values = values;
	call.count = 3;
	trace_show(&call);
}

void trace_call(const struct call *call)
{
	if (showing)
		return;
	if (trace_repeats(call)) {
		if (!last.times++)
			last.call.began = call->began;
		last.call.ended = call->ended;
		return;
	}
	if (last.times)
		show_last();
	last.call = *call;
	last.object = call->values[0];
	last.result = *call_result(call);
	last.polls = has_no_effect(call);
	trace_show(call);
}
