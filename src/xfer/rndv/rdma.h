/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA operations that devices perform between our memory and a peer's. Domain locked. */
#ifndef WEFT_XFER_RDMA_H
#define WEFT_XFER_RDMA_H

#include <stdint.h>

struct ep;
struct worker;
struct rx;

/* The RDMA read of the receive request `id` is done. Defined in rxreq.c. */
void rxreq_rdma_done(struct worker *worker, uint32_t id);
/*
 * The receive context, or the endpoint of one-sided operations, is being closed: waits, a bounded time, until no
 * device accesses its memory. Disconnects the peers whose operations do not end.
 */
void rdma_quiesce_rx(struct worker *worker, const struct rx *rx);
void rdma_quiesce_ep(struct worker *worker, const struct ep *ep);

#endif
