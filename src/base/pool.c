/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

#define CHUNK_ITEMS 64
#define INDEX_MASK  ((1u << POOL_INDEX_BITS) - 1)

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

static struct pool_item *item_at(struct pool *p, uint32_t index)
{
	char *chunk = (char *)p->chunks[index / CHUNK_ITEMS];

	return (struct pool_item *)(chunk + (index % CHUNK_ITEMS) * p->item_size);
}

struct pool_item *pool_grow(struct pool *p)
{
	uint32_t base = p->chunk_count * CHUNK_ITEMS;
	struct pool_item **chunks;

	if (base + CHUNK_ITEMS > INDEX_MASK)
		return NULL;
	chunks = realloc(p->chunks, (p->chunk_count + 1) * sizeof(*chunks));
	if (!chunks)
		return NULL;
	p->chunks = chunks;
	chunks[p->chunk_count] = calloc(CHUNK_ITEMS, p->item_size);
	if (!chunks[p->chunk_count])
		return NULL;
	p->chunk_count++;
	for (uint32_t i = CHUNK_ITEMS; i-- > 0;) {
		struct pool_item *item = item_at(p, base + i);

		item->index = base + i;
		item->next = p->free;
		p->free = item;
	}
	return p->free;
}

void *pool_find(struct pool *p, uint32_t id)
{
	uint32_t index = id & INDEX_MASK;
	struct pool_item *item;

	if (index >= p->chunk_count * CHUNK_ITEMS)
		return NULL;
	item = item_at(p, index);
	if (!(item->generation & 1) || pool_id(item + 1) != id)
		return NULL;
	return item + 1;
}
