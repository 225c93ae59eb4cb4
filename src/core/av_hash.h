/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to the lowest index of a table that holds it. Open addressing, 5 to 6 bytes an
 * entry; made at the first question, so that a vector only sent through pays nothing. Callers lock.
 */
#ifndef WEFT_CORE_AV_HASH_H
#define WEFT_CORE_AV_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define AV_HASH_NONE UINT32_MAX

struct av_hash {
	uint32_t *slots; /* index + 1, 0: empty; NULL: not made, or memory was out */
	size_t size;
	size_t used;
	bool twins; /* some address is in the table more than once: only its lowest index is here */
};

/* The lowest index of `addr` in table[0..count), or AV_HASH_NONE. */
uint32_t av_hash_find(struct av_hash *h, const struct addr *table, size_t count,
		      const struct addr *addr);

/* table[index] was filled. */
void av_hash_add(struct av_hash *h, const struct addr *table, size_t count, uint32_t index);

/* table[index] is about to be emptied. */
void av_hash_del(struct av_hash *h, const struct addr *table, size_t count, uint32_t index);

void av_hash_free(struct av_hash *h);

#endif
