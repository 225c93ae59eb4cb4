/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pool of objects of one size, without malloc per object. Free objects form a stack; an empty pool grows by a chunk;
 * pool_fini frees all chunks. Each object has a small number, so a 32-bit id on the wire can name it. Callers lock.
 */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_CHUNK 64 /* objects per chunk */

struct pool_item {
	struct pool_item *next; /* of a free object: the next one */
	uint32_t id;            /* generation above, the object's number below */
};

/* The number of an object is constant for the life of the pool; its generation changes at release. */
#define POOL_INDEX_BITS 20
#define POOL_INDEX_MASK ((1u << POOL_INDEX_BITS) - 1)
#define POOL_IN_USE     (1u << POOL_INDEX_BITS) /* generations of objects in use are odd */

struct pool {
	struct pool_item *free;
	struct pool_item **items; /* by number */
	uint32_t count;           /* of all objects, free or in use */
	size_t item_size;         /* bytes, with the header */
};

/* `size` is the size of one object in bytes. Objects are aligned to 16 bytes. */
void pool_init(struct pool *p, size_t size);
void pool_fini(struct pool *p);

/* Counts the objects in use: walks the free ones. */
uint32_t pool_in_use(const struct pool *p);

/* Adds a chunk. Returns the first free object, or NULL: no memory, or no numbers left. */
struct pool_item *pool_grow(struct pool *p);

static inline struct pool_item *pool_header(void *object)
{
	return (struct pool_item *)object - 1;
}

/* Returns an object with undefined contents, or NULL: no memory. */
static inline void *pool_get(struct pool *p)
{
	struct pool_item *item = p->free;

	if (__builtin_expect(!item, 0)) {
		item = pool_grow(p);
		if (!item)
			return NULL;
	}
	p->free = item->next;
	item->id |= POOL_IN_USE;
	return item + 1;
}

static inline void pool_put(struct pool *p, void *object)
{
	struct pool_item *item = pool_header(object);

	item->id += POOL_IN_USE;
	item->next = p->free;
	p->free = item;
}

/* Returns the id of an object in use. */
static inline uint32_t pool_id(void *object)
{
	return pool_header(object)->id;
}

/* Returns the object of `id`, or NULL if it is not in use or was reused. */
static inline void *pool_find(const struct pool *p, uint32_t id)
{
	uint32_t index = id & POOL_INDEX_MASK;
	struct pool_item *item;

	if (index >= p->count)
		return NULL;
	item = p->items[index];
	return item->id == id && id & POOL_IN_USE ? item + 1 : NULL;
}

/*
 * ---- Spare blocks: spare.c ----
 *
 * Long blocks of memory that were used and are kept for the next use: the first touch of a page
 * costs more than a copy into it, and malloc gives long blocks back to the kernel. Not locked.
 */
#define SPARE_BLOCKS 4
#define SPARE_MIN    ((size_t)32 << 10) /* bytes of a block; shorter ones are not kept */
#define SPARE_MAX    ((size_t)8 << 20)  /* bytes of a block; longer ones are not kept */

/* All NULL: none. */
struct spare {
	void *block[SPARE_BLOCKS];
};

/* Returns memory as malloc does, of `len` bytes or more; NULL: none. */
void *spare_get(struct spare *s, size_t len);
/* Frees memory of malloc, or keeps it. The longest ones are kept. Accepts NULL. */
void spare_put(struct spare *s, void *memory);
/* Frees what is kept. */
void spare_fini(struct spare *s);

#endif
