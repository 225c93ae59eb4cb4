/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an address to the index that holds it. Open addressing, 5 to 6 bytes an entry; made at the
 * first question. Callers lock.
 */
#ifndef WEFT_CORE_AV_HASH_H
#define WEFT_CORE_AV_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/av_shared.h"

#define AV_HASH_NONE UINT32_MAX

/* The addresses a hash has the indexes of. */
struct av_rows {
	struct addr *table;
	struct av_shared *shared; /* in place of the table, or NULL */
};

/* The address at `index`, of kind ADDR_NONE in a hole; it may be in `entry`. */
static inline const struct addr *av_hash_row(const struct av_rows *rows, size_t index,
					     struct av_shared_entry *entry)
{
	if (!rows->shared)
		return &rows->table[index];
	av_shared_get(rows->shared, index, entry);
	return &entry->addr;
}

struct av_hash {
	uint32_t *slots; /* index + 1, 0: empty; NULL: not made, or memory was out */
	size_t size;
	size_t used;
};

/* The index of `addr` in the first `count` rows, or AV_HASH_NONE. */
uint32_t av_hash_find(struct av_hash *h, const struct av_rows *rows, size_t count,
		      const struct addr *addr);

/* The row was filled. */
void av_hash_add(struct av_hash *h, const struct av_rows *rows, size_t count, uint32_t index);

/* The row is about to be emptied. */
void av_hash_del(struct av_hash *h, const struct av_rows *rows, uint32_t index);

void av_hash_free(struct av_hash *h);

#endif
