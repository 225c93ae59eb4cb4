/* SPDX-License-Identifier: BSD-2-Clause */
/* Bootstrap sockets: how they are made and connected, and what the kernel knows of the other end. */
#ifndef WEFT_XFER_CONNECT_H
#define WEFT_XFER_CONNECT_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/addr.h"

/* "\0weft/IP/PORT" or "\0weft/NAME": an abstract name, which ends with the process. */
socklen_t connect_unix_name(struct sockaddr_un *un, const struct addr *name);

/* A non-blocking socket of this family, or a negative error. */
int connect_socket(int family);
/*
 * `err` of the steps that set the socket up: 0 notes it with forked_guard and returns it; else closes it and returns
 * the error.
 */
int connect_keep(int sock, int err);
void connect_set(int sock, int level, int option, int value);

/*
 * A socket connected to the process of our user on this host that listens by that name; noted with forked_guard.
 * -FI_ECONNREFUSED: nobody listens, -FI_EAGAIN: its backlog is full, -FI_EACCES: it is another user's.
 */
int connect_inside(const struct addr *name);
/*
 * A socket that connects to an IP address: it becomes writable when the attempt has ended, and connect_result tells
 * how. Noted with forked_guard. Or a negative error.
 */
int connect_network(const struct addr *name);
/* 0: connected; -FI_EAGAIN: not yet; else the error of the attempt. */
int connect_result(int sock);

/* Process id of the peer; -1: it is of another user (logged), or unknown. */
pid_t connect_pid(int sock);
/* For the hellos: the socket is readable once a whole one is there; TCP keepalive finds dead peers. */
void connect_tune(int sock);
/*
 * The hellos are exchanged: any byte makes the socket readable, a slow reader no longer ends the connection, and
 * loopback connections use the cheapest congestion control.
 */
void connect_set_linked(int sock);
/* The address of a TCP socket's other end. False: there is none. */
bool connect_remote(int sock, struct addr *addr);

#endif
