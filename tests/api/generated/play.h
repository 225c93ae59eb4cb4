/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process does for each line of a program. Needs fate.h, call.h. */
#ifndef GENERATED_PLAY_H
#define GENERATED_PLAY_H

#define PLAY_ALL (1u << 30) /* begins whatever still waits */

/* Operations of the endpoint of `l`, sends or receives, that have not ended, or that no receive has taken. */
static inline unsigned int play_under_way(struct self *s, const struct line *l)
{
	bool receives = line_receives(l);
	unsigned int count = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *k = world_line(s->w, o);
		bool kept = line_sends(k) && s->matching.by[i] == WORLD_NONE;

		count += place_same(k->at, l->at) && proc_line_link(s, k) == proc_line_link(s, l) &&
			 line_receives(k) == receives && op_accepted(o) &&
			 ((line_reported(k) && !op_ended(o)) || kept);
	}
	return count;
}

/* Notes who calls `o`, and for whom; whether it is accepted will be seen. */
static inline void play_calling(struct self *s, struct op *o)
{
	uint64_t target = world_line(s->w, o)->with.proc;

	o->life = life_of(s->w, s->me);
	if (target != PLACE_ANY)
		o->target_life = s->known[target];
	__atomic_store_n(&o->state, OP_CALLING, __ATOMIC_RELEASE);
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

	play_calling(s, o);
	while ((ret = call(s, c)) == -FI_EAGAIN) {
		s->mine->doing = "is refused by -FI_EAGAIN";
		__atomic_store_n(&s->mine->refused, true, __ATOMIC_RELEASE);
		round_one(s);
		if (!round_over(s, &wait, again ? 1 : round_limit(s)))
			continue;
		if (play_under_way(s, l) < size && !op_unsure(s->w, o) &&
		    !judge_is_held(s->w, &s->matching, o))
			PROC_FAIL(s, "accepted: %s is refused for ever", world_name(s->w, o));
		break;
	}
	__atomic_store_n(&s->mine->refused, false, __ATOMIC_RELEASE);
	end->full = ret == -FI_EAGAIN ? l : NULL;
	if (ret && ret != -FI_EAGAIN && !op_target_gone(s->w, o))
		PROC_FAIL(s, "call: %s: %zd %s", world_name(s->w, o), ret, api_word(ret));
	if (l->form == FORM_INJECT || ret)
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
		    op_state(o) != OP_POSTED || op_ended(o) || op_orphan(s->w, o) ||
		    k->how == HOW_CLAIM ||
		    k->start == START_DEFERRED) /* which fi_cancel does not take back */
			continue;
		PROC_OK(s, fi_cancel(&proc_line_link(s, k)->ep->fid, &s->contexts[i]));
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

/* `first`: the first operation of the line, if it begins any */
static inline void play_line(struct self *s, const struct line *l, struct op *first)
{
	s->mine->doing = "does";
	if (s->mine->going && !line_begins(l) && l->verb >= VERB_LEAVE)
		return; /* it will end soon enough */
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
	case VERB_WAIT:
		block(s, (int)(l->us / 1000) + 1);
		break;
	case VERB_DOZE:
		doze(s);
		break;
	case VERB_TALLY:
		for (unsigned int i = 0; i < PROC_COUNTERS && s->w->program.counters; i++)
			block_count(s, s->ends[l->at.ep].counters[i], (int)(l->us / 1000) + 1);
		break;
	case VERB_AWAIT:
		wait_await(s);
		break;
	case VERB_SLEEP:
		wait_sleep(s, l->us);
		break;
	case VERB_LEAVE:
		fate_leave(s, l);
		break;
	case VERB_DIE:
		fate_die(s, l);
		break;
	case VERB_NOTICE:
		wait_notice(s, l->with.proc);
		break;
	case VERB_STOP:
		wait_stop(l);
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

	if (s->over) {
		proc_meet(s);
		proc_meet(s);
		return;
	}
	__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
	s->mine->doing = "has done all and waits for what must come";
	round_owed(s);
	for (unsigned int quiet = 0; quiet < more;) {
		__atomic_store_n(&s->mine->finished, !s->owed && !s->owed_else, __ATOMIC_RELEASE);
		quiet = round_one(s) || !play_all_finished(s) ? 0 : quiet + 1;
	}
	s->mine->doing = "waits for the others";
	proc_meet(s);
	__atomic_store_n(&s->mine->finished, false, __ATOMIC_RELEASE);
	proc_meet(s);
}

/* All lines from `from` on. Who is to be killed waits for that. */
static inline void play_lines(struct self *s, int from)
{
	struct world *w = s->w;
	unsigned int op = 0;

	for (int i = 0; i < (int)w->program.count && !s->over; i++) {
		const struct line *l = &w->program.lines[i];

		while (op < w->count && (int)w->ops[op].line < i)
			op++;
		if (i < from || l->at.proc != s->me)
			continue;
		s->mine->line = i;
		play_line(s, l, &w->ops[op]);
	}
	while (s->mine->going)
		round_one(s);
}

/* Begins and then takes back what is left over. */
static inline void play_rest(struct self *s)
{
	play_finish(s);
	for (unsigned int i = 0; i < s->w->program.eps && !s->over; i++)
		play_begin(s, i, PLAY_ALL);
	play_finish(s);
	if (!s->over)
		play_cancel(s, NULL);
	play_finish(s);
}

/* Instead of one that was killed, and does not come again, does nothing. */
static inline void play_begin_life(struct self *s)
{
	s->over = proc_again(s) && !s->mine->again;
	if (s->over)
		fate_absent(s, true);
	else if (proc_again(s))
		fate_again(s);
	else
		fate_open(s);
}

/* The whole program, or the rest of one that was killed, in one of its processes. */
static inline void play(struct world *w, unsigned int me)
{
	static struct self s;

	s = (struct self){.w = w, .me = me, .mine = &w->procs[me], .rounds = 1};
	for (unsigned int i = 0; i < w->program.set_count; i++)
		putenv(w->program.sets[i]);
	doze_init(&w->program);
	play_begin_life(&s);
	play_lines(&s, proc_again(&s) ? s.mine->line + 1 : 0);
	play_rest(&s);
	if (!s.over)
		final(&s);
	proc_meet(&s);
	if (!s.over)
		fate_close(&s);
}

#endif
