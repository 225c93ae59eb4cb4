/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ports.h"

#include <sys/random.h>

#include "base/env.h"
#include "base/log.h"

/* Dynamic port numbers, from which the kernel chooses, too. */
#define DYNAMIC_LOW  49152
#define DYNAMIC_HIGH UINT16_MAX

struct ports ports_to_use(void)
{
	int low = env_get()->port_low, high = env_get()->port_high;
	bool given = low != 0 || high != 0;

	if (given && (low <= 0 || high < low || high > UINT16_MAX)) {
		LOG_WARN(
			LOG_EP_CTRL,
			"FI_TCP_PORT_LOW_RANGE=%d, FI_TCP_PORT_HIGH_RANGE=%d: not a valid range, ignored",
			low, high);
		given = false;
	}
	if (!given) {
		low = DYNAMIC_LOW;
		high = DYNAMIC_HIGH;
	}
	return (struct ports){(unsigned int)low, (unsigned int)(high - low) + 1, given};
}

/* Where the kernel has no random number, the first one serves. */
uint16_t ports_first(const struct ports *ports)
{
	uint16_t any = 0;

	if (getrandom(&any, sizeof(any), 0) != sizeof(any))
		any = 0;
	return (uint16_t)(ports->low + any % ports->count);
}

uint16_t ports_next(const struct ports *ports, uint16_t port)
{
	return (uint16_t)(ports->low + (port - ports->low + 1) % ports->count);
}
