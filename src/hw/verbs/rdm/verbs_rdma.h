/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA reads and writes, on a queue pair of their own. If the peer's device refuses an access, only
 * that queue pair ends, and the engine goes on by packets. VERBS_PLAIN in packet headers tells the
 * peer.
 */
#ifndef WEFT_HW_VERBS_RDMA_H
#define WEFT_HW_VERBS_RDMA_H

#include "base/list.h"
#include "link/link.h"
#include "hw/verbs/dev/verbs_lib.h"

struct pool;
struct verbs_link;
struct verbs_rdma;

#define VERBS_RDMA_FLIGHT 64 /* requests of a queue pair whose completion we have not read */
/*
 * RDMA reads that a queue pair serves, or has under way, at a time, and bytes of each. Enough to
 * fill a wire, but no more than the network's queues hold, because read responses have no flow
 * control.
 */
#define VERBS_READS       4
#define VERBS_READ_MAX    (16u << 10)
#define VERBS_RDMA_INLINE 64         /* bytes of a write to send inline, as asked of the device */
#define VERBS_WRITE_MAX   (1u << 20) /* bytes of one write request, so that others can go between */

struct verbs_direct {
	struct ibv_qp *qp; /* NULL: none, or ended */
	uint32_t posted;   /* requests posted, modulo 2^32 */
	uint32_t arrived;  /* posted requests that have completed */
	uint32_t seen;     /* last request whose completion was read; v->kept may hold it */
	uint32_t reads;    /* reads under way */
	uint32_t read_max; /* most bytes of one read request */
	uint32_t write_max;
	uint32_t inline_max;
	struct list rdma_posted; /* struct verbs_rdma.link, in the order of posting */
	struct verbs_rdma *next; /* first operation that is not completely posted, or NULL */
	bool late;               /* software device: a write was not acknowledged in time */
	bool failed;             /* broken: the next progress call ends the queue pair */
};

/* Makes the pool of operations for the functions below. */
void verbs_rdma_pool(struct pool *pool);
/* As link_memory_ops.copy. */
int verbs_rdma(struct link *link, const struct link_copy *m);
void verbs_rdma_abort(struct link *link);
int verbs_rndv_register(struct link *link, const struct iovec *iov, size_t count,
			struct fi_rma_iov *at, void **registered);
void verbs_rndv_deregister(struct link *link, void *registered);
/* Posts more of the operations, as far as the queue pair has space, once the peer is ready. */
void verbs_rdma_on(struct verbs_link *l);
/* Handles a completion of the RDMA queue pair; with `silent` the engine is not called. */
void verbs_rdma_done(struct verbs_link *l, const struct ibv_wc *wc, bool silent);
/* Ends RDMA: the device no longer accesses our memory. Calls the engine unless `silent`. */
void verbs_rdma_end(struct verbs_link *l, bool silent);
/* Is an RDMA write under way? */
bool verbs_rdma_writes(const struct verbs_link *l);

#endif
