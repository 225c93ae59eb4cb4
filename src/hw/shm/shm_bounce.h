/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounce buffer of a worker, mapped behind its receive ring. The sender copies a long message in once; each
 * receiver copies it out. Two plain copies, one on each side, cost less than one by the kernel between two
 * processes, which has to look up every page. Messages longer than a cache are refused: for them it is the other
 * way round.
 */
#ifndef WEFT_HW_SHM_BOUNCE_H
#define WEFT_HW_SHM_BOUNCE_H

#include "hw/shm/shm.h"

#define SHM_BOUNCE_MAX  (RING_BOUNCE / 2) /* bytes of a message */
#define SHM_BOUNCE_UNIT (RING_BOUNCE / RING_UNITS)

/*
 * Address of a message in a bounce buffer, in a range that no process has: this bit, the number of its use, and
 * the offset. The ring's page has the current use of each unit, so a receiver notices that the message it looks
 * for was released.
 */
#define SHM_BOUNCE_BASE      (UINT64_C(1) << 63)
#define SHM_BOUNCE_USE_SHIFT 24

/* Descriptor of one message in the bounce buffer. */
struct shm_bounced {
	struct shm_bounce *bounce;
	uint32_t first, units, use;
	uint32_t takers;    /* receivers that may still copy it out */
	const void *memory; /* the memory it is a copy of, */
	size_t len;
	const void *batch; /* in this batch: see link_rndv_ops.reg */
};

struct shm_bounce {
	uint64_t used;                          /* a bit for each unit */
	uint32_t use;                           /* the last one's number */
	struct shm_bounced *last;               /* the last message put there */
	struct shm_bounced bounced[RING_UNITS]; /* by their first unit */
};

/* Implements link_rndv_ops.reg for PROTO_BOUNCE. */
int shm_bounce_put(struct shm_link *link, const struct iovec *iov, size_t count, const void *batch,
		   struct fi_rma_iov *at, void **registered);
/* One receiver less. */
void shm_bounce_end(struct shm_bounced *s);

/*
 * Receiver: copies from such addresses until the shorter side is full. The bytes; -FI_EFAULT: no such address;
 * -FI_ECONNRESET: the message was released.
 */
ssize_t shm_bounce_take(const struct ring *r, const struct iovec *local, size_t local_count,
			const struct iovec *remote, size_t remote_count);

#endif
