/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/trace.h"

#include <rdma/fi_errno.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

#define PROV       "ofi_hook_trace"
#define LINE_BYTES 6144

#define NAME(subsys, name)         [CALL_##name] = {#name, subsys},
#define CORE(result, name, ...)    NAME(LOG_CORE, name)
#define FABRIC(result, name, ...)  NAME(LOG_FABRIC, name)
#define DOMAIN(result, name, ...)  NAME(LOG_DOMAIN, name)
#define MR(result, name, ...)      NAME(LOG_MR, name)
#define EP_CTRL(result, name, ...) NAME(LOG_EP_CTRL, name)
#define AV(result, name, ...)      NAME(LOG_AV, name)
#define EP_DATA(result, name, ...) NAME(LOG_EP_DATA, name)
#define CQ(result, name, ...)      NAME(LOG_CQ, name)
#define EQ(result, name, ...)      NAME(LOG_EQ, name)
#define CNTR(result, name, ...)    NAME(LOG_CNTR, name)

/* clang-format off */
static const struct {
	char name[24]; /* no pointer, so that there is nothing to relocate */
	unsigned char subsys;
} calls[CALL_COUNT] = {
	[CALL_fi_close] = {"fi_close", LOG_CORE},
	FID_CALLS(CORE, CORE)
	FABRIC_CALLS(FABRIC, FABRIC)
	DOMAIN_CALLS(DOMAIN, DOMAIN)
	MR_CALLS(MR, MR)
	EP_CALLS(EP_CTRL, EP_CTRL)
	CM_CALLS(EP_CTRL, EP_CTRL)
	AV_CALLS(AV, AV)
	AV_SET_CALLS(AV, AV)
	MSG_CALLS(EP_DATA)
	TAGGED_CALLS(EP_DATA)
	RMA_CALLS(EP_DATA)
	ATOMIC_CALLS(EP_DATA)
	COLLECTIVE_CALLS(EP_DATA)
	CQ_CALLS(CQ)
	EQ_CALLS(EQ)
	CNTR_CALLS(CNTR)
	WAIT_CALLS(CORE)
	POLL_CALLS(CORE)
};
/* clang-format on */

/* "cq 0x..., buf 0x..., count 1 = -11 (...), 210 ns" */
static void log_line(const struct call *call)
{
	struct log_place place = {PROV, FI_LOG_TRACE, calls[call->id].subsys, calls[call->id].name,
				  __LINE__};
	size_t arguments = call->count - 1;
	char line[LINE_BYTES];
	struct text t;

	text_init(&t, line, sizeof(line));
	for (size_t i = 0; i < arguments; i++) {
		text_add(&t, "%s%s ", i ? ", " : "", call->shapes[i].name);
		value_add(&t, &call->shapes[i], call->values[i]);
	}
	text_add(&t, " = ");
	value_add(&t, &call->shapes[arguments], call->values[arguments]);
	text_add(&t, ", %llu ns", (unsigned long long)(call->ended - call->began));
	log_write(&place, "%s", line);
}

/* A call of the function that writes the application's log is not shown. */
static __thread bool showing;

static void show(const struct call *call)
{
	int subsys = calls[call->id].subsys;

	showing = true;
	if (log_allowed(PROV, FI_LOG_TRACE, subsys))
		log_line(call);
	trace_file_add(call, calls[call->id].name, log_subsys_name(subsys));
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

static bool repeats(const struct call *call)
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
	show(&call);
}

void trace_call(const struct call *call)
{
	if (showing)
		return;
	if (repeats(call)) {
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
	show(call);
}
