/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process looks at in the end: its memory and its counters. Needs round.h, history.h. */
#ifndef GENERATED_FINAL_H
#define GENERATED_FINAL_H

/* order: what places hold that were written more than once */
static inline void final_over(struct self *s)
{
	const struct op *end = s->w->ops + s->w->count;

	for (unsigned int i = 0; i < s->w->count && over_promised(s->info); i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->over && l->with.proc == s->me &&
		    !over_right(s->w, &s->matching, l, end, s->memory + s->w->ops[i].at, l->len))
			PROC_FAIL(s, "order: what %s and others have written",
				  world_name(s->w, &s->w->ops[i]));
	}
}

/* What has been written into the memory, and nothing beside. */
static inline void final_memory(struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const unsigned char *at = s->memory + o->at;

		if (l->with.proc != s->me || (l->verb != VERB_WRITE && l->verb != VERB_READ) ||
		    l->over)
			continue;
		if (l->verb == VERB_WRITE && judge_unknown(s->w, &s->matching, o))
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

/* Returns whether `o` has ended, and counted, without an entry. */
static inline bool final_counted(const struct self *s, const struct op *o)
{
	const struct line *l = world_line(s->w, o);

	return line_silent(l) ? !op_ended(o) && judge_must_end(s->w, &s->matching, o)
			      : !line_reported(l) && judge_performed(s->w, &s->matching, o);
}

/* Returns whether `o` may have ended, and counted, though its process has read no entry of it. */
static inline bool final_may_end(const struct self *s, const struct op *o)
{
	const struct line *l = world_line(s->w, o);

	return op_accepted(o) && !op_ended(o) && !line_receives(l) &&
	       (line_reported(l) || judge_unknown(s->w, &s->matching, o) ||
		(line_silent(l) && !final_counted(s, o)));
}

/* `more`: that may have ended, too */
static inline void final_counts(struct self *s, struct fid_cntr *cntr, uint64_t good, uint64_t more,
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
static inline void final_counter(struct self *s, unsigned int ep, unsigned int which)
{
	uint64_t good = 0, more = 0, bad = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const struct entry *e = NULL;

		if (l->at.proc != s->me || l->at.ep != ep || l->start == START_DEFERRED ||
		    l->how == HOW_DISCARD || !(history_flags[l->verb] & proc_counts[which]))
			continue;
		good += final_counted(s, o);
		more += final_may_end(s, o);
		while ((e = world_entry(s->w, o, e))) {
			good += !e->err && e->flags & proc_counts[which];
			bad += e->err && e->err != FI_ECANCELED;
		}
	}
	final_counts(s, s->ends[ep].counters[which], good, more, bad, proc_count_names[which]);
}

/* counters: deferred work that has ended */
static inline void final_deferred(struct self *s, unsigned int ep)
{
	uint64_t good = 0, more = 0, bad = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const struct entry *e = world_entry(s->w, o, NULL);

		if (l->at.proc != s->me || l->at.ep != ep || l->start != START_DEFERRED)
			continue;
		more += final_may_end(s, o);
		good += e && !e->err;
		bad += e && e->err != 0;
	}
	final_counts(s, s->ends[ep].done, good, more, bad, "deferred work");
}

/* counters: each error of what sends, writes or reads has an entry, also if success has none */
static inline void final_errors(struct self *s)
{
	uint64_t reported = s->unnamed, counted = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);
		const struct entry *e = world_entry(s->w, o, NULL);

		reported += l->at.proc == s->me && !line_receives(l) &&
			    l->start != START_DEFERRED && !op_orphan(s->w, o) && e && e->err &&
			    e->err != FI_ECANCELED;
	}
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		for (unsigned int j = 0; j < PROC_COUNTERS; j++)
			if (j != COUNT_RECEIVES)
				counted += fi_cntr_readerr(s->ends[i].counters[j]);
	if (reported != counted)
		PROC_FAIL(s, "counters: %" PRIu64 " errors in p%u, reported are %" PRIu64, counted,
			  s->me, reported);
}

/* What the counters say has ended: reads have brought their bytes. */
static inline void final_silent(struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		struct op *o = &s->w->ops[i];
		const struct line *l = world_line(s->w, o);

		if (l->at.proc != s->me || !line_silent(l) || !s->buffers[i])
			continue;
		if (final_counted(s, o) && !world_any_left(s->w))
			took_result(s, o);
		proc_buffer_free(s, o);
	}
}

static inline void final(struct self *s)
{
	round_owed(s);
	final_silent(s);
	final_memory(s);
	final_over(s);
	if (s->w->program.counters)
		final_errors(s);
	if (world_any_left(s->w))
		return;
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		if (s->ends[i].done)
			final_deferred(s, i);
	for (unsigned int i = 0; i < s->w->program.eps && s->w->program.counters; i++)
		for (unsigned int j = 0; j < PROC_COUNTERS; j++)
			final_counter(s, i, j);
}

#endif
