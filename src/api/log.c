/* SPDX-License-Identifier: BSD-2-Clause */
/* The public log calls, based on base/log. fi_log(3). */
#include <stdarg.h>

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
	return log_ready(name_of(prov), (int)level, (int)subsys, showtime);
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
