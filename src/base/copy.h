/* SPDX-License-Identifier: BSD-2-Clause */
/* memcpy for data that may be long, or of a few bytes. */
#ifndef WEFT_BASE_COPY_H
#define WEFT_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_SHORT 1024u /* bytes; the C library uses no `rep movsb` up to this length */

#ifdef __SSE2__
#define COPY_AROUND 1 /* copy_around differs from memcpy */
#else
#define COPY_AROUND 0
#endif

/* Copies with non-temporal stores: bypasses the caches, does not read the destination. Fenced. */
void copy_around(void *to, const void *from, size_t len);

/* For more than COPY_SHORT bytes. */
void copy_long(void *to, const void *from, size_t len);

/* For the few bytes of a slot, mostly eight: calls no function. */
static inline void copy_few(void *to, const void *from, size_t len)
{
	size_t at = 0;

	if (__builtin_expect(len == 8, 1)) {
		memcpy(to, from, 8);
		return;
	}
	if (len == 16) {
		memcpy(to, from, 16);
		return;
	}
	for (; at + 8 <= len; at += 8)
		memcpy((char *)to + at, (const char *)from + at, 8);
	for (; __builtin_expect(at < len, 0); at++)
		((char *)to)[at] = ((const char *)from)[at];
}

static inline void copy_bytes(void *to, const void *from, size_t len)
{
	if (__builtin_expect(len > COPY_SHORT, 0))
		copy_long(to, from, len);
	else
		memcpy(to, from, len);
}

#endif
