/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed-size objects without malloc on the way: free ones in a stack, chunks added when it is
 * empty, everything given back at once by pool_fini. Every object has a small number, so that a
 * 32-bit id on the wire can name it. Callers lock.
 */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_CHUNK 64 /* objects */

struct pool_item {
	struct pool_item *next; /* while free */
	uint32_t index;         /* constant for the life of the pool */
	uint32_t generation;    /* bumped at every release, so that a stale id is recognised */
};

struct pool {
	struct pool_item *free;
	struct pool_item **chunks;
	uint32_t chunk_count;
	uint32_t in_use;
	size_t item_size; /* with the header */
};

/* `size` is that of one object in bytes; objects are aligned to 16 bytes. */
void pool_init(struct pool *p, size_t size);
void pool_fini(struct pool *p);

/* Adds a chunk; false when memory is out. Called by pool_get. */
struct pool_item *pool_grow(struct pool *p);

static inline struct pool_item *pool_header(void *object)
{
	return (struct pool_item *)object - 1;
}

/* An object with undefined contents, or NULL when memory is out. */
static inline void *pool_get(struct pool *p)
{
	struct pool_item *item = p->free;

	if (__builtin_expect(!item, 0)) {
		item = pool_grow(p);
		if (!item)
			return NULL;
	}
	p->free = item->next;
	item->next = NULL;
	item->generation |= 1; /* odd while in use */
	p->in_use++;
	return item + 1;
}

static inline void pool_put(struct pool *p, void *object)
{
	struct pool_item *item = pool_header(object);

	item->generation++;
	item->next = p->free;
	p->free = item;
	p->in_use--;
}

/* Names an object in use: generation above, index below. */
#define POOL_INDEX_BITS 20
#define POOL_INDEX_MASK ((1u << POOL_INDEX_BITS) - 1)
static inline uint32_t pool_id(void *object)
{
	struct pool_item *item = pool_header(object);

	return item->generation << POOL_INDEX_BITS | item->index;
}

static inline struct pool_item *pool_at(const struct pool *p, uint32_t index)
{
	char *chunk = (char *)p->chunks[index / POOL_CHUNK];

	return (struct pool_item *)(chunk + (index % POOL_CHUNK) * p->item_size);
}

/* The object named by `id`, or NULL when it is not in use or was reused since. */
static inline void *pool_find(const struct pool *p, uint32_t id)
{
	uint32_t index = id & POOL_INDEX_MASK;
	struct pool_item *item;

	if (index >= p->chunk_count * POOL_CHUNK)
		return NULL;
	item = pool_at(p, index);
	return item->generation & 1 && pool_id(item + 1) == id ? item + 1 : NULL;
}

#endif
