/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets processes of one user find a memfd by name.
 *
 * A process publishes a descriptor by binding a socket to the name "weft-av/UID/HASH/PID/FD" in the
 * abstract namespace. Nothing is ever sent over the socket: other processes read the name in the
 * kernel's list of sockets and open /proc/PID/fd/FD. So no process has to answer, nothing outlives
 * the process and nothing is left in a file system. The reach is that of the network namespace and
 * of /proc.
 */
#ifndef WEFT_CORE_AV_NAME_H
#define WEFT_CORE_AV_NAME_H

/*
 * Excludes other processes that publish the name, until forked_close closes *door. Waits at most a
 * second for them. 0, -FI_EADDRINUSE or another error.
 */
int av_name_enter(const char *name, int *door);

/*
 * Lets other processes find `fd` by the name, until forked_close closes *place. 0 or a negative
 * error.
 */
int av_name_publish(const char *name, int fd, int *place);

/*
 * Opens the published descriptors of the name with `flags` of open(2) and passes each to `take`,
 * which owns the descriptor and returns -FI_ENOSYS if it is not the right one. Returns the first
 * other result of `take`; -FI_ENOENT: the name is not published; -FI_ENOSYS: no descriptor could be
 * opened or was right.
 */
int av_name_find(const char *name, int flags, int (*take)(void *arg, int fd), void *arg);

#endif
