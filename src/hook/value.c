/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/value.h"

#include <ctype.h>
#include <rdma/fi_errno.h>

#define DECODED_BYTES 4096

/* Appends text with each run of blanks and line ends as one blank. */
static void add_line(struct text *t, const char *text)
{
	while (*text) {
		const char *end = text;

		while (*end && !isspace((unsigned char)*end))
			end++;
		text_add(t, "%.*s", (int)(end - text), text);
		while (isspace((unsigned char)*end))
			end++;
		if (*end && end != text)
			text_add(t, " ");
		text = end;
	}
}

static void add_decoded(struct text *t, const void *data, enum fi_type type)
{
	char decoded[DECODED_BYTES];

	if (!data || !fi_tostr_r(decoded, sizeof(decoded), data, type))
		text_add(t, "NULL");
	else if (!decoded[0])
		text_add(t, "0");
	else
		add_line(t, decoded);
}

static void add_status(struct text *t, long long status)
{
	text_add(t, "%lld", status);
	if (status < 0)
		text_add(t, " (%s)", fi_strerror((int)-status));
}

void value_add(struct text *t, const struct shape *shape, uint64_t bits)
{
	const void *pointer = (const void *)(uintptr_t)bits;

	switch ((enum show)shape->show) {
	case SHOW_POINTER:
		text_add(t, pointer ? "%p" : "NULL", pointer);
		break;
	case SHOW_NUMBER:
		text_add(t, "%lld", (long long)bits);
		break;
	case SHOW_HEX:
		text_add(t, "%#llx", (unsigned long long)bits);
		break;
	case SHOW_ADDRESS:
		if (bits == FI_ADDR_UNSPEC)
			text_add(t, "FI_ADDR_UNSPEC");
		else
			text_add(t, "%#llx", (unsigned long long)bits);
		break;
	case SHOW_STATUS:
		add_status(t, (long long)bits);
		break;
	case SHOW_TEXT:
		add_line(t, pointer ? pointer : "NULL");
		break;
	case SHOW_DECODED: /* the low bytes of `bits` come first */
		add_decoded(t, &bits, (enum fi_type)shape->type);
		break;
	case SHOW_DECODED_AT:
		add_decoded(t, pointer, (enum fi_type)shape->type);
		break;
	}
}
