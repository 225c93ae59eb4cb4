/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA reads and writes, on a queue pair of their own beside that of a link's packets. When a peer's device
 * refuses an access that queue pair ends alone, and the engine goes on by packets; VERBS_PLAIN in their headers
 * tells the other end.
 */
#ifndef WEFT_HW_VERBS_RDMA_H
#define WEFT_HW_VERBS_RDMA_H

#include "base/list.h"
#include "link/link.h"
#include "hw/verbs/dev/verbs_lib.h"

struct pool;
struct verbs_link;
struct verbs_rdma;

#define VERBS_RDMA_FLIGHT 64 /* requests of a queue pair that are not known to be over */
/*
 * RDMA reads served, or under way, at a time, and bytes of each: enough to fill a wire, but no more than the
 * queues on the way hold, because responses have no flow control.
 */
#define VERBS_READS       4
#define VERBS_READ_MAX    (16u << 10)
#define VERBS_RDMA_INLINE 64         /* bytes of a write that the device is asked to send inline */
#define VERBS_WRITE_MAX   (1u << 20) /* bytes of one write request: other operations may go between */

struct verbs_direct {
	struct ibv_qp *qp; /* NULL: none, or it has ended */
	uint32_t posted;   /* requests, modulo 2^32 */
	uint32_t arrived;  /* of those, known to be over */
	uint32_t seen;  /* of those, completion read, perhaps kept for the next progress call */
	uint32_t reads; /* under way */
	uint32_t read_max; /* bytes of one request */
	uint32_t write_max;
	uint32_t inline_max;
	struct list rdma_posted; /* struct verbs_rdma.link, in order */
	struct verbs_rdma *next; /* the first of which not all is posted, or NULL */
	bool late;               /* a write was not acknowledged in time, on a software device */
	bool failed;             /* the progress call ends it */
};

/* Of what the functions below need. */
void verbs_rdma_pool(struct pool *pool);
int verbs_rdma(struct link *link, const struct link_rdma *m);
void verbs_rdma_abort(struct link *link);
int verbs_rndv_register(struct link *link, enum proto proto, const struct iovec *iov, size_t count,
			const void *batch, struct fi_rma_iov *at, void **registered);
void verbs_rndv_deregister(struct link *link, void *registered);
/* Posts what the queue pair has space for, if the peer is ready. */
void verbs_rdma_on(struct verbs_link *l);
/* Handles a completion of that queue pair; with `silent` the engine is not called. */
void verbs_rdma_done(struct verbs_link *l, const struct ibv_wc *wc, bool silent);
/* Ends it: the device accesses our memory no more; calls the engine unless `silent`. */
void verbs_rdma_end(struct verbs_link *l, bool silent);
/* Is a write under way? */
bool verbs_rdma_writes(const struct verbs_link *l);

#endif
