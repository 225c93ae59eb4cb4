/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hears when memory of this process is unmapped, moved or discarded, by whatever means: a userfaultfd is
 * told by the kernel, and the thread that did it waits in the kernel until the watch has heard. No access is ever
 * held up. A thread listens; it holds the lock while it does, so nobody who holds the lock may
 * free or unmap memory, wait for one who may, or take a lock under which somebody does.
 */
#ifndef WEFT_BASE_WATCH_H
#define WEFT_BASE_WATCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct watch {
	int fd;   /* the userfaultfd */
	int stop; /* readable: the thread ends, and closes fd */
	pthread_t thread;
	pthread_mutex_t *lock;
	/*
	 * What was behind these addresses is not, or soon not any more. Locked; the thread that did it may go on a
	 * moment before, but nobody gets the lock in between.
	 */
	void (*changed)(void *arg, uintptr_t from, uintptr_t to);
	void *arg;
};

/* `lock`, `changed` and `arg` are set. 0 or a negative error, -FI_EPERM if the kernel's settings forbid it. */
int watch_open(struct watch *w);
void watch_close(struct watch *w);
/* The pages with these bytes are watched from now on. False: they cannot be. */
bool watch_arm(const struct watch *w, uintptr_t from, uintptr_t to);
/* Not any more. */
void watch_disarm(const struct watch *w, uintptr_t from, uintptr_t to);
/*
 * Locked. Has everything that was done to watched memory been told? While not, there may be something else at an
 * address already.
 */
bool watch_quiet(const struct watch *w);

/* The first byte of a page, and that behind one. */
uintptr_t watch_floor(uintptr_t at);
uintptr_t watch_ceil(uintptr_t at);

#endif
