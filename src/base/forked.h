/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that a forked child must not keep: peers detect a process's death by the end of its
 * sockets, so copies in a living child would hide it. The child closes them right after fork. Its
 * copies of the library's objects are then unusable; the parent's are not affected.
 */
#ifndef WEFT_BASE_FORKED_H
#define WEFT_BASE_FORKED_H

/*
 * Returns the number of forks between the first process of the program and this one. An object
 * created under another count belongs to another process: do not touch it.
 */
unsigned int forked_count(void);

/* Notes a descriptor for closing in a child. From any thread. Returns 0 or -FI_ENOMEM. */
int forked_guard(int fd);
/* Closes a guarded descriptor in this process. */
void forked_close(int fd);
/* Removes the note: the caller closes the descriptor right after this. */
void forked_release(int fd);

#endif
