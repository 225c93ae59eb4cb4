/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/copy.h"

#include <stdbool.h>

#if COPY_AROUND
#include <emmintrin.h>

#define LINE 64u

/* Whole cache lines of the destination bypass the caches; the bytes before and behind do not. */
void copy_around(void *to, const void *from, size_t len)
{
	size_t before = -(uintptr_t)to % LINE;
	unsigned char *dst = to;
	const unsigned char *src = from;

	if (before > len)
		before = len;
	memcpy(dst, src, before);
	for (dst += before, src += before, len -= before; len >= LINE; len -= LINE) {
		const __m128i *in = (const __m128i *)(const void *)src;
		__m128i *out = (__m128i *)(void *)dst;
		__m128i a = _mm_loadu_si128(in), b = _mm_loadu_si128(in + 1);
		__m128i c = _mm_loadu_si128(in + 2), d = _mm_loadu_si128(in + 3);

		_mm_stream_si128(out, a);
		_mm_stream_si128(out + 1, b);
		_mm_stream_si128(out + 2, c);
		_mm_stream_si128(out + 3, d);
		dst += LINE;
		src += LINE;
	}
	memcpy(dst, src, len);
	_mm_sfence(); /* or a later store that publishes the data could overtake it */
}
#else
void copy_around(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

#if defined(__x86_64__)
static void copy_by_parts(unsigned char *to, const unsigned char *from, size_t len)
{
	size_t part = COPY_SHORT;

	/* Hides the length from the compiler, which would use `rep movsq`. */
	__asm__("" : "+r"(part));
	for (; len > part; len -= part) {
		memcpy(to, from, part);
		to += part;
		from += part;
	}
	memcpy(to, from, len);
}

/*
 * The C library copies long memory by `rep movsb`. On AMD's Zen 3 that is slow (2 GB/s, thirty
 * times the usual time) if the destination begins 16 bytes behind the source modulo a page, and
 * takes three times as long at 48 bytes. Short copies cost next to nothing more there.
 */
static bool repeats_slowly(const void *to, const void *from)
{
	return ((uintptr_t)to - (uintptr_t)from) % 4096 < 64;
}

void copy_long(void *to, const void *from, size_t len)
{
	if (repeats_slowly(to, from))
		copy_by_parts(to, from, len);
	else
		memcpy(to, from, len);
}
#else
void copy_long(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif
