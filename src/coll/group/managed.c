/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/group/group.h"

#include <stdlib.h>

#include "base/hash.h"

#define FIRST_CAPACITY 16

/* A number: the top bit, 47 bits of the key, and a count of 16 bits. */
#define COUNT_MASK UINT64_C(0xffff)

static uint64_t managed_base_of(uint64_t key)
{
	return MANAGED_ID | (key << 1 >> 17) << 16;
}

/* Returns the slot of this number's key, or the free slot for it. */
static size_t place_of(const uint64_t *table, size_t room, uint64_t id)
{
	size_t at = hash_mix(id & ~COUNT_MASK) & (room - 1);

	while (table[at] && (table[at] ^ id) & ~COUNT_MASK)
		at = (at + 1) & (room - 1);
	return at;
}

/* Makes space for one more key. Returns 0, or -1: no memory. */
static int managed_grow(struct coll *c)
{
	size_t room = c->managed_capacity ? 2 * c->managed_capacity : FIRST_CAPACITY;
	uint64_t *table;

	if (2 * (c->managed_count + 1) <= c->managed_capacity)
		return 0;
	table = calloc(room, sizeof(*table));
	if (!table)
		return -1;
	for (size_t i = 0; i < c->managed_capacity; i++)
		if (c->managed[i])
			table[place_of(table, room, c->managed[i])] = c->managed[i];
	free(c->managed);
	c->managed = table;
	c->managed_capacity = room;
	return 0;
}

uint64_t *managed_last(struct coll *c, uint64_t key)
{
	uint64_t *last;

	if (managed_grow(c))
		return NULL;
	last = &c->managed[place_of(c->managed, c->managed_capacity, managed_base_of(key))];
	if (!*last) {
		*last = managed_base_of(key);
		c->managed_count++;
	}
	return last;
}

uint64_t managed_next(uint64_t id)
{
	return (id & ~COUNT_MASK) | ((id + 1) & COUNT_MASK);
}

bool managed_ahead(const struct coll *c, uint64_t id)
{
	uint64_t last = 0;

	if (c->managed_capacity)
		last = c->managed[place_of(c->managed, c->managed_capacity, id)];
	/* Counts wrap around: numbers less than half a cycle ahead are still to come. */
	return (int16_t)(uint16_t)(id - last) > 0;
}
