/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting: the listener of a port, the bootstrap sockets, and what is told over them. Inside a
 * host an abstract unix socket derived from the endpoint's address carries the hellos and stays
 * open; its end is how every transport learns that the peer is gone. Domain locked.
 */
#ifndef WEFT_XFER_CONN_H
#define WEFT_XFER_CONN_H

#include "xfer/port.h"

/* Bytes of conn.c's record of an accepted socket that has not said who it is. */
#define CONN_STRANGER_SIZE 32

/* Listens on port->name; a name without a port number, or that is taken, is completed. */
int conn_listen(struct port *port);
/* Begins to connect an idle peer. 0, -FI_EAGAIN (later), or why it cannot be reached. */
int conn_start(struct peer *peer);
/* A packet of a peer we are connecting to has come: it has accepted us, and its hello, which it sent
 * before, is there to be read now. */
void conn_finish(struct peer *peer);
/* Looks at the sockets once, without blocking. True: there was something. */
bool conn_poll(struct port *port);
/* Says good-bye to every peer and closes all sockets. */
void conn_close(struct port *port);

#endif
