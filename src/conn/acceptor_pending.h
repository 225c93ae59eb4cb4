/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pending connections of an acceptor, by where they come from: an address (source_id: IPv6, a
 * network of 64 bits) or a process of this host. When there are too many, those of the origin that has most
 * are dropped first.
 */
#ifndef WEFT_CONN_ACCEPTOR_PENDING_H
#define WEFT_CONN_ACCEPTOR_PENDING_H

#include "conn/acceptor.h"

struct origin {
	struct list in_acceptor; /* acceptor->origins */
	struct list pending;     /* struct pending.in_origin; oldest first */
	unsigned int count;
	bool passed;      /* by the search under way: has nothing to drop */
	uint64_t id;      /* source_id of the address; of a process: 0 */
	pid_t pid;        /* of a process of this host, else -1 */
	struct addr addr; /* of the first connection, without its port, for the log */
};

struct pending {
	struct list in_origin;
	struct list in_held; /* acceptor->held, if `held` */
	struct origin *origin;
	int sock;
	bool joins;            /* it may send HELLO_JOIN alone */
	uint64_t since;        /* ms: when it was accepted, or first held */
	struct auth *auth;     /* it was asked to prove its key; or NULL */
	struct accepted *held; /* owned, with its socket; NULL: no hello yet */
};

/*
 * Adds socket `sock`, as yet without a hello, which the acceptor owns from then on. `pid`: of a
 * process of this host; -1: the socket comes from the network. NULL: no memory.
 */
struct pending *acceptor_pending_add(struct acceptor *a, int sock, pid_t pid, uint64_t since);
/* Forgets an entry; the caller has closed its socket or owns that now. */
void acceptor_pending_free(struct acceptor *a, struct pending *p);
/* Does the connection come from this host's listener? */
bool acceptor_pending_inside(const struct pending *p);
/* Closes a connection that has said nothing since `since`. */
void acceptor_pending_silent(struct acceptor *a, struct pending *p, uint64_t now);
/* Closes connections without a hello that are `age` ms old. True: there was one. */
bool acceptor_pending_expire(struct acceptor *a, uint64_t age);
/* Closes all. */
void acceptor_pending_close(struct acceptor *a);
/* Is there something to read, the end included? */
bool acceptor_pending_readable(int sock);
/* Is there room for one more? Drops another one if need be. */
bool acceptor_pending_room(struct acceptor *a);
/* Returns the limit: FI_WEFT_PENDING_MAX within its bounds. */
unsigned int acceptor_pending_max(void);
/* Returns how many there may be now: one while descriptors are short, else the limit. */
unsigned int acceptor_pending_places(const struct acceptor *a);

#endif
