/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

_Static_assert(sizeof(struct pool_item) == 16, "objects keep the alignment of malloc");

void pool_init(struct pool *p, size_t size)
{
	memset(p, 0, sizeof(*p));
	p->item_size = sizeof(struct pool_item) + ((size + 15) & ~(size_t)15);
}

void pool_fini(struct pool *p)
{
	for (uint32_t i = 0; i < p->chunk_count; i++)
		free(p->chunks[i]);
	free(p->chunks);
	p->chunks = NULL;
	p->chunk_count = 0;
	p->free = NULL;
}

struct pool_item *pool_grow(struct pool *p)
{
	const size_t size = (POOL_CHUNK * p->item_size + POOL_APART - 1) / POOL_APART * POOL_APART;
	uint32_t base = p->chunk_count * POOL_CHUNK;
	struct pool_item **chunks;

	if (base + POOL_CHUNK > POOL_INDEX_MASK)
		return NULL;
	chunks = realloc(p->chunks, (p->chunk_count + 1) * sizeof(*chunks));
	if (!chunks)
		return NULL;
	p->chunks = chunks;
	chunks[p->chunk_count] = aligned_alloc(POOL_APART, size);
	if (!chunks[p->chunk_count])
		return NULL;
	memset(chunks[p->chunk_count], 0, size);
	p->chunk_count++;
	for (uint32_t i = POOL_CHUNK; i-- > 0;) {
		struct pool_item *item = pool_at(p, base + i);

		item->index = base + i;
		item->next = p->free;
		p->free = item;
	}
	return p->free;
}
