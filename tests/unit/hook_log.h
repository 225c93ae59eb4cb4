/* SPDX-License-Identifier: BSD-2-Clause */
/* What a layer of FI_HOOK writes to the log, for its unit tests. */
#ifndef UNIT_HOOK_LOG_H
#define UNIT_HOOK_LOG_H

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static char lines[8192];        /* what was written, a line each */
static const char *layer_shown; /* only its lines are */

static bool shows_layer(const char *prov, int level, int subsys)
{
	return strcmp(prov, layer_shown) == 0 && level == FI_LOG_TRACE && subsys == LOG_FABRIC;
}

static bool never_ready(const char *prov, int level, int subsys, uint64_t *showtime)
{
	(void)prov;
	(void)level;
	(void)subsys;
	(void)showtime;
	return false;
}

static void keep(const struct log_place *place, const char *msg)
{
	size_t len = strlen(lines);

	(void)place;
	snprintf(lines + len, sizeof(lines) - len, "%s\n", msg);
}

/* From now on `lines` get what the layer writes. */
static inline void keep_lines_of(const char *layer)
{
	static const struct log_sink sink = {shows_layer, never_ready, keep};

	layer_shown = layer;
	log_redirect(&sink);
}

#endif
