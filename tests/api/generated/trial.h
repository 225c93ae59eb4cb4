/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs a program in processes of its own, and judges. Needs play.h. */
#ifndef GENERATED_TRIAL_H
#define GENERATED_TRIAL_H

#ifndef TRIAL_SECONDS
#define TRIAL_SECONDS 60 /* the end of a hang */
#endif

enum verdict { TRIAL_GOOD, TRIAL_BAD, TRIAL_TOO_LARGE };

static volatile sig_atomic_t trial_over;

static inline void trial_alarm(int sig)
{
	(void)sig;
	trial_over = 1;
}

/* What each process is at, after a hang. */
static inline void trial_where(struct world *w)
{
	char text[400];
	FILE *to = fmemopen(text, sizeof(text), "w");

	for (unsigned int i = 0; i < w->program.procs; i++) {
		const struct proc *p = &w->procs[i];

		fprintf(to, "; p%u: line %d %s", i, p->line + 1, p->doing ? p->doing : "begins");
	}
	fclose(to);
	world_fail(w, "hang: after %u seconds%s", TRIAL_SECONDS, text);
}

static inline void trial_child(struct world *w, unsigned int me)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGALRM, SIG_DFL);
	play(w, me);
	exit(0);
}

/* Lets a process that has stopped itself go on after a while. */
static inline void trial_continue(pid_t pid)
{
	usleep(2000);
	kill(pid, SIGCONT);
}

/* Begins a process, or another one for one that was killed. */
static inline void trial_begin(struct world *w, pid_t *pids, unsigned int i)
{
	w->procs[i].going = false;
	if (!(pids[i] = fork()))
		trial_child(w, i);
}

/* Returns whether process `i` has ended for good. */
static inline bool trial_ended(struct world *w, pid_t *pids, unsigned int i, int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && w->procs[i].going &&
	    !world_failed(w)) {
		trial_begin(w, pids, i);
		return false;
	}
	if (WIFSIGNALED(status))
		world_fail(w, "crash: p%u ended by signal %d in line %d", i, WTERMSIG(status),
			   w->procs[i].line + 1);
	else if (WEXITSTATUS(status))
		world_fail(w, "crash: p%u exited with %d in line %d", i, WEXITSTATUS(status),
			   w->procs[i].line + 1);
	return true;
}

static inline unsigned int trial_which(const pid_t *pids, pid_t pid)
{
	unsigned int i = 0;

	while (pids[i] != pid)
		i++;
	return i;
}

/* Waits for all. After a failure, or at the limit, ends them. */
static inline void trial_wait(struct world *w, pid_t *pids)
{
	bool killed = false;
	int status;
	pid_t pid;

	for (uint64_t left = w->program.procs; left;) {
		pid = waitpid(-1, &status, WUNTRACED);
		if (pid > 0 && WIFSTOPPED(status)) {
			trial_continue(pid);
		} else if (pid > 0) {
			left -= trial_ended(w, pids, trial_which(pids, pid), status);
		}
		if (trial_over)
			trial_where(w);
		for (unsigned int i = 0; world_failed(w) && !killed && i < w->program.procs; i++)
			kill(pids[i], SIGKILL);
		killed = world_failed(w);
	}
}

/* Runs `p`. Writes into `why`, of `size` bytes, what is wrong. */
static inline enum verdict trial(const struct program *p, char *why, size_t size)
{
	struct world *w = world_new(p);
	struct sigaction alarmed = {.sa_handler = trial_alarm};
	enum verdict verdict = TRIAL_TOO_LARGE;
	pid_t pids[PROGRAM_PROCS];

	world_block_fill();
	if (w && world_expand(w)) {
		fflush(NULL);
		trial_over = 0;
		sigaction(SIGALRM, &alarmed, NULL);
		alarm(TRIAL_SECONDS * world_slower());
		for (unsigned int i = 0; i < p->procs; i++)
			trial_begin(w, pids, i);
		trial_wait(w, pids);
		alarm(0);
		if (!world_failed(w))
			history(w);
		snprintf(why, size, "%s", w->why);
		verdict = world_failed(w) ? TRIAL_BAD : TRIAL_GOOD;
	}
	if (w)
		world_free(w);
	return verdict;
}

#endif
