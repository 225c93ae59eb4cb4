/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening sockets of an address. */
#ifndef WEFT_XFER_LISTEN_H
#define WEFT_XFER_LISTEN_H

#include "base/addr.h"
#include "xfer/conn/acceptor.h"

/* Which listeners to open. */
struct listen_how {
	bool inside, network;
	int backlog; /* or LISTEN_LATER */
};

#define LISTEN_LATER (-1) /* bind only */

/*
 * Opens the listeners of *name in the acceptor. A name without a port number, or "fi_shm://PID" that is
 * taken, is completed. 0 or a negative error, logged.
 */
int listen_open(struct acceptor *l, struct addr *name, const struct listen_how *how);

/*
 * Its two halves for who listens later: sockets bound to *name, noted with forked_guard, by enum
 * acceptor_source, -1 where there is none, one that keeps the name where nobody is to come in by it; and to
 * listen with them: those that are the acceptor's then are -1, and the call may be repeated when it fails.
 * 0 or a negative error, logged.
 */
int listen_bind(struct addr *name, const struct listen_how *how, int socks[2]);
int listen_begin(struct acceptor *l, const struct listen_how *how, int socks[2]);
/* Closes what is left of them. */
void listen_drop(int socks[2]);

#endif
