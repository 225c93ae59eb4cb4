/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that sleeps in one call until what must come wakes it. It sleeps before anything is owed to it, as
 * long as others may begin something. A second thread looks on, and ends the sleep by a signal once all others
 * wait and nothing is owed. Needs wait.h.
 */
#ifndef GENERATED_DOZE_H
#define GENERATED_DOZE_H

#include <sys/syscall.h>
#include <sys/timerfd.h>

static bool doze_alone; /* nothing but events wakes */

/*
 * In place of the C library's, for the library: a timer that comes again and again, against peers that die or do
 * wrong, makes up for a wake-up that was lost, too.
 */
__attribute__((visibility("default"))) int
timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *was)
{
	const struct itimerspec none = {0};
	bool again = to->it_interval.tv_sec || to->it_interval.tv_nsec;

	return (int)syscall(SYS_timerfd_settime, fd, flags, doze_alone && again ? &none : to, was);
}

static inline void doze_init(const struct program *p)
{
	doze_alone = true;
	for (unsigned int i = 0; i < p->count; i++)
		if (p->lines[i].verb == VERB_DIE)
			doze_alone = false;
}

struct doze {
	struct self *s;
	pthread_t sleeper, looker;
	bool over;
};

static inline void doze_signal(int sig)
{
	(void)sig;
}

/* Returns whether no other process begins anything before this one has called. */
static inline bool doze_others_wait(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++) {
		const struct proc *p = &s->w->procs[i];

		if (i != s->me && !__atomic_load_n(&p->idle, __ATOMIC_ACQUIRE) &&
		    !__atomic_load_n(&p->refused, __ATOMIC_ACQUIRE))
			return false;
	}
	return true;
}

/* The first operation that is owed to the process, or NULL. */
static inline const struct op *doze_owed(const struct self *s, const struct matching *x)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);

		if ((l->at.proc == s->me && judge_owes(s->w, x, o)) ||
		    (l->with.proc == s->me && judge_owes_there(s->w, x, o)))
			return o;
	}
	return NULL;
}

/* Ends the sleep of a process that nothing will wake. */
static inline void doze_look(struct doze *d)
{
	static struct matching x;
	struct self *s = d->s;

	pthread_mutex_lock(&s->sleeping);
	if (s->mine->state == PROC_WAITS && doze_others_wait(s) && judge_match(s->w, &x) &&
	    !doze_owed(s, &x))
		pthread_kill(d->sleeper, SIGUSR1);
	pthread_mutex_unlock(&s->sleeping);
}

static inline void *doze_looks(void *arg)
{
	struct doze *d = arg;

	while (!__atomic_load_n(&d->over, __ATOMIC_ACQUIRE)) {
		usleep(1000);
		doze_look(d);
	}
	return NULL;
}

static inline void doze_begin(struct doze *d)
{
	__atomic_store_n(&d->s->mine->idle, true, __ATOMIC_RELEASE);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = doze_signal}, NULL);
	pthread_create(&d->looker, NULL, doze_looks, d);
}

static inline void doze_end(struct doze *d)
{
	__atomic_store_n(&d->over, true, __ATOMIC_RELEASE);
	pthread_join(d->looker, NULL);
	__atomic_store_n(&d->s->mine->idle, false, __ATOMIC_RELEASE);
}

/* Returns whether something is owed to the process, or may come yet. */
static inline bool doze_more(struct self *s)
{
	round_owed(s);
	return s->owed || (wait_receives(s) && !doze_others_wait(s));
}

/* wakes: sleeps once. Who sleeps to the end of the time was not woken, though he finds something then. */
static inline void doze_once(struct self *s)
{
	const int ms = BLOCK_MS * (int)world_slower();
	double end = api_seconds() + ms / 1000.0;
	bool found = block(s, ms);

	if (api_seconds() < end)
		return;
	round_owed(s);
	if (s->owed)
		PROC_FAIL(s, "wakes: %s has not woken p%u in %d ms",
			  world_name(s->w, doze_owed(s, &s->matching)), s->me, ms);
	if (found)
		PROC_FAIL(s, "wakes: p%u found what came in %d ms, and was not woken", s->me, ms);
}

/* Sleeps until nothing more can come, in calls that wait for all, or a ms in each. */
static inline void doze(struct self *s)
{
	bool all = s->w->program.waits != WAITS_SREAD || s->queue_count == 1;
	struct doze d = {.s = s, .sleeper = pthread_self()};

	s->mine->doing = "dozes";
	doze_begin(&d);
	while (doze_more(s))
		if (all)
			doze_once(s);
		else
			block(s, 1);
	doze_end(&d);
}

#endif
