/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and connecting bootstrap sockets, and what the kernel knows of the other end. */
#ifndef WEFT_CONN_CONNECT_H
#define WEFT_CONN_CONNECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/addr.h"

/*
 * Fills in the abstract Unix name of an endpoint, "\0weft/IP/PORT" or "\0weft/NAME", and returns
 * its length. The kernel frees such a name when the process ends.
 */
socklen_t connect_unix_name(struct sockaddr_un *un, const struct addr *name);

/* Returns a non-blocking socket of this family, SOCK_SEQPACKET for AF_UNIX, or a negative error. */
int connect_socket(int family);
/*
 * May a connection take the next descriptor? The last ones of the process, 16 or a sixteenth of all, whichever is less,
 * are left to the application.
 */
bool connect_affordable(void);
/* Returns how many more descriptors the process may open: not more than that. */
size_t connect_left(void);
/* Is the socket one of those last ones? */
bool connect_is_spare(int sock);
/*
 * Ends the setup of `sock`. If `err` is 0, notes the socket with forked_guard and returns it; else
 * closes it and returns the error.
 */
int connect_keep(int sock, int err);
/*
 * Closes a socket of a connection, or a listener. On a Unix socket any process of the host may have left descriptors in messages that nobody
 * has read; closing those may take as long as their sender likes, and is left to base/closer.h.
 */
void connect_close(int sock);
void connect_set(int sock, int level, int option, int value);

/*
 * Returns a socket connected to the process on this host that listens by this name; noted with
 * forked_guard. -FI_ECONNREFUSED: no listener; -FI_EAGAIN: its backlog is full; -FI_EACCES: the
 * process is another user's; -FI_EMFILE: the descriptor is left to the application, which is logged.
 */
int connect_inside(const struct addr *name);
/*
 * Returns a socket that is connecting to an IP address, noted with forked_guard, or a negative
 * error; -FI_EMFILE as above. `source`: an address of this host to connect from if possible, or NULL. The socket becomes writable when connect() has ended; connect_result returns the outcome.
 */
int connect_network(const struct addr *name, const struct addr *source);
/* What a message can bring: with less room the kernel closes the rest, and may wait (base/closer.h). */
#define CONNECT_PASSED_MAX 253 /* descriptors: the kernel's SCM_MAX_FD */
union connect_passed {
	struct cmsghdr align;
	char buf[CMSG_SPACE(CONNECT_PASSED_MAX * sizeof(int))];
};
/* Copies the descriptors that came with a received message into `fds`. Returns their number. */
size_t connect_passed(struct msghdr *msg, int fds[CONNECT_PASSED_MAX]);
/* Receives a byte, as recv() with MSG_DONTWAIT. Descriptors that come with it are closed. */
ssize_t connect_hear(int sock, char *byte);
/* Returns for how long (ms) the TCP connection has carried nothing, either way. */
uint64_t connect_quiet_ms(int sock);
/* Has the other end closed the connection? */
bool connect_closed(int sock);
/* Returns the outcome of connect(). 0: connected; -FI_EAGAIN: under way; else its error. */
int connect_result(int sock);

/* Returns the process id of the peer; -1: another user's process (logged), or unknown. */
pid_t connect_pid(int sock);
/*
 * Sets options for the hello phase: the socket becomes readable once a whole hello has come; TCP
 * keepalive finds dead peers.
 */
void connect_tune(int sock);
/*
 * Sets options after the hellos: each byte makes the socket readable, a slow reader no longer ends
 * the connection, and loopback connections use the cheapest congestion control.
 */
void connect_set_linked(int sock);
/*
 * `on`: makes the kernel ask a TCP socket's other end for a sign of life whenever nothing has come for
 * a second; off: as connect_tune has it. The socket ends if the other end knows no such connection.
 * Each call with `on` may send a probe, and the kernel gives up after some: not to be repeated.
 */
void connect_ping(int sock, bool on);
/* Has anything come from the other end within the last `ms`? The kernel's answers count. */
bool connect_heard(int sock, uint64_t ms);
/* Fills in the address that a TCP socket is bound to. False: there is none. */
bool connect_local(int sock, struct addr *addr);
/* Fills in the address of a TCP socket's other end. False: there is none. */
bool connect_remote(int sock, struct addr *addr);

#endif
