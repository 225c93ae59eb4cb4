/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closes descriptors that other processes have passed, and sockets that hold such descriptors in unread messages. The last
 * close of a file may wait: of a socket as long as its SO_LINGER says, in a file system of a process as long as that likes.
 * Here threads close that nobody waits for.
 */
#ifndef WEFT_BASE_CLOSER_H
#define WEFT_BASE_CLOSER_H

#include <stdbool.h>

/* Closes `fd` soon; the caller has it no more. Never waits. */
void closer_close(int fd);

/* Are so many to be closed that nobody should let in more? */
bool closer_full(void);

#endif
