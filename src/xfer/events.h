/* SPDX-License-Identifier: BSD-2-Clause */
/* What transports tell the engine: its functions in the table of link/opener.h, which describes them. */
#ifndef WEFT_XFER_EVENTS_H
#define WEFT_XFER_EVENTS_H

#include "link/offload.h"
#include "link/opener.h"

extern const struct link_events worker_events;
extern const struct offload_events worker_offload_events;

void rx_deliver(struct opener *o, uint32_t src, const struct packet *p);
bool rx_hold(struct opener *o, uint32_t src, size_t bytes);
void rx_release(struct opener *o, uint32_t src, size_t bytes);
void *rx_payload_new(struct opener *o, uint32_t src, const struct packet *p);
void rx_payload_free(struct opener *o, uint32_t src, void *payload);
void rx_deliver_collected(struct opener *o, uint32_t src, const struct packet *p);
uint32_t rxreq_placement_begin(struct opener *o, uint32_t src, const struct packet *p);
size_t rxreq_placement_iov(struct opener *o, uint32_t id, size_t offset, struct iovec *iov,
			   size_t max);
void rxreq_placement_end(struct opener *o, uint32_t id);
void rma_copied(struct opener *o, uint64_t id, int ret);
void rdma_link_failed(struct opener *o, uint32_t src);
void rdma_rma_failed(struct opener *o, uint32_t src);
bool tx_readable(struct opener *o, uint32_t src, uint64_t at, size_t len);

#endif
