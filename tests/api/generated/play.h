/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process does for each line of a program. Needs round.h, call.h. */
#ifndef GENERATED_PLAY_H
#define GENERATED_PLAY_H

#include <sys/time.h>

#define PLAY_ALL (1u << 30) /* begins whatever still waits */

/* Operations of an endpoint, sends or receives, that have not ended, or that no receive has taken. */
static inline unsigned int play_under_way(const struct self *s, const struct line *l)
{
	bool receives = line_receives(l);
	unsigned int count = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *k = world_line(s->w, o);
		bool kept = line_sends(k) && s->matching.by[i] == WORLD_NONE;

		count += place_same(k->at, l->at) && line_receives(k) == receives &&
			 op_accepted(o) && ((line_reported(k) && !op_ended(o)) || kept);
	}
	return count;
}

/* Returns whether the target of `l` has left. */
static inline bool play_gone(const struct self *s, const struct line *l)
{
	return l->with.proc != PLACE_ANY && world_left(s->w, l->with.proc);
}

/* Calls again with rounds between while the call is refused. */
static inline void play_op(struct self *s, struct op *o)
{
	const struct line *l = world_line(s->w, o);
	size_t size = line_receives(l) ? s->info->rx_attr->size : s->mine->tx_size;
	struct end *end = &s->ends[l->at.ep];
	bool again = end->full && place_same(end->full->with, l->with);
	struct wait wait = {0};
	struct call *c = call_new(s, o);
	ssize_t ret;

	while ((ret = call(s, c)) == -FI_EAGAIN) {
		s->mine->doing = "is refused by -FI_EAGAIN";
		round_one(s);
		if (!round_over(s, &wait, again ? 1 : round_limit(s)))
			continue;
		if (play_under_way(s, l) < size && !play_gone(s, l) &&
		    !judge_is_held(s->w, &s->matching, o))
			PROC_FAIL(s, "accepted: %s is refused for ever", world_name(s->w, o));
		break;
	}
	end->full = ret == -FI_EAGAIN ? l : NULL;
	if (ret && ret != -FI_EAGAIN && !play_gone(s, l))
		PROC_FAIL(s, "call: %s: %zd %s", world_name(s->w, o), ret, api_word(ret));
	if (!line_reported(l) || ret)
		proc_buffer_free(s, o);
	__atomic_store_n(&o->state, ret ? OP_REFUSED : OP_POSTED, __ATOMIC_RELEASE);
	round_called(s);
}

/* Returns whether a peek of `c` finds a message. */
static inline bool play_peek(struct self *s, struct op *o, struct call *c)
{
	struct wait wait = {0};
	ssize_t ret;

	while ((ret = call_peek(c)) == -FI_EAGAIN)
		round_one(s);
	if (ret)
		PROC_FAIL(s, "call: a peek of %s: %zd", world_name(s->w, o), ret);
	round_called(s);
	s->peeks = o;
	while (s->peeks) {
		round_one(s);
		if (round_over(s, &wait, round_limit(s)))
			PROC_FAIL(s, "progress: a peek of %s has no answer", world_name(s->w, o));
	}
	return s->found;
}

/* Claims or discards a message: one that waits must be found. */
static inline void play_look_for(struct self *s, struct op *o)
{
	const unsigned int tries = 4;
	struct call *c = call_new(s, o);
	struct wait wait = {0};
	unsigned int i = 0;

	s->mine->doing = "looks for a message";
	while (!play_peek(s, o, c)) {
		round_owed(s);
		if (i++ >= tries && !judge_waiting(s->w, &s->matching, o)) {
			proc_buffer_free(s, o);
			return;
		}
		if (round_over(s, &wait, round_limit(s)))
			PROC_FAIL(s, "progress: %s does not find what waits", world_name(s->w, o));
	}
	if (c->l->how == HOW_DISCARD)
		return;
	PROC_OK(s, call_verbs[c->l->verb](c));
	__atomic_store_n(&o->state, OP_POSTED, __ATOMIC_RELEASE);
	round_called(s);
}

/* Cancels receives of an endpoint that wait, `n` at most; -1: all of the process. */
static inline void play_cancel(struct self *s, const struct line *l)
{
	uint64_t left = l ? l->n : UINT64_MAX;

	for (unsigned int i = 0; i < s->w->count && left; i++) {
		struct op *o = &s->w->ops[i];
		const struct line *k = world_line(s->w, o);

		if (!line_receives(k) || k->at.proc != s->me || (l && k->at.ep != l->at.ep) ||
		    op_state(o) != OP_POSTED || op_ended(o) || k->how == HOW_CLAIM ||
		    k->start == START_DEFERRED) /* which fi_cancel does not take back */
			continue;
		PROC_OK(s, fi_cancel(&s->ends[k->at.ep].ep->fid, &s->contexts[i]));
		__atomic_store_n(&o->state, OP_CANCELLED, __ATOMIC_RELEASE);
		round_called(s);
		left--;
	}
}

/* Lets operations begin that wait for the counter of an endpoint. */
static inline void play_begin(struct self *s, uint64_t ep, uint64_t n)
{
	if (!s->ends[ep].start)
		return;
	__atomic_add_fetch(&s->mine->begun[ep], n, __ATOMIC_ACQ_REL);
	PROC_OK(s, fi_cntr_add(s->ends[ep].start, n));
	round_called(s);
}

static inline void play_stopped(int sig)
{
	(void)sig;
	raise(SIGSTOP); /* trial_wait lets it go on */
}

static inline void play_stop(const struct line *l)
{
	struct itimerval in = {.it_value = {0, (suseconds_t)(l->us + 1)}};

	signal(SIGALRM, play_stopped);
	setitimer(ITIMER_REAL, &in, NULL);
}

static inline void play_sleep(struct self *s, uint64_t us)
{
	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	usleep((useconds_t)us);
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
}

static inline bool play_receives(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->at.proc == s->me && line_receives(l) && op_accepted(&s->w->ops[i]) &&
		    !op_ended(&s->w->ops[i]))
			return true;
	}
	return false;
}

static inline bool play_others_idle(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++)
		if (i != s->me && !__atomic_load_n(&s->w->procs[i].idle, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static inline void play_await(struct self *s)
{
	s->mine->doing = "waits for what must come";
	for (;;) {
		if (play_others_idle(s) || !play_receives(s)) {
			round_owed(s);
			if (!s->owed)
				break;
		}
		__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
		round_one(s);
	}
	__atomic_store_n(&s->mine->idle, false, __ATOMIC_RELEASE);
}

/* `first`: the first operation of the line, if it begins any */
static inline void play_line(struct self *s, const struct line *l, struct op *first)
{
	s->mine->doing = "does";
	switch (l->verb) {
	case VERB_BEGIN:
		play_begin(s, l->at.ep, l->n);
		break;
	case VERB_CANCEL:
		play_cancel(s, l);
		break;
	case VERB_ROUND:
		round_times(s, l->n);
		break;
	case VERB_SREAD:
		for (unsigned int i = 0; i < s->queue_count; i++)
			round_sread(s, s->queues[i], (int)(l->us / 1000) + 1);
		break;
	case VERB_AWAIT:
		play_await(s);
		break;
	case VERB_SLEEP:
		play_sleep(s, l->us);
		break;
	case VERB_LEAVE:
		break; /* play_lines does it */
	case VERB_STOP:
		play_stop(l);
		break;
	default:
		for (uint64_t i = 0; i < l->n; i++) {
			if (l->how != HOW_POST)
				play_look_for(s, first + i);
			else
				play_op(s, first + i);
			if (s->ends[l->at.ep].full)
				break;
			round_times(s, l->between);
		}
	}
}

static inline bool play_all_finished(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++)
		if (!__atomic_load_n(&s->w->procs[i].finished, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

/* Rounds until nothing is owed to anybody, and some more. */
static inline void play_finish(struct self *s)
{
	const unsigned int more = 2 * ROUND_LOOKS;

	if (s->mine->left) {
		proc_meet(s);
		proc_meet(s);
		return;
	}
	__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
	s->mine->doing = "has done all and waits for what must come";
	round_owed(s);
	for (unsigned int quiet = 0; quiet < more;) {
		__atomic_store_n(&s->mine->finished, !s->owed, __ATOMIC_RELEASE);
		quiet = round_one(s) || !play_all_finished(s) ? 0 : quiet + 1;
	}
	s->mine->doing = "waits for the others";
	proc_meet(s);
	__atomic_store_n(&s->mine->finished, false, __ATOMIC_RELEASE);
	proc_meet(s);
}

/* What has been written into the memory, and nothing beside. */
static inline void play_memory(struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const unsigned char *at = s->memory + o->at;

		if (l->with.proc != s->me || (l->verb != VERB_WRITE && l->verb != VERB_READ))
			continue;
		if (judge_unknown(s->w, &s->matching, o))
			continue;
		if (l->verb == VERB_WRITE && !judge_performed(s->w, &s->matching, o)
			    ? !proc_untouched(at, l->len)
			    : !world_holds(at, l->len, i))
			PROC_FAIL(s, "bytes: what %s has written or read", world_name(s->w, o));
		if (!proc_untouched(at + l->len, WORLD_GAP))
			PROC_FAIL(s, "bytes: written behind %s", world_name(s->w, o));
	}
	memcpy(s->mine->words, s->memory, sizeof(s->mine->words));
}

/* Returns whether `o` may have ended, and counted, though its process has read no entry of it. */
static inline bool play_may_end(const struct self *s, const struct op *o)
{
	const struct line *l = world_line(s->w, o);

	return op_accepted(o) && !op_ended(o) && !line_receives(l) &&
	       (line_reported(l) || judge_unknown(s->w, &s->matching, o));
}

/* `more`: that may have ended, too */
static inline void play_counts(struct self *s, struct fid_cntr *cntr, uint64_t good, uint64_t more,
			       uint64_t bad, const char *what)
{
	uint64_t has = fi_cntr_read(cntr), errors = fi_cntr_readerr(cntr);

	if (has < good || has > good + more || errors != bad)
		PROC_FAIL(s,
			  "counters: %s in p%u: %" PRIu64 " and %" PRIu64
			  " errors, right are %" PRIu64 " to %" PRIu64 " and %" PRIu64,
			  what, s->me, has, errors, good, good + more, bad);
}

/* counters: what has ended, in success and in error, and what was injected */
static inline void play_counter(struct self *s, unsigned int ep, unsigned int which)
{
	static const char *const names[] = {"sends", "receives", "reads", "writes"};
	uint64_t good = 0, more = 0, bad = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const struct entry *e = NULL;

		if (l->at.proc != s->me || l->at.ep != ep || l->start == START_DEFERRED ||
		    l->how == HOW_DISCARD || !(judge_flags[l->verb] & proc_counts[which]))
			continue;
		good += !line_reported(l) && judge_performed(s->w, &s->matching, o);
		more += play_may_end(s, o);
		while ((e = world_entry(s->w, o, e))) {
			good += !e->err && e->flags & proc_counts[which];
			bad += e->err && e->err != FI_ECANCELED;
		}
	}
	play_counts(s, s->ends[ep].counters[which], good, more, bad, names[which]);
}

/* counters: deferred work that has ended */
static inline void play_deferred(struct self *s, unsigned int ep)
{
	uint64_t good = 0, more = 0, bad = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const struct entry *e = world_entry(s->w, o, NULL);

		if (l->at.proc != s->me || l->at.ep != ep || l->start != START_DEFERRED)
			continue;
		more += play_may_end(s, o);
		good += e && !e->err;
		bad += e && e->err != 0;
	}
	play_counts(s, s->ends[ep].done, good, more, bad, "deferred work");
}

static inline void play_look(struct self *s)
{
	if (s->mine->left)
		return;
	round_owed(s);
	play_memory(s);
	if (world_any_left(s->w))
		return;
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		if (s->ends[i].done)
			play_deferred(s, i);
	for (unsigned int i = 0; i < s->w->program.eps && s->w->program.counters; i++)
		for (unsigned int j = 0; j < PROC_COUNTERS; j++)
			play_counter(s, i, j);
}

static inline void *play_helper(void *self)
{
	struct self *s = self;

	while (!__atomic_load_n(&s->helper_ends, __ATOMIC_ACQUIRE)) {
		for (unsigned int i = 0; i < s->queue_count; i++)
			fi_cq_read(s->queues[i], NULL, 0);
		usleep(50);
	}
	return NULL;
}

static inline void play_close(struct self *s)
{
	s->mine->doing = "closes";
	__atomic_store_n(&s->helper_ends, true, __ATOMIC_RELEASE);
	if (s->w->program.helper)
		pthread_join(s->helper, NULL);
	proc_close(s);
}

/* What others owe to this process, and what it has begun, does not count any more. */
static inline void play_leave(struct self *s)
{
	__atomic_store_n(&s->mine->left, true, __ATOMIC_RELEASE);
	__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
	__atomic_store_n(&s->mine->finished, true, __ATOMIC_RELEASE);
	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	play_close(s);
	__atomic_store_n(&s->mine->closed, true, __ATOMIC_RELEASE);
}

static inline void play_lines(struct self *s)
{
	struct world *w = s->w;
	unsigned int op = 0;

	for (unsigned int i = 0; i < w->program.count && !s->mine->left; i++) {
		const struct line *l = &w->program.lines[i];

		s->mine->line = (int)i;
		if (l->at.proc == s->me && l->verb == VERB_LEAVE)
			play_leave(s);
		else if (l->at.proc == s->me)
			play_line(s, l, &w->ops[op]);
		while (op < w->count && w->ops[op].line == i)
			op++;
	}
}

/* Begins and then takes back what is left over. */
static inline void play_rest(struct self *s)
{
	play_finish(s);
	for (unsigned int i = 0; i < s->w->program.eps && !s->mine->left; i++)
		play_begin(s, i, PLAY_ALL);
	play_finish(s);
	if (!s->mine->left)
		play_cancel(s, NULL);
	play_finish(s);
}

/* The whole program, in one of its processes. */
static inline void play(struct world *w, unsigned int me)
{
	static struct self s;

	s = (struct self){.w = w, .me = me, .mine = &w->procs[me], .rounds = 1};
	s.mine->doing = "opens";
	for (unsigned int i = 0; i < w->program.set_count; i++)
		putenv(w->program.sets[i]);
	proc_open(&s);
	if (w->program.helper)
		pthread_create(&s.helper, NULL, play_helper, &s);
	play_lines(&s);
	play_rest(&s);
	play_look(&s);
	proc_meet(&s);
	if (!s.mine->left)
		play_close(&s);
}

#endif
