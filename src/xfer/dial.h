/* SPDX-License-Identifier: BSD-2-Clause */
/* Bootstrap sockets: made, connected, and what the kernel knows of their other end. */
#ifndef WEFT_XFER_DIAL_H
#define WEFT_XFER_DIAL_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/addr.h"

/* "\0weft/IP/PORT" or "\0weft/NAME": gone with the process, never in a file system. */
socklen_t dial_unix_name(struct sockaddr_un *un, const struct addr *name);

/* A non-blocking one of this family; or a negative error. */
int dial_socket(int family);
/* After the steps that made it what it is: 0, and it is noted with forked_guard; else it is closed. */
int dial_keep(int sock, int err);
void dial_set(int sock, int level, int option, int value);

/*
 * A connected socket to whoever listens inside this host by that name, of our own user; noted with
 * forked_guard. Negative: -FI_ECONNREFUSED nobody does, -FI_EAGAIN not now, -FI_EACCES another user's.
 */
int dial_inside(const struct addr *name);
/*
 * A socket whose connection to an IP address is under way: it becomes writable when that has ended,
 * dial_connected says how. Noted with forked_guard. Or a negative error.
 */
int dial_network(const struct addr *name);
/* 0: the connection stands; -FI_EAGAIN: not yet; or why it does not, negative. */
int dial_connected(int sock);

/* The process at the other end; -1: not our user's (logged), or unknown. */
pid_t dial_pid(int sock);
/* For the hellos: each is read when all of it is there; a peer that shows no sign of life is given up. */
void dial_tune(int sock);
/*
 * They are exchanged: from now on a peer may be slow to read, every byte counts, and what stays inside the
 * host is sent without regard for a network.
 */
void dial_over(int sock);
/* The address of a TCP socket's other end. False: there is none. */
bool dial_remote(int sock, struct addr *addr);

#endif
