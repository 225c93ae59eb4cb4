/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a name to a file without one, a memfd, in whichever process of this user has it open.
 *
 * A process makes a descriptor known by a socket that does nothing but have a name in the abstract
 * namespace: "weft-av/UID/HASH/PID/FD". Others read it in the kernel's list of sockets and open
 * /proc/PID/fd/FD. So nobody has to answer, nothing outlives the process, and no file system ever
 * holds anything. It reaches as far as the network namespace and /proc do.
 */
#ifndef WEFT_CORE_AV_NAME_H
#define WEFT_CORE_AV_NAME_H

/*
 * Keeps all others out who want to make the name known, until *door is closed by forked_close.
 * Waits for them a second at most. 0, -FI_EADDRINUSE or another error.
 */
int av_name_enter(const char *name, int *door);

/* From here until *place is closed by forked_close others find `fd`. */
int av_name_publish(const char *name, int fd, int *place);

/*
 * Opens what processes have made known with `flags` of open(2) and gives it to `take`, which owns
 * the descriptor and says -FI_ENOSYS when it is not the right one. What take said else, -FI_ENOENT
 * when nobody knows the name, -FI_ENOSYS when nothing could be opened or was right.
 */
int av_name_find(const char *name, int flags, int (*take)(void *arg, int fd), void *arg);

#endif
