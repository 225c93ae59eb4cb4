/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA operations that devices perform between our memory and a peer's. Domain locked. */
#ifndef WEFT_XFER_RDMA_H
#define WEFT_XFER_RDMA_H

struct ep;
struct worker;
struct rx;

/*
 * Wait, a bounded time, until no device accesses the memory of a receive context, or of an
 * endpoint's one-sided operations, that is being closed. Disconnect the peers whose operations do
 * not end.
 */
void rdma_quiesce_rx(struct worker *worker, const struct rx *rx);
void rdma_quiesce_ep(struct worker *worker, const struct ep *ep);

#endif
