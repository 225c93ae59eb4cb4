/* SPDX-License-Identifier: BSD-2-Clause */
/* The log calls of the public interface, over base/log. fi_provider(3). */
#include <stdarg.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/text.h"

#define MESSAGE_BYTES 8192

static const char *name_of(const struct fi_provider *prov)
{
	return prov && prov->name ? prov->name : "core";
}

int fi_log_enabled(const struct fi_provider *prov, enum fi_log_level level,
		   enum fi_log_subsys subsys)
{
	return log_allowed(name_of(prov), (int)level, (int)subsys);
}

int fi_log_ready(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
		 uint64_t *showtime)
{
	uint64_t now, due;

	if (!fi_log_enabled(prov, level, subsys))
		return 0;
	now = clock_us() / 1000;
	due = __atomic_load_n(showtime, __ATOMIC_RELAXED);
	if (now < due)
		return 0;
	/* Of several threads that come at once, one wins. */
	return __atomic_compare_exchange_n(showtime, &due, now + (uint64_t)env_get()->log_interval,
					   false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void fi_log(const struct fi_provider *prov, enum fi_log_level level, enum fi_log_subsys subsys,
	    const char *func, int line, const char *fmt, ...)
{
	struct log_place place = {name_of(prov), (int)level, (int)subsys, func, line};
	char msg[MESSAGE_BYTES];
	struct text t;
	va_list args;

	text_init(&t, msg, sizeof(msg));
	va_start(args, fmt);
	text_addv(&t, fmt, args);
	va_end(args);
	log_write(&place, "%s", msg);
}
