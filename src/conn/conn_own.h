/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions shared by the files of conn/. Domain locked. */
#ifndef WEFT_CONN_OWN_H
#define WEFT_CONN_OWN_H

#include "conn/attempt.h"
#include "conn/conn.h"
#include "conn/conn_rows.h"
#include "conn/hello.h"

/* conn_open.c */
/* Calls epoll_ctl for the peer's bootstrap socket; conn_watch adds it. 0 or a negative error. */
int conn_control(struct station *station, int op, struct contact *peer, uint32_t events);
int conn_watch(struct contact *peer, uint32_t events);
/* Sends HELLO_CONNECT or HELLO_REQUEST on the bootstrap socket. 0 or a negative error. */
int conn_say_hello(struct contact *peer);
/* Returns the positive error of an attempt that has come to nothing by its deadline. */
int conn_overdue(const struct contact *peer);
/* Begins an attempt, or connects to ourselves. 0 or a negative error, after which there is no attempt. */
int conn_begin(struct contact *peer, const struct conn_with *with);
/* Sees to it that a sleeping waiter goes on with an attempt that has no socket. */
void conn_wait(struct contact *peer);
/* Connects again within the attempt. If that fails, a peer without an address vector entry may be freed. */
void conn_again(struct contact *peer);
#define PAUSES_MAX 6 /* so often a pause is twice the last one; the first is 1 ms */
/*
 * The acceptor has no place for us now: ends the attempt's socket; conn_again retries after a pause that grows with each
 * time, until the deadline of the attempt. False: that has passed.
 */
bool conn_later(struct contact *peer);
/*
 * As conn_start, for an attempt that no operation asks for. `until` (ms): a third endpoint does, and the attempt ends then
 * if no entry names the peer; 0: no third one does.
 */
int conn_start_in_advance(struct contact *peer, uint64_t until);
/* Ends the attempt's socket and connects anew, with a new deadline. The rest is as for conn_again. */
void conn_restart(struct contact *peer);

/* conn_handshake.c: links after the hellos */
/*
 * Prepares our end of a link between RDMA devices, if the station has a device and *pending is not one already, and fills in
 * *ours and *pending. `theirs`: from the peer's hello; NULL: our hello is the first.
 */
void conn_prepare(struct contact *peer, const struct wire_nic *theirs, struct wire_nic *ours,
		  void **pending);
/*
 * Makes the peer's link from the hello in `conn`; owns conn->fds. Fills in *ours, for the answer,
 * if the link is one between RDMA devices. 0 or a negative error.
 */
int conn_link(struct contact *peer, struct accepted *conn, struct wire_nic *ours);

/* conn_handshake.c: our hello and its answer. The peer may be freed. */
/* connect() has ended: sends the hello. */
void conn_handshake_greet(struct contact *peer);
/* The peer knows our key: sends the hello proper. */
void conn_handshake_prove(struct contact *peer);
/* Reads the answer, if it is there. */
void conn_handshake_hear(struct contact *peer);
/* The answers. The first one owns conn->fds. */
void conn_handshake_link(struct contact *peer, struct accepted *conn);
void conn_handshake_yield(struct contact *peer, const struct wire_hello *hello);
void conn_handshake_rejected(struct contact *peer, const struct wire_hello *hello);
/* The peer's attempt has not come: begins anew, a few times. */
void conn_handshake_anew(struct contact *peer);

/* conn_on_hello.c */
/* Handles an accepted connection whose hello has come. Owns `conn`. */
void conn_on_hello(struct station *station, struct accepted *conn);
/* Accepts the newcomer, if there is a place and a descriptor for it. Owns with->conn; the peer may be freed. */
void conn_on_hello_take(struct contact *peer, const struct conn_with *with);
/* Tells the newcomer that our attempt wins. Owns `conn`. */
void conn_on_hello_cross(struct contact *peer, struct accepted *conn);
/* Ends our attempt, and nothing else: the peer's connection wins. */
void conn_on_hello_abandon(struct contact *peer);
/* Answers a hello with HELLO_REJECT of `err` (positive), and says who we are unless `station` is NULL; closes the connection. */
void conn_refuse(struct station *station, struct accepted *conn, int err);

/* conn_names.c */
/* Does the connection come from another host? *from is its address there. */
bool conn_names_afar(const struct accepted *conn, struct addr *from);
/*
 * Fills in the address by which we know the sender of a hello, and the further ones that it tells. The caller frees
 * *name. 0 or a negative error.
 */
int conn_names_sender(struct station *station, const struct accepted *conn, struct addr *name,
		      struct peer_also *also);
/*
 * A peer refuses our hello as it has a connection with us. True: it is one that we know by another address; its entries
 * are those of that one now, and `peer` may be freed.
 */
bool conn_names_join(struct contact *peer, const struct wire_hello *hello);
/* Notes them for a peer that is connected now. Without memory it has its name alone. */
void conn_names_keep(struct contact *peer, const struct peer_also *also);

/* conn_on_hello.c, of peers that the address vector does not hold */
/* May the newcomer connect? Not if the address vector does not hold it, and too many such peers are there already. */
bool conn_has_place(struct contact *newcomer);

/* conn_on_hello.c: newcomers that wait */
/*
 * Keeps a newcomer in the name of `peer`, whose link is not known to be dead or which we are connecting to:
 * conn_retry_held goes on. Refuses the newcomer once the link has shown that it lives. Owns `conn`.
 */
void conn_hold(struct contact *peer, struct accepted *conn);
/* Handles connections again that conn_hold has kept. */
void conn_retry_held(struct station *station);

/*
 * Connects the peer by accepted connection `conn` and answers the hello with `fields`. Owns `conn`
 * in any case. 0 or a negative error.
 */
int conn_take(struct contact *peer, struct accepted *conn, const struct hello_fields *fields);

/* conn.c, of a connected peer */
/* Handles the disconnect message of a packet. The peer may be freed. */
void conn_hear_disconnect(struct contact *peer);
/* Makes the peer's link find out soon whether the peer is out of reach. False: it cannot. */
bool conn_ping(struct contact *peer);
/* Reads wake-ups and the disconnect message of a connected peer's socket, whose end is that of the connection. */
void conn_socket_hear(struct contact *peer);

/* conn_reach.c: networks where only one side can connect */
/* Can only the peer connect to us, as the application has said (FI_FIREWALL_ADDR)? */
bool conn_reach_firewalled(const struct contact *peer);
/*
 * Returns the address to connect to. Applications exchange addresses of a link with the number that the link has on the
 * peer's host: an endpoint bound to such an address has one link only, whose number it takes. An address that endpoints of this host advertise is first looked for within the host. Shares a
 * string.
 */
struct addr conn_reach_address(const struct contact *peer);
/*
 * Connects within the host to the listener of the peer's address, or to the one that is bound to all addresses. Returns a
 * socket, or a negative error.
 */
int conn_reach_inside(const struct contact *peer);
/* An attempt was refused: is the next one to go out of the host, as no endpoint within it advertises the address? */
bool conn_reach_outward(struct contact *peer);
/* Has connect() got no answer for so long that a hello in the peer's name counts instead, wherever it comes from? */
bool conn_reach_unanswered(const struct contact *peer);
/*
 * Is a connection that breaks with `err` (positive) to be made again at once, by an endpoint that peers cannot connect
 * to? Only if the network or a reset ended it, and it has lasted: a second, and after each such renewal twice as long.
 */
bool conn_reach_renews(struct contact *peer, int err);
/* Notes how the last attempt to connect to the relay has ended: error `err` (positive), or 0. Is that new? */
bool conn_reach_news(struct station *station, int err);
/* Logs that an attempt failed with `err` (positive): what was tried, and why each of it failed. */
void conn_reach_explain(const struct contact *peer, int err);

/* conn.c */
/*
 * Frees an idle peer without an address vector entry or undelivered messages, so that short-lived
 * clients leave nothing behind.
 */
void conn_forget(struct contact *peer);
/* Handles the end of a connection by the peer or the network, with `err` (positive): logs it, then conn_fail. */
void conn_ended(struct contact *peer, int err);
/* Ends the connection of an expelled peer; within a host, asks the peer to. */
void conn_expelled(struct contact *peer);
/* Sends a disconnect message. */
void conn_disconnect(struct contact *peer);
/* Waits, a bounded time, until peers have received what was sent. Called before sockets are closed. */
void conn_drain(struct station *station);

/* conn_single.c: the station of a connected endpoint */

/* Sets the timer that wakes a sleeping waiter soon, to retry. */
void conn_single_waits(struct station *station);
/* Sets the timer that wakes a sleeping waiter at the deadline, if connect() is under way. */
void conn_single_connecting(struct contact *peer);
/* Completes the station's name by the socket's own address. Called before the hello is sent. */
void conn_single_sent(struct contact *peer);
/* Removes the port number that a closed socket gave to the station's name: another socket may soon have it. */
void conn_single_unname(struct station *station);

/* conn_open.c */
/* Wakes sleepers in `ms` ms, instead of when the timer was set to before; 0 or less: not at all. */
void conn_timer_set(struct station *station, int ms);

#endif
