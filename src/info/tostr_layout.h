/* SPDX-License-Identifier: BSD-2-Clause */
/* What the structs of the interface are made of, for tostr_info.c. */
#ifndef WEFT_INFO_TOSTR_LAYOUT_H
#define WEFT_INFO_TOSTR_LAYOUT_H

#include <stddef.h>

#include "info/tostr.h"

/* How a member is written. */
enum tostr_kind {
	SIZE, /* size_t */
	U8,
	U16,
	U32,
	U64,
	INT,
	HEX32,
	HEX64,
	BITS64, /* hexadecimal with all its digits */
	STR,
	PTR,
	VERSION,
	CTX_COUNT, /* size_t or FI_SHARED_CONTEXT */
	NAMED      /* a value or flags of a set of names */
};

struct tostr_member {
	const char *name;
	size_t offset;
	enum tostr_kind kind;
	int set; /* NAMED: which; an fi_type or enum tostr_set */
};

struct tostr_layout {
	const char *name;
	const struct tostr_member *member;
	size_t count;
};

/* The members of a struct, by fi_type or enum tostr_set; NULL when it is none of a struct. */
const struct tostr_layout *tostr_layout(int set);

#endif
