/* SPDX-License-Identifier: BSD-2-Clause */
#include "info/rails_setting.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "link/wire.h"

#define TIMEOUT_LEAST 40 /* ms */

struct rails_setting rails_setting(void)
{
	static uint64_t logged;
	const char *text = env_get()->rails;
	char *end;
	long most = strtol(text, &end, 10);

	if (!strcmp(text, "auto"))
		return (struct rails_setting){NULL, WIRE_RAILS_MAX, true};
	if (end == text || *end)
		return (struct rails_setting){text, WIRE_RAILS_MAX, false};
	if (most < 1 || most > WIRE_RAILS_MAX) {
		if (log_due(&logged))
			LOG_WARN(LOG_EP_CTRL, "FI_WEFT_RAILS=%s: a number from 1 to %u is wanted",
				 text, WIRE_RAILS_MAX);
		most = most > 1 ? WIRE_RAILS_MAX : 1;
	}
	return (struct rails_setting){NULL, (uint32_t)most, false};
}

uint32_t rails_time_limit(void)
{
	int ms = env_get()->rail_timeout;

	return ms > TIMEOUT_LEAST ? (uint32_t)ms : TIMEOUT_LEAST;
}
