/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration cache: registrations outlive their transfer, since memory is often used again. One
 * cache for all devices of the process, opened with the first. A registration is of pages, not of
 * addresses: everything that puts other pages behind an address (munmap, mmap over it, mremap,
 * madvise, a shrinking heap) must be noticed before the address is used again; see watch.h. Only
 * private anonymous memory is cached: nobody else can change its pages unnoticed.
 *
 * The kernel reports neither MADV_GUARD_INSTALL (Linux 6.13) nor shmat with SHM_REMAP. And it
 * reports memory that is to be discarded before discarding it: if one thread sends from memory that
 * another one discards, a registration of the discarded pages may stay in the cache.
 */
#ifndef WEFT_HW_VERBS_CACHE_H
#define WEFT_HW_VERBS_CACHE_H

#include "hw/verbs/dev/verbs_mem.h"

/* As verbs_mem_get. NULL: the cache cannot serve it. From any thread. */
struct verbs_mem *verbs_cache_get(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);
void verbs_cache_put(struct verbs_mem *mem);

/* Deregisters all registrations that are not in use. False: there were none. */
bool verbs_cache_spare(const struct verbs_dev *dev);
/* Deregisters registrations whose memory has changed. */
void verbs_cache_sweep(const struct verbs_dev *dev);
/* The device is being closed: drops its registrations, none of which is in use. */
void verbs_cache_leave(struct verbs_dev *dev);

#endif
