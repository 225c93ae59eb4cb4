/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: the bootstrap sockets of a worker and the hellos they carry. Inside a host the socket is an abstract
 * unix socket whose name is derived from the endpoint's address; it stays open, and its end says that the peer's
 * process has ended. Across the network it is a TCP connection, which belongs to the TCP transport once the hellos
 * are exchanged. Domain locked.
 */
#ifndef WEFT_XFER_CONN_H
#define WEFT_XFER_CONN_H

#include "xfer/worker.h"

/* What becomes of a connected endpoint's connection. Domain locked. */
struct worker_cm {
	/* Connected; the hello has what the other side said when it accepted. Not called for conn_adopt. */
	void (*connected)(struct worker *worker, const struct wire_hello *hello);
	/*
	 * The connection has ended, or the attempt failed: `err` is positive, FI_ESHUTDOWN after a disconnect
	 * message. `hello` is the HELLO_REJECT that refused it, or NULL. Not called when the worker itself ends
	 * the connection.
	 */
	void (*ended)(struct worker *worker, int err, const struct wire_hello *hello);
};

/* Listens on worker->name; completes a name that lacks a port number or is taken. */
int conn_listen(struct worker *worker);
/* Begins to connect an idle peer. 0, -FI_EAGAIN (later), or why it cannot be reached. */
int conn_start(struct peer *peer);
/*
 * Lets later progress calls begin to connect an idle peer whose listener's backlog is full, within the time of an
 * attempt.
 */
void conn_start_later(struct peer *peer);
/*
 * A packet has come from a peer that we are connecting to: it has accepted us, and its hello, sent before, can be
 * read now.
 */
void conn_finish(struct peer *peer);
/* Abandons our half of a pending link between RDMA devices, if there is one. */
void conn_abandon(struct peer *peer);
/* Disconnects a peer that is over its budget. */
void conn_expel(struct peer *peer);
/* Polls the sockets once, without blocking. True: there was an event. */
bool conn_poll(struct worker *worker);
/* Sends a disconnect message to every peer and closes all sockets. */
void conn_close(struct worker *worker);

/* ---- Connected endpoints: a worker with one peer ------------------------------------------------- */

/* Gives the worker its one peer, not connected yet. 0 or -FI_ENOMEM. */
int conn_single(struct worker *worker);
/* Begins to connect to the listener at `to`; data: the application's. 0 or why not. */
int conn_request(struct worker *worker, const struct addr *to, const void *data, size_t len);
/* Accepts a connection request (HELLO_REQUEST): connected on success. Owns the accepted connection in any case. */
int conn_adopt(struct worker *worker, struct accepted *conn, const void *data, size_t len);
/* Ends the connection in good order; operations under way end with FI_ESHUTDOWN. */
void conn_shutdown(struct worker *worker);
/* The worker's one peer. */
struct peer *conn_peer(const struct worker *worker);

#endif
