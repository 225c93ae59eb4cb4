/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ranges.h"

#include <stdlib.h>
#include <string.h>

bool ranges_init(struct ranges *r, size_t bytes_max, size_t count_max)
{
	if (count_max > RANGES_MOST)
		count_max = RANGES_MOST;
	*r = (struct ranges){.count_max = count_max, .bytes_max = bytes_max};
	list_init(&r->idle);
	list_init(&r->out);
	r->table = calloc(count_max, sizeof(*r->table));
	return r->table;
}

void ranges_fini(struct ranges *r)
{
	free(r->table);
}

/* Returns the number of ranges that begin at or before this byte. */
static size_t begun_at(const struct ranges *r, uintptr_t at)
{
	size_t low = 0, high = r->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (r->table[middle].range->from <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Updates `reach` after a change of the slots from `i` on. */
static void set_reach(struct ranges *r, size_t i)
{
	uintptr_t reach = i ? r->table[i - 1].reach : 0;

	for (; i < r->count; i++) {
		if (r->table[i].range->to > reach)
			reach = r->table[i].range->to;
		r->table[i].reach = reach;
	}
}

static void put_in(struct ranges *r, struct range *range)
{
	size_t i = begun_at(r, range->from);

	memmove(&r->table[i + 1], &r->table[i], (r->count - i) * sizeof(*r->table));
	r->table[i].range = range;
	r->count++;
	r->bytes += range->to - range->from;
	set_reach(r, i);
	range->listed = true;
}

static void ranges_take_out(struct ranges *r, size_t i)
{
	struct range *range = r->table[i].range;

	r->count--;
	memmove(&r->table[i], &r->table[i + 1], (r->count - i) * sizeof(*r->table));
	r->bytes -= range->to - range->from;
	set_reach(r, i);
	range->listed = false;
	if (range->users)
		return;
	list_remove(&range->link);
	list_push(&r->out, &range->link);
}

static bool ranges_covers(const struct range *range, const void *owner, uintptr_t from,
			  uintptr_t to)
{
	return range->owner == owner && range->from <= from && range->to >= to;
}

struct range *ranges_find(struct ranges *r, const void *owner, uintptr_t from, uintptr_t to,
			  unsigned int rights)
{
	for (size_t i = begun_at(r, from); i > 0 && r->table[i - 1].reach >= to; i--) {
		struct range *range = r->table[i - 1].range;

		if (!range->ready || !ranges_covers(range, owner, from, to) ||
		    rights & ~range->rights)
			continue;
		if (!range->users++)
			list_remove(&range->link);
		return range;
	}
	return NULL;
}

static void widen_rights(const struct ranges *r, struct range *new)
{
	for (size_t i = begun_at(r, new->from); i > 0 && r->table[i - 1].reach >= new->to; i--)
		if (ranges_covers(r->table[i - 1].range, new->owner, new->from, new->to))
			new->rights |= r->table[i - 1].range->rights;
}

/* Unlists ranges that `new` makes useless. */
static void drop_inside(struct ranges *r, const struct range *new)
{
	for (size_t i = begun_at(r, new->to); i > 0 && r->table[i - 1].reach > new->from; i--) {
		const struct range *range = r->table[i - 1].range;

		if (ranges_covers(new, range->owner, range->from, range->to) &&
		    !(range->rights & ~new->rights))
			ranges_take_out(r, i - 1);
	}
}

void ranges_unlist(struct ranges *r, struct range *range)
{
	size_t i = begun_at(r, range->from);

	if (!range->listed)
		return;
	while (r->table[i - 1].range != range)
		i--;
	ranges_take_out(r, i - 1);
}

static void ranges_evict(struct ranges *r)
{
	ranges_unlist(r, LIST_ENTRY(r->idle.next, struct range, link));
}

bool ranges_enter(struct ranges *r, struct range *new)
{
	size_t len = new->to - new->from;

	new->users = 1;
	new->ready = new->listed = false;
	list_init(&new->link);
	if (len > r->bytes_max || !r->count_max)
		return false;
	widen_rights(r, new);
	drop_inside(r, new);
	while (r->count == r->count_max || r->bytes > r->bytes_max - len) {
		if (list_empty(&r->idle))
			return false;
		ranges_evict(r);
	}
	put_in(r, new);
	return true;
}

void ranges_put(struct ranges *r, struct range *range)
{
	if (!--range->users)
		list_push(range->listed ? &r->idle : &r->out, &range->link);
}

void ranges_drop(struct ranges *r, uintptr_t from, uintptr_t to)
{
	if (to <= from)
		return;
	for (size_t i = begun_at(r, to - 1); i > 0 && r->table[i - 1].reach > from; i--)
		if (r->table[i - 1].range->to > from)
			ranges_take_out(r, i - 1);
}

void ranges_drop_owner(struct ranges *r, const void *owner)
{
	for (size_t i = r->count; i > 0; i--)
		if (r->table[i - 1].range->owner == owner)
			ranges_take_out(r, i - 1);
}

void ranges_drop_idle(struct ranges *r)
{
	while (!list_empty(&r->idle))
		ranges_evict(r);
}

bool ranges_touch(const struct ranges *r, uintptr_t from, uintptr_t to)
{
	size_t i = to > from ? begun_at(r, to - 1) : 0;

	/* The range that set the reach of the last one that begins before `to` contains a byte. */
	return i > 0 && r->table[i - 1].reach > from;
}

struct range *ranges_next_out(struct ranges *r, const void *owner)
{
	LIST_EACH (node, &r->out) {
		struct range *range = LIST_ENTRY(node, struct range, link);

		if (range->owner != owner)
			continue;
		list_remove(node);
		return range;
	}
	return NULL;
}
