/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of a process, see world.h, and within how many what is owed must come. Needs took.h. */
#ifndef GENERATED_TURN_H
#define GENERATED_TURN_H

enum { TURN_BATCH = 64, TURN_LOOKS = 8 /* turns between two looks at what is owed */ };

static inline bool turn_read(struct self *s, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[TURN_BATCH];
	fi_addr_t sources[TURN_BATCH];
	size_t batch = s->w->program.batch < TURN_BATCH ? s->w->program.batch : TURN_BATCH;

	return took_read(s, cq, fi_cq_readfrom(cq, e, batch, sources), e, sources);
}

static inline bool turn_sread(struct self *s, struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source = FI_ADDR_UNSPEC;
	ssize_t ret;

	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	ret = fi_cq_sreadfrom(cq, &e, 1, &source, NULL, ms);
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
	return took_read(s, cq, ret, &e, &source);
}

static inline void turn_called(struct self *s)
{
	__atomic_add_fetch(&s->mine->calls, 1, __ATOMIC_ACQ_REL);
}

/*
 * Waits until each other process has called, if it is not in a call that waits. Returns whether all
 * have called.
 */
static inline bool turn_others(struct self *s)
{
	bool all = true;

	for (unsigned int i = 0; i < s->w->program.procs; i++) {
		struct proc *p = &s->w->procs[i];

		if (i == s->me || world_left(s->w, i))
			continue;
		while (__atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) == s->seen[i] &&
		       !world_left(s->w, i) &&
		       __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == PROC_CALLS)
			sched_yield();
		all &= __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) != s->seen[i];
		s->seen[i] = __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE);
	}
	return all;
}

/*
 * Returns within how many turns what is owed now must come. Whatever was accepted before may come
 * first, one entry a turn; what begins later makes no difference.
 */
static inline unsigned int turn_limit(const struct world *w)
{
	const unsigned int least = 256, bytes_a_turn = 2048;
	unsigned int limit = least;

	for (unsigned int i = 0; i < w->count; i++)
		if (op_accepted(&w->ops[i]) && !op_ended(&w->ops[i]))
			limit += 4 + (unsigned int)world_line(w, &w->ops[i])->len / bytes_a_turn;
	return limit;
}

/* Sets or looks at the turn until which something must have come. */
static inline void turn_due(struct self *s, unsigned int *due, bool owed, const struct op *o)
{
	if (!owed) {
		*due = 0;
		return;
	}
	s->owed = true;
	if (!*due)
		*due = s->turns + turn_limit(s->w);
	else if (s->turns > *due)
		PROC_FAIL(s, "progress: %s has not come to p%u in some %u turns",
			  world_name(s->w, o), s->me, turn_limit(s->w));
}

/* Notes what is owed to this process, and fails if it is for too many turns. */
static inline void turn_owed(struct self *s)
{
	struct matching *x = &s->matching;
	struct world *w = s->w;

	s->owed = false;
	if (!judge_match(w, x))
		_exit(1);
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if (l->at.proc == s->me)
			turn_due(s, &s->due[i], judge_owes(w, x, o), o);
		if (l->with.proc == s->me)
			turn_due(s, &s->due_there[i], judge_owes_there(w, x, o), o);
	}
}

/* Returns whether something came. */
static inline bool turn(struct self *s)
{
	bool came = false;

	for (unsigned int i = 0; i < s->queue_count; i++)
		came |= turn_read(s, s->queues[i]);
	turn_called(s);
	if (!came)
		usleep(20); /* timers of the library have to run out within some turns */
	if (turn_others(s))
		s->turns++; /* one in which somebody slept proves nothing */
	if (++s->looks % TURN_LOOKS == 0)
		turn_owed(s);
	return came;
}

static inline void turn_times(struct self *s, uint64_t n)
{
	while (n--)
		turn(s);
}

#endif
