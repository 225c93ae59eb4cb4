/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Network addresses whose peers used wrong keys: a key has few random bits beside a device's rkey,
 * so tries are counted by address, across reconnects. Domain locked.
 */
#ifndef WEFT_CONN_SOURCE_H
#define WEFT_CONN_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/addr.h"

#define SOURCE_WRONG_MAX  64 /* different wrong keys of an address within SOURCE_WINDOW_MS */
#define SOURCE_WINDOW_MS  1000
#define SOURCE_REFUSED_MS 10000 /* then its connections are refused for so long */

struct source;

struct sources {
	struct source *table; /* NULL until the first wrong key */
	uint64_t wrong_keys;  /* counted so far */
};

/*
 * Returns a number for the address a connection comes from, ports aside: an IPv4 address or the
 * upper half of an IPv6 address, as one host may have all of the lower half. 0: not an IP address.
 */
uint64_t source_id(const struct addr *addr);
/*
 * Counts a wrong key at `now` (ms), unless it is the last one again, which finds out nothing. True:
 * the limit has been reached with this one.
 */
bool source_wrong_key(struct sources *all, uint64_t id, uint64_t key, uint64_t now);
/* Returns whether connections from `id` are refused at `now` (ms). */
bool source_refused(const struct sources *all, uint64_t id, uint64_t now);
void source_free(struct sources *all);

#endif
