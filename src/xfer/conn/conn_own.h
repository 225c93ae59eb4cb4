/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of conn/. */
#ifndef WEFT_XFER_CONN_OWN_H
#define WEFT_XFER_CONN_OWN_H

#include "xfer/conn/conn.h"
#include "xfer/conn/hello.h"

/* conn_open.c */
/* As epoll_ctl for the peer's bootstrap socket. 0 or a negative error. */
int conn_control(struct worker *worker, int op, struct peer *peer, uint32_t events);
int conn_watch(struct peer *peer, uint32_t events);
/* Asks the process at the other end to be our peer. 0 or a negative error. */
int conn_say_hello(struct peer *peer);
/* Deadline (ms) of an attempt that begins now. */
uint64_t conn_deadline(void);
/*
 * Begins to connect to peer->name, inside the host or across the network; sets the deadline. 0 or a negative
 * error.
 */
int conn_attempt(struct peer *peer);
/* The listener's backlog is full. The attempt is under way, without a socket; conn_again tries anew. */
void conn_wait_outside(struct peer *peer);
/* Retries an attempt that has no socket. If it fails, a peer that no entry names may be freed. */
void conn_again(struct peer *peer);

/* conn_link.c */
/*
 * Prepares our end of a link between RDMA devices, if there is a device: for the first hello, or in answer to
 * `theirs`.
 */
void conn_prepare(struct peer *peer, const struct wire_nic *theirs, struct wire_nic *ours);
/*
 * Makes the peer's link from its hello; owns conn->fds. Fills `ours`, our end of a link between RDMA devices, for
 * the answer, if the link is one. 0 or a negative error.
 */
int conn_link(struct peer *peer, struct accepted *conn, struct wire_nic *ours);

/* conn_on_hello.c */
/* A connection was accepted. Owns `conn`. */
void conn_on_hello(struct worker *worker, struct accepted *conn);
/* Makes the accepted connection this peer's, and answers its hello. Owns the accepted connection in any case. */
int conn_take(struct peer *peer, struct accepted *conn, const struct hello_fields *fields);

/* conn.c */
/* Frees an idle peer that no entry names, so that clients that come and go leave nothing behind. */
void conn_forget(struct peer *peer);
/* Sends a connected peer a disconnect message. */
void conn_disconnect(struct peer *peer);
/* Waits, a bounded time, until peers have what was sent. Called before sockets are closed. */
void conn_drain(struct worker *worker);
/* The peer's connection has ended, not by us. */
void conn_ended(struct peer *peer, int err);
/*
 * The connection has ended or the attempt failed, not by us; `hello` is the HELLO_REJECT that refused it, or NULL.
 */
void conn_fail(struct peer *peer, int err, const struct wire_hello *hello);

/* Of a connected endpoint's worker; see conn_single.c. */

/* Tries the listener that is bound to all addresses of this host. A socket, or a negative error. */
int conn_single_inside(const struct peer *peer);
/* Sets the timer that wakes a sleeping waiter soon, to retry. */
void conn_single_waits(struct worker *worker);
/* The socket is connecting: sets the timer that wakes a sleeping waiter at the deadline. */
void conn_single_connecting(struct peer *peer);
/* The hello is about to go out: the socket's own address completes the worker's name. */
void conn_single_sent(struct peer *peer);
/* The socket is closed: the port number it gave to the worker's name may soon be another's. */
void conn_single_unname(struct worker *worker);
/* The attempt is over: clears its timer. */
void conn_single_clear_timer(struct worker *worker);

#endif
