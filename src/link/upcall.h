/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way up: all that a transport calls of the engine (src/xfer). Domain locked, or by the only thread.
 */
#ifndef WEFT_LINK_UPCALL_H
#define WEFT_LINK_UPCALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct addr;
struct dgram;
struct dgram_ops;
struct domain;
struct offload;
struct packet;
struct recv;
struct worker;

/* ---- The worker that opened the transport, from any of its functions ------------------------------- */

struct domain *worker_domain(const struct worker *worker);
/* Its address, which `open` may complete. */
struct addr *worker_address(struct worker *worker);
/* Do its peers tell it of accesses to its memory, as counters count them? */
bool worker_counts(const struct worker *worker);
/* Has somebody armed its descriptor and not looked at the sockets since? */
bool worker_armed(const struct worker *worker);
/* No other transport of the worker and no other worker of its domain waits for a progress call. */
bool worker_alone(const struct worker *worker, const void *state);
/* The state of the transport of `state` in another worker of the domain, one that stays open; NULL: there is none. */
void *worker_successor(const struct worker *worker, const void *state);

/* ---- Links: src/xfer/msg/rx_deliver.c, rxreq.c, move.c, rma_rdma.c, conn.c --------------------------------- */

/*
 * Packets that come, from a progress call. `src` names the peer: its number in our pool of peers, as our
 * hello told it, or as link_peer.id told a transport that takes sockets.
 */
/* A packet that is all here. */
void rx_deliver(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * A packet whose payload (p->len bytes; p->payload is not looked at) has yet to come: where to? An
 * id for the two calls below, when its bytes have a place of their own already; 0: collect it, then
 * rx_deliver.
 */
uint32_t rx_placement_begin(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * The places for its bytes from `offset` on, at most `max` segments: how many of them were filled in. 0:
 * the rest is not wanted, throw it away. The places are good until the transport calls up again.
 */
size_t rx_placement_iov(struct worker *worker, uint32_t id, size_t offset, struct iovec *iov,
			size_t max);
/* All of the payload has come. */
void rx_placement_end(struct worker *worker, uint32_t id);
/* The RDMA operation of this id is done. */
void rx_rdma_done(struct worker *worker, uint64_t id);
/* No RDMA operation of this peer's link that was begun and not told of will be done, nor another one begun. */
void rx_rdma_failed(struct worker *worker, uint32_t src);
/*
 * The connection of a transport that takes sockets has ended, or one whose peer goes too far (peer_over_budget)
 * is to: `err` is positive. The link is closed before it returns.
 */
void rx_ended(struct worker *worker, uint32_t src, int err);

/* ---- Datagrams: src/xfer/dgram/dgram_rx.c, dgram_tx.c ------------------------------------------------------ */

void dgram_init(struct dgram *d, struct worker *worker, const struct dgram_ops *ops);
/* The groups are left, the batch is dropped. */
void dgram_fini(struct dgram *d);
/* Is anybody waiting for a datagram? */
bool dgram_wanted(const struct dgram *d);
/* Must a datagram's sender be known? */
bool dgram_wants_source(const struct dgram *d);
/*
 * The receives that the next datagrams go to, in that order, at most `max`: how many. One that takes
 * several messages is the last. They stay posted; each is good until dgram_came is called for it.
 */
unsigned int dgram_receives(struct dgram *d, struct recv *list[], unsigned int max);
/*
 * The first of them holds what of a datagram of `len` bytes fits. `from` may be NULL when its sender need
 * not be known.
 */
void dgram_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from);

/* No more datagrams will come: all posted receives end with `err`, which is positive; dgram_wanted. */
void dgram_fail(struct dgram *d, int err);

/* Sends the batch, as far as there is room; true when anything was sent. */
bool dgram_flush(struct dgram *d);

/* ---- Connected endpoints of a device: src/xfer/conn/cm.c ------------------------------------------------- */

/* The device performs the operations of the worker's endpoint from now on; NULL: no longer. */
void offload_set(struct worker *worker, struct offload *n);
/* From the transport's progress: see struct worker_cm. */
void offload_connected(struct offload *n, const void *data, size_t len);
/* `err` is positive. */
void offload_ended(struct offload *n, int err, const void *data, size_t len);

#endif
