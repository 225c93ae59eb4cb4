/* SPDX-License-Identifier: BSD-2-Clause */
/* Text written piece by piece into a buffer of the caller, cut where the buffer ends. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdarg.h>
#include <stddef.h>

struct text {
	char *buf;   /* always ends with a NUL */
	size_t size; /* bytes of buf, 1 at least */
	size_t len;  /* characters written, below size */
};

void text_init(struct text *t, char *buf, size_t size);

void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_addv(struct text *t, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));

/* Takes `end` off if the text ends so. */
void text_strip(struct text *t, const char *end);

#endif
