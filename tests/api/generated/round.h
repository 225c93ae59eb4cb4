/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds of a process, see world.h, and within how many what is owed must come. Needs took.h. */
#ifndef GENERATED_ROUND_H
#define GENERATED_ROUND_H

enum { ROUND_BATCH = 64, ROUND_LOOKS = 8 /* rounds between two looks at what is owed */ };

static inline bool round_read(struct self *s, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[ROUND_BATCH];
	fi_addr_t sources[ROUND_BATCH];
	size_t batch = s->w->program.batch < ROUND_BATCH ? s->w->program.batch : ROUND_BATCH;

	return took_read(s, cq, fi_cq_readfrom(cq, e, batch, sources), e, sources);
}

/* Reads each queue, or those that the poll set names. Returns whether something came. */
static inline bool round_queues(struct self *s)
{
	void *named[PROC_POLLED];
	int count = (int)s->queue_count;
	bool came = false;

	if (s->poll)
		count = fi_poll(s->poll, named, PROC_POLLED);
	if (count < 0)
		PROC_FAIL(s, "call: fi_poll: %d %s", count, api_word(count));
	for (int i = 0; i < count; i++) {
		struct fid_cq **queue = s->poll ? named[i] : &s->queues[i];

		if (queue) /* no counter */
			came |= round_read(s, *queue);
	}
	return came;
}

static inline void round_called(struct self *s)
{
	__atomic_add_fetch(&s->mine->calls, 1, __ATOMIC_ACQ_REL);
}

/*
 * Waits until each other process has called, if it is not in a call that waits. Returns whether all
 * have called.
 */
static inline bool round_others(struct self *s)
{
	bool all = true;

	for (unsigned int i = 0; i < s->w->program.procs; i++) {
		struct proc *p = &s->w->procs[i];

		if (i == s->me || world_gone(s->w, i))
			continue;
		while (__atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) == s->seen[i] &&
		       !world_gone(s->w, i) &&
		       __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == PROC_CALLS)
			sched_yield();
		all &= __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) != s->seen[i];
		s->seen[i] = __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE);
	}
	return all;
}

/* Returns whether entries of `o` may still come, of a message also at its receiver. */
static inline bool round_open(const struct self *s, const struct op *o)
{
	const struct line *l = world_line(s->w, o);

	return op_accepted(o) &&
	       (!op_ended(o) || (line_reported_there(l) && !op_reported_there(o)) ||
		(line_sends(l) && s->matching.by[op_number(s->w, o)] == WORLD_NONE));
}

/* Returns within how many rounds what is owed now must come: what is under way may come first, one entry a round. */
static inline unsigned int round_limit(const struct self *s)
{
	const unsigned int least = 256, bytes_a_round = 2048;
	const struct world *w = s->w;
	unsigned int limit = least;

	for (unsigned int i = 0; i < w->count; i++)
		if (round_open(s, &w->ops[i]))
			limit += 4 + (unsigned int)world_line(w, &w->ops[i])->len / bytes_a_round;
	return limit;
}

/* Begins or goes on with a wait. Returns whether it is too long: `limit` is what round_limit says now. */
static inline bool round_over(const struct self *s, struct wait *wait, unsigned int limit)
{
	if (!wait->since)
		*wait = (struct wait){s->rounds, limit};
	if (wait->limit < limit)
		wait->limit = limit;
	return s->rounds - wait->since > wait->limit;
}

/* progress: FI_SHUTDOWN comes when the process at the other end has left */
static inline void round_ends(struct self *s, unsigned int limit)
{
	for (unsigned int i = 0; i < PROC_LINKS; i++) {
		struct link *l = &s->links[i];

		if (!l->connected || l->ended || !world_gone(s->w, l->with.proc))
			continue;
		s->owed_else = true;
		if (round_over(s, &l->end, limit))
			PROC_FAIL(s,
				  "progress: " CONNECT_LINK
				  " has not ended in %u rounds after p%u has left",
				  CONNECT_NAMES(l), l->end.limit, (unsigned int)l->with.proc);
	}
}

/* Returns how much counter `which` of a place has to have counted: what has ended, and what must have. */
static inline uint64_t round_least(const struct self *s, unsigned int ep, unsigned int which)
{
	uint64_t least = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);

		least += l->at.proc == s->me && l->at.ep == ep && l->start != START_DEFERRED &&
			 history_flags[l->verb] & proc_counts[which] &&
			 (op_ended(o) ||
			  (!line_reported(l) && judge_must_end(s->w, &s->matching, o)));
	}
	return least;
}

/* progress: a counter counts what ends without an entry */
static inline void round_counts(struct self *s, unsigned int limit)
{
	static const unsigned int counts[] = {COUNT_SENDS, COUNT_READS, COUNT_WRITES};
	const struct program *p = &s->w->program;

	if (!p->selective || world_any_left(s->w))
		return;
	for (unsigned int i = 0; i < p->eps * API_COUNT(counts); i++) {
		unsigned int ep = i / API_COUNT(counts), which = counts[i % API_COUNT(counts)];
		uint64_t least = round_least(s, ep, which);
		uint64_t has = fi_cntr_read(s->ends[ep].counters[which]);
		struct wait *wait = &s->ends[ep].counts[which];

		if (has >= least) {
			wait->since = 0;
			continue;
		}
		s->owed_else = true;
		if (round_over(s, wait, limit))
			PROC_FAIL(s,
				  "progress: %" PRIu64 " %s of p%u.e%u have ended, %" PRIu64
				  " are counted, in %u rounds",
				  least, proc_count_names[which], s->me, ep, has, wait->limit);
	}
}

/* Looks how long something is owed, if it is. */
static inline void round_due(struct self *s, struct wait *wait, bool owed, unsigned int limit,
			     const struct op *o)
{
	s->owed |= owed;
	if (!owed)
		wait->since = 0;
	else if (round_over(s, wait, limit))
		PROC_FAIL(s, "progress: %s has not come to p%u in %u rounds", world_name(s->w, o),
			  s->me, wait->limit);
}

/* Notes what is owed to this process, and fails if it is for too many rounds. */
static inline void round_owed(struct self *s)
{
	struct matching *x = &s->matching;
	struct world *w = s->w;
	unsigned int limit;

	s->owed = s->owed_else = false;
	if (!judge_match(w, x))
		_exit(1);
	limit = round_limit(s);
	round_ends(s, limit);
	round_counts(s, limit);
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if (l->at.proc == s->me)
			round_due(s, &s->due[i], judge_owes(w, x, o), limit, o);
		if (l->with.proc == s->me)
			round_due(s, &s->due_there[i], judge_owes_there(w, x, o), limit, o);
	}
}

/* Returns whether something came. */
static inline bool round_one(struct self *s)
{
	bool came = round_queues(s) | connect_events(s);

	round_called(s);
	if (!came)
		usleep(20); /* timers of the library have to run out within some rounds */
	if (round_others(s))
		s->rounds++; /* one in which somebody slept proves nothing */
	if (++s->looks % ROUND_LOOKS == 0)
		round_owed(s);
	return came;
}

static inline void round_times(struct self *s, uint64_t n)
{
	while (n--)
		round_one(s);
}

#endif
