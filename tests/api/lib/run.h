/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the cases of a program, each in its own processes. Included by api.h. */
#ifndef API_RUN_H
#define API_RUN_H

static inline void api_time_over(int sig)
{
	char line[256];
	int len = snprintf(line, sizeof(line), "%s:%d: %s, rank %d: still here at the time limit\n",
			   api_at_file, api_at_line, api_name, api_rank);

	(void)sig;
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		_exit(2);
	_exit(1);
}

static inline unsigned int api_limit(void)
{
	const char *slower = getenv("SLOWER");
	int factor = slower ? atoi(slower) : 1;

	return API_LIMIT * (unsigned int)(factor > 0 ? factor : 1);
}

static inline __attribute__((noreturn)) void api_child(const struct api_case *c, struct api *a,
						       int pairs[][2])
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, api_time_over);
	alarm(api_limit());
	api_name = c->name;
	api_rank = a->rank;
	for (int i = 1; i < a->ranks; i++) {
		int mine = !a->rank ? 0 : a->rank == i ? 1 : -1;

		if (mine >= 0)
			a->socks[a->rank ? 0 : i] = pairs[i][mine];
		for (int end = 0; end < 2; end++)
			if (end != mine)
				close(pairs[i][end]);
	}
	for (size_t i = 0; i < API_COUNT(c->env); i++)
		if (c->env[i] && putenv((char *)(uintptr_t)c->env[i]))
			_exit(1);
	c->run(a);
	exit(0);
}

/* Waits for all processes. When one fails, kills the others. Returns 0, 1 or API_SKIP. */
static inline int api_wait(pid_t *pids, int ranks)
{
	int result = 0, status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) > 0) {
		bool bad = !WIFEXITED(status) || WEXITSTATUS(status);
		bool first = bad && !result;

		if (bad && WIFSIGNALED(status) && first)
			fprintf(stderr, "ended by signal %d\n", WTERMSIG(status));
		if (first)
			result =
				WIFEXITED(status) && WEXITSTATUS(status) == API_SKIP ? API_SKIP : 1;
		for (int i = 0; i < ranks; i++) {
			if (pids[i] == pid)
				pids[i] = 0;
			if (pids[i] && first)
				kill(pids[i], SIGKILL);
		}
	}
	return result;
}

static inline int api_run(const struct api_case *c)
{
	struct api a = {.ranks = c->ranks};
	int pairs[API_RANKS][2];
	pid_t pids[API_RANKS];
	int result;

	fflush(NULL);
	for (int i = 1; i < c->ranks; i++)
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]))
			return 1;
	a.shared =
		mmap(NULL, API_SHARED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (a.shared == MAP_FAILED)
		return 1;
	for (a.rank = 0; a.rank < c->ranks; a.rank++) {
		pids[a.rank] = fork();
		if (!pids[a.rank])
			api_child(c, &a, pairs);
	}
	for (int i = 1; i < c->ranks; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	result = api_wait(pids, c->ranks);
	munmap(a.shared, API_SHARED);
	return result;
}

static inline bool api_wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

/*
 * Skips, over a device, a case that only sets an FI_SHM_ variable: the same case has run without
 * the setting, and emulated devices are slow.
 */
static inline bool api_again(const struct api_case *c)
{
	if (strcmp(api_provider(), "verbs") != 0 || !c->env[0] ||
	    strncmp(c->env[0], "FI_SHM_", 7) != 0)
		return false;
	fprintf(stderr, "%s: skipped: no shared memory on the way\n", c->name);
	return true;
}

/* Runs all cases even after a failure. Returns 0, 1, or API_SKIP if no case could run. */
static inline int api_main(int argc, char **argv, const struct api_case *cases, size_t count)
{
	int passed = 0, failed = 0;

	for (size_t i = 0; i < count; i++) {
		double start = api_seconds();
		int result;

		if (!api_wanted(cases[i].name, argc, argv))
			continue;
		result = api_again(&cases[i]) ? API_SKIP : api_run(&cases[i]);
		passed += !result;
		failed += result && result != API_SKIP;
		printf("%-4s %s (%.2f s)\n",
		       !result              ? "ok"
		       : result == API_SKIP ? "skip"
					    : "FAIL",
		       cases[i].name, api_seconds() - start);
	}
	if (!failed && !passed)
		printf("%s offers none of this here\n", api_provider());
	fflush(stdout);
	return failed ? 1 : passed ? 0 : API_SKIP;
}

#endif
