/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the benchmarks: two processes, each on its own core, and a socket between them. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clock.h"

#define LIMIT 60 /* maximum lifetime of a process in seconds */

static int side; /* 0 or 1 */
static int wire; /* socket to the other side, only to synchronize; 0: there is none */

static void pair_fail(const char *what)
{
	fprintf(stderr, "bench: side %d: %s\n", side, what);
	exit(EXIT_FAILURE);
}

/* Sends `len` bytes to the other side and receives as many. */
static void pair_swap(const void *mine, void *theirs, size_t len)
{
	if (send(wire, mine, len, MSG_NOSIGNAL) != (ssize_t)len ||
	    recv(wire, theirs, len, MSG_WAITALL) != (ssize_t)len)
		pair_fail("the other side is gone");
}

static inline void pair_sync(void)
{
	char word = 0;

	pair_swap(&word, &word, 1);
}

/*
 * Over a network there are many short repeats instead of few long ones: other processes disturb
 * some repeats, and the median ignores these.
 */
static bool pair_network;
#define PAIR_HOST "127.0.0.1" /* address of that network */

/* Returns the rounds per repeat: enough for the clock, few enough to end in reasonable time. */
static inline int pair_rounds(size_t size)
{
	if (pair_network)
		return size <= 4096 ? 64 : size <= 65536 ? 16 : size <= 1048576 ? 4 : 1;
	return size <= 4096 ? 20000 : size <= 65536 ? 4000 : size <= 1048576 ? 300 : 60;
}

static inline int pair_repeats(size_t size)
{
	return !pair_network ? REPEATS : size <= 65536 ? REPEATS_MAX : REPEATS_MAX / 4;
}

/* Returns the windows of messages per repeat. */
static inline int pair_windows(size_t size)
{
	return pair_network ? 1 : pair_rounds(size) / 20;
}

/* As fork(): a process that ends with this one, and after LIMIT. */
static inline pid_t pair_fork(int which)
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	alarm(LIMIT);
	setvbuf(stdout, NULL, _IOLBF, 0);
	side = which;
	return 0;
}

/* Waits for all of them. The first failure ends the others. Returns its status, or 0. */
static inline int pair_wait(pid_t *pids, int count)
{
	int status, failed = 0;

	for (pid_t pid; (pid = wait(&status)) > 0;) {
		for (int i = 0; i < count; i++)
			pids[i] = pids[i] == pid ? 0 : pids[i];
		if (!status || failed)
			continue;
		if (WIFSIGNALED(status))
			fprintf(stderr, "bench: ended by signal %d%s\n", WTERMSIG(status),
				WTERMSIG(status) == SIGALRM ? ", out of time" : "");
		failed = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
		for (int i = 0; i < count; i++)
			if (pids[i] > 0)
				kill(pids[i], SIGKILL);
	}
	return failed;
}

static pid_t pair_start(int which, const int wires[2], void (*run)(void))
{
	pid_t pid = pair_fork(which);
	cpu_set_t cpus;

	if (pid)
		return pid;
	wire = wires[which];
	close(wires[!which]);
	CPU_ZERO(&cpus);
	CPU_SET(which, &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		pair_fail("there are no two cores here");
	run();
	exit(EXIT_SUCCESS);
}

/* Runs `run` in two processes. Returns the status of the first that failed, or 0. */
static inline int pair_run(void (*run)(void))
{
	int wires[2];
	pid_t pids[2];

	fflush(stdout);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, wires))
		return EXIT_FAILURE;
	for (int i = 0; i < 2; i++)
		pids[i] = pair_start(i, wires, run);
	close(wires[0]);
	close(wires[1]);
	return pair_wait(pids, 2);
}

#endif /* BENCH_PAIR_H */
