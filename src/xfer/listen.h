/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets where an address is found. */
#ifndef WEFT_XFER_LISTEN_H
#define WEFT_XFER_LISTEN_H

#include "base/addr.h"
#include "xfer/lobby.h"

/* Which of the two there are to be. */
struct listen_how {
	bool inside, network;
	int backlog;
};

/*
 * Opens the listeners of *name in the lobby. A name without a port number, or "fi_shm://PID" that is
 * taken, is completed. 0 or a negative error, logged.
 */
int listen_open(struct lobby *l, struct addr *name, const struct listen_how *how);

#endif
