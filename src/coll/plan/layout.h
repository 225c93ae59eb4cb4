/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who shares a host. The members in the order of hosts, of ranks within a host; hosts in the order of
 * their lowest ranks. Never changed once made.
 */
#ifndef WEFT_COLL_LAYOUT_H
#define WEFT_COLL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct layout {
	uint32_t hosts;
	uint32_t mine;   /* host of the member it was made for */
	uint32_t each;   /* members of every host; 0: not the same for all */
	uint32_t *first; /* where a host begins in that order; hosts + 1 of them */
	uint32_t *order; /* ranks in that order; NULL: rank i is in place i */
	uint32_t *place; /* of each rank in `order`; NULL with that */
};

/* The number or address that stands for a rank's host: equal for two ranks if and only if they share it. */
typedef uint64_t layout_host(void *arg, uint32_t rank);

/*
 * For member `rank` of `size`. What the host numbers are may differ from member to member, which of
 * them are equal must not. O(size log size) time and memory meanwhile, then O(hosts), or O(size)
 * where members of a host have ranks that do not follow one another. NULL: no memory.
 */
struct layout *layout_make(uint32_t rank, uint32_t size, layout_host *host, void *arg);
void layout_free(struct layout *layout); /* NULL is fine */

/* The rank in place i of the order. */
static inline uint32_t layout_rank(const struct layout *l, uint32_t i)
{
	return l->order ? l->order[i] : i;
}

/* Members of host h. */
static inline uint32_t layout_here(const struct layout *l, uint32_t h)
{
	return l->first[h + 1] - l->first[h];
}

static inline uint32_t layout_place(const struct layout *l, uint32_t rank)
{
	return l->place ? l->place[rank] : rank;
}

/* The host that has a place: O(log hosts). */
uint32_t layout_host_at(const struct layout *l, uint32_t place);

#endif
