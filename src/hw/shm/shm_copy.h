/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long copies into memory shared with another process. If the reader shares a cache with us, cached stores are fastest.
 * If not, a cached store first fetches each line from the reader's cache, and non-temporal stores take a third of the
 * time. The scheduler may move either process, so the copier learns the choice from the measured cost of both.
 */
#ifndef WEFT_HW_SHM_COPY_H
#define WEFT_HW_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"

#define SHM_COPY_LONG 4096u /* bytes; shorter copies always use cached stores */
/* Bytes; a longer copy is one of several, whose cost differs from that of a single one. */
#define SHM_COPY_SINGLE 6144u

struct shm_copier {
	/*
	 * Non-temporal stores are chosen if they take less than this percentage of the time of
	 * cached stores. It is below 100 because the reader then has to read from memory.
	 */
	uint32_t percent;
	uint32_t cost[2]; /* ns per SHM_COPY_LONG bytes, [1] non-temporal; 0: not measured */
	uint32_t count;   /* long copies so far */
};

/* Returns whether the next long copy uses non-temporal stores. */
bool shm_copy_around(const struct shm_copier *c);

/* Returns whether the next long copy is timed. */
bool shm_copy_timed(const struct shm_copier *c);

/* Records the time of a copy of `len` bytes; `around`: by non-temporal stores. */
void shm_copy_took(struct shm_copier *c, bool around, uint64_t ns, size_t len);

/* Copies at least SHM_COPY_LONG bytes. */
void shm_copy_long(struct shm_copier *c, void *to, const void *from, size_t len);

/* Copies `len` bytes. A reader that sees a later release store sees the whole copy. */
static inline void shm_copy(struct shm_copier *c, void *to, const void *from, size_t len)
{
	if (!COPY_AROUND || __builtin_expect(len < SHM_COPY_LONG, 1))
		copy_bytes(to, from, len);
	else
		shm_copy_long(c, to, from, len);
}

#endif
