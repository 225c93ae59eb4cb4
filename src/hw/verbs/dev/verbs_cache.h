/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations that outlive the transfer they were made for, since memory is often used again: one store for
 * all devices of the process, opened at the first of them. A registration is of pages, not of addresses,
 * so everything that puts other pages behind an address (munmap, mmap over it, mremap, madvise, a heap
 * that shrinks) has to be heard of before the address is used again; see watch.h. Kept is only
 * what nobody else can change behind our back: private memory of no file.
 *
 * The kernel does not tell of MADV_GUARD_INSTALL (Linux 6.13) and of shmat with SHM_REMAP. And it tells of what
 * is to be discarded before it is: memory that a thread sends from while another one discards it
 * may be kept as it was.
 */
#ifndef WEFT_HW_VERBS_CACHE_H
#define WEFT_HW_VERBS_CACHE_H

#include "hw/verbs/dev/verbs_mem.h"

/* As verbs_mem_get. NULL: not by this way. From any thread. */
struct verbs_mem *verbs_cache_get(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);
void verbs_cache_put(struct verbs_mem *mem);

/* Gives up what is not in use. False: there was nothing. */
bool verbs_cache_spare(const struct verbs_dev *dev);
/* What has become useless goes. */
void verbs_cache_sweep(const struct verbs_dev *dev);
/* The device is being closed: nothing of it is in use. */
void verbs_cache_leave(struct verbs_dev *dev);

#endif
