/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading memory that another process may write. What is read there is read once, into private
 * memory, and judged and used there: a second read may find another value.
 */
#ifndef WEFT_BASE_ONCE_H
#define WEFT_BASE_ONCE_H

#include <stddef.h>
#include <string.h>

/* Reads a scalar exactly once. */
#define ONCE(x) (*(const volatile __typeof__(x) *)&(x))

/* Copies bytes exactly once: the compiler may not read `from` again in place of `to`. */
static inline void once_copy(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	__asm__ volatile("" : : : "memory");
}

#endif
