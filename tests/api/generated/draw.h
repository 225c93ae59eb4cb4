/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a program from a seed: the same one each time. Needs program.h. */
#ifndef GENERATED_DRAW_H
#define GENERATED_DRAW_H

struct draw {
	struct program *p;
	uint64_t state;
	uint64_t bytes;                 /* that messages may still have */
	uint64_t ops;                   /* operations that lines may still begin */
	bool later;                     /* some operations begin later */
	bool multi;                     /* some buffers are for many messages */
	bool looks;                     /* some messages are claimed or discarded */
	unsigned int one_sided;         /* percent */
	uint64_t places[PROGRAM_LINES]; /* of the lines: they are sorted by it */
};

static inline uint64_t draw_next(struct draw *d)
{
	uint64_t z = d->state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* 0 to `below` - 1 */
static inline uint64_t draw_below(struct draw *d, uint64_t below)
{
	return draw_next(d) % below;
}

static inline uint64_t draw_between(struct draw *d, uint64_t least, uint64_t most)
{
	return least + draw_below(d, most - least + 1);
}

static inline bool draw_percent(struct draw *d, unsigned int percent)
{
	return draw_below(d, 100) < percent;
}

#define DRAW_LONGEST (4u << 20)

/* What is special in one seed of five. */
enum special {
	DRAW_CONNECTED,
	DRAW_LEVELS, /* of threading */
	DRAW_SELECTIVE,
	DRAW_SLEEPS, /* until woken */
	DRAW_SPECIALS = 5,
};

static inline bool draw_is(uint64_t seed, enum special special)
{
	return seed % DRAW_SPECIALS == special;
}

#define DRAW_ONE(d, array) ((array)[draw_below(d, API_COUNT(array))])

/* Most are short; many are about where the library changes its way. */
static inline uint64_t draw_len(struct draw *d)
{
	static const uint64_t edges[] = {64,     128,    192,    256,    1024,  2048,
					 4096,   8192,   16384,  32768,  65536, 100000,
					 131072, 262144, 524288, 1048576};
	uint64_t kind = draw_below(d, 100), len;

	if (kind < 15)
		len = draw_below(d, 9);
	else if (kind < 50)
		len = draw_below(d, 257);
	else if (kind < 65)
		len = draw_below(d, 20000);
	else if (kind < 97)
		len = DRAW_ONE(d, edges) - 1 + draw_below(d, 3);
	else
		len = draw_below(d, DRAW_LONGEST);
	return len < d->bytes ? len : draw_below(d, 65);
}

static inline struct line *draw_line(struct draw *d, enum verb verb, struct place at, uint64_t when)
{
	struct line *l = &d->p->lines[d->p->count];

	if (d->p->count == PROGRAM_LINES)
		return NULL;
	*l = (struct line){.verb = verb, .at = at, .with = {PLACE_ANY, 0}, .n = 1, .completion = 1};
	d->places[d->p->count++] = when;
	return l;
}

static inline struct place draw_place(struct draw *d)
{
	return (struct place){draw_below(d, d->p->procs), draw_below(d, d->p->eps)};
}

static inline uint64_t draw_when(struct draw *d)
{
	return draw_below(d, 1 << 20);
}

/* How often a line does the same. */
static inline uint64_t draw_n(struct draw *d, uint64_t len)
{
	uint64_t n = draw_percent(d, 75)   ? 1
		     : draw_percent(d, 60) ? draw_between(d, 2, 12)
					   : draw_between(d, 13, 300);

	if (n > d->ops / 2)
		n = 1;
	return len && n > d->bytes / len ? 1 : n;
}

/* How a line calls. */
static inline void draw_call(struct draw *d, struct line *l)
{
	l->form = draw_below(d, FORM_COUNT);
	if (draw_percent(d, 30))
		l->level = draw_between(d, 1, API_COUNT(level_words) - 2);
	l->data = draw_percent(d, 20);
	l->fence = !d->later && draw_percent(d, 15); /* nobody knows which comes first */
	if (d->later && draw_percent(d, 30)) {
		l->start = draw_between(d, 1, START_COUNT - 1);
		l->after = draw_between(d, 1, 6);
	}
	if (l->n > 1 && !l->between && draw_percent(d, 40))
		l->between = draw_between(d, 1, 2);
	line_mend(l);
	d->bytes -= l->len * l->n < d->bytes ? l->len * l->n : d->bytes;
	d->ops -= l->n < d->ops ? l->n : d->ops;
}

/* A receive that may take what `m` sends. */
static inline void draw_recv(struct draw *d, const struct line *m, uint64_t n)
{
	static const uint64_t masks[] = {0, 0, 0, 1, 3, UINT64_MAX};
	struct line *l =
		draw_line(d, m->verb == VERB_SEND ? VERB_RECV : VERB_TRECV, m->with, draw_when(d));

	if (!l)
		return;
	l->n = n;
	l->len = draw_percent(d, 70)   ? m->len
		 : draw_percent(d, 70) ? m->len + draw_below(d, 5000)
				       : draw_below(d, m->len + 1);
	if (draw_percent(d, 30) || d->p->kind == KIND_MSG)
		l->with = m->at;
	if (l->verb == VERB_TRECV) {
		l->tag = m->tag;
		l->ignore = DRAW_ONE(d, masks);
	} else if (d->multi && draw_percent(d, 30)) {
		l->multi = 1;
		l->n = 1;
		l->len = m->len + draw_below(d, 3 * m->len < 100000 ? 3 * m->len + 300 : 100000);
	}
	if (l->len > DRAW_LONGEST)
		l->len = DRAW_LONGEST;
	if (d->looks && draw_percent(d, 30)) {
		l->how = draw_between(d, 1, HOW_COUNT - 1);
		l->n = l->n < 20 ? l->n : 20;
	}
	draw_call(d, l);
}

/* No connected endpoint has a link to itself. */
static inline struct place draw_other_place(const struct draw *d, struct place at,
					    struct place with)
{
	if (d->p->kind == KIND_MSG && place_same(at, with))
		with.proc = (with.proc + 1) % d->p->procs;
	return with;
}

static inline struct place draw_peer(struct draw *d, struct place at)
{
	struct place with = draw_place(d);

	if (with.proc == at.proc && draw_percent(d, 85))
		with.proc = (with.proc + 1) % d->p->procs;
	return draw_other_place(d, at, with);
}

static inline void draw_message(struct draw *d)
{
	uint64_t len = draw_len(d);
	struct line *l = draw_line(d, draw_percent(d, 65) ? VERB_TSEND : VERB_SEND, draw_place(d),
				   draw_when(d));

	if (!l)
		return;
	l->len = len;
	l->with = draw_peer(d, l->at);
	l->n = draw_n(d, len);
	if (l->verb == VERB_TSEND)
		l->tag = draw_below(d, 4);
	draw_call(d, l);
	if (draw_percent(d, 85))
		draw_recv(d, l, draw_percent(d, 80) ? l->n : draw_between(d, 1, l->n));
	if (draw_percent(d, 10))
		draw_recv(d, l, 1);
}

static inline void draw_one_sided(struct draw *d)
{
	uint64_t len = draw_len(d);
	struct line *l =
		draw_line(d, draw_between(d, VERB_WRITE, VERB_SWAP), draw_place(d), draw_when(d));

	if (!l)
		return;
	l->len = len;
	l->with = draw_peer(d, l->at);
	if (l->verb >= VERB_ADD)
		l->tag = draw_below(d, 3);
	l->n = draw_n(d, len);
	draw_call(d, l);
}

/* One that sends without pause, and looks at little after each: it must hear the others, too. */
static inline void draw_pump(struct draw *d)
{
	struct line *l = draw_line(d, VERB_SEND, draw_place(d), draw_when(d));

	if (!l)
		return;
	l->with = draw_other_place(d, l->at, draw_place(d));
	l->len = draw_below(d, 200);
	l->n = draw_between(d, 300, 1500);
	l->between = 1;
	draw_call(d, l);
}

/* What a process does between. */
static inline void draw_other(struct draw *d)
{
	static const enum verb verbs[] = {VERB_ROUND, VERB_ROUND, VERB_ROUND, VERB_ROUND,
					  VERB_WAIT,  VERB_AWAIT, VERB_AWAIT, VERB_CANCEL,
					  VERB_SLEEP, VERB_STOP};
	enum verb verb = d->later && draw_percent(d, 50) ? VERB_BEGIN : DRAW_ONE(d, verbs);
	struct line *l = draw_line(d, verb, draw_place(d), draw_when(d));

	if (!l)
		return;
	if (l->verb == VERB_ROUND)
		l->n = draw_between(d, 1, 20);
	if (l->verb == VERB_BEGIN)
		l->n = draw_between(d, 1, 3);
	if (l->verb == VERB_WAIT || l->verb == VERB_SLEEP || l->verb == VERB_STOP)
		l->us = draw_below(d, 2000);
}

/* One process ends before the others have done all; some notice that it comes again. */
static inline void draw_end(struct draw *d)
{
	struct line *l = draw_line(d, VERB_LEAVE, draw_place(d), draw_when(d));
	uint64_t when = d->places[d->p->count - 1], again;

	if (!l)
		return;
	if (draw_percent(d, 50)) {
		l->verb = VERB_DIE;
		l->us = draw_percent(d, 50) ? draw_below(d, 2000) : 0;
	}
	again = l->again = draw_percent(d, 70);
	for (uint64_t i = 0; i < d->p->procs && again; i++) {
		struct line *n = NULL;

		if (i != l->at.proc && draw_percent(d, 70))
			n = draw_line(d, VERB_NOTICE, (struct place){i, 0},
				      draw_between(d, when, 1 << 20));
		if (n)
			n->with = (struct place){l->at.proc, 0};
	}
}

/* How processes find and wait for entries. */
static inline void draw_waits(struct draw *d)
{
	uint64_t n = draw_percent(d, 40) ? draw_between(d, 1, 4) : 0;

	d->p->looks = draw_percent(d, 25);
	if (draw_percent(d, 50))
		d->p->waits = draw_below(d, API_COUNT(wait_words) - 1);
	while (n--) {
		struct line *l = draw_line(d, draw_percent(d, 70) ? VERB_DOZE : VERB_TALLY,
					   draw_place(d), draw_when(d));

		if (l && l->verb == VERB_TALLY)
			l->us = draw_below(d, 3000);
	}
}

static inline void draw_settings(struct draw *d)
{
	static const char *const sets[] = {
		"FI_WEFT_UNEXPECTED_MAX=65536", "FI_WEFT_UNEXPECTED_MAX=16384",

		"FI_SHM_DISABLE_CMA=yes",       "FI_WEFT_EAGER_MAX=8192",
		"FI_WEFT_EAGER_MAX=16384",      "FI_WEFT_TCP_EAGER_MAX=4096",
		"FI_WEFT_JOINT_MIN=-1",         "FI_WEFT_RING_SIZE=65536",
	};
	static const uint64_t batches[] = {1, 1, 2, 8, 64};
	struct program *p = d->p;

	p->procs = draw_percent(d, 60) ? 2 : draw_between(d, 2, PROGRAM_PROCS);
	p->eps = draw_percent(d, 60) ? 1 : draw_between(d, 1, PROGRAM_EPS);
	p->batch = DRAW_ONE(d, batches);
	p->queues = draw_below(d, API_COUNT(queue_words) - 1);
	p->av = draw_below(d, 2);
	p->keys = draw_below(d, 2);
	p->counters = draw_below(d, 2);
	d->later = draw_percent(d, 25);
	d->multi = draw_percent(d, 30);
	d->looks = !d->later && draw_percent(d, 25); /* what is discarded cannot be named */
	p->progress = draw_percent(d, 20);
	p->threading = draw_percent(d, 30);
	p->helper = draw_percent(d, 15);
	d->one_sided = draw_percent(d, 50) ? 0 : (unsigned int)draw_below(d, 90);
	if (draw_percent(d, 20))
		p->cq_size = draw_between(d, 1, 16);
	if (draw_percent(d, 20))
		p->tx_size = draw_between(d, 1, 16);
	while (draw_percent(d, 25) && p->set_count < PROGRAM_SETS)
		strcpy(p->sets[p->set_count++], DRAW_ONE(d, sets));
}

/* Some writes and reads of a program are of one place, some calls say that more follow. */
static inline void draw_again(struct draw *d)
{
	bool over = draw_percent(d, 40), more = draw_percent(d, 40);

	for (unsigned int i = 0; i < d->p->count; i++) {
		struct line *l = &d->p->lines[i];

		l->over = over && draw_percent(d, 70);
		l->more = more && draw_percent(d, 70);
		line_mend(l);
		if (!line_begins(l))
			l->over = l->more = 0;
	}
}

/* Some operations have no entry. */
static inline void draw_selective(struct draw *d)
{
	d->p->selective = draw_between(d, SELECTIVE_YES, SELECTIVE_PLAIN);
	for (unsigned int i = 0; i < d->p->count; i++)
		d->p->lines[i].completion = draw_percent(d, 40);
}

/* Processes sleep in calls that wait for all that may come. */
static inline void draw_sleeps(struct draw *d)
{
	d->p->waits = draw_between(d, WAITS_SET, WAITS_FD);
	for (uint64_t n = draw_between(d, 2, 6); n; n--)
		draw_line(d, VERB_DOZE, draw_place(d), draw_when(d));
}

/* Puts the lines in their places. */
static inline void draw_sort(struct draw *d)
{
	for (unsigned int i = 1; i < d->p->count; i++)
		for (unsigned int j = i; j && d->places[j] < d->places[j - 1]; j--) {
			struct line l = d->p->lines[j];
			uint64_t place = d->places[j];

			d->p->lines[j] = d->p->lines[j - 1];
			d->places[j] = d->places[j - 1];
			d->p->lines[j - 1] = l;
			d->places[j - 1] = place;
		}
}

static inline void draw(struct program *p, uint64_t seed)
{
	struct draw d = {.p = p, .state = seed * 2 + 1, .bytes = 24 << 20, .ops = 1500};
	uint64_t messages, others;

	program_new(p);
	p->kind = draw_is(seed, DRAW_CONNECTED) ? KIND_MSG : KIND_RDM;
	draw_settings(&d);
	messages = draw_between(&d, 2, draw_percent(&d, 70) ? 20 : 80);
	others = draw_below(&d, messages);
	while (messages--)
		if (draw_percent(&d, d.one_sided))
			draw_one_sided(&d);
		else
			draw_message(&d);
	while (others--)
		draw_other(&d);
	if (draw_percent(&d, 10))
		draw_pump(&d);
	if (!d.looks && draw_percent(&d, 20))
		draw_end(&d);
	draw_waits(&d);
	draw_again(&d);
	if (draw_is(seed, DRAW_SLEEPS))
		draw_sleeps(&d);
	draw_sort(&d);
	if (draw_is(seed, DRAW_CONNECTED) || draw_is(seed, DRAW_LEVELS))
		p->threading = draw_below(&d, API_COUNT(threading_words) - 1);
	if (draw_is(seed, DRAW_SELECTIVE) ||
	    (draw_is(seed, DRAW_CONNECTED) && draw_percent(&d, 30)))
		draw_selective(&d);
	program_mend(p);
}

#endif
