/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which members share a host. The layout orders members by host, within a host by rank; hosts are
 * ordered by their lowest rank. Immutable.
 */
#ifndef WEFT_COLL_LAYOUT_H
#define WEFT_COLL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct layout {
	uint32_t hosts;
	uint32_t mine;   /* host of the member that made the layout */
	uint32_t each;   /* members per host; 0: hosts differ */
	uint32_t *first; /* first place of each host in the order; hosts + 1 entries */
	uint32_t *order; /* ranks in order; NULL: rank i is in place i */
	uint32_t *place; /* inverse of `order`; NULL if `order` is */
};

/* Returns a number for a rank's host: equal for two ranks if and only if they share a host. */
typedef uint64_t layout_host(void *arg, uint32_t rank);

/*
 * Makes the layout for member `rank` of `size`. Host numbers may differ between members, but not
 * which of them are equal. Takes O(size log size) time and temporary memory; keeps O(hosts) memory,
 * or O(size) if ranks of a host are not consecutive. Returns NULL if memory is out.
 */
struct layout *layout_make(uint32_t rank, uint32_t size, layout_host *host, void *arg);
void layout_free(struct layout *layout); /* accepts NULL */

/* Returns the rank in place i of the order. */
static inline uint32_t layout_rank(const struct layout *l, uint32_t i)
{
	return l->order ? l->order[i] : i;
}

/* Returns the number of members of host h. */
static inline uint32_t layout_here(const struct layout *l, uint32_t h)
{
	return l->first[h + 1] - l->first[h];
}

static inline uint32_t layout_place(const struct layout *l, uint32_t rank)
{
	return l->place ? l->place[rank] : rank;
}

/* Returns the host of a place, in O(log hosts). */
uint32_t layout_host_at(const struct layout *l, uint32_t place);

#endif
