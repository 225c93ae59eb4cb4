/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of the structs of the public interface, for tostr_info.c. */
#ifndef WEFT_INFO_TOSTR_LAYOUT_H
#define WEFT_INFO_TOSTR_LAYOUT_H

#include <stddef.h>

#include "info/tostr.h"

/* Formats of members. */
enum tostr_kind {
	SIZE, /* size_t */
	U8,
	U16,
	U32,
	U64,
	INT,
	HEX32,
	HEX64,
	BITS64, /* hexadecimal, all digits */
	STR,
	PTR,
	VERSION,
	CTX_COUNT, /* size_t or FI_SHARED_CONTEXT */
	NAMED      /* values or flags with names */
};

struct tostr_member {
	const char *name;
	size_t offset;
	enum tostr_kind kind;
	int set; /* for NAMED: fi_type or enum tostr_set */
};

struct tostr_layout {
	const char *name;
	const struct tostr_member *member;
	size_t count;
};

/* Returns the members of a struct (fi_type or enum tostr_set); NULL: not a struct. */
const struct tostr_layout *tostr_layout(int set);

#endif
