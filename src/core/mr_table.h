/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the regions of a domain are found. Every region has a slot; a key the library chose names
 * slot and generation, one the application chose is looked up by hash. Domain locked throughout.
 */
#ifndef WEFT_CORE_MR_TABLE_H
#define WEFT_CORE_MR_TABLE_H

#include "core/mr.h"

/* A region with what only the table and mr.c know; it begins with what everybody sees. */
struct region {
	struct mr mr;
	struct region *next; /* in its bucket */
	struct region *base; /* of fi_mr_attr.base_mr, or NULL */
	int subs;            /* regions whose base this is */
	struct list in_nic;  /* dom->nic_regions, of a region with a handle */
	bool sealed;         /* fi_mr_enable came: nothing may be bound any more */
	uint32_t slot;
	struct iovec one; /* the segment, where there is only one */
};

static inline struct region *region_of(struct mr *mr)
{
	return (struct region *)mr;
}

/*
 * Enters a region under the library's key, which goes to *key, or under *key. 0, -FI_ENOKEY when
 * the application's key is taken, -FI_EKEYREJECTED when it means "no key", -FI_ENOMEM.
 */
int mr_table_add(struct mr_table *t, struct region *r, bool choose, uint64_t *key);
void mr_table_remove(struct mr_table *t, struct region *r);
struct region *mr_table_find(const struct mr_table *t, uint64_t key);
/* Are keys the library's? As of the last region entered. */
bool mr_table_chooses(const struct mr_table *t);

/* Does a device know the region, by the lower half of a key of the library's? */
static inline bool mr_key_in_nic(uint64_t key)
{
	return key >> 63;
}

#define MR_SLOT_BITS  20
#define MR_SLOT_SHIFT 32

/* The slot in a key of the library's. */
static inline uint32_t mr_key_slot(uint64_t key)
{
	return (uint32_t)(key >> MR_SLOT_SHIFT) & ((1u << MR_SLOT_BITS) - 1);
}

#endif
