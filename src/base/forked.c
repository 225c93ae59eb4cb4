/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/forked.h"

#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int *fds; /* -1: free */
static size_t count;

static unsigned int forks;

static void before(void)
{
	pthread_mutex_lock(&mutex);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	count = 0;
	forks++;
	pthread_mutex_unlock(&mutex);
}

static void install(void)
{
	pthread_atfork(before, in_parent, in_child);
}

unsigned int forked_count(void)
{
	pthread_once(&once, install);
	return forks;
}

int forked_guard(int fd)
{
	int *more, err = 0;
	size_t i;

	pthread_once(&once, install);
	pthread_mutex_lock(&mutex);
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
	pthread_mutex_unlock(&mutex);
	return err;
}

static void forget(int fd)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] == fd)
			fds[i] = -1;
}

void forked_close(int fd)
{
	pthread_mutex_lock(&mutex);
	forget(fd);
	close(fd);
	pthread_mutex_unlock(&mutex);
}

void forked_release(int fd)
{
	pthread_mutex_lock(&mutex);
	forget(fd);
	pthread_mutex_unlock(&mutex);
}
