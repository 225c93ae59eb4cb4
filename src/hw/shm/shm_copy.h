/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long copies into memory shared with another process. If the reader shares a cache with us, stores through the
 * caches are fastest. If not, each line is fetched from the reader's cache before it is written, and non-temporal
 * stores take a third of the time. The scheduler may move either process, so the choice is learnt from the
 * measured cost of both.
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
	 * Non-temporal stores are chosen if they take less than so many percent of the time of cached ones:
	 * afterwards the reader has to wait for memory.
	 */
	uint32_t percent;
	uint32_t cost[2]; /* ns for SHM_COPY_LONG bytes, [1] around; 0: not known */
	uint32_t count;   /* long copies */
};

/* Should the next long copy use non-temporal stores? */
bool shm_copy_around(const struct shm_copier *c);

/* Is the time of the next long copy measured? */
bool shm_copy_timed(const struct shm_copier *c);

/* Notes the measured time. */
void shm_copy_took(struct shm_copier *c, bool around, uint64_t ns, size_t len);

/* At least SHM_COPY_LONG bytes. */
void shm_copy_long(struct shm_copier *c, void *to, const void *from, size_t len);

/* A process that sees a later store with release sees the whole copy. */
static inline void shm_copy(struct shm_copier *c, void *to, const void *from, size_t len)
{
	if (!COPY_AROUND || __builtin_expect(len < SHM_COPY_LONG, 1))
		copy_bytes(to, from, len);
	else
		shm_copy_long(c, to, from, len);
}

#endif
