/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/closer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/forked.h"

#define WAITING_MAX 64 /* descriptors to be closed; with so many closer_full */
#define LEAVERS     4  /* threads that are ending at a time, some of which may hang in the kernel */
#define LOOK_US     10000 /* between two looks for the end of one */

/* Of <linux/close_range.h>: Linux 5.9, newer than our headers may be. */
#define CLOSE_RANGE   436
#define CLOSE_UNSHARE 2u

/*
 * A thread that has descriptors in a table of its own and ends with them: the kernel lets no task that ends wait for unsent
 * bytes. Whatever else may hang then hangs here.
 */
struct leaver {
	const int *fds; /* ascending */
	size_t count;
	pid_t task;
	sem_t copied, closed; /* it has its table; the process's table has lost them */
};

/* Guarded by FORKED_CLOSER. */
static int *fds; /* to be closed */
static size_t waiting, room;
static bool running;
static unsigned int forks; /* forked_count() when `running` was set */

/* Of the closing thread: the last leavers. */
static pid_t leavers[LEAVERS];

/* In this thread's own table, closes the descriptors from `from` to `to`. */
static bool closer_forget(int from, unsigned int to, unsigned int flags)
{
	return (unsigned int)from > to || !syscall(CLOSE_RANGE, from, to, flags);
}

/* Where the kernel gives no table of its own, the closing thread may wait. */
static void *closer_leave(void *arg)
{
	struct leaver *l = arg;
	int from = 0;

	l->task = (pid_t)syscall(SYS_gettid);
	if (closer_forget(l->fds[l->count - 1] + 1, ~0u, CLOSE_UNSHARE))
		for (size_t i = 0; i < l->count; from = l->fds[i++] + 1)
			if (l->fds[i] > from)
				closer_forget(from, (unsigned int)l->fds[i] - 1, 0);
	sem_post(&l->copied);
	while (sem_wait(&l->closed))
		;
	return NULL;
}

/* Starts a thread that takes no signals. 0 or an error. */
static int closer_start(void *(*closer_run)(void *arg), void *arg, pthread_t *thread)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(thread, NULL, closer_run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err;
}

static int closer_compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Closes the descriptors. Returns the leaver's id; 0: there was no thread for it. */
static pid_t close_all(int *list, size_t count)
{
	struct leaver l = {.fds = list, .count = count};
	pthread_t thread;
	bool left;

	qsort(list, count, sizeof(*list), closer_compare);
	sem_init(&l.copied, 0, 0);
	sem_init(&l.closed, 0, 0);
	left = !closer_start(closer_leave, &l, &thread);
	while (left && sem_wait(&l.copied))
		;
	for (size_t i = 0; i < count; i++)
		close(list[i]);
	sem_post(&l.closed);
	if (left)
		pthread_join(thread, NULL); /* it loses its descriptors after that */
	return l.task;
}

/* Returns where the next leaver is to be noted, once there are fewer than LEAVERS. */
static pid_t *next_leaver(void)
{
	for (;;) {
		for (size_t i = 0; i < LEAVERS; i++)
			if (!leavers[i] || syscall(SYS_tgkill, getpid(), leavers[i], 0))
				return &leavers[i];
		usleep(LOOK_US);
	}
}

/* Takes the list. Its length; 0: there is none, and the thread ends. */
static size_t closer_take(int **list)
{
	size_t count;

	forked_take(FORKED_CLOSER);
	count = waiting;
	*list = fds;
	fds = NULL;
	waiting = room = 0;
	running = count;
	forked_give(FORKED_CLOSER);
	return count;
}

static void *closer_run(void *arg)
{
	pid_t *leaver = next_leaver();
	size_t count;
	int *list;

	while ((count = closer_take(&list))) {
		*leaver = close_all(list, count);
		free(list);
		leaver = next_leaver();
	}
	return arg;
}

/* The library has to stay while a thread of its own may hang. */
static void closer_stay(void)
{
	Dl_info self;
	void *handle = dladdr((void *)(uintptr_t)closer_run, &self)
			       ? dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE)
			       : NULL;

	if (handle)
		dlclose(handle);
}

/* Starts the closing thread, if there is none. Locked. A thread that is missing now is made at the next call. */
static void start_closing(void)
{
	pthread_t thread;

	if (running && forks == forked_count())
		return;
	closer_stay();
	forks = forked_count();
	running = !closer_start(closer_run, NULL, &thread);
	if (running)
		pthread_detach(thread);
}

static bool closer_note(int fd)
{
	size_t more = room ? 2 * room : 16;
	int *grown = waiting < room ? fds : realloc(fds, more * sizeof(*fds));

	if (!grown)
		return false;
	room = waiting < room ? room : more;
	fds = grown;
	fds[waiting++] = fd;
	return true;
}

void closer_close(int fd)
{
	bool noted;

	forked_take(FORKED_CLOSER);
	noted = closer_note(fd);
	if (noted)
		start_closing();
	forked_give(FORKED_CLOSER);
	if (!noted)
		close(fd);
}

bool closer_full(void)
{
	bool full;

	forked_take(FORKED_CLOSER);
	full = waiting >= WAITING_MAX;
	if (full)
		start_closing();
	forked_give(FORKED_CLOSER);
	return full;
}
