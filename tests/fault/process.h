/* SPDX-License-Identifier: BSD-2-Clause */
/* Child processes with a time limit, messages between them, and their descriptors and memory. */
#ifndef FAULT_PROCESS_H
#define FAULT_PROCESS_H

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef LIMIT
#define LIMIT 55 /* seconds a process may live */
#endif

static const char *who = "main"; /* name of this process in error texts */

static inline __attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s (%d): ", who, (int)getpid());
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

static inline uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* ---- Processes: each is killed when its parent ends, and by its alarm. ---- */

static inline pid_t start(const char *name, void (*run)(void *arg), void *arg)
{
	pid_t parent = getpid(), pid;

	fflush(NULL);
	pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent && getppid() != 0)
		_exit(EXIT_FAILURE);
	alarm(LIMIT);
	who = name;
	run(arg);
	exit(EXIT_SUCCESS);
}

static inline void finish(pid_t pid, const char *name)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("%s ended with status %#x", name, (unsigned int)status);
}

static inline void slay(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid: %s", strerror(errno));
	if (!WIFSIGNALED(status))
		fail("process %d ended by itself with status %#x", (int)pid, (unsigned int)status);
}

/* Makes the two ends of a control socket between processes; message boundaries are kept. */
static inline void wire(int ends[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		fail("socketpair: %s", strerror(errno));
}

static inline void tell(int end, const void *word, size_t len)
{
	if (send(end, word, len, MSG_NOSIGNAL) != (ssize_t)len)
		fail("the other side is gone");
}

static inline void hear(int end, void *word, size_t len)
{
	if (recv(end, word, len, 0) != (ssize_t)len)
		fail("the other side is gone");
}

/* Set by `nudge`, a signal handler. */
static volatile sig_atomic_t nudged;

static inline void nudge(int sig)
{
	(void)sig;
	nudged = 1;
}

/* ---- Descriptors and memory of a process ---- */

static inline int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	if (!dir)
		fail("%s: %s", path, strerror(errno));
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static inline int count_fds(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	return count_entries(path);
}

/* Returns the value (kB) of the line `what` of /proc/PID/status. */
static inline long figure_of(pid_t pid, const char *what)
{
	char path[64], line[256];
	size_t len = strlen(what);
	long kb = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	while (file && kb < 0 && fgets(line, sizeof(line), file))
		if (!strncmp(line, what, len) && line[len] == ':')
			kb = atol(line + len + 1);
	if (file)
		fclose(file);
	if (kb < 0)
		fail("no %s of process %d", what, (int)pid);
	return kb;
}

/* Return the resident memory of a process and its peak, in kB. */
static inline long memory_of(pid_t pid)
{
	return figure_of(pid, "VmRSS");
}

static inline long peak_of(pid_t pid)
{
	return figure_of(pid, "VmHWM");
}

/* Lets this process have so many descriptors; skips the test where it may not. */
static inline void allow_files(rlim_t want)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		fail("getrlimit: %s", strerror(errno));
	if (l.rlim_max < want) {
		printf("no more than %llu descriptors here\n", (unsigned long long)l.rlim_max);
		exit(77);
	}
	l.rlim_cur = want;
	if (setrlimit(RLIMIT_NOFILE, &l))
		fail("setrlimit: %s", strerror(errno));
}

#endif
