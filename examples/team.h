/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of one program with a shared page, instead of a job launcher. No call of libfabric
 * is made here. */
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
#define TEAM_CARD    512 /* bytes that a process can give the others in one exchange */
#define TEAM_SECONDS 60  /* seconds after which a process, and with it the team, is killed */

static struct team {
	int rank; /* rank of this process, from 0 */
	int size;
	const char *program;
	struct team_page {
		_Atomic int arrived; /* processes that have reached the current barrier */
		_Atomic int round;
		char card[TEAM_MAX][TEAM_CARD];
	} * page;
} team;

/* Prints a line with the rank of this process. */
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

/* Prints an error and exits, which ends the whole team. */
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

/* Waits for all processes; if one fails, kills the others. */
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

/* Forks `size` processes and returns in each. The caller waits for them and exits, with success
 * only if all of them did. Call it before the first call of the library, which does not support
 * a fork. */
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

/* Waits until each process has called it; calls `meanwhile`, unless NULL, while waiting. */
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

/* Gives `card` to the others and waits until each process has done so; team_card() returns a
 * process's card until the next exchange. */
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
