/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where strangers come in: the listeners of an address, and accepted sockets until they have said who
 * they are. Whoever owns the lobby turns its epoll instance and serializes all calls.
 */
#ifndef WEFT_XFER_LOBBY_H
#define WEFT_XFER_LOBBY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/pool.h"
#include "hw/link.h"
#include "hw/wire.h"

/* After this a stranger who says nothing is shown the door, when others wait outside. */
#define LOBBY_CROWDED_MS 200

/* What an event's data says, above the id of the object. */
enum lobby_source { LOBBY_INSIDE, LOBBY_NETWORK, LOBBY_STRANGER, LOBBY_TIMER, LOBBY_SOURCES };

struct lobby {
	int epfd;    /* the owner's */
	int inside;  /* listener for this host, or -1 */
	int network; /* listener for TCP, or -1 */
	struct list strangers;
	struct pool pool;
	unsigned int count; /* of strangers */
	bool shut;          /* no room: those outside wait */
	int timer;          /* opens it again; -1 until there is a listener */
};

/* Somebody who has said hello. */
struct guest {
	int sock;          /* watched by nobody, noted with forked_guard */
	bool inside;       /* of this host, by the listener for it */
	pid_t pid;         /* inside: as the kernel tells */
	int fds[WIRE_FDS]; /* inside: the descriptors that came with the hello, or -1 */
	struct wire_hello hello;
};

void lobby_init(struct lobby *l, int epfd);
/* Watches a listener, which is the lobby's then. 0 or a negative error. */
int lobby_listen(struct lobby *l, enum lobby_source source, int sock);
/* An event with this data came. True: *guest is somebody new, the caller's with all it has. */
bool lobby_event(struct lobby *l, uint64_t data, struct guest *guest);
/* Shows the door to those who have said nothing for too long. */
void lobby_expire(struct lobby *l);
/* Sends a guest away. */
void lobby_dismiss(struct guest *guest);
/* Closes everything; the lobby is as after lobby_init. */
void lobby_close(struct lobby *l);

#endif
