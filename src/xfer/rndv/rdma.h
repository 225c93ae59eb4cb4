/* SPDX-License-Identifier: BSD-2-Clause */
/* What devices transfer between our memory and a peer's by themselves. Domain locked. */
#ifndef WEFT_XFER_RDMA_H
#define WEFT_XFER_RDMA_H

#include <stdint.h>

struct ep;
struct worker;
struct rx;

/* rxreq.c: the message of this id is here. */
void rxreq_rdma_done(struct worker *worker, uint32_t id);
/*
 * The receive context, or the endpoint of one-sided operations, is being closed: waits, a bounded time,
 * until no device is at memory of its. Peers with whom that does not come to an end are lost.
 */
void rdma_quiesce_rx(struct worker *worker, const struct rx *rx);
void rdma_quiesce_ep(struct worker *worker, const struct ep *ep);

#endif
