/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening side of connection setup: the listeners of an address, and the sockets accepted from them until their
 * hello has come. The owner polls the acceptor's epoll instance and serializes all calls.
 */
#ifndef WEFT_XFER_ACCEPTOR_H
#define WEFT_XFER_ACCEPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/pool.h"
#include "link/link.h"
#include "link/wire.h"

/* A connection without a hello is closed after this when others wait in a listener's backlog. */
#define ACCEPTOR_FULL_MS 200

/* What an event's data says, above the id of the object. */
enum acceptor_source {
	ACCEPTOR_INSIDE,
	ACCEPTOR_NETWORK,
	ACCEPTOR_PENDING,
	ACCEPTOR_TIMER,
	ACCEPTOR_SOURCES
};

struct acceptor {
	int epfd;            /* the owner's */
	int inside;          /* listener for this host, or -1 */
	int network;         /* listener for TCP, or -1 */
	struct list pending; /* struct pending: accepted, no hello yet; the oldest first */
	struct pool pool;
	unsigned int count; /* of `pending` */
	bool paused; /* the table is full or no descriptor is free: the listeners are not watched */
	int timer;   /* ends the pause; -1 until there is a listener */
};

/* A connection whose hello has come. */
struct accepted {
	int sock;          /* in no epoll instance; noted with forked_guard */
	bool inside;       /* from this host, accepted by the listener for it */
	pid_t pid;         /* inside: of the peer, from the kernel */
	int fds[WIRE_FDS]; /* inside: descriptors that came with the hello, or -1 */
	struct wire_hello hello;
};

void acceptor_init(struct acceptor *a, int epfd);
/* Adds a listener, which the acceptor owns and closes from then on. 0 or a negative error. */
int acceptor_listen(struct acceptor *a, enum acceptor_source source, int sock);
/* Handles an event with this data. True: *conn is a new connection, which the caller owns. */
bool acceptor_event(struct acceptor *a, uint64_t data, struct accepted *conn);
/* Closes connections whose hello is overdue. */
void acceptor_expire(struct acceptor *a);
/* Closes a connection and the descriptors that came with its hello. */
void acceptor_dismiss(struct accepted *conn);
/* Closes everything; the acceptor is then as after acceptor_init. */
void acceptor_close(struct acceptor *a);

#endif
