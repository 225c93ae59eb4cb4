/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of a domain's regions that peers on this host map, read only, to access the memory behind
 * a key without asking: see core/mr_view.h for their side, hw/shm/shm_guard.h for how a region is
 * closed under their eyes. It lies in a memfd, `share_page` says how.
 *
 * Only enabled regions of one segment are in it, and only so many; what is missing is reached by
 * packets. A slot is that of core/mr_table.c: a key of the library's names it, one that the
 * application chose is found through the buckets.
 */
#ifndef WEFT_CORE_MR_SHARE_H
#define WEFT_CORE_MR_SHARE_H

#include <fcntl.h>
#include <stdint.h>

#include "core/mr_table.h"

#define SHARE_MAGIC   0x73676572u /* "regs" */
#define SHARE_SLOTS   65536u
#define SHARE_BUCKETS 16384u
#define SHARE_WALK    64u /* regions a reader looks at in one bucket */
#define SHARE_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | F_SEAL_FUTURE_WRITE)

/* share_region.flags */
#define SHARE_THERE 1u

struct share_region {
	uint64_t key;
	uint64_t base;   /* in the memory of the owner */
	uint64_t offset; /* what a remote address of the first byte is */
	uint64_t length;
	uint64_t access; /* as struct mr.access */
	uint64_t tell;   /* FI_REMOTE_READ, FI_REMOTE_WRITE: what a counter of the region counts */
	uint64_t flags;
};

/* A slot. The owner makes `seq` odd, writes the region, and makes it even. */
struct share_entry {
	uint32_t seq;
	uint32_t next; /* in its bucket: slot + 1, 0 at the end */
	struct share_region region;
};

struct share_page {
	uint32_t magic;
	uint32_t slots, buckets; /* how many this library has */
	uint32_t hashed;         /* keys are the application's */
	uint32_t used;           /* slots from here on were never used: their pages stay away */
	uint32_t tell_all;       /* an endpoint counts what is done to its memory */
	uint32_t bucket[SHARE_BUCKETS] __attribute__((aligned(4096))); /* slot + 1, or 0 */
	struct share_entry entry[SHARE_SLOTS] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct share_entry) == 64, "an entry is a cache line");

static inline uint32_t share_bucket(uint64_t key)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15ULL >> 32) & (SHARE_BUCKETS - 1);
}

/*
 * Fills dom->share; it stays NULL where the kernel cannot keep peers from writing to the table, and
 * all goes by packets. What follows does nothing then, nor in a forked child.
 */
void mr_share_open(struct domain *dom);
void mr_share_close(struct domain *dom);

/* The region is in the domain's table and ready, or has changed. Domain locked, as below. */
void mr_share_update(struct domain *dom, const struct region *r);
/* Nobody finds it from now on; a process that has found it holds an access guard: see xfer_quiesce. */
void mr_share_remove(struct domain *dom, const struct region *r);
/* From now on peers tell of every access (WIRE_NOTIFY). */
void mr_share_tell_all(struct domain *dom);
/* The descriptor for peers, the domain's; -1: none, or it is a parent's. */
int mr_share_fd(const struct domain *dom);

#endif
