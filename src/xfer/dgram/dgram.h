/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagram endpoints: the engine's half of link/dgram.h. The socket buffer of the kernel, or the device's queue, holds
 * unexpected messages: it is read only while receives are posted, straight into them; udp reads a stream ahead of them.
 * A send is complete when the kernel or the device has the datagram. Domain locked throughout.
 */
#ifndef WEFT_XFER_DGRAM_H
#define WEFT_XFER_DGRAM_H

#include "core/ep.h"
#include "link/dgram.h"
#include "xfer/worker.h"

struct entry_tables;
struct xfer;

extern const struct dgram_events dgram_events;

/* Fills in what the transport's `open` leaves to the engine. */
void dgram_init(struct dgram *d, struct opener *opener);
/* Leaves the groups and drops the batch. */
void dgram_fini(struct dgram *d);
/* Sends the batch as far as the kernel accepts it. Returns true if something was sent. */
bool dgram_flush(struct dgram *d);

/*
 * Detaches the sends of an endpoint that is being closed, see xfer_forget. Sends the batch once;
 * drops what the kernel does not take.
 */
void dgram_forget(struct dgram *d, struct ep *ep, struct ep *successor);

/* Sends a datagram, posts a receive. 0, -FI_EAGAIN or another negative error. */
int dgram_send(struct ep *ep, const struct xfer *x);
/*
 * Refuses a send call with `err`, which is returned. Sends the batch that the call was to join,
 * unless FI_MORE says that others follow.
 */
int dgram_refuse(struct ep *ep, uint64_t flags, int err);
int dgram_recv(struct ep *ep, const struct recv_args *args);

/* Returns the multicast group of a fi_addr_t, or NULL. */
struct dgram_group *dgram_group_find(struct dgram *d, fi_addr_t addr);

extern const struct entry_tables dgram_st; /* no lock */
extern const struct entry_tables dgram_mt; /* the domain's lock */

#endif
