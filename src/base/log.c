/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"

#define LINE_BYTES 8192 /* limit of a message; the rest is cut */

#define ALL_SUBSYS ((1U << LOG_SUBSYS_COUNT) - 1)

uint32_t log_mask[LOG_LEVEL_COUNT] = {ALL_SUBSYS, ALL_SUBSYS, ALL_SUBSYS, ALL_SUBSYS};

static int set_up;                  /* atomic: log_mask and prov_list hold the user's settings */
static const char *prov_list;       /* FI_LOG_PROV or NULL */
static const struct log_sink *sink; /* atomic: set by log_redirect, or NULL */

static const char *const level_names[LOG_LEVEL_COUNT] = {
	[FI_LOG_WARN] = "warn",
	[FI_LOG_TRACE] = "trace",
	[FI_LOG_INFO] = "info",
	[FI_LOG_DEBUG] = "debug",
};

static const char *const subsys_names[LOG_SUBSYS_COUNT] = {
	[LOG_CORE] = "core",       [LOG_FABRIC] = "fabric",   [LOG_DOMAIN] = "domain",
	[LOG_EP_CTRL] = "ep_ctrl", [LOG_EP_DATA] = "ep_data", [LOG_AV] = "av",
	[LOG_CQ] = "cq",           [LOG_EQ] = "eq",           [LOG_MR] = "mr",
	[LOG_CNTR] = "cntr",
};

const char *log_level_name(int level)
{
	return level >= 0 && level < LOG_LEVEL_COUNT ? level_names[level] : "Unknown";
}

const char *log_subsys_name(int subsys)
{
	return subsys >= 0 && subsys < LOG_SUBSYS_COUNT ? subsys_names[subsys] : "Unknown";
}

/* Is `name` in the comma list? Ignores case. */
static bool log_listed(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (;;) {
		size_t n = strcspn(list, ",");

		if (n == len && strncasecmp(list, name, n) == 0)
			return true;
		if (!list[n])
			return false;
		list += n + 1;
	}
}

/* Applies a list of FI_LOG_PROV or FI_LOG_SUBSYS. */
static bool log_list_allows(const char *list, const char *name)
{
	if (!list || !*list)
		return true;
	return *list == '^' ? !log_listed(list + 1, name) : log_listed(list, name);
}

/* Returns the level of FI_LOG_LEVEL; -1: unset. Any other text counts as warn. */
static int log_level_of(const char *text)
{
	if (!text)
		return -1;
	for (int i = 0; i < LOG_LEVEL_COUNT; i++)
		if (strcasecmp(text, level_names[i]) == 0)
			return i;
	return FI_LOG_WARN;
}

void log_setup(const char *level, const char *prov, const char *subsys)
{
	int most = log_level_of(level);
	uint32_t bits = 0;

	for (int i = 0; i < LOG_SUBSYS_COUNT; i++)
		if (log_list_allows(subsys, subsys_names[i]))
			bits |= 1U << i;
	prov_list = prov;
	for (int i = 0; i < LOG_LEVEL_COUNT; i++)
		__atomic_store_n(&log_mask[i], i <= most ? bits : 0, __ATOMIC_RELAXED);
	__atomic_store_n(&set_up, 1, __ATOMIC_RELEASE); /* pairs with log_names, log_filter */
}

void log_redirect(const struct log_sink *to)
{
	const struct env_settings *env =
		env_get(); /* now, because its log_setup would undo this one */

	__atomic_store_n(&sink, to,
			 __ATOMIC_RELEASE); /* pairs with log_allowed, log_ready, log_write */
	log_setup(env->log_level, env->log_prov, env->log_subsys);
	for (int i = 0; to && i < LOG_LEVEL_COUNT; i++)
		__atomic_store_n(&log_mask[i], ALL_SUBSYS, __ATOMIC_RELAXED);
}

bool log_names(const char *prov)
{
	if (!__atomic_load_n(&set_up, __ATOMIC_ACQUIRE))
		env_get();
	if (strcmp(prov, "core") == 0 && prov_list && *prov_list != '^')
		return true;
	return log_list_allows(prov_list, prov);
}

bool log_filter(const char *prov, int level, int subsys)
{
	if (!__atomic_load_n(&set_up, __ATOMIC_ACQUIRE))
		env_get();
	if (level < 0 || level >= LOG_LEVEL_COUNT || subsys < 0 || subsys >= LOG_SUBSYS_COUNT)
		return false;
	if (!(log_mask[level] >> subsys & 1))
		return false;
	return log_names(prov);
}

bool log_allowed(const char *prov, int level, int subsys)
{
	const struct log_sink *to = __atomic_load_n(&sink, __ATOMIC_ACQUIRE);

	return to ? to->enabled(prov, level, subsys) : log_filter(prov, level, subsys);
}

bool log_due(uint64_t *showtime)
{
	uint64_t now = clock_us() / 1000, due = __atomic_load_n(showtime, __ATOMIC_RELAXED);

	if (now < due)
		return false;
	return __atomic_compare_exchange_n(showtime, &due, now + (uint64_t)env_get()->log_interval,
					   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool log_ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	const struct log_sink *to = __atomic_load_n(&sink, __ATOMIC_ACQUIRE);

	if (to)
		return to->ready(prov, level, subsys, showtime);
	return log_filter(prov, level, subsys) && log_due(showtime);
}

/* Ends `t` with one newline (there is space for it) and writes the line with one write(2). */
static void put_line(struct text *t)
{
	text_strip(t, "\n");
	t->buf[t->len] = '\n';
	while (file_write(STDERR_FILENO, t->buf, t->len + 1) < 0 && errno == EINTR)
		;
}

void log_put(const struct log_place *place, const char *msg)
{
	char line[LINE_BYTES];
	struct text t;

	text_init(&t, line, sizeof(line));
	text_add(&t, "libfabric:%d:%lld::%s:%s:%s():%d<%s> %s", (int)getpid(),
		 (long long)time(NULL), place->prov, log_subsys_name(place->subsys), place->func,
		 place->line, log_level_name(place->level), msg);
	put_line(&t);
}

void log_write(const struct log_place *place, const char *fmt, ...)
{
	const struct log_sink *to = __atomic_load_n(&sink, __ATOMIC_ACQUIRE);
	char msg[LINE_BYTES];
	struct text t;
	va_list args;
	int kept = errno;

	text_init(&t, msg, sizeof(msg));
	va_start(args, fmt);
	text_addv(&t, fmt, args);
	va_end(args);
	if (to)
		to->write(place, msg);
	else
		log_put(place, msg);
	errno = kept;
}
