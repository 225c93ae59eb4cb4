/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranges of memory that were made known to somebody, found again by address: those used least recently are
 * given up first, those in use never. Ranges may overlap. Nothing here allocates or frees, but for
 * ranges_init and ranges_fini. Callers lock.
 */
#ifndef WEFT_BASE_RANGES_H
#define WEFT_BASE_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define RANGES_MOST 16384 /* whatever was asked for */

/* Embedded in what the caller keeps of it. */
struct range {
	const void *owner;   /* who knows it */
	uintptr_t from, to;  /* the first byte, and the one behind the last */
	unsigned int rights; /* bits: may be used by who wants no others */
	unsigned int users;
	bool listed; /* may be found once it is `ready`; else it is out when its last user leaves */
	bool ready;  /* the caller's */
	struct list link; /* ranges.idle or ranges.out, while it has no users */
};

/* `reach`: the highest `to` of this range and of all before it. */
struct range_slot {
	struct range *range;
	uintptr_t reach;
};

struct ranges {
	struct range_slot *table; /* those listed, by `from` */
	size_t count, count_max;
	size_t bytes, bytes_max;
	struct list idle; /* listed and without users, least recently used first */
	struct list out;  /* neither listed nor used: see ranges_next_out */
};

/* False: no memory. */
bool ranges_init(struct ranges *r, size_t bytes_max, size_t count_max);
void ranges_fini(struct ranges *r);

/* One that has all of it and these rights, with one more user; or NULL. */
struct range *ranges_find(struct ranges *r, const void *owner, uintptr_t from, uintptr_t to,
			  unsigned int rights);
/*
 * Lists a new range, not ready, with one user. What it makes useless goes out, so does what it needs the room
 * of. It gets the rights of those that have all of it, too: they are wanted in turn. False: no room.
 */
bool ranges_enter(struct ranges *r, struct range *new);
void ranges_put(struct ranges *r, struct range *range);
/* It is not found any more. */
void ranges_unlist(struct ranges *r, struct range *range);
/* The same for all that have a byte of this. */
void ranges_drop(struct ranges *r, uintptr_t from, uintptr_t to);
/* The same for an owner's. */
void ranges_drop_owner(struct ranges *r, const void *owner);
/* The same for those without users. */
void ranges_drop_idle(struct ranges *r);
/* Has a range that is listed a byte of this? */
bool ranges_touch(const struct ranges *r, uintptr_t from, uintptr_t to);
/* One of the owner's, which is the caller's to free; NULL: no more of them. */
struct range *ranges_next_out(struct ranges *r, const void *owner);

#endif
