/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/forked.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

struct forked_line forked_locks[FORKED_LOCKS];

/* Guarded by FORKED_DESCRIPTORS. */
static int *fds; /* -1: free */
static size_t count;

static unsigned int forks;

static void forked_before(void)
{
	for (unsigned int i = 0; i < FORKED_RENEWED; i++)
		forked_take(i);
}

static void in_parent(void)
{
	for (unsigned int i = FORKED_RENEWED; i-- > 0;)
		forked_give(i);
}

static void forked_in_child(void)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	count = 0;
	forks++;
	for (unsigned int i = 0; i < FORKED_LOCKS; i++)
		lock_init(&forked_locks[i].lock);
}

static __attribute__((constructor)) void forked_install(void)
{
	pthread_atfork(forked_before, in_parent, forked_in_child);
}

unsigned int forked_count(void)
{
	return forks;
}

int forked_guard(int fd)
{
	int *more, err = 0;
	size_t i;

	forked_take(FORKED_DESCRIPTORS);
	for (i = 0; i < count && fds[i] >= 0; i++)
		;
	if (i == count) {
		more = realloc(fds, (count + 1) * sizeof(*fds));
		if (!more) {
			err = -FI_ENOMEM;
			goto unlock;
		}
		fds = more;
		count++;
	}
	fds[i] = fd;
unlock:
	forked_give(FORKED_DESCRIPTORS);
	return err;
}

static void forked_forget(int fd)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] == fd)
			fds[i] = -1;
}

void forked_close(int fd)
{
	forked_take(FORKED_DESCRIPTORS);
	forked_forget(fd);
	close(fd);
	forked_give(FORKED_DESCRIPTORS);
}

void forked_release(int fd)
{
	forked_take(FORKED_DESCRIPTORS);
	forked_forget(fd);
	forked_give(FORKED_DESCRIPTORS);
}
