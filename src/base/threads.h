/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The threads of another process of this host, as /proc shows them. Tells whether a thread may still
 * be in the middle of something short: a piece of code that makes no system call but one.
 */
#ifndef WEFT_BASE_THREADS_H
#define WEFT_BASE_THREADS_H

#include <stdbool.h>
#include <sys/types.h>

struct threads;

/* Notes the threads of the process. NULL: they cannot be seen, or there is no memory. */
struct threads *threads_begin(pid_t pid);
/*
 * Looks at the threads. True: since threads_begin each has ended, slept in a system call other than
 * process_vm_readv and process_vm_writev, or run THREADS_RUN_MS of its own code; so none was in the
 * middle of a direct access all the time.
 */
bool threads_elsewhere(struct threads *t);
void threads_end(struct threads *t);

#define THREADS_RUN_MS 200

#endif
