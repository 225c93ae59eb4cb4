/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening sockets of an address. */
#ifndef WEFT_CONN_LISTEN_H
#define WEFT_CONN_LISTEN_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/addr.h"
#include "conn/acceptor.h"

/* Which listeners to open. */
struct listen_how {
	bool inside, network;
	int backlog; /* backlog for listen(), or LISTEN_LATER */
};

#define LISTEN_LATER (-1) /* bind, do not listen */

/*
 * Opens the listeners of *name in the acceptor. Chooses a port number if *name lacks one, and another "fi_shm://PID"
 * name if that is taken. *name becomes what peers use: advertise.h. 0 or a negative error, logged.
 */
int listen_open(struct acceptor *l, struct addr *name, const struct listen_how *how);

/*
 * The two halves of listen_open, for a passive endpoint.
 * listen_bind binds `socks`, indexed by enum acceptor_source and noted with forked_guard, to *name.
 * -1: no such listener. The Unix socket is bound even if how->inside is false: it reserves the
 * name.
 * listen_begin listens and gives the sockets to the acceptor; those become -1. After an error it
 * may be called again. 0 or a negative error, logged.
 */
int listen_bind(struct addr *name, const struct listen_how *how, int socks[2]);
int listen_begin(struct acceptor *l, const struct listen_how *how, int socks[2]);
/* Replaces a wildcard address by one that peers can use. 0 or a negative error. */
int listen_usable(struct addr *name);
/* Closes the sockets that the acceptor has not taken. */
void listen_drop(int socks[2]);

/*
 * Writes whose socket has the abstract Unix name, as far as the kernel tells: the user, and the process if the socket listens.
 * Empty: no socket has it.
 */
void listen_holder(const struct sockaddr_un *un, socklen_t len, char *text, size_t room);

#endif
