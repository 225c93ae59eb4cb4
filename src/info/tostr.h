/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words for what the interface is made of: values, flags and attributes, as fi_tostr gives them.
 * tostr_names.c holds the one list of names, tostr_layout.c the members of each struct.
 * fi_fabric(3).
 */
#ifndef WEFT_INFO_TOSTR_H
#define WEFT_INFO_TOSTR_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include "base/text.h"

/* What has words but no fi_type; numbered above all of these. */
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
	const struct tostr_name *name; /* NULL: no set of names */
	size_t count;
	bool flags; /* each name is a bit, else a value */
	bool wide;  /* the public type has 64 bits, else 32 */
};

/* The names of a set, an fi_type or enum tostr_set; NULL when it is none of names. */
const struct tostr_names *tostr_names(int set);

/* The name of a value, "Unknown" if it has none; for messages, too. */
const char *tostr_name(int set, uint64_t value);

/* The names of the bits set, separated by ", ". Bits without a name are left out. */
void tostr_flags(struct text *t, int set, uint64_t value);

/* The value at `data`, of the public type, in a set of names. */
void tostr_value(struct text *t, int set, const void *data);

/* The struct at `data`. False when `type` is none of a struct. */
bool tostr_struct(struct text *t, enum fi_type type, const void *data);

/* An object by what it says of itself, else by its address. */
void tostr_fid(struct text *t, const struct fid *fid);
void tostr_nic(struct text *t, const struct fid_nic *nic);

/* An address in one of the formats of fi_info; nothing for a format that has no text. */
void tostr_addr(struct text *t, uint32_t format, const void *addr);

#endif
