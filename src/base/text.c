/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "base/text.h"

void text_init(struct text *t, char *buf, size_t size)
{
	t->buf = buf;
	t->size = size;
	t->len = 0;
	buf[0] = '\0';
}

void text_addv(struct text *t, const char *fmt, va_list args)
{
	size_t room = t->size - t->len;
	int want = vsnprintf(t->buf + t->len, room, fmt, args);

	if (want > 0)
		t->len += (size_t)want < room ? (size_t)want : room - 1;
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text_addv(t, fmt, args);
	va_end(args);
}

void text_strip(struct text *t, const char *end)
{
	size_t n = strlen(end);

	if (t->len >= n && memcmp(t->buf + t->len - n, end, n) == 0) {
		t->len -= n;
		t->buf[t->len] = '\0';
	}
}
