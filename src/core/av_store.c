/* SPDX-License-Identifier: BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/av_store.h"

#define COUNT_HINT_MAX (1u << 20) /* entries made room for on the word of attr->count alone */

/* Named stores of all domains. Taken before a domain's lock. */
static pthread_mutex_t names_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list names = {&names, &names};

static struct av_store *find_name(const struct domain *dom, const char *name)
{
	LIST_EACH (node, &names) {
		struct av_store *s = LIST_ENTRY(node, struct av_store, in_names);

		if (s->dom == dom && strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

static void destroy(struct av_store *s)
{
	for (size_t i = 0; i < s->count; i++)
		addr_free(&s->table[i]);
	av_hash_free(&s->hash);
	free(s->table);
	free(s->ids);
	free(s->name);
	free(s);
}

static int create(struct av *av, const char *name, size_t count, struct av_store **store)
{
	struct av_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -FI_ENOMEM;
	s->dom = av->dom;
	s->type = av->type;
	list_init(&s->in_names);
	list_init(&s->members);
	if (name) {
		s->name = strdup(name);
		if (!s->name) {
			free(s);
			return -FI_ENOMEM;
		}
		list_push(&names, &s->in_names);
	}
	/* Only a hint: without memory for it now, insertions ask again. */
	av_store_reserve(s, count < COUNT_HINT_MAX ? count : COUNT_HINT_MAX);
	*store = s;
	return 0;
}

static int find_or_create(struct av *av, const char *name, size_t count, struct av_store **store)
{
	struct av_store *s = name ? find_name(av->dom, name) : NULL;

	if (!s && (av->flags & FI_READ)) {
		LOG_INFO(LOG_AV,
			 "no address vector \"%s\" on this domain; vectors of other "
			 "processes are not shared",
			 name ? name : "");
		return -FI_ENOSYS;
	}
	if (!s)
		return create(av, name, count, store);
	if (s->type != av->type) {
		LOG_WARN(LOG_AV, "address vector \"%s\" was opened with type %d, not %d", name,
			 s->type, av->type);
		return -FI_EINVAL;
	}
	*store = s;
	return 0;
}

int av_store_join(struct av *av, const char *name, size_t count)
{
	int err;

	pthread_mutex_lock(&names_mutex);
	err = find_or_create(av, name, count, &av->store);
	if (!err) {
		lock_take(&av->dom->lock);
		list_push(&av->store->members, &av->in_store);
		lock_give(&av->dom->lock);
	}
	pthread_mutex_unlock(&names_mutex);
	return err;
}

int av_store_leave(struct av *av)
{
	struct av_store *s = av->store;
	bool busy, last = false;

	pthread_mutex_lock(&names_mutex);
	lock_take(&av->dom->lock);
	busy = !list_empty(&av->ports) || ref_busy(&av->ref);
	if (!busy) {
		list_remove(&av->in_store);
		last = list_empty(&s->members);
	}
	lock_give(&av->dom->lock);
	if (last)
		list_remove(&s->in_names);
	pthread_mutex_unlock(&names_mutex);
	if (last)
		destroy(s);
	return busy ? -FI_EBUSY : 0;
}

static int grow(struct av_store *s, size_t capacity)
{
	struct addr *table = realloc(s->table, capacity * sizeof(*table));
	fi_addr_t *ids;

	if (!table)
		return -FI_ENOMEM;
	s->table = table;
	if (s->ids) {
		ids = realloc(s->ids, capacity * sizeof(*ids));
		if (!ids)
			return -FI_ENOMEM;
		s->ids = ids;
	}
	s->capacity = capacity;
	return 0;
}

int av_store_reserve(struct av_store *s, size_t more)
{
	size_t fresh = more > s->holes ? more - s->holes : 0;
	size_t half_again = s->capacity + s->capacity / 2;

	if (fresh <= s->capacity - s->count)
		return 0;
	if (fresh > AV_STORE_MAX - s->count) {
		LOG_WARN(LOG_AV, "%zu more addresses: an address vector holds %u", more,
			 AV_STORE_MAX);
		return -FI_ENOMEM;
	}
	return grow(s, s->count + fresh > half_again ? s->count + fresh : half_again);
}

/* The lowest index free; there is room. */
static uint32_t free_index(struct av_store *s)
{
	size_t i = s->first_hole;

	if (!s->holes)
		return (uint32_t)s->count++;
	while (s->table[i].kind != ADDR_NONE)
		i++;
	s->first_hole = i + 1;
	s->holes--;
	return (uint32_t)i;
}

int av_store_add(struct av_store *s, const struct addr *a, uint32_t *index)
{
	int err = av_store_reserve(s, 1);
	uint32_t i;

	if (err)
		return err;
	i = free_index(s);
	s->table[i] = *a;
	s->table[i].uses = 0;
	if (s->ids)
		s->ids[i] = i;
	av_hash_add(&s->hash, s->table, s->count, i);
	*index = i;
	return 0;
}

void av_store_remove(struct av_store *s, uint32_t index)
{
	av_hash_del(&s->hash, s->table, s->count, index);
	addr_free(&s->table[index]);
	if (!s->holes || index < s->first_hole)
		s->first_hole = index;
	s->holes++;
}

uint32_t av_store_find(struct av_store *s, const struct addr *a)
{
	return av_hash_find(&s->hash, s->table, s->count, a);
}

int av_store_set_id(struct av_store *s, uint32_t index, fi_addr_t id)
{
	if (!s->ids) {
		s->ids = malloc(s->capacity * sizeof(*s->ids));
		if (!s->ids)
			return -FI_ENOMEM;
		for (size_t i = 0; i < s->count; i++)
			s->ids[i] = i;
	}
	s->ids[index] = id;
	return 0;
}
