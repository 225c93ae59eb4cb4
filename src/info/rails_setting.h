/* SPDX-License-Identifier: BSD-2-Clause */
/* What FI_WEFT_RAILS says about the interfaces that an endpoint uses together. */
#ifndef WEFT_INFO_RAILS_SETTING_H
#define WEFT_INFO_RAILS_SETTING_H

#include <stdbool.h>
#include <stdint.h>

/* By speed: an interface of less than an eighth of the own one's is left out. */
#define RAILS_SLOWEST 8

struct rails_setting {
	const char *names; /* comma list; NULL: by speed */
	uint32_t most;     /* interfaces, at most WIRE_RAILS_MAX; 1: the own one alone */
	bool automatic;
};

/* A number out of range is logged, and counts as the nearest one in it. */
struct rails_setting rails_setting(void);
/* FI_WEFT_RAIL_TIMEOUT, in ms; there is a least one. */
uint32_t rails_time_limit(void);

#endif
