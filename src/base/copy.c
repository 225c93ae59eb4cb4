/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/copy.h"

void copy_by_parts(void *to, const void *from, size_t len)
{
	unsigned char *dst = to;
	const unsigned char *src = from;
	size_t part = COPY_SHORT;

	/* Else the compiler, which knows how long they are, uses `rep movsq`. */
	__asm__("" : "+r"(part));
	for (; len > part; len -= part) {
		memcpy(dst, src, part);
		dst += part;
		src += part;
	}
	memcpy(dst, src, len);
}
