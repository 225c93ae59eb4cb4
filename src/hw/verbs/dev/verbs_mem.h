/* SPDX-License-Identifier: BSD-2-Clause */
/* Registrations of the application's memory for the time of a transfer. */
#ifndef WEFT_HW_VERBS_MEM_H
#define WEFT_HW_VERBS_MEM_H

#include <sys/uio.h>

#include "base/ranges.h"
#include "hw/verbs/dev/verbs_dev.h"

/* A registration that covers a segment; each user gets it and puts it. */
struct verbs_mem {
	struct verbs_dev *dev;
	struct ibv_mr *mr;
	bool kept;          /* it is in the cache: verbs_cache.c */
	bool watched;       /* `kept`: its memory is watched */
	struct range range; /* range in the cache, if `kept` */
};

/* Registers `iov`, or finds it in the cache, with IBV_ACCESS_ bits. NULL: the device refuses. */
struct verbs_mem *verbs_mem_get(struct verbs_dev *dev, const struct iovec *iov,
				unsigned int access);
/* Ends a use. `mem` may be NULL. */
void verbs_mem_put(struct verbs_mem *mem);

/*
 * Registers `iov` anew. If the limit of locked memory is reached, first drops unused cached
 * registrations. NULL, with errno: the device refuses.
 */
struct ibv_mr *verbs_mem_register(struct verbs_dev *dev, const struct iovec *iov,
				  unsigned int access);

/* verbs_cache.c: the cache behind these. */
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
