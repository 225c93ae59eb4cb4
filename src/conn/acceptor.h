/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening side of connection setup: the listeners of an address, and accepted sockets that wait: for their hello, or
 * with a hello that cannot be answered yet. The owner polls the epoll instance and serializes all calls.
 */
#ifndef WEFT_CONN_ACCEPTOR_H
#define WEFT_CONN_ACCEPTOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/addr.h"
#include "base/list.h"
#include "base/pool.h"
#include "conn/auth.h"
#include "link/link.h"
#include "link/wire.h"

/*
 * ms: age after which a connection without a hello is closed if others wait in a listener's
 * backlog. An origin with more than its share does not get as much.
 */
#define ACCEPTOR_FULL_MS 200

/* Upper half of an epoll event's data; the lower half is the id of the object. */
enum acceptor_source {
	ACCEPTOR_INSIDE,
	ACCEPTOR_NETWORK,
	ACCEPTOR_PENDING,
	ACCEPTOR_TIMER,
	ACCEPTOR_SOURCES
};

struct acceptor {
	int epfd;   /* owned by the acceptor's owner */
	int inside; /* listening Unix socket, for this host; or -1 */
	/* Listening TCP sockets; all but the first, which is -1 if there is none, take HELLO_JOIN alone. */
	int network[WIRE_RAILS_MAX];
	unsigned int networks; /* how many */
	struct list origins;   /* struct origin: where pending connections come from */
	struct list held;      /* struct pending.in_held: those whose hello has come */
	struct pool pool, origin_pool;
	unsigned int count; /* pending connections, at most FI_WEFT_PENDING_MAX */
	unsigned int held_count;
	uint64_t dropped; /* connections closed to make room for others */
	/* The listeners are not watched: `count` is at its limit or no descriptor is free. */
	bool paused;
	/* Descriptors were short when the last connection came: it borrowed one, and is to be sent away. */
	bool lacks_files;
	struct auth_own *auth; /* what peers have to prove; NULL: nothing */
	int timer; /* timerfd, armed while `paused` or some are held; -1 until there is a listener */
};

/* An accepted connection whose hello has come, after the proof of a key if there is one. */
struct accepted {
	int sock;          /* in no epoll instance; noted with forked_guard */
	bool inside;       /* accepted by the listener for this host */
	bool joins;        /* accepted by a listener that takes HELLO_JOIN alone */
	pid_t pid;         /* inside: the peer's process id, from the kernel */
	int fds[WIRE_FDS]; /* inside: descriptors received with the hello, or -1 */
	uint64_t held_ms;  /* when acceptor_hold was first given it (coarse ms); 0: never */
	struct wire_hello hello;
	struct auth auth; /* the proof that the hello is part of; key.len 0: none was asked */
};

/* Did our table of descriptors have no room for those that its hello, of a kind with some, has brought? */
static inline bool accepted_lacks_fds(const struct accepted *conn)
{
	return conn->inside && conn->fds[0] < 0;
}

void acceptor_init(struct acceptor *a, int epfd);
/*
 * Adds listener `sock`, which the acceptor owns from then on. On error the caller keeps `sock`. 0 or a negative error.
 */
int acceptor_listen(struct acceptor *a, enum acceptor_source source, int sock);
/* Handles an epoll event with this `data`. True: *conn is an accepted connection, which the caller owns. */
bool acceptor_event(struct acceptor *a, uint64_t data, struct accepted *conn);
/*
 * Keeps a connection whose hello cannot be answered yet, as one of the pending ones: if many wait it
 * may be refused to make room. Owns `conn` if it returns true; false: no room, or no memory.
 * While some are kept the epoll instance becomes readable now and then.
 */
bool acceptor_hold(struct acceptor *a, const struct accepted *conn);
/* Takes out the connection that acceptor_hold has kept longest; the caller owns it. False: none. */
bool acceptor_unhold(struct acceptor *a, struct accepted *conn);
/* Watches the listeners again. */
void acceptor_resume(struct acceptor *a);
/* Closes connections whose hello is overdue. */
void acceptor_expire(struct acceptor *a);
/* Closes a connection and the descriptors that came with the hello. */
void acceptor_dismiss(struct accepted *conn);
/* Closes listeners, timer and pending connections; the acceptor is then as after acceptor_init. */
void acceptor_close(struct acceptor *a);

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
/* Closes connections without a hello that are `age` ms old. True: there was one. */
bool acceptor_pending_expire(struct acceptor *a, uint64_t age);
/* Closes all. */
void acceptor_pending_close(struct acceptor *a);
/* Is there something to read, the end included? */
bool acceptor_pending_readable(int sock);
/* Is there room for one more? Drops another one if need be. */
bool acceptor_pending_room(struct acceptor *a);
/* Returns how many there may be now: one while descriptors are short, else the limit. */
unsigned int acceptor_pending_places(const struct acceptor *a);

#endif
