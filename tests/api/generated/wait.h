/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process does while it begins nothing. Needs block.h. */
#ifndef GENERATED_WAIT_H
#define GENERATED_WAIT_H

#include <sys/time.h>

/* Rounds after which who calls the library has noticed that a process has left and come again. */
#define WAIT_NOTICE 256

static inline void wait_stopped(int sig)
{
	(void)sig;
	raise(SIGSTOP); /* trial_wait lets it go on */
}

static inline void wait_stop(const struct line *l)
{
	struct itimerval in = {.it_value = {0, (suseconds_t)(l->us + 1)}};

	signal(SIGALRM, wait_stopped);
	setitimer(ITIMER_REAL, &in, NULL);
}

static inline void wait_sleep(struct self *s, uint64_t us)
{
	block_begin(s);
	usleep((useconds_t)us);
	block_end(s);
}

static inline bool wait_receives(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->at.proc == s->me && line_receives(l) && op_accepted(&s->w->ops[i]) &&
		    !op_ended(&s->w->ops[i]) && !op_orphan(s->w, &s->w->ops[i]))
			return true;
	}
	return false;
}

static inline bool wait_others_idle(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++)
		if (i != s->me && !__atomic_load_n(&s->w->procs[i].idle, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static inline void wait_await(struct self *s)
{
	s->mine->doing = "waits for what must come";
	for (;;) {
		if (wait_others_idle(s) || !wait_receives(s)) {
			round_owed(s);
			if (!s->owed)
				break;
		}
		__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
		round_one(s);
	}
	__atomic_store_n(&s->mine->idle, false, __ATOMIC_RELEASE);
}

/* Returns whether process `proc` is away, and comes again, or may still leave. */
static inline bool wait_for_next(const struct self *s, uint64_t proc)
{
	unsigned int life = life_of(s->w, proc);

	return life_over(life) ? s->w->procs[proc].again : life == s->known[proc];
}

/*
 * Waits until a process has left and come again, and knows that then. Who awaits something is idle, though what it
 * awaits is under way and it leaves after that: nobody will leave only if all others are idle for many rounds.
 */
static inline void wait_notice(struct self *s, uint64_t proc)
{
	unsigned int since = s->rounds;

	s->mine->doing = "waits for a process to come again";
	__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
	while (wait_for_next(s, proc) && s->rounds - since < WAIT_NOTICE) {
		round_one(s);
		if (!wait_others_idle(s))
			since = s->rounds;
	}
	__atomic_store_n(&s->mine->idle, false, __ATOMIC_RELEASE);
	round_times(s, WAIT_NOTICE);
	s->known[proc] = life_of(s->w, proc);
}

#endif
