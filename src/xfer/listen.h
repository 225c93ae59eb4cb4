/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket where a port is found, by its name. */
#ifndef WEFT_XFER_LISTEN_H
#define WEFT_XFER_LISTEN_H

#include <sys/socket.h>
#include <sys/un.h>

#include "xfer/port.h"

/* "\0weft/ip/PORT" or "\0weft/NAME": gone with the process, never in a file system. */
socklen_t listen_name(struct sockaddr_un *un, const struct addr *key);

/*
 * Opens port->listen. A name without a port number, or that is taken, is completed; port->key is
 * set. 0 or a negative error, logged.
 */
int listen_open(struct port *port);

#endif
