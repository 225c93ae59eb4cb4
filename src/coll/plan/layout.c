/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/plan/plan.h"

#include <stdlib.h>

/* A rank, the lowest rank of its host, and what the ranks are sorted by first. */
struct entry {
	uint64_t key; /* the host's number, then `lowest` */
	uint32_t rank, lowest;
};

static int layout_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Sorts by host, hosts by lowest rank. Returns the number of hosts. */
static uint32_t layout_sort(struct entry *e, uint32_t size, layout_host *host, void *arg)
{
	uint32_t hosts = 0;

	for (uint32_t i = 0; i < size; i++)
		e[i] = (struct entry){.key = host(arg, i), .rank = i};
	qsort(e, size, sizeof(*e), layout_compare);
	for (uint32_t i = 0; i < size; i++) {
		bool first = i == 0 || e[i].key != e[i - 1].key;

		e[i].lowest = first ? e[i].rank : e[i - 1].lowest;
		hosts += first;
	}
	for (uint32_t i = 0; i < size; i++)
		e[i].key = e[i].lowest;
	qsort(e, size, sizeof(*e), layout_compare);
	return hosts;
}

/* Sets first, mine and each. */
static void find_hosts(struct layout *l, const struct entry *e, uint32_t rank, uint32_t size)
{
	uint32_t h = 0;

	for (uint32_t i = 0; i < size; i++) {
		if (i == 0 || e[i].lowest != e[i - 1].lowest)
			l->first[h++] = i;
		if (e[i].rank == rank)
			l->mine = h - 1;
	}
	l->first[h] = size;
	l->each = layout_here(l, 0);
	while (h-- > 0)
		if (layout_here(l, h) != layout_here(l, 0))
			l->each = 0;
}

/* Sets order and place, if needed. Returns false if memory is out. */
static bool set_order(struct layout *l, const struct entry *e, uint32_t size)
{
	uint32_t i = 0;

	while (i < size && e[i].rank == i)
		i++;
	if (i == size)
		return true;
	l->order = malloc(size * sizeof(*l->order));
	l->place = malloc(size * sizeof(*l->place));
	if (!l->order || !l->place)
		return false;
	for (i = 0; i < size; i++) {
		l->order[i] = e[i].rank;
		l->place[e[i].rank] = i;
	}
	return true;
}

struct layout *layout_make(uint32_t rank, uint32_t size, layout_host *host, void *arg)
{
	struct layout *l = calloc(1, sizeof(*l));
	struct entry *e = calloc(size, sizeof(*e));

	if (!l || !e)
		goto fail;
	l->hosts = layout_sort(e, size, host, arg);
	l->first = calloc((size_t)l->hosts + 1, sizeof(*l->first));
	if (!l->first || !set_order(l, e, size))
		goto fail;
	find_hosts(l, e, rank, size);
	free(e);
	return l;
fail:
	free(e);
	layout_free(l);
	return NULL;
}

void layout_free(struct layout *l)
{
	if (!l)
		return;
	free(l->first);
	free(l->order);
	free(l->place);
	free(l);
}

uint32_t layout_host_at(const struct layout *l, uint32_t place)
{
	uint32_t host = 0, end = l->hosts;

	while (end - host > 1) {
		uint32_t middle = host + (end - host) / 2;

		if (l->first[middle] <= place)
			host = middle;
		else
			end = middle;
	}
	return host;
}
