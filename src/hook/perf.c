/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "hook/layers.h"

/* ---- What the processor counts ---------------------------------------------------------------- */

static struct perf_event_attr counter;
static int counting;          /* atomic: `counter` is set */
static pthread_key_t at_exit; /* of a thread: closes its counter; the value is descriptor + 1 */

/* A counter belongs to the thread, and to the process, that opened it. */
static __thread struct {
	bool opened;
	int fd; /* -1: refused */
	unsigned int forks;
} own;

/* In a forked child base/forked has closed it. */
static void close_counter(void *fd_after)
{
	if (own.forks == forked_count())
		forked_close((int)(intptr_t)fd_after - 1);
	own.fd = -1;
}

/* Opens the counter of this thread, with user code alone. Returns its descriptor or -errno. */
static int open_counter(void)
{
	long fd = syscall(SYS_perf_event_open, &counter, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (forked_guard((int)fd)) {
		close((int)fd);
		return -ENOMEM;
	}
	own.opened = true;
	own.fd = (int)fd;
	own.forks = forked_count();
	pthread_setspecific(at_exit, (void *)(intptr_t)(fd + 1));
	return (int)fd;
}

int perf_event_start(uint32_t type, uint64_t config)
{
	int ret;

	memset(&counter, 0, sizeof(counter));
	counter.size = sizeof(counter);
	counter.type = type;
	counter.config = config;
	counter.exclude_kernel = counter.exclude_hv = 1;
	ret = pthread_key_create(&at_exit, close_counter);
	if (ret)
		return -ret;
	ret = open_counter();
	if (ret < 0) {
		pthread_key_delete(at_exit);
		return ret;
	}
	__atomic_store_n(&counting, 1, __ATOMIC_RELEASE); /* pairs with perf_events */
	return 0;
}

/* A thread that ends when the library is gone must not call it. */
static __attribute__((destructor)) void forget_threads(void)
{
	if (__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
		pthread_key_delete(at_exit);
}

/* Reads by syscall(2): that is no point where a thread can be cancelled, as no call is. */
uint64_t perf_events(void)
{
	uint64_t count = 0;
	int kept = errno;

	if (!__atomic_load_n(&counting, __ATOMIC_ACQUIRE))
		return 0;
	if ((!own.opened || own.forks != forked_count()) && open_counter() < 0) {
		own.opened = true;
		own.fd = -1;
		own.forks = forked_count();
	}
	if (own.fd < 0 || syscall(SYS_read, own.fd, &count, sizeof(count)) != sizeof(count))
		count = 0;
	errno = kept;
	return count;
}

/* ---- The layer -------------------------------------------------------------------------------- */

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
