/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: the bootstrap sockets of a worker and the hellos they carry. Within a host the socket
 * is an abstract Unix socket whose name is derived from the endpoint's address. It stays open; its
 * end tells that the peer's process has ended. Across the network it is a TCP connection; after the
 * hellos the TCP transport owns it if the link is one of tcp. Domain locked.
 */
#ifndef WEFT_XFER_CONN_H
#define WEFT_XFER_CONN_H

#include "xfer/worker.h"

/* Callbacks about the connection of a connected endpoint. Domain locked. */
struct worker_cm {
	/* The attempt succeeded. `data`: that of the accept. Not called for conn_adopt. */
	void (*connected)(struct worker *worker, const void *data, size_t len);
	/*
	 * The connection ended, or the attempt failed, with `err` (positive; FI_ESHUTDOWN after a
	 * disconnect message). `data`: that of the refusal, or NULL. Not called when the worker itself
	 * ends the connection.
	 */
	void (*ended)(struct worker *worker, int err, const void *data, size_t len);
};

/*
 * Listens on worker->conn.name; chooses a port number if the name lacks one, and another process name if
 * it is taken. 0 or a negative error.
 */
int conn_listen(struct worker *worker);
/*
 * Begins to connect an idle peer. While its listener's backlog is full, later progress calls try again, within the time
 * of an attempt. 0, or a negative error: the peer cannot be reached.
 */
int conn_start(struct peer *peer);
/*
 * Connects to the entry of the address vector, unless it is on this host or cannot be connected to: it could not connect
 * to us. An error is logged, and left to the first operation.
 */
void conn_reach_out(struct worker *worker, fi_addr_t addr);
/*
 * Reads the hello of a peer that we are connecting to. Called when a packet of the peer comes
 * first: the peer has accepted us, and sent its hello before the packet.
 */
void conn_finish(struct peer *peer);
/* Handles a packet about the connection. The peer may be freed. False: it is of an unknown kind. */
bool conn_hear(struct peer *peer, const struct packet *p);
/* Ends an attempt, or a connection, with which operations stand still (END_STUCK). The peer may be freed. */
void conn_give_up(struct peer *peer);
/* Disconnects a peer that is over its budget. */
void conn_expel(struct peer *peer);
/*
 * Counts a one-sided access with an unknown key. Too many different ones from one network address
 * end the connections that used some, and new ones are refused for a while (source.h).
 */
void conn_wrong_key(struct peer *peer, uint64_t key);
/* Polls the sockets without blocking. Returns true if there was an event. */
bool conn_poll(struct worker *worker);
/* Sends a disconnect message to each peer, disconnects and frees all peers, closes all sockets. */
void conn_close(struct worker *worker);

/* ---- Connected endpoints: a worker with one peer -------------------------------------------- */

/* Makes the worker's one peer, not connected yet. 0 or -FI_ENOMEM. */
int conn_single(struct worker *worker);
/*
 * Begins to connect to the listener at `to`. `data`, `len`: application data of the request,
 * copied. 0 or a negative error.
 */
int conn_request(struct worker *worker, const struct addr *to, const void *data, size_t len);
/*
 * Accepts connection request `conn` (HELLO_REQUEST), answering with `data`: connected on success.
 * Owns `conn` in any case. 0 or a negative error.
 */
int conn_adopt(struct worker *worker, struct accepted *conn, const void *data, size_t len);
/*
 * Sends a disconnect message and ends the connection; operations under way end with FI_ESHUTDOWN.
 */
void conn_shutdown(struct worker *worker);
/* Returns the worker's one peer. */
struct peer *conn_peer(const struct worker *worker);

#endif
