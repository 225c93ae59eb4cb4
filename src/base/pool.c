/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/apart.h"
#include "base/pool.h"

#define LINE 64 /* of the cache: the header of a longer object begins one */

_Static_assert(sizeof(struct pool_item) == 16, "objects keep the alignment of malloc");

void pool_init(struct pool *p, size_t size)
{
	size_t align = size > LINE ? LINE : 16;

	memset(p, 0, sizeof(*p));
	p->item_size = (sizeof(struct pool_item) + size + align - 1) & ~(align - 1);
}

void pool_fini(struct pool *p)
{
	for (uint32_t i = 0; i < p->count; i += POOL_CHUNK)
		free(p->items[i]);
	free(p->items);
	p->items = NULL;
	p->count = 0;
	p->free = NULL;
}

uint32_t pool_in_use(const struct pool *p)
{
	uint32_t count = p->count;

	for (const struct pool_item *item = p->free; item; item = item->next)
		count--;
	return count;
}

struct pool_item *pool_grow(struct pool *p)
{
	uint32_t base = p->count;
	struct pool_item **items;
	char *chunk;

	if (base + POOL_CHUNK > POOL_INDEX_MASK)
		return NULL;
	items = realloc(p->items, (base + POOL_CHUNK) * sizeof(struct pool_item *));
	if (!items)
		return NULL;
	p->items = items;
	chunk = apart_alloc(POOL_CHUNK * p->item_size);
	if (!chunk)
		return NULL;
	p->count += POOL_CHUNK;
	for (uint32_t i = POOL_CHUNK; i-- > 0;) {
		struct pool_item *item = (struct pool_item *)(chunk + i * p->item_size);

		items[base + i] = item;
		item->id = base + i;
		item->next = p->free;
		p->free = item;
	}
	return p->free;
}
