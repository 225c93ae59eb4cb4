/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hash table from addresses to indexes of a vector. Open addressing, 5 to 6 bytes per entry; the
 * first lookup builds the table. The caller holds the vector's lock.
 */
#ifndef WEFT_CORE_AV_HASH_H
#define WEFT_CORE_AV_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/av_shared.h"

#define AV_HASH_NONE UINT32_MAX

/* The addresses that a hash indexes. */
struct av_rows {
	struct addr *table;
	struct av_shared *shared; /* used instead of `table` unless NULL */
};

/* Returns the address at `index`; kind ADDR_NONE: a hole. The result may point into `entry`. */
static inline const struct addr *av_hash_row(const struct av_rows *rows, size_t index,
					     struct av_shared_entry *entry)
{
	if (!rows->shared)
		return &rows->table[index];
	av_shared_get(rows->shared, index, entry);
	return &entry->addr;
}

struct av_hash {
	uint32_t *slots; /* index + 1, 0: empty slot; NULL: not built yet, or out of memory */
	size_t size;
	size_t used;
};

/* Returns the index of `addr` in the first `count` rows, or AV_HASH_NONE. */
uint32_t av_hash_find(struct av_hash *h, const struct av_rows *rows, size_t count,
		      const struct addr *addr);

/* Adds the row at `index`, which was just filled. */
void av_hash_add(struct av_hash *h, const struct av_rows *rows, size_t count, uint32_t index);

/* Removes the row at `index`, which is about to be emptied. */
void av_hash_del(struct av_hash *h, const struct av_rows *rows, uint32_t index);

void av_hash_free(struct av_hash *h);

#endif
