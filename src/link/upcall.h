/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the engine (src/xfer) for transports. Domain locked, or only one thread. */
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
struct idle;
struct offload;
struct packet;
struct recv;
struct worker;

/* ---- The transport's worker, from any function of the transport ------------------------------ */

struct domain *worker_domain(const struct worker *worker);
/* Returns what tells whether a progress call is due, as long as the worker is open. */
struct idle *worker_idle(struct worker *worker);
/* Returns the worker's address, which the transport's `open` may complete. */
struct addr *worker_address(struct worker *worker);
/* Was the endpoint opened with the wildcard, for which worker_address has one interface's address? */
bool worker_all_addresses(const struct worker *worker);
/* Must peers notify the worker of accesses to its memory, because counters count them? */
bool worker_counts(const struct worker *worker);
/* Was the worker's descriptor armed, and its sockets not polled since? */
bool worker_armed(const struct worker *worker);
/* May a thread sleep on the worker's descriptor, so that nobody calls progress soon? */
bool worker_sleepers(const struct worker *worker);
/* Is this transport the only one of the worker, and the worker the only one of its domain? */
bool worker_alone(const struct worker *worker, const void *state);
/* Returns the transport's state in another open worker of the domain, NULL if there is none. */
void *worker_successor(const struct worker *worker, const void *state);

/* ---- Links: src/xfer/msg/rx_deliver.c, rxreq.c, rdma.c, rma_rdma.c, conn.c ------------------- */

/*
 * Received packets, from `progress`. `src` names the peer: its number in our pool of peers, which
 * our hello told the peer; for LINK_SOCKET it is link_peer.id.
 */
/* Handles a complete packet. */
void rx_deliver(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * A link is to keep so many bytes of what it has received, and cannot deliver yet. False: it must not, and the engine is
 * about to end the connection. With 0 bytes: some of what it keeps has become complete. What it keeps it releases before its
 * `close` returns.
 */
bool rx_hold(struct worker *worker, uint32_t src, size_t bytes);
void rx_release(struct worker *worker, uint32_t src, size_t bytes);
/*
 * Returns memory to collect the payload of a packet in, aligned for any type, which counts as held; p->payload is ignored. NULL:
 * there is none, or not for this peer; the receive of a message has been told, and the engine is about to end the connection.
 * The engine keeps a message that no receive waits for where it was collected.
 */
void *rx_payload_new(struct worker *worker, uint32_t src, const struct packet *p);
void rx_payload_free(struct worker *worker, uint32_t src, void *payload); /* accepts NULL */
/* As rx_deliver, of a packet whose payload was collected; its memory is the engine's from now on. */
void rx_deliver_collected(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * Handles the head of a packet whose payload (p->len bytes; p->payload is ignored) is still to
 * come. Returns an id for the next two calls if the payload may be placed directly; 0: collect it
 * for rx_deliver.
 */
uint32_t rx_placement_begin(struct worker *worker, uint32_t src, const struct packet *p);
/*
 * Fills in at most `max` segments for the payload from `offset` on. Returns their number; 0:
 * discard the rest of the payload. The segments are valid until the transport's next upcall.
 */
size_t rx_placement_iov(struct worker *worker, uint32_t id, size_t offset, struct iovec *iov,
			size_t max);
/* The payload is complete. */
void rx_placement_end(struct worker *worker, uint32_t id);
/* RDMA operation `id` is done. */
void rx_rdma_done(struct worker *worker, uint64_t id);
/*
 * RDMA has failed on this peer's link: operations not reported as done are not done, and none will
 * be posted any more.
 */
void rx_rdma_failed(struct worker *worker, uint32_t src);
/*
 * The same for operations on regions alone, which go by packets. Later ones may be posted again.
 */
void rx_rma_failed(struct worker *worker, uint32_t src);
/* The read of a message `id` is not done, and will not be. */
void rx_rdma_refused(struct worker *worker, uint64_t id);
/* A link that was `securing` takes packets now. */
void rx_ready(struct worker *worker, uint32_t src);
/*
 * The connection of a LINK_SOCKET or LINK_DEVICE has ended with `err` (positive). -FI_ENOMEM: bytes that the peer has sent are
 * lost for want of memory, and nobody knows of which packets: the queues tell. Closes the link before it returns.
 */
void rx_ended(struct worker *worker, uint32_t src, int err);
/*
 * The initiator's link lacks this rail: transport.join will bring one, if that is possible within `ms`. Called again and
 * again meanwhile.
 */
void rail_wanted(struct worker *worker, uint32_t src, uint32_t rail, uint32_t ms);
/* Has the peer been asked for a rail that it may have made already? */
bool rail_coming(const struct worker *worker, uint32_t src);

/* ---- Datagrams: src/xfer/dgram/dgram_rx.c, dgram_tx.c ---------------------------------------- */

void dgram_init(struct dgram *d, struct worker *worker, const struct dgram_ops *ops);
/* Leaves the groups and drops the batch. */
void dgram_fini(struct dgram *d);
/* Is a receive posted? */
bool dgram_wanted(const struct dgram *d);
/* Does the endpoint report the senders of datagrams? */
bool dgram_wants_source(const struct dgram *d);
/*
 * Fills in at most `max` receives for the next datagrams, in that order; a multi-receive buffer
 * comes last. Returns their number. They stay posted and valid until dgram_came is called for them.
 */
unsigned int dgram_receives(struct dgram *d, struct recv *list[], unsigned int max);
/*
 * The first of these receives holds a datagram of `len` bytes, perhaps truncated. `from` may be
 * NULL if the endpoint does not report senders.
 */
void dgram_came(struct dgram *d, struct recv *r, size_t len, const struct addr *from);

/* The first of these receives has memory that cannot be written: it ends with `err` (positive). */
void dgram_spoilt(struct dgram *d, struct recv *r, int err);

/* No more datagrams will come: ends all posted receives with `err` (positive). See dgram_wanted. */
void dgram_fail(struct dgram *d, int err);

/* Sends the batch as far as the kernel accepts it. Returns true if something was sent. */
bool dgram_flush(struct dgram *d);

/* ---- Connected endpoints of a device ---------------------------------------------------------- */

/* From now on the device performs the operations of the worker's endpoint; NULL: no longer. */
void offload_set(struct worker *worker, struct offload *n);
/* Called from the transport's progress; see struct worker_cm. */
void offload_connected(struct offload *n, const void *data, size_t len);
/* `err` is positive. */
void offload_ended(struct offload *n, int err, const void *data, size_t len);

#endif
