/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a domain's regions. Peers on this host map it read-only to access the memory of a
 * key directly. See core/mr_view.h for the peers' side, and hw/shm/shm_guard.h for closing a region
 * while peers access it. The table is a `share_page` in a memfd.
 *
 * It contains only enabled regions of one segment with a slot below SHARE_SLOTS; peers access all
 * others by packets. Slots are those of core/mr_table.c: a key chosen by the library names its
 * slot, a key chosen by the application is found through the buckets.
 */
#ifndef WEFT_CORE_MR_SHARE_H
#define WEFT_CORE_MR_SHARE_H

#include <fcntl.h>
#include <stdint.h>

#include "core/mr_table.h"

#define SHARE_MAGIC   0x73676572u /* "regs" */
#define SHARE_SLOTS   65536u
#define SHARE_BUCKETS 16384u
#define SHARE_WALK    64u /* most regions that a reader visits in one bucket */
#define SHARE_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE)

/* share_region.flags */
#define SHARE_THERE 1u

struct share_region {
	uint64_t key;
	uint64_t base;   /* address in the owner's process */
	uint64_t offset; /* remote address of the first byte */
	uint64_t length;
	uint64_t access;  /* as struct mr.access */
	uint64_t counted; /* FI_REMOTE_READ, FI_REMOTE_WRITE: accesses the region counts */
	uint64_t flags;
};

/* A slot. The owner makes `seq` odd, writes the region, and makes `seq` even again. */
struct share_entry {
	uint32_t seq;
	uint32_t next; /* next of the bucket: slot + 1; 0: none */
	struct share_region region;
};

struct share_page {
	uint32_t magic;
	uint32_t slots, buckets; /* as this library was built */
	uint32_t hashed;         /* nonzero: the application chooses keys */
	uint32_t used;           /* slots from here on were never used, and take no memory */
	uint32_t notify_all;     /* nonzero: an endpoint counts accesses of all regions */
	uint32_t bucket[SHARE_BUCKETS] __attribute__((aligned(4096))); /* slot + 1, or 0 */
	struct share_entry entry[SHARE_SLOTS] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct share_entry) == 64, "an entry is a cache line");

static inline uint32_t share_bucket(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & (SHARE_BUCKETS - 1);
}

/*
 * Creates dom->share. It stays NULL where the kernel cannot prevent peers from writing to the table; all accesses go by
 * packets then. The functions below do nothing then, nor in a forked child.
 */
void mr_share_open(struct domain *dom);
void mr_share_close(struct domain *dom);

/* Enters or updates a region of the domain's table. Domain locked, as below. */
void mr_share_update(struct domain *dom, const struct region *r);
/* Removes a region. A process that found it before holds an access guard: see driven_quiesce_all. */
void mr_share_remove(struct domain *dom, const struct region *r);

#endif
