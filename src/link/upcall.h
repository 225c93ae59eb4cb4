/* SPDX-License-Identifier: BSD-2-Clause */
/* Upcalls: all functions of the engine (src/xfer) that a transport calls. Domain locked, or by the only thread. */
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
/* Do its peers notify it of accesses to its memory, because counters count them? */
bool worker_counts(const struct worker *worker);
/* Was its descriptor armed, and the sockets not polled since? */
bool worker_armed(const struct worker *worker);
/* True: the worker has no other transport, and its domain no other worker, that waits for a progress call. */
bool worker_alone(const struct worker *worker, const void *state);
/* The state that the same transport has in another worker of the domain, one that stays open; NULL: none. */
void *worker_successor(const struct worker *worker, const void *state);

/* ---- Links: src/xfer/msg/rx_deliver.c, rxreq.c, rdma.c, rma_rdma.c, conn.c --------------------------------- */

/*
 * Received packets, from a progress call. `src` names the peer: its number in our pool of peers, which our hello
 * told it; a LINK_SOCKET has it from link_peer.id.
 */
/* A complete packet. */
void rx_deliver(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * The head of a packet whose payload (p->len bytes; p->payload is not read) has yet to come. Returns an id for the
 * two calls below if the payload can be read straight into its receive; 0: collect it, then rx_deliver.
 */
uint32_t rx_placement_begin(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * Fills in the segments for its bytes from `offset` on, at most `max`. Their number; 0: discard the rest. The
 * segments are valid until the transport's next upcall.
 */
size_t rx_placement_iov(struct worker *worker, uint32_t id, size_t offset, struct iovec *iov,
			size_t max);
/* All of the payload has come. */
void rx_placement_end(struct worker *worker, uint32_t id);
/* The RDMA operation of this id is done. */
void rx_rdma_done(struct worker *worker, uint64_t id);
/*
 * RDMA has failed: operations of this peer's link that were not reported done are not done, and no more will
 * begin.
 */
void rx_rdma_failed(struct worker *worker, uint32_t src);
/*
 * The connection of a LINK_SOCKET or LINK_DEVICE has ended: `err` is positive. The link is closed when this
 * returns.
 */
void rx_ended(struct worker *worker, uint32_t src, int err);

/* ---- Datagrams: src/xfer/dgram/dgram_rx.c, dgram_tx.c ------------------------------------------------------ */

void dgram_init(struct dgram *d, struct worker *worker, const struct dgram_ops *ops);
/* The groups are left, the batch is dropped. */
void dgram_fini(struct dgram *d);
/* Is a receive posted? */
bool dgram_wanted(const struct dgram *d);
/* Does the endpoint report the senders of datagrams? */
bool dgram_wants_source(const struct dgram *d);
/*
 * Fills in the receives for the next datagrams, in that order, at most `max`; a multi-receive buffer is the last.
 * Their number. They stay posted; each is valid until dgram_came is called for it.
 */
unsigned int dgram_receives(struct dgram *d, struct recv *list[], unsigned int max);
/*
 * The first of them holds a datagram of `len` bytes, as far as it fits. `from` may be NULL if senders are not
 * reported.
 */
void dgram_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from);

/* No more datagrams will come: all posted receives end with `err`, which is positive; dgram_wanted. */
void dgram_fail(struct dgram *d, int err);

/* Sends the batch as far as the kernel takes it. True: something was sent. */
bool dgram_flush(struct dgram *d);

/* ---- Connected endpoints of a device: src/xfer/conn/cm.c ------------------------------------------------- */

/* The device performs the operations of the worker's endpoint from now on; NULL: no longer. */
void offload_set(struct worker *worker, struct offload *n);
/* From the transport's progress: see struct worker_cm. */
void offload_connected(struct offload *n, const void *data, size_t len);
/* `err` is positive. */
void offload_ended(struct offload *n, int err, const void *data, size_t len);

#endif
