/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a program that fails as short as it can be. Needs trial.h. */
#ifndef GENERATED_SHRINK_H
#define GENERATED_SHRINK_H

enum { SHRINK_TIMES = 4 /* a candidate has to pass, to be good */, SHRINK_SECONDS = 40 };

struct shrink {
	struct program best;
	char why[512];
	double end;
};

/* Returns whether `p` fails, and keeps it then. */
static inline bool shrink_keep(struct shrink *s, const struct program *p)
{
	char why[sizeof(s->why)];

	for (int i = 0; i < SHRINK_TIMES && api_seconds() < s->end; i++)
		if (trial(p, why, sizeof(why)) == TRIAL_BAD) {
			memcpy(s->why, why, sizeof(why));
			s->best = *p;
			return true;
		}
	return false;
}

static inline bool shrink_without(struct shrink *s, unsigned int from, unsigned int count)
{
	struct program p = s->best;

	if (count > p.count - from)
		count = p.count - from;
	memmove(&p.lines[from], &p.lines[from + count],
		(p.count - from - count) * sizeof(p.lines[0]));
	p.count -= count;
	return shrink_keep(s, &p);
}

static inline void shrink_lines(struct shrink *s)
{
	for (unsigned int part = (s->best.count + 1) / 2; part; part /= 2)
		for (unsigned int from = 0; from < s->best.count;)
			if (!shrink_without(s, from, part))
				from += part;
}

static inline void shrink_sets(struct shrink *s)
{
	for (unsigned int i = 0; i < s->best.set_count;) {
		struct program p = s->best;

		memmove(p.sets[i], p.sets[i + 1], (p.set_count - i - 1) * sizeof(p.sets[0]));
		p.set_count--;
		i += !shrink_keep(s, &p);
	}
}

/* Makes a value its usual one, else half of it, as often as that fails. */
static inline void shrink_value(struct shrink *s, const struct key *k, size_t of)
{
	for (;;) {
		struct program p = s->best;
		uint64_t *value = key_value(k, (char *)&p + of), was = *value;

		if (was == k->usual)
			return;
		*value = k->usual;
		program_mend(&p);
		if (program_valid(&p) && shrink_keep(s, &p))
			return;
		p = s->best;
		*value = k->words ? k->usual : was / 2;
		program_mend(&p);
		if (*value == k->usual || *value == was || !program_valid(&p) ||
		    !shrink_keep(s, &p))
			return;
	}
}

static inline void shrink_values(struct shrink *s)
{
	for (size_t k = 1; k < API_COUNT(program_keys); k++)
		shrink_value(s, &program_keys[k], 0);
	for (unsigned int i = 0; i < s->best.count; i++)
		for (size_t k = 0; k < API_COUNT(line_keys); k++)
			shrink_value(s, &line_keys[k],
				     offsetof(struct program, lines) + i * sizeof(struct line));
}

/* Prints the shortest program found that fails. */
static inline void shrink(const struct program *p)
{
	static struct shrink s;

	s = (struct shrink){.end = api_seconds() + SHRINK_SECONDS * world_slower()};
	if (!shrink_keep(&s, p)) {
		printf("# passes when run again\n");
		program_print(p, stdout);
		return;
	}
	shrink_lines(&s);
	shrink_sets(&s);
	shrink_values(&s);
	shrink_lines(&s);
	printf("# %s\n", s.why);
	program_print(&s.best, stdout);
}

#endif
