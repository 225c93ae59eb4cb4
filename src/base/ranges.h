/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory ranges, searchable by address. Unused ranges are evicted, least recently used first. Ranges in use
 * are not evicted. Ranges may overlap. Only ranges_init and ranges_fini allocate or free. Callers lock.
 */
#ifndef WEFT_BASE_RANGES_H
#define WEFT_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define RANGES_MOST 16384 /* upper limit of count_max */

/* Embedded in the caller's registration. */
struct range {
	const void *owner;   /* where the memory is registered */
	uintptr_t from, to;  /* first byte; one behind the last */
	unsigned int rights; /* bits: usable by callers that need a subset of them */
	unsigned int users;
	bool listed; /* can be found once `ready`; else moves to `out` when its last user leaves */
	bool ready;  /* set by the caller */
	struct list link; /* in ranges.idle or ranges.out while it has no users */
};

/* `reach`: the highest `to` of this range and of all before it. */
struct range_slot {
	struct range *range;
	uintptr_t reach;
};

struct ranges {
	struct range_slot *table; /* listed ranges, sorted by `from` */
	size_t count, count_max;
	size_t bytes, bytes_max;
	struct list idle; /* listed ranges without users, least recently used first */
	struct list out;  /* unlisted ranges without users, see ranges_next_out */
};

/* Returns false if memory is out. */
bool ranges_init(struct ranges *r, size_t bytes_max, size_t count_max);
void ranges_fini(struct ranges *r);

/* Returns a range that contains all bytes and has these rights, with one more user; or NULL. */
struct range *ranges_find(struct ranges *r, const void *owner, uintptr_t from, uintptr_t to,
			  unsigned int rights);
/*
 * Lists a new range with one user, not ready. Unlists ranges that it makes useless, and idle ones to make space. Adds
 * the rights of ranges that contain it: callers will need those again. False: no space.
 */
bool ranges_enter(struct ranges *r, struct range *new);
void ranges_put(struct ranges *r, struct range *range);
/* The range is no longer found. */
void ranges_unlist(struct ranges *r, struct range *range);
/* Unlists all ranges that contain a byte of this one. */
void ranges_drop(struct ranges *r, uintptr_t from, uintptr_t to);
/* Unlists all ranges of an owner. */
void ranges_drop_owner(struct ranges *r, const void *owner);
/* Unlists all ranges without users. */
void ranges_drop_idle(struct ranges *r);
/* Does a listed range contain a byte of this one? */
bool ranges_touch(const struct ranges *r, uintptr_t from, uintptr_t to);
/* Returns an unlisted, unused range of the owner for the caller to free; NULL: no more. */
struct range *ranges_next_out(struct ranges *r, const void *owner);

#endif
