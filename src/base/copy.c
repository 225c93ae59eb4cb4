/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/copy.h"

#include <stdbool.h>

#if COPY_AROUND
#include <emmintrin.h>

#define LINE 64u

/* By whole lines of the destination; what is before and behind them goes through the caches. */
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
	_mm_sfence(); /* else a store that publishes it could overtake it */
}
#else
void copy_around(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
}
#endif

static void copy_by_parts(unsigned char *to, const unsigned char *from, size_t len)
{
	size_t part = COPY_SHORT;

	/* Else the compiler, which knows how long they are, uses `rep movsq`. */
	__asm__("" : "+r"(part));
	for (; len > part; len -= part) {
		memcpy(to, from, part);
		to += part;
		from += part;
	}
	memcpy(to, from, len);
}

/*
 * `rep movsb`, by which the C library copies what is long: where the destination begins 16 bytes behind the source,
 * counted modulo a page, AMD's Zen 3 takes thirty times as long for it (2 GB/s); 48 bytes behind, three times. Short
 * copies cost next to nothing more there.
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
