/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/av_store.h"

#define COUNT_HINT_MAX (1u << 20) /* limit of entries reserved for attr->count */

/*
 * Stores with a name that are open for writing, of all domains. Guarded by FORKED_AV_NAMES, which is
 * taken before a domain's lock.
 */
static struct list names = {&names, &names};

static struct av_store *find_name(const struct domain *dom, const char *name)
{
	LIST_EACH_OF (struct av_store, s, &names, in_names) {
		if (s->dom == dom && strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

static void av_store_destroy(struct av_store *s)
{
	for (size_t i = 0; i < s->count; i++)
		addr_free(&s->rows.table[i]);
	if (s->rows.shared)
		av_shared_close(&s->shared);
	av_hash_free(&s->hash);
	free(s->rows.table);
	free(s->ids);
	free(s->name);
	free(s);
}

static int open_shared(struct av_store *s, const struct av *av, const char *name, size_t count)
{
	const struct fi_domain_attr *attr = av->dom->info->domain_attr;
	struct av_shared_key key = {.format = av->format, .type = av->type};
	bool write = !(av->flags & FI_READ);
	int err = av_shared_key(&key, attr ? attr->name : NULL, name);

	if (!err)
		err = av_shared_open(&s->shared, &key, count, write);
	if (err)
		return err;
	s->rows.shared = &s->shared;
	s->type = av_shared_type(&s->shared);
	s->name = strdup(name);
	if (!s->name)
		return -FI_ENOMEM;
	if (write)
		list_push(&names, &s->in_names);
	return 0;
}

static int av_store_create(const struct av *av, const char *name, size_t count,
			   struct av_store **store)
{
	struct av_store *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -FI_ENOMEM;
	s->dom = av->dom;
	s->type = av->type == FI_AV_UNSPEC ? FI_AV_TABLE : av->type;
	list_init(&s->in_names);
	list_init(&s->members);
	if (name)
		err = open_shared(s, av, name, count);
	else /* The count is a hint: if memory is short now, insertions try again. */
		av_store_reserve(s, count < COUNT_HINT_MAX ? count : COUNT_HINT_MAX);
	if (err)
		av_store_destroy(s);
	else
		*store = s;
	return err;
}

static int find_or_create(const struct av *av, const char *name, size_t count,
			  struct av_store **store)
{
	struct av_store *s = name ? find_name(av->dom, name) : NULL;

	if (!s)
		return av_store_create(av, name, count, store);
	if (av->type != FI_AV_UNSPEC && s->type != av->type)
		return LOG_REFUSE(-FI_EINVAL, LOG_AV,
				  "address vector \"%s\" was opened with type %d, not %d", name,
				  s->type, av->type);
	*store = s;
	return 0;
}

int av_store_join(struct av *av, const char *name, size_t count)
{
	int err;

	forked_take(FORKED_AV_NAMES);
	err = find_or_create(av, name, count, &av->store);
	if (!err) {
		av->type = av->store->type;
		domain_lock(av->dom);
		list_push(&av->store->members, &av->in_store);
		domain_unlock(av->dom);
	}
	forked_give(FORKED_AV_NAMES);
	return err;
}

int av_store_leave(struct av *av)
{
	struct av_store *s = av->store;
	bool busy, last = false;

	forked_take(FORKED_AV_NAMES);
	domain_lock(av->dom);
	busy = !list_empty(&av->workers) || ref_busy(&av->ref);
	if (!busy) {
		list_remove(&av->in_store);
		last = list_empty(&s->members);
	}
	domain_unlock(av->dom);
	if (last)
		list_remove(&s->in_names);
	forked_give(FORKED_AV_NAMES);
	if (last)
		av_store_destroy(s);
	return busy ? -FI_EBUSY : 0;
}

int av_store_begin(struct av_store *s)
{
	int err = s->rows.shared ? av_shared_begin(&s->shared) : 0;

	if (err)
		LOG_WARN(LOG_AV, "cannot lock address vector \"%s\": %s", s->name,
			 fi_strerror(-err));
	return err;
}

void av_store_end(struct av_store *s)
{
	if (s->rows.shared)
		av_shared_end(&s->shared);
}

size_t av_store_count(const struct av_store *s)
{
	return s->rows.shared ? av_shared_count(&s->shared) : s->count;
}

const struct addr *av_store_at(struct av_store *s, fi_addr_t index)
{
	const struct addr *a;

	if (index >= av_store_count(s))
		return NULL;
	a = av_hash_row(&s->rows, index, &s->found);
	return a->kind == ADDR_NONE ? NULL : a;
}

static int av_store_grow(struct av_store *s, size_t capacity)
{
	struct addr *table = realloc(s->rows.table, capacity * sizeof(*table));

	if (!table)
		return -FI_ENOMEM;
	s->rows.table = table;
	s->capacity = capacity;
	return 0;
}

int av_store_reserve(struct av_store *s, size_t more)
{
	size_t fresh = more > s->holes ? more - s->holes : 0;
	size_t eighth_more = s->capacity + s->capacity / 8;

	if (s->rows.shared || fresh <= s->capacity - s->count)
		return 0;
	if (fresh > AV_STORE_MAX - s->count)
		return LOG_REFUSE(-FI_ENOMEM, LOG_AV,
				  "cannot add %zu addresses: an address vector holds at most %u",
				  more, AV_STORE_MAX);
	return av_store_grow(s, s->count + fresh > eighth_more ? s->count + fresh : eighth_more);
}

/* Returns the lowest free index. There is space for it. */
static uint32_t free_index(struct av_store *s)
{
	size_t i = s->first_hole;

	if (!s->holes)
		return (uint32_t)s->count++;
	while (s->rows.table[i].kind != ADDR_NONE)
		i++;
	s->first_hole = i + 1;
	s->holes--;
	return (uint32_t)i;
}

static int add_shared(struct av_store *s, struct addr *a, uint32_t *index)
{
	int err = av_shared_add(&s->shared, a, index);

	if (!err)
		addr_free(a);
	return err; /* av_store_find updates the hash */
}

int av_store_add(struct av_store *s, struct addr *a, uint32_t *index)
{
	uint32_t i;
	int err;

	if (s->rows.shared)
		return add_shared(s, a, index);
	err = av_store_reserve(s, 1);
	if (err)
		return err;
	i = free_index(s);
	s->rows.table[i] = *a;
	s->rows.table[i].uses = 0;
	if (i < s->id_count)
		s->ids[i] = i;
	av_hash_add(&s->hash, &s->rows, s->count, i);
	s->additions++;
	*index = i;
	return 0;
}

void av_store_remove(struct av_store *s, uint32_t index)
{
	if (s->rows.shared) {
		av_shared_remove(&s->shared, index);
		return;
	}
	av_hash_del(&s->hash, &s->rows, index);
	addr_free(&s->rows.table[index]);
	if (!s->holes || index < s->first_hole)
		s->first_hole = index;
	s->holes++;
}

/* Applies additions and removals in a shared table to the hash. */
static void catch_up(struct av_store *s)
{
	uint64_t removals = av_shared_removals(&s->shared);
	size_t count = av_shared_count(&s->shared);

	if (removals != s->removals)
		av_hash_free(&s->hash); /* a later entry may have the removed one's address */
	s->removals = removals;
	for (size_t i = s->hashed; s->hash.slots && i < count; i++)
		av_hash_add(&s->hash, &s->rows, i + 1, (uint32_t)i);
	s->hashed = count;
}

uint32_t av_store_find(struct av_store *s, const struct addr *a)
{
	if (!s->rows.shared)
		return av_hash_find(&s->hash, &s->rows, s->count, a);
	catch_up(s);
	return av_hash_find(&s->hash, &s->rows, s->hashed, a);
}

int av_store_set_id(struct av_store *s, uint32_t index, fi_addr_t id)
{
	size_t count = (size_t)index + index / 2 + 1;
	fi_addr_t *ids;

	if (index >= s->id_count) {
		ids = realloc(s->ids, count * sizeof(*ids));
		if (!ids)
			return -FI_ENOMEM;
		for (size_t i = s->id_count; i < count; i++)
			ids[i] = i;
		s->ids = ids;
		s->id_count = count;
	}
	s->ids[index] = id;
	LIST_EACH_OF (struct av, av, &s->members, in_store) {
		av->dom->calls->av_renamed(av, index);
	}
	return 0;
}

static uint8_t *uses_of(struct av_store *s, uint32_t index)
{
	return s->rows.shared ? av_shared_uses(&s->shared, index) : &s->rows.table[index].uses;
}

void av_store_hold(struct av_store *s, uint32_t index)
{
	uint8_t *uses = uses_of(s, index);

	if ((*uses & AV_STORE_USES_MAX) < AV_STORE_USES_MAX)
		++*uses;
}

bool av_store_release(struct av_store *s, uint32_t index)
{
	uint8_t *uses = uses_of(s, index);

	if ((*uses & AV_STORE_USES_MAX) == 0)
		return false;
	if ((*uses & AV_STORE_USES_MAX) < AV_STORE_USES_MAX)
		--*uses;
	return true;
}

void av_store_set_firewall(struct av_store *s, uint32_t index)
{
	*uses_of(s, index) |= AV_STORE_FIREWALL;
}

bool av_store_firewalled(struct av_store *s, uint32_t index)
{
	return *uses_of(s, index) & AV_STORE_FIREWALL;
}
