/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of a domain's regions. Every region that peers may access has a slot and a key. A key chosen by the library
 * contains the slot and random bits; a key chosen by the application is looked up by hash. Domain locked throughout.
 */
#ifndef WEFT_CORE_MR_TABLE_H
#define WEFT_CORE_MR_TABLE_H

#include "core/mr.h"

/* A region with the fields that only the table and the mr_* files use. */
struct region {
	struct mr mr;
	struct region *next; /* next of the bucket */
	struct region *base; /* fi_mr_attr.base_mr, or NULL */
	int subs;            /* regions that have this one as base */
	struct list in_nic;  /* in dom->nic_regions if `handle` is set */
	struct list further; /* struct mr_further.in_region of core/mr_nic.h, if `handle` is set */
	bool sealed;         /* fi_mr_enable was called: nothing can be bound any more */
	uint32_t slot;       /* MR_NO_SLOT: for local use alone */
	struct iovec one;    /* the segment, if there is only one */
};

/* What the key of a region allows. */
struct mr_grant {
	uint64_t key;
	uint64_t access; /* FI_REMOTE_READ, FI_REMOTE_WRITE */
	uint64_t offset; /* remote address of the first byte */
	size_t length;
};

#define MR_NO_SLOT UINT32_MAX

static inline struct region *region_of(struct mr *mr)
{
	return (struct region *)mr;
}

/* May peers access the region, if they know its key? Any other has none. */
static inline bool mr_is_remote(const struct mr *mr)
{
	return mr->access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
}

/*
 * Adds a region. `choose`: the library chooses the key and writes it to *key; else *key is the key;
 * a region for local use gets neither slot nor key. 0; -FI_ENOKEY: the key is in use; -FI_EKEYREJECTED: FI_KEY_NOTAVAIL is no key; -FI_ENOMEM.
 */
int mr_table_add(struct mr_table *t, struct region *r, bool choose, uint64_t *key);
void mr_table_remove(struct mr_table *t, struct region *r);
struct region *mr_table_find(const struct mr_table *t, uint64_t key);
/* Returns what `key` allowed, if its region is one of the last that were closed; or NULL. */
const struct mr_grant *mr_table_closed(const struct mr_table *t, uint64_t key);
/* Returns whether the library chooses keys, as of the last region added. */
bool mr_table_chooses(const struct mr_table *t);

/*
 * Layout of a key chosen by the library; random bits come from the kernel:
 *
 *	63   62     52 51                32 31                   0
 *	0  | random  | slot               | random
 *	63   62            47 46         32 31                   0
 *	1  | random         | slot        | the device's rkey
 *
 * A region whose slot does not fit the second form has a key of the first: peers reach it by
 * packets instead of RDMA.
 */
#define MR_SLOT_SHIFT    32
#define MR_SLOT_BITS     20
#define MR_NIC_SLOT_BITS 15
#define MR_KEY_IN_NIC    (UINT64_C(1) << 63)

/* Returns whether the lower half of a key chosen by the library is a device's rkey. */
static inline bool mr_key_in_nic(uint64_t key)
{
	return key & MR_KEY_IN_NIC;
}

/* Returns the slot in a key chosen by the library. */
static inline uint32_t mr_key_slot(uint64_t key)
{
	unsigned int bits = mr_key_in_nic(key) ? MR_NIC_SLOT_BITS : MR_SLOT_BITS;

	return (uint32_t)(key >> MR_SLOT_SHIFT) & ((1u << bits) - 1);
}

/* Calls on registered regions. fi_mr(3) */

/* Frees a region that is in no table. */
void mr_object_free(struct region *r);

/* Returns whether the range lies within one segment of the region. */
bool mr_object_covers(const struct mr *mr, const struct iovec *range);

/* Returns whether the domain has this mode bit; FI_MR_BASIC stands for three bits. */
bool mr_object_mode(const struct domain *dom, int bit);

#endif
