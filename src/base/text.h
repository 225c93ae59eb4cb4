/* SPDX-License-Identifier: BSD-2-Clause */
/* Appends text to a caller's buffer; text that does not fit is cut. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

struct text {
	char *buf;   /* always ends with a NUL */
	size_t size; /* bytes of buf, at least 1 */
	size_t len;  /* characters in buf, less than size */
};

void text_init(struct text *t, char *buf, size_t size);

void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_addv(struct text *t, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Removes `end` from the end of the text, if it is there. */
void text_strip(struct text *t, const char *end);

#endif
