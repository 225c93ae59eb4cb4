/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/source.h"

#include <stdlib.h>
#include <string.h>

#define SOURCES 64 /* addresses that are remembered; the one not seen for longest is forgotten */

struct source {
	uint64_t id;    /* 0: free */
	uint64_t since; /* ms: begin of the window */
	uint64_t until; /* ms: connections are refused until then; 0: not refused */
	uint64_t key;   /* the last wrong one */
	unsigned int wrong;
};

uint64_t source_id(const struct addr *addr)
{
	struct addr plain = addr_unmapped(addr);
	uint64_t id = 0;

	if (plain.kind == ADDR_IN)
		memcpy(&id, plain.ip, 4);
	else if (plain.kind == ADDR_IN6)
		memcpy(&id, plain.ip, 8);
	else
		return 0;
	return id ^ (uint64_t)plain.kind << 56 ^ UINT64_C(1) << 63;
}

/* Returns the entry of `id`, or the one to forget for it. */
static struct source *entry_of(const struct sources *all, uint64_t id)
{
	struct source *oldest = all->table;

	for (struct source *s = all->table; s < all->table + SOURCES; s++) {
		if (s->id == id)
			return s;
		if (s->until < oldest->until ||
		    (s->until == oldest->until && s->since < oldest->since))
			oldest = s;
	}
	return oldest;
}

bool source_wrong_key(struct sources *all, uint64_t id, uint64_t key, uint64_t now)
{
	struct source *s;

	if (!id)
		return false;
	if (!all->table)
		all->table = calloc(SOURCES, sizeof(*all->table));
	if (!all->table)
		return false;
	s = entry_of(all, id);
	if (s->id != id || now - s->since >= SOURCE_WINDOW_MS)
		*s = (struct source){.id = id, .since = now, .until = s->id == id ? s->until : 0};
	if (s->wrong && s->key == key)
		return false;
	s->key = key;
	all->wrong_keys++;
	if (++s->wrong != SOURCE_WRONG_MAX)
		return false;
	s->until = now + SOURCE_REFUSED_MS;
	return true;
}

bool source_refused(const struct sources *all, uint64_t id, uint64_t now)
{
	const struct source *s = all->table && id ? entry_of(all, id) : NULL;

	return s && s->id == id && now < s->until;
}

void source_free(struct sources *all)
{
	free(all->table);
	all->table = NULL;
}
