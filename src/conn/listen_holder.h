/* SPDX-License-Identifier: BSD-2-Clause */
/* Who holds a name that an endpoint wants: for the log. */
#ifndef WEFT_CONN_LISTEN_HOLDER_H
#define WEFT_CONN_LISTEN_HOLDER_H

#include <sys/socket.h>
#include <sys/un.h>

/*
 * Writes whose socket has the abstract Unix name, as far as the kernel tells: the user, and the process if the socket listens.
 * Empty: no socket has it.
 */
void listen_holder(const struct sockaddr_un *un, socklen_t len, char *text, size_t room);

#endif
