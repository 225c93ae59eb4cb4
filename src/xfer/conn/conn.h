/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: the bootstrap sockets of a worker, and what is told over them. Inside a host an abstract
 * unix socket derived from the endpoint's address carries the hellos and stays open; its end is how the
 * transport learns that the peer is gone. Across the network it is a TCP connection, which is the TCP
 * transport's own once the hellos are exchanged. Domain locked.
 */
#ifndef WEFT_XFER_CONN_H
#define WEFT_XFER_CONN_H

#include "xfer/worker.h"

/* What becomes of a connected endpoint's connection. Domain locked. */
struct worker_cm {
	/* It stands; what the other side said on accepting is in the hello. Not called for conn_adopt. */
	void (*connected)(struct worker *worker, const struct wire_hello *hello);
	/*
	 * It has ended or never came: `err` is positive, FI_ESHUTDOWN after a disconnect message. The hello, or
	 * NULL, is what refused it (HELLO_REJECT). Not called for what the worker itself ends.
	 */
	void (*ended)(struct worker *worker, int err, const struct wire_hello *hello);
};

/* Listens on worker->name; a name without a port number, or that is taken, is completed. */
int conn_listen(struct worker *worker);
/* Begins to connect an idle peer. 0, -FI_EAGAIN (later), or why it cannot be reached. */
int conn_start(struct peer *peer);
/* The same for an idle peer that cannot be asked now, by later progress calls, within the time an attempt has. */
void conn_start_later(struct peer *peer);
/* A packet of a peer we are connecting to has come: it has accepted us, and its hello, which it sent
 * before, is there to be read now. */
void conn_finish(struct peer *peer);
/* Our half of a link between RDMA devices, if there is one, comes to nothing. */
void conn_abandon(struct peer *peer);
/* It made us keep too much: its connection ends. */
void conn_expel(struct peer *peer);
/* Looks at the sockets once, without blocking. True: there was something. */
bool conn_poll(struct worker *worker);
/* Sends a disconnect message to every peer and closes all sockets. */
void conn_close(struct worker *worker);

/* ---- Connected endpoints: a worker with one peer ------------------------------------------------- */

/* Gives the worker its one peer, not connected yet. 0 or -FI_ENOMEM. */
int conn_single(struct worker *worker);
/* Begins to connect to the listener at `to`; data: the application's. 0 or why not. */
int conn_request(struct worker *worker, const struct addr *to, const void *data, size_t len);
/* Takes an accepted connection's request (HELLO_REQUEST): connected on success. Takes the accepted connection in any case. */
int conn_adopt(struct worker *worker, struct accepted *conn, const void *data, size_t len);
/* Ends the connection in good order; operations under way end with FI_ESHUTDOWN. */
void conn_shutdown(struct worker *worker);
/* The worker's one peer. */
struct peer *conn_peer(const struct worker *worker);

#endif
