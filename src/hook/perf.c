/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/layers.h"

#include <linux/perf_event.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"

#define PROV "ofi_hook_perf"

static const struct event {
	const char *name; /* in FI_PERF_CNTR */
	const char *unit;
	uint64_t config; /* of PERF_TYPE_HARDWARE */
} events[] = {
	{"cpu_instr", "instructions", PERF_COUNT_HW_INSTRUCTIONS},
	{"cpu_cycles", "cycles", PERF_COUNT_HW_CPU_CYCLES},
};

static struct tally tallies[CALL_COUNT];
static const struct event *counted; /* NULL: nothing but time */

static const struct event *find_event(const char *name)
{
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (strcmp(events[i].name, name) == 0)
			return &events[i];
	return NULL;
}

void perf_start(void)
{
	const char *name = env_get()->perf_counter;
	const struct event *event = find_event(name);
	int ret;

	if (!event) {
		LOG_WARN(LOG_CORE, "FI_PERF_CNTR: there is no counter \"%s\"", name);
		return;
	}
	ret = perf_event_start(PERF_TYPE_HARDWARE, event->config);
	if (ret)
		LOG_WARN(LOG_CORE, "FI_PERF_CNTR: %s cannot be counted here, only time: %s", name,
			 strerror(-ret));
	else
		counted = event;
}

/* Data, completions and counters: what is called often. */
static bool is_fast(int subsys)
{
	return subsys == LOG_EP_DATA || subsys == LOG_CQ || subsys == LOG_CNTR;
}

void perf_call(const struct call *call)
{
	if (is_fast(calls_subsys(call->id)))
		tally_add(&tallies[call->id], call);
}

/* Moves the figures out. */
static struct tally perf_take(struct tally *t)
{
	return (struct tally){
		.calls = __atomic_exchange_n(&t->calls, 0, __ATOMIC_RELAXED),
		.again = __atomic_exchange_n(&t->again, 0, __ATOMIC_RELAXED),
		.failed = __atomic_exchange_n(&t->failed, 0, __ATOMIC_RELAXED),
		.bytes = __atomic_exchange_n(&t->bytes, 0, __ATOMIC_RELAXED),
		.ns = __atomic_exchange_n(&t->ns, 0, __ATOMIC_RELAXED),
		.events = __atomic_exchange_n(&t->events, 0, __ATOMIC_RELAXED),
	};
}

static void perf_report_call(const struct log_place *place, enum call_id id)
{
	const struct tally t = perf_take(&tallies[id]);
	char line[256];
	struct text text;

	if (!t.calls)
		return;
	text_init(&text, line, sizeof(line));
	text_add(&text, "%-20s %10llu calls %10llu again %8llu failed %14llu bytes %8llu ns a call",
		 calls_name(id), (unsigned long long)t.calls, (unsigned long long)t.again,
		 (unsigned long long)t.failed, (unsigned long long)t.bytes,
		 (unsigned long long)(t.ns / t.calls));
	if (counted)
		text_add(&text, " %8llu %s a call", (unsigned long long)(t.events / t.calls),
			 counted->unit);
	log_write(place, "%s", line);
}

void perf_report(void)
{
	const struct log_place place = {PROV, FI_LOG_TRACE, LOG_FABRIC, __func__, __LINE__};

	if (!log_allowed(PROV, FI_LOG_TRACE, LOG_FABRIC))
		return;
	for (int id = 0; id < CALL_COUNT; id++)
		perf_report_call(&place, (enum call_id)id);
}
