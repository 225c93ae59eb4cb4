/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_copy.h"

#include "base/clock.h"

/*
 * Long copies are made one way in rows of this length, and the last of a row is timed. A single
 * non-temporal copy costs less than each of many, as it need not wait for memory.
 */
#define ROW 8u
/* One row of this many is made the way that seems slower, to measure it again. */
#define TRIED_EVERY 32u

bool shm_copy_around(const struct shm_copier *c)
{
	bool trial = c->count / ROW % TRIED_EVERY == 0;
	bool pays = c->cost[1] && c->cost[1] < (uint64_t)c->cost[0] * c->percent / 100;

	return pays != trial;
}

bool shm_copy_timed(const struct shm_copier *c)
{
	return c->count % ROW == ROW - 1;
}

/* A longer time changes the cost more slowly than a shorter one: it may be a preemption. */
void shm_copy_took(struct shm_copier *c, bool around, uint64_t ns, size_t len)
{
	uint64_t took = ns * SHM_COPY_LONG / len + 1, cost = c->cost[around];

	if (!cost)
		cost = took;
	else if (took < cost)
		cost -= (cost - took) / 2;
	else
		cost += ((took < 4 * cost ? took : 4 * cost) - cost) / 4;
	c->cost[around] = cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
}

void shm_copy_long(struct shm_copier *c, void *to, const void *from, size_t len)
{
	bool around = shm_copy_around(c), timed = shm_copy_timed(c);
	uint64_t start = timed ? clock_ns() : 0;

	if (around)
		copy_around(to, from, len);
	else
		copy_bytes(to, from, len);
	if (timed)
		shm_copy_took(c, around, clock_ns() - start, len);
	c->count++;
}
