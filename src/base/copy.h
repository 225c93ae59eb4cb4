/* SPDX-License-Identifier: BSD-2-Clause */
/* memcpy for what may be long. */
#ifndef WEFT_BASE_COPY_H
#define WEFT_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_SHORT 1024u /* bytes: the C library does not use `rep movsb` for so few */

#ifdef __SSE2__
#define COPY_AROUND 1 /* copy_around is another way than memcpy */
#else
#define COPY_AROUND 0
#endif

/* Around the caches: to memory, without what was there being read before. Done when it returns. */
void copy_around(void *to, const void *from, size_t len);

/* Of more than COPY_SHORT. */
void copy_long(void *to, const void *from, size_t len);

static inline void copy_bytes(void *to, const void *from, size_t len)
{
	if (__builtin_expect(len > COPY_SHORT, 0))
		copy_long(to, from, len);
	else
		memcpy(to, from, len);
}

#endif
