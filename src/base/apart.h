/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that shares no cache line with other memory, so that threads do not slow each other down. */
#ifndef WEFT_BASE_APART_H
#define WEFT_BASE_APART_H

#include <stdlib.h>
#include <string.h>

/*
 * Bytes that no two objects of different threads may share. On x86-64 two lines, which processors
 * fetch together; elsewhere the longest line there is, that of the A64FX.
 */
#if defined(__x86_64__)
#define APART 128
#else
#define APART 256
#endif

/* Returns `size` zeroed bytes or a few more, which free() frees; NULL: no memory. */
static inline void *apart_alloc(size_t size)
{
	size_t whole = (size + APART - 1) / APART * APART;
	void *memory = aligned_alloc(APART, whole);

	return memory ? memset(memory, 0, whole) : NULL;
}

#endif
