/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS_MAX 4096 /* of one process; with more, nothing is known */

struct thread {
	pid_t id;
	unsigned long ticks; /* of its own code when noted */
	bool elsewhere;
};

struct threads {
	pid_t process;
	unsigned int count;
	struct thread thread[];
};

/* Reads /proc/PROCESS/task/ID/NAME as a string. Returns 0 or a negative errno. */
static int threads_read_file(pid_t process, pid_t id, const char *name, char *text, size_t room)
{
	char path[96];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)process, (int)id, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = read(fd, text, room - 1);
	text[len > 0 ? len : 0] = '\0';
	close(fd);
	return len > 0 ? 0 : -ESRCH;
}

/* Reads state and user time. 0; -ENOENT, -ESRCH: the thread has ended; or another error. */
static int read_stat(pid_t process, pid_t id, char *state, unsigned long *ticks)
{
	char text[1024], *at;
	int err = threads_read_file(process, id, "stat", text, sizeof(text));

	if (err)
		return err;
	at = strrchr(text, ')'); /* the end of the name, which may hold anything */
	if (!at ||
	    sscanf(at + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu", state, ticks) != 2)
		return -EINVAL;
	return 0;
}

static bool threads_note(struct threads *t, pid_t id)
{
	struct thread *at = &t->thread[t->count];
	char state;

	*at = (struct thread){.id = id};
	if (t->count == THREADS_MAX)
		return false;
	/* A thread that ends now is found to have ended later. */
	read_stat(t->process, id, &state, &at->ticks);
	t->count++;
	return true;
}

struct threads *threads_begin(pid_t pid)
{
	struct threads *t = calloc(1, sizeof(*t) + (THREADS_MAX + 1) * sizeof(t->thread[0]));
	struct dirent *entry;
	bool all = true;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = t && pid > 0 ? opendir(path) : NULL;
	if (!dir) {
		free(t);
		return NULL;
	}
	t->process = pid;
	while (all && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			all = threads_note(t, (pid_t)atoi(entry->d_name));
	closedir(dir);
	if (all && t->count)
		return t;
	free(t);
	return NULL;
}

/* Does the thread sleep in a system call that copies no memory of other processes? */
static bool threads_sleeps(pid_t process, pid_t id)
{
	char text[256];
	long call;

	return !threads_read_file(process, id, "syscall", text, sizeof(text)) &&
	       sscanf(text, "%ld", &call) == 1 && call >= 0 && call != SYS_process_vm_readv &&
	       call != SYS_process_vm_writev;
}

static bool threads_is_elsewhere(pid_t process, const struct thread *at)
{
	unsigned long ticks, run = THREADS_RUN_MS * (unsigned long)sysconf(_SC_CLK_TCK) / 1000;
	int err;
	char state;

	err = read_stat(process, at->id, &state, &ticks);
	if (err)
		return err == -ENOENT || err == -ESRCH;
	if (ticks - at->ticks >= run || state == 'Z' || state == 'X')
		return true;
	return state == 'S' && threads_sleeps(process, at->id);
}

bool threads_elsewhere(struct threads *t)
{
	bool all = true;

	for (unsigned int i = 0; i < t->count; i++) {
		struct thread *at = &t->thread[i];

		at->elsewhere = at->elsewhere || threads_is_elsewhere(t->process, at);
		all &= at->elsewhere;
	}
	return all;
}

void threads_end(struct threads *t)
{
	free(t);
}
