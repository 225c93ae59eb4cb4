/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for values, flags and structs of the public interface, for fi_tostr. tostr_names.c lists all
 * names, tostr_layout.c the members of all structs. fi_fabric(3).
 */
#ifndef WEFT_INFO_TOSTR_H
#define WEFT_INFO_TOSTR_H

#include <rdma/fabric.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Sets without an fi_type; their numbers are above all fi_type values. */
enum tostr_set {
	TOSTR_RESOURCE_MGMT = 64,
	TOSTR_AV_FLAGS,
	TOSTR_CQ_FLAGS,
	TOSTR_MR_ACCESS,
	TOSTR_CNTR_EVENTS,
	TOSTR_BUS_TYPE,
	TOSTR_LINK_STATE,
	/* structs */
	TOSTR_DEVICE_ATTR,
	TOSTR_BUS_ATTR,
	TOSTR_PCI_ATTR,
	TOSTR_LINK_ATTR
};

struct tostr_name {
	uint64_t value;
	const char *name;
};

struct tostr_names {
	const struct tostr_name *name; /* NULL: not a set of names */
	size_t count;
	bool flags; /* names are bits; else values */
	bool wide;  /* the public type has 64 bits; else 32 */
};

/* Returns the names of a set (fi_type or enum tostr_set); NULL: not a set of names. */
const struct tostr_names *tostr_names(int set);

/* Returns the name of a value, or "Unknown". Also for log messages. */
const char *tostr_name(int set, uint64_t value);

/* Writes the value at `data`, which has the set's public type. */
void tostr_value(struct text *t, int set, const void *data);

void tostr_nic(struct text *t, const struct fid_nic *nic);

/* Writes an address in a format of fi_info; nothing if the format has no text. */
void tostr_addr(struct text *t, uint32_t format, const void *addr);

/* Members of the structs of the public interface, for tostr_info.c. */

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
