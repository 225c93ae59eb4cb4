/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "core/av_store.h"

static size_t home_of(const struct av_hash *h, const struct addr *addr)
{
	return (size_t)((unsigned __int128)addr_hash(addr) * h->size >> 64);
}

static size_t next_slot(const struct av_hash *h, size_t slot)
{
	return slot + 1 == h->size ? 0 : slot + 1;
}

/* Returns the slot of this address, or the empty slot where it belongs. */
static size_t av_hash_probe(const struct av_hash *h, const struct av_rows *rows,
			    const struct addr *addr)
{
	size_t slot = home_of(h, addr);
	struct av_shared_entry entry;

	while (h->slots[slot] && !addr_equal(av_hash_row(rows, h->slots[slot] - 1, &entry), addr))
		slot = next_slot(h, slot);
	return slot;
}

/* Some slots stay empty: there a search ends. */
static bool has_room(const struct av_hash *h)
{
	return h->used + 1 <= h->size / 8 * 7;
}

static void av_hash_put(struct av_hash *h, const struct av_rows *rows, uint32_t index)
{
	struct av_shared_entry entry;
	const struct addr *addr = av_hash_row(rows, index, &entry);
	size_t slot;

	if (addr->kind == ADDR_NONE)
		return;
	slot = av_hash_probe(h, rows, addr);
	/* Another process may have put duplicates into a shared table, or have changed rows since they were counted. */
	if (h->slots[slot] || !has_room(h))
		return;
	h->slots[slot] = index + 1;
	h->used++;
}

/* Allocates slots for `want` addresses at two thirds full, then adds all rows. */
static void av_hash_build(struct av_hash *h, const struct av_rows *rows, size_t count, size_t want)
{
	av_hash_free(h);
	h->size = want + want / 2 + 16;
	h->slots = calloc(h->size, sizeof(*h->slots));
	if (!h->slots)
		return;
	for (size_t i = 0; i < count; i++)
		av_hash_put(h, rows, (uint32_t)i);
}

static uint32_t av_hash_scan(const struct av_rows *rows, size_t count, const struct addr *addr)
{
	struct av_shared_entry entry;

	for (size_t i = 0; i < count; i++)
		if (addr_equal(av_hash_row(rows, i, &entry), addr))
			return (uint32_t)i;
	return AV_HASH_NONE;
}

uint32_t av_hash_find(struct av_hash *h, const struct av_rows *rows, size_t count,
		      const struct addr *addr)
{
	if (!h->slots)
		av_hash_build(h, rows, count, count);
	if (!h->slots)
		return av_hash_scan(rows, count, addr);
	return h->slots[av_hash_probe(h, rows, addr)] - 1; /* an empty slot gives AV_HASH_NONE */
}

void av_hash_add(struct av_hash *h, const struct av_rows *rows, size_t count, uint32_t index)
{
	if (!h->slots)
		return;
	if (!has_room(h))
		av_hash_build(h, rows, count, h->used + 1);
	else
		av_hash_put(h, rows, index);
}

/* Returns whether a lookup would still find the entry of slot `at` if it moved back to `hole`. */
static bool may_shift(const struct av_hash *h, const struct av_rows *rows, size_t hole, size_t at)
{
	struct av_shared_entry entry;
	size_t home = home_of(h, av_hash_row(rows, h->slots[at] - 1, &entry));

	if (hole < at)
		return home <= hole || home > at;
	return home <= hole && home > at;
}

/* Empties a slot, and moves back the entries behind it that lookups would miss. */
static void av_hash_take_out(struct av_hash *h, const struct av_rows *rows, size_t hole)
{
	h->used--;
	h->slots[hole] = 0;
	for (size_t at = next_slot(h, hole); h->slots[at]; at = next_slot(h, at)) {
		if (!may_shift(h, rows, hole, at))
			continue;
		h->slots[hole] = h->slots[at];
		h->slots[at] = 0;
		hole = at;
	}
}

void av_hash_del(struct av_hash *h, const struct av_rows *rows, uint32_t index)
{
	struct av_shared_entry entry;
	size_t slot;

	if (!h->slots)
		return;
	slot = av_hash_probe(h, rows, av_hash_row(rows, index, &entry));
	if (h->slots[slot] == index + 1)
		av_hash_take_out(h, rows, slot);
}

void av_hash_free(struct av_hash *h)
{
	free(h->slots);
	*h = (struct av_hash){0};
}
