/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook/value.h"

#include <ctype.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "core/cq.h"

#define DECODED_BYTES 4096
#define ENTRIES_MAX   16 /* completions of one call that are shown */

/* Makes each run of blanks and line ends, from character `from` on, one blank, and the last one none. */
static void value_squeeze(struct text *t, size_t from)
{
	size_t to = from;

	for (size_t i = from; i < t->len; i++) {
		if (!isspace((unsigned char)t->buf[i]))
			t->buf[to++] = t->buf[i];
		else if (t->buf[i + 1] && !isspace((unsigned char)t->buf[i + 1]) && to > from)
			t->buf[to++] = ' ';
	}
	t->buf[to] = '\0';
	t->len = to;
}

/* Appends text as one line. */
static void add_line(struct text *t, const char *text)
{
	size_t from = t->len;

	text_add(t, "%s", text);
	value_squeeze(t, from);
}

/* Decodes in place: a buffer between would be as long as the stacks of some threads. */
static void add_decoded(struct text *t, const void *data, enum fi_type type)
{
	size_t from = t->len, room = t->size - from;
	char *decoded = t->buf + from;

	if (!data ||
	    !fi_tostr_r(decoded, room < DECODED_BYTES ? room : DECODED_BYTES, data, type)) {
		text_add(t, "NULL");
	} else if (!decoded[0]) {
		text_add(t, "0");
	} else {
		t->len += strlen(decoded);
		value_squeeze(t, from);
	}
}

/* Each format is the beginning of the next one. */
static void value_add_entry(struct text *t, const void *entry, enum fi_cq_format format)
{
	struct fi_cq_tagged_entry e;

	memcpy(&e, entry, cq_entry_size(format));
	text_add(t, e.op_context ? "{context %p" : "{context NULL", e.op_context);
	if (format >= FI_CQ_FORMAT_MSG) {
		text_add(t, " flags ");
		add_decoded(t, &e.flags, FI_TYPE_CQ_EVENT_FLAGS);
		text_add(t, " len %zu", e.len);
	}
	if (format >= FI_CQ_FORMAT_DATA)
		text_add(t, " buf %p data %#llx", e.buf, (unsigned long long)e.data);
	if (format >= FI_CQ_FORMAT_TAGGED)
		text_add(t, " tag %#llx", (unsigned long long)e.tag);
	text_add(t, "}");
}

static void value_add_entries(struct text *t, const struct value_entries *entries)
{
	ssize_t shown = entries->count < ENTRIES_MAX ? entries->count : ENTRIES_MAX;
	const char *entry = entries->buf;

	text_add(t, "[");
	for (ssize_t i = 0; i < shown; i++, entry += cq_entry_size(entries->format))
		value_add_entry(t, entry, entries->format);
	text_add(t, shown < entries->count ? "...]" : "]");
}

/*
 * The format is the provider's. Addresses that tell what they are, sockaddr and strings, are shown;
 * of others only where they are.
 */
static void value_add_name(struct text *t, const void *name)
{
	char printed[ADDR_STR_MAX];
	sa_family_t family;
	struct addr a;

	memcpy(&family, name, sizeof(family));
	if (memcmp(name, "fi", sizeof(family)) == 0)
		text_add(t, "%.*s", ADDR_STR_MAX, (const char *)name);
	else if ((family == AF_INET || family == AF_INET6) &&
		 addr_from_user(&a, FI_SOCKADDR, name, 0) == 0) {
		addr_print(&a, printed, sizeof(printed));
		addr_free(&a);
		text_add(t, "%s", printed);
	} else
		text_add(t, "%p", name);
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
	case SHOW_NAME:
		if (pointer)
			value_add_name(t, pointer);
		else
			text_add(t, "NULL");
		break;
	case SHOW_ENTRIES:
		value_add_entries(t, pointer);
		break;
	}
}
