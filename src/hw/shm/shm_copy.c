/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/shm/shm_copy.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/copy.h"

/*
 * Of so many long copies in a row the last is timed: a single one around the caches costs less than each of many, as
 * it need not wait for memory.
 */
#define ROW 8u
/* One row of so many is made the way that seems to be the slower one. */
#define TRIED_EVERY 32u

/* What goes around the caches its reader has to fetch from memory: we need a third of the time, or it is not worth it. */
static bool around_pays(const struct shm_copier *c)
{
	return c->cost[1] && c->cost[1] < c->cost[0] / 3;
}

bool shm_copy_around(const struct shm_copier *c)
{
	bool trial = c->count / ROW % TRIED_EVERY == 0;

	return around_pays(c) != trial;
}

bool shm_copy_timed(const struct shm_copier *c)
{
	return c->count % ROW == ROW - 1;
}

/* Long times are believed more slowly than short ones: something else may have run. */
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

#ifdef __SSE2__
/* By whole lines of the destination; what is before and behind them goes through the caches. */
static void copy_around(unsigned char *to, const unsigned char *from, size_t len)
{
	size_t before = -(uintptr_t)to % 64, lines = (len - before) / 64;

	memcpy(to, from, before);
	to += before;
	from += before;
	for (size_t i = 0; i < lines; i++) {
		const __m128i *src = (const __m128i *)(const void *)from;
		__m128i *dst = (__m128i *)(void *)to;
		__m128i a = _mm_loadu_si128(src), b = _mm_loadu_si128(src + 1);
		__m128i c = _mm_loadu_si128(src + 2), d = _mm_loadu_si128(src + 3);

		_mm_stream_si128(dst, a);
		_mm_stream_si128(dst + 1, b);
		_mm_stream_si128(dst + 2, c);
		_mm_stream_si128(dst + 3, d);
		to += 64;
		from += 64;
	}
	memcpy(to, from, len - before - lines * 64);
	_mm_sfence(); /* such stores are not ordered before a later one otherwise */
}
#else
static void copy_around(unsigned char *to, const unsigned char *from, size_t len)
{
	copy_bytes(to, from, len);
}
#endif

static void copy_long(bool around, void *to, const void *from, size_t len)
{
	if (around)
		copy_around(to, from, len);
	else
		copy_bytes(to, from, len);
}

void shm_copy(struct shm_copier *c, void *to, const void *from, size_t len)
{
	bool around, timed;
	uint64_t start;

	if (len < SHM_COPY_LONG) {
		copy_bytes(to, from, len);
		return;
	}
	around = shm_copy_around(c);
	timed = shm_copy_timed(c);
	start = timed ? clock_ns() : 0;
	copy_long(around, to, from, len);
	if (timed)
		shm_copy_took(c, around, clock_ns() - start, len);
	c->count++;
}
