/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/av_hash.h"

static size_t home_of(const struct av_hash *h, const struct addr *addr)
{
	return (size_t)((unsigned __int128)addr_hash(addr) * h->size >> 64);
}

static size_t next_slot(const struct av_hash *h, size_t slot)
{
	return slot + 1 == h->size ? 0 : slot + 1;
}

/* The slot of this address, or the empty one where it would go. */
static size_t probe(const struct av_hash *h, const struct addr *table, const struct addr *addr)
{
	size_t slot = home_of(h, addr);

	while (h->slots[slot] && !addr_equal(&table[h->slots[slot] - 1], addr))
		slot = next_slot(h, slot);
	return slot;
}

static void put(struct av_hash *h, const struct addr *table, uint32_t index)
{
	size_t slot = probe(h, table, &table[index]);
	uint32_t there = h->slots[slot];

	if (there)
		h->twins = true;
	else
		h->used++;
	if (!there || index + 1 < there)
		h->slots[slot] = index + 1;
}

/* Room for `want` addresses at two thirds full, then everything in again. */
static void build(struct av_hash *h, const struct addr *table, size_t count, size_t want)
{
	av_hash_free(h);
	h->size = want + want / 2 + 16;
	h->slots = calloc(h->size, sizeof(*h->slots));
	if (!h->slots)
		return;
	for (size_t i = 0; i < count; i++)
		if (table[i].kind != ADDR_NONE)
			put(h, table, (uint32_t)i);
}

static uint32_t scan(const struct addr *table, size_t from, size_t count, const struct addr *addr)
{
	for (size_t i = from; i < count; i++)
		if (addr_equal(&table[i], addr))
			return (uint32_t)i;
	return AV_HASH_NONE;
}

uint32_t av_hash_find(struct av_hash *h, const struct addr *table, size_t count,
		      const struct addr *addr)
{
	if (!h->slots)
		build(h, table, count, count);
	if (!h->slots)
		return scan(table, 0, count, addr);
	return h->slots[probe(h, table, addr)] - 1; /* AV_HASH_NONE from an empty slot */
}

void av_hash_add(struct av_hash *h, const struct addr *table, size_t count, uint32_t index)
{
	if (!h->slots)
		return;
	if (h->used + 1 > h->size / 8 * 7)
		build(h, table, count, h->used + 1);
	else
		put(h, table, index);
}

/* Would the entry of slot `at` still be found if it moved back to `hole`? */
static bool may_move(const struct av_hash *h, const struct addr *table, size_t hole, size_t at)
{
	size_t home = home_of(h, &table[h->slots[at] - 1]);

	if (hole < at)
		return home <= hole || home > at;
	return home <= hole && home > at;
}

/* Empties a slot and moves back those behind it that would not be found any more. */
static void take_out(struct av_hash *h, const struct addr *table, size_t hole)
{
	h->used--;
	h->slots[hole] = 0;
	for (size_t at = next_slot(h, hole); h->slots[at]; at = next_slot(h, at)) {
		if (!may_move(h, table, hole, at))
			continue;
		h->slots[hole] = h->slots[at];
		h->slots[at] = 0;
		hole = at;
	}
}

void av_hash_del(struct av_hash *h, const struct addr *table, size_t count, uint32_t index)
{
	size_t slot;
	uint32_t twin;

	if (!h->slots)
		return;
	slot = probe(h, table, &table[index]);
	if (h->slots[slot] != index + 1)
		return;
	twin = h->twins ? scan(table, index + 1, count, &table[index]) : AV_HASH_NONE;
	if (twin != AV_HASH_NONE)
		h->slots[slot] = twin + 1;
	else
		take_out(h, table, slot);
}

void av_hash_free(struct av_hash *h)
{
	free(h->slots);
	*h = (struct av_hash){0};
}
