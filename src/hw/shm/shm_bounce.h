/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounce buffer of a worker, mapped behind its receive ring. The sender copies a long message in
 * once; each receiver copies it out. These two plain copies cost less than one CMA copy, for which
 * the kernel looks up every page. For messages longer than a cache CMA is cheaper, so they are
 * refused.
 */
#ifndef WEFT_HW_SHM_BOUNCE_H
#define WEFT_HW_SHM_BOUNCE_H

#include "hw/shm/shm.h"

#define SHM_BOUNCE_MAX  (RING_BOUNCE / 2) /* longest message, in bytes */
#define SHM_BOUNCE_UNIT (RING_BOUNCE / RING_UNITS)

/*
 * Address of a message in a bounce buffer: bit 63, which no address of a process has, the number of
 * the use, and the offset in the buffer. The ring's page has the current use of each unit: a
 * receiver compares the two and notices if the sender has released the message.
 */
#define SHM_BOUNCE_BASE      (UINT64_C(1) << 63)
#define SHM_BOUNCE_USE_SHIFT 24

/* Descriptor of one message in the bounce buffer. */
struct shm_bounced {
	struct shm_bounce *bounce;
	uint32_t first, units, use;
	uint32_t takers;    /* receivers that have not finished */
	const void *memory; /* the copied segment: address */
	size_t len;
	const void *batch; /* see link_memory_ops.reg; NULL: not shared with other receivers */
};

struct shm_bounce {
	uint64_t used;                          /* bit i: unit i is in use */
	uint32_t use;                           /* number of the last use */
	struct shm_bounced *last;               /* the last message copied in */
	struct shm_bounced bounced[RING_UNITS]; /* index: first unit of the message */
};

/* Implements link_memory_ops.reg for PROTO_BOUNCE. -FI_ENOSYS: message too long, or no space. */
int shm_bounce_put(struct shm_link *link, const struct iovec *iov, size_t count, const void *batch,
		   struct fi_rma_iov *at, void **registered);
/* One receiver has finished. The last one frees the units. */
void shm_bounce_end(struct shm_bounced *s);

/*
 * Receiver: copies from bounce addresses until the shorter side is full. Returns the bytes copied;
 * -FI_EFAULT: not an address of the buffer; -FI_ECONNRESET: the sender has released the message.
 */
ssize_t shm_bounce_take(const struct ring *r, const struct iovec *local, size_t local_count,
			const struct iovec *remote, size_t remote_count);

#endif
