/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of connecting share. */
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
/* Of an attempt that begins now. ms */
uint64_t conn_deadline(void);
/* Begins to connect to peer->name by whatever way there is; the time it has begins. 0 or a negative error. */
int conn_attempt(struct peer *peer);
/*
 * No connection could be begun yet: too many others are before us, and nobody queues by himself. The attempt is
 * under way, without a socket.
 */
void conn_wait_outside(struct peer *peer);
/* An attempt without a socket connects again, within its time, and goes on or fails: an unnamed peer may be freed. */
void conn_again(struct peer *peer);

/* conn_link.c */
/*
 * Our end of a path between RDMA devices, where there is one to be had: for the first hello, or in answer
 * to `theirs`.
 */
void conn_prepare(struct peer *peer, const struct wire_nic *theirs, struct wire_nic *ours);
/*
 * Makes the peer's link of what its hello brought; takes conn->fds. `ours` is our end of a path between
 * RDMA devices, for the answer, where the link is one. 0 or a negative error.
 */
int conn_link(struct peer *peer, struct accepted *conn, struct wire_nic *ours);

/* conn_on_hello.c */
/* Somebody has come in. Takes the conn. */
void conn_on_hello(struct worker *worker, struct accepted *conn);
/* The accepted connection is of this peer from now on, and told so. Takes the accepted connection in any case. */
int conn_take(struct peer *peer, struct accepted *conn, const struct hello_fields *words);

/* conn.c */
/* An idle peer that nobody names is freed: nothing is kept of a client that came and went. */
void conn_forget(struct peer *peer);
/* Tells a connected peer that nothing more will come. */
void conn_disconnect(struct peer *peer);
/* Waits, a bounded time, until peers have what was sent: before sockets are closed. */
void conn_drain(struct worker *worker);
/* Its connection has ended by itself. */
void conn_ended(struct peer *peer, int err);
/* It has ended, or never came, for no reason of ours; the hello is what refused it, or NULL. */
void conn_fail(struct peer *peer, int err, const struct wire_hello *hello);

/* Of a connected endpoint's worker; see conn_single.c. */

/* A listener to all addresses of this host may be meant. A socket, or a negative error. */
int conn_single_inside(const struct peer *peer);
/* A sleeping waiter wakes in a moment, to connect again. */
void conn_single_waits(struct worker *worker);
/* There is a socket, which may take its time to connect: a sleeping waiter wakes when that is over. */
void conn_single_connecting(struct peer *peer);
/* There is a socket to say hello on: it completes the worker's name. */
void conn_single_sent(struct peer *peer);
/* That socket is gone: what it gave to the name may be another's. */
void conn_single_unname(struct worker *worker);
/* The attempt is over: nobody has to wake for it. */
void conn_single_clear_timer(struct worker *worker);

#endif
