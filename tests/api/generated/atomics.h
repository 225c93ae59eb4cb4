/* SPDX-License-Identifier: BSD-2-Clause */
/* What the words that all add to and swap hold at the end. Needs judge.h. */
#ifndef GENERATED_ATOMICS_H
#define GENERATED_ATOMICS_H

/* atomics: the words hold what was added, and those who fetched saw each value between once */
static inline void atomics_adds(struct world *w, const struct matching *x, unsigned int proc,
				unsigned int word)
{
	static bool seen[WORLD_OPS + 1];
	uint64_t sum = 0, unknown = 0, end = w->procs[proc].words[word];

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if ((l->verb != VERB_ADD && l->verb != VERB_FETCH) || l->with.proc != proc ||
		    l->tag % WORLD_WORDS != word)
			continue;
		unknown += judge_unknown(w, x, o);
		if (judge_unknown(w, x, o) || !judge_performed(w, x, o))
			continue;
		sum++;
		if (l->verb == VERB_ADD)
			continue;
		if (o->old >= end || seen[o->old])
			world_fail(w,
				   "atomics: %s saw %" PRIu64 ", seen before or not below %" PRIu64,
				   world_name(w, o), o->old, end);
		else
			seen[o->old] = true;
	}
	if (end < sum || end > sum + unknown)
		world_fail(w, "atomics: word %u of p%u is %" PRIu64 " after %" PRIu64 " times 1",
			   word, proc, end, sum);
}

/* atomics: one of those who swap saw 0, all others its number */
static inline void atomics_swaps(struct world *w, const struct matching *x, unsigned int proc,
				 unsigned int word)
{
	uint64_t end = w->procs[proc].words[WORLD_WORDS + word];

	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if (l->verb == VERB_SWAP && l->with.proc == proc && l->tag % WORLD_WORDS == word &&
		    judge_performed(w, x, o) && !world_any_left(w) &&
		    o->old != (end == i + 1 ? 0 : end))
			world_fail(w, "atomics: %s saw %" PRIu64 ", and the word is %" PRIu64,
				   world_name(w, o), o->old, end);
	}
}

static inline void atomics(struct world *w, const struct matching *x)
{
	for (unsigned int i = 0; i < w->program.procs; i++)
		for (unsigned int j = 0; j < WORLD_WORDS && !world_left(w, i); j++) {
			atomics_adds(w, x, i, j);
			atomics_swaps(w, x, i, j);
		}
}

#endif
