/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long copies into memory shared with another process. While its reader has the lines in a cache shared
 * with us, stores that go through the caches are quickest. Where the two share none, each line is fetched
 * from the other's before it is written: stores around the caches (to memory, without reading it) take a
 * third of that. Which of the two it is can change with every move of a process, and is learnt from what
 * the copies cost.
 */
#ifndef WEFT_HW_SHM_COPY_H
#define WEFT_HW_SHM_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/copy.h"

#define SHM_COPY_LONG 4096u /* bytes: shorter ones are not worth it */

struct shm_copier {
	/*
	 * What goes around the caches has to take less than so much of the time of what goes through
	 * them, as its reader waits for memory.
	 */
	uint32_t percent;
	uint32_t cost[2]; /* ns for SHM_COPY_LONG bytes, [1] around; 0: not known */
	uint32_t count;   /* long copies */
};

/* The next long copy is to go around the caches. */
bool shm_copy_around(const struct shm_copier *c);

/* The next long copy is one of those whose time is taken. */
bool shm_copy_timed(const struct shm_copier *c);

/* It was made, in that time. */
void shm_copy_took(struct shm_copier *c, bool around, uint64_t ns, size_t len);

/* Of at least SHM_COPY_LONG. */
void shm_copy_long(struct shm_copier *c, void *to, const void *from, size_t len);

/* A process that reads it after a store with release finds all of it. */
static inline void shm_copy(struct shm_copier *c, void *to, const void *from, size_t len)
{
	if (!COPY_AROUND || __builtin_expect(len < SHM_COPY_LONG, 1))
		copy_bytes(to, from, len);
	else
		shm_copy_long(c, to, from, len);
}

#endif
