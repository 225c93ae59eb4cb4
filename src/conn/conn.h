/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: the bootstrap sockets of a station and the hellos they carry. Within a host the socket
 * is an abstract Unix socket whose name is derived from the endpoint's address. It stays open; its
 * end tells that the peer's process has ended. Across the network it is a TCP connection; after the
 * hellos the TCP transport owns it if the link is one of tcp. Domain locked.
 */
#ifndef WEFT_CONN_H
#define WEFT_CONN_H

#include "conn/station.h"

/* Callbacks about the connection of a connected endpoint. Domain locked. */
struct station_cm {
	/* The attempt succeeded. `data`: that of the accept. Not called for conn_adopt. */
	void (*connected)(struct station *station, const void *data, size_t len);
	/*
	 * The connection ended, or the attempt failed, with `err` (positive; FI_ESHUTDOWN after a disconnect message).
	 * `data`: that of the refusal, or NULL. Not called when the station itself ends the connection.
	 */
	void (*ended)(struct station *station, int err, const void *data, size_t len);
};

/*
 * Listens on station->name; chooses a port number if the name lacks one, and another process name if
 * it is taken. 0 or a negative error.
 */
int conn_listen(struct station *station);
/*
 * Begins to connect an idle peer. While its listener's backlog is full, later progress calls try again, within the time
 * of an attempt. 0, or a negative error: the peer cannot be reached.
 */
int conn_start(struct contact *peer);
/*
 * Connects to the entry of the address vector, unless it is on this host or cannot be connected to: it could not connect
 * to us. An error is logged, and left to the first operation.
 */
void conn_reach_out(struct station *station, fi_addr_t addr);
/*
 * Reads the hello of a peer that we are connecting to. Called when a packet of the peer comes
 * first: the peer has accepted us, and sent its hello before the packet.
 */
void conn_finish(struct contact *peer);
/* Handles a packet about the connection. The peer may be freed. False: it is of an unknown kind. */
bool conn_hear(struct contact *peer, const struct packet *p);
/* Ends an attempt, or a connection, with which operations stand still (END_STUCK). The peer may be freed. */
void conn_give_up(struct contact *peer);
/*
 * Ends all operations with the peer: its connection ended or the attempt failed, with `err` (positive). Calls
 * station->cm->ended, or frees a peer without an entry. `hello`: the HELLO_REJECT, or NULL.
 */
void conn_fail(struct contact *peer, int err, const struct wire_hello *hello);
/* Disconnects a peer that is over its budget. */
void conn_expel(struct contact *peer);
/*
 * Counts a one-sided access with an unknown key. Too many different ones from one network address
 * end the connections that used some, and new ones are refused for a while (source.h).
 */
void conn_wrong_key(struct contact *peer, uint64_t key);
/* What transports tell of a link: struct link_events. */
void conn_link_ready(struct opener *o, uint32_t src);
void conn_link_ended(struct opener *o, uint32_t src, int err);
void conn_rail_wanted(struct opener *o, uint32_t src, uint32_t rail, uint32_t ms);
bool conn_rail_coming(struct opener *o, uint32_t src);
/* Polls the sockets without blocking. Returns true if there was an event. */
bool conn_poll(struct station *station);
/* Sends a disconnect message to each peer, disconnects and frees all peers, closes all sockets. */
void conn_close(struct station *station);

/* ---- Connected endpoints: a station with one peer -------------------------------------------- */

/* Makes the station's one peer, not connected yet. 0 or -FI_ENOMEM. */
int conn_single(struct station *station);
/*
 * Begins to connect to the listener at `to`. `data`, `len`: application data of the request,
 * copied. 0 or a negative error.
 */
int conn_request(struct station *station, const struct addr *to, const void *data, size_t len);
/*
 * Accepts connection request `conn` (HELLO_REQUEST), answering with `data`: connected on success.
 * Owns `conn` in any case. 0 or a negative error.
 */
int conn_adopt(struct station *station, struct accepted *conn, const void *data, size_t len);
/* Sends a disconnect message and ends the connection; operations under way end with FI_ESHUTDOWN. */
void conn_shutdown(struct station *station);
/* Sleepers are not woken any more: the attempt is over. */
void conn_timer_clear(struct station *station);
/* Returns the worker's one peer. */
struct contact *conn_peer(const struct station *station);

#endif
