/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes without packets: RDMA reads and writes, on a queue pair of their own beside that of a link's
 * packets. So it ends alone when a peer's memory is not what somebody thought, and the engine goes on by
 * packets; the other end is told by VERBS_PLAIN in their heads.
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
 * RDMA reads we serve, or have under way, at a time, and bytes of each: enough to fill a wire, and not more
 * than the queues on the way hold, since nothing slows an answer down.
 */
#define VERBS_READS       4
#define VERBS_READ_MAX    (16u << 10)
#define VERBS_RDMA_INLINE 64         /* bytes of a write that the device is asked to take along */
#define VERBS_WRITE_MAX   (1u << 20) /* bytes of a write: others go between */

struct verbs_direct {
	struct ibv_qp *qp; /* NULL: there is none, or not any more */
	uint32_t posted;   /* requests, modulo 2^32 */
	uint32_t arrived;  /* of those, known to be over */
	uint32_t seen;  /* of those, read from the queue, perhaps kept for the next progress call */
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
/* Posts what there is room for, if the peer listens. */
void verbs_rdma_on(struct verbs_link *l);
/* A completion on that queue pair; with `silent` the engine hears nothing. */
void verbs_rdma_done(struct verbs_link *l, const struct ibv_wc *wc, bool silent);
/* It has come to an end: the device leaves our memory alone, and the engine is told unless `silent`. */
void verbs_rdma_end(struct verbs_link *l, bool silent);
/* Is a write under way? */
bool verbs_rdma_writes(const struct verbs_link *l);

#endif
