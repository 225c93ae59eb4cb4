/* SPDX-License-Identifier: BSD-2-Clause */
/* Several processes of one program and a page they share: what a job launcher is for a real program.
 * Nothing of libfabric is in here. */
#ifndef TEAM_H
#define TEAM_H

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEAM_MAX     64
#define TEAM_CARD    512 /* bytes a process may tell the others at a time */
#define TEAM_SECONDS 60  /* a process still there after that is ended, and with it all of them */

static struct team {
	int rank; /* of this process, from 0 */
	int size;
	const char *program;
	struct team_page {
		_Atomic int arrived; /* at the barrier of this turn */
		_Atomic int round;
		char card[TEAM_MAX][TEAM_CARD];
	} * page;
} team;

/* One line about this process. */
static inline void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	printf("process %d: %s\n", team.rank, line);
	fflush(stdout);
}

/* What stops this process stops the whole team. */
static inline void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static inline void fail(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	fprintf(stderr, "%s: process %d: %s\n", team.program, team.rank, line);
	exit(EXIT_FAILURE);
}

/* Waits for all; the first that fails takes the others with it. */
static inline int team_wait(pid_t *pids)
{
	int status, result = EXIT_SUCCESS;
	pid_t gone;

	while ((gone = wait(&status)) > 0) {
		bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;

		if (failed && result == EXIT_SUCCESS && WIFSIGNALED(status))
			fprintf(stderr, "%s: a process was ended by signal %d\n", team.program,
				WTERMSIG(status));
		for (int i = 0; i < team.size; i++) {
			if (pids[i] == gone)
				pids[i] = 0;
			else if (failed && pids[i] > 0)
				kill(pids[i], SIGKILL);
		}
		if (failed)
			result = EXIT_FAILURE;
	}
	return result;
}

/* Returns in each of `size` new processes. The one that called waits for them and then exits: with
 * success only if all of them did. Comes before the first call of the library, which is not made
 * to be carried over a fork. */
static inline void team_start(int size, const char *program)
{
	pid_t pids[TEAM_MAX];

	team.size = size;
	team.program = program;
	team.page = (struct team_page *)mmap(NULL, sizeof *team.page, PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (team.page == MAP_FAILED)
		fail("no shared page");
	fflush(stdout);
	for (team.rank = 0; team.rank < size; team.rank++) {
		pids[team.rank] = fork();
		if (pids[team.rank] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(TEAM_SECONDS);
			return;
		}
	}
	exit(team_wait(pids));
}

/* Returns when every process has called it; does `meanwhile` while it waits, unless it is NULL. */
static inline void team_barrier(void (*meanwhile)(void))
{
	int round = atomic_load(&team.page->round);

	if (atomic_fetch_add(&team.page->arrived, 1) + 1 == team.size) {
		atomic_store(&team.page->arrived, 0);
		atomic_store(&team.page->round, round + 1);
	}
	while (atomic_load(&team.page->round) == round) {
		if (meanwhile)
			meanwhile();
		sched_yield();
	}
}

/* Tells the others something, and returns when every process has done so; team_card() then is what
 * a process told, until the next exchange. */
static inline void team_exchange(const void *card, size_t len)
{
	if (len > TEAM_CARD)
		fail("%zu bytes are too much to tell", len);
	team_barrier(NULL);
	memcpy(team.page->card[team.rank], card, len);
	team_barrier(NULL);
}

static inline const void *team_card(int rank)
{
	return team.page->card[rank];
}

#endif /* TEAM_H */
