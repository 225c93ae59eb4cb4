/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors a forked child must not keep: peers learn of a process's end by the end of its
 * sockets, so a child that lived on with copies would hide it. The child closes them right after
 * fork; its copies of the objects are dead then, the parent's are untouched.
 */
#ifndef WEFT_BASE_FORKED_H
#define WEFT_BASE_FORKED_H

/* Forks between the start of the program and this process: what was made under another count is
 * somebody else's and must be left alone. */
unsigned int forked_count(void);

/* From any thread. -FI_ENOMEM when it cannot be noted. */
int forked_guard(int fd);
/* Closes a guarded descriptor, here and now. */
void forked_close(int fd);
/* It is closed by somebody else, who is called right after this. */
void forked_release(int fd);

#endif
