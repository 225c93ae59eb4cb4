/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bounce of a worker: shared memory behind its ring, where it puts long messages that its peers take out
 * by themselves. Two plain copies, one a side, cost less than one that the kernel makes between two
 * processes, which has to look up every page. Not so for messages longer than a cache: these are refused.
 */
#ifndef WEFT_HW_SHM_BOUNCE_H
#define WEFT_HW_SHM_BOUNCE_H

#include "hw/shm/shm.h"

#define SHM_BOUNCE_MAX  (RING_BOUNCE / 2) /* bytes of a message */
#define SHM_BOUNCE_UNIT (RING_BOUNCE / RING_UNITS)

/*
 * Where something lies, as an address that no process has: this bit, the number of its use, and the offset. The
 * ring's page tells which use a unit is in: what was given back before it was taken is not taken for it.
 */
#define SHM_BOUNCE_BASE      (UINT64_C(1) << 63)
#define SHM_BOUNCE_USE_SHIFT 24

/* What lies there. */
struct shm_bounced {
	struct shm_bounce *bounce;
	uint32_t first, units, use;
	uint32_t takers;    /* who may still take it */
	const void *memory; /* it is a copy of that, */
	size_t len;
	const void *batch; /* as it was during that: see link_rndv_ops.reg */
};

struct shm_bounce {
	uint64_t used;                          /* a bit for each unit */
	uint32_t use;                           /* the last one's number */
	struct shm_bounced *last;               /* that was put there */
	struct shm_bounced bounced[RING_UNITS]; /* by their first unit */
};

/* As link_rndv_ops.reg has it. */
int shm_bounce_put(struct shm_link *link, const struct iovec *iov, size_t count, const void *batch,
		   struct fi_rma_iov *at, void **registered);
/* One who may take it less. */
void shm_bounce_end(struct shm_bounced *s);

/*
 * Peer: copies from such addresses until the shorter side is full. The bytes; -FI_EFAULT: there is no such place;
 * -FI_ECONNRESET: it does not lie there any more.
 */
ssize_t shm_bounce_take(const struct ring *r, const struct iovec *local, size_t local_count,
			const struct iovec *remote, size_t remote_count);

#endif
