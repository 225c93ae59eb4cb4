/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A generated program is text: what holds for all, then lines, each what one process does.
 *
 *	program processes=2 endpoints=1 batch=1 queues=one
 *	set FI_WEFT_UNEXPECTED_MAX=65536
 *	p0.e0 tsend with=p1.e0 tag=1 len=25000 n=40
 *	p1.e0 trecv tag=2 len=8
 *
 * Each process does its lines in order, without waiting for what they began. Any part of the lines
 * is a program, too: what is left without a partner is taken back at the end.
 *
 * Endpoints are reliable datagrams, or, with kind=msg, connected: then each place has an endpoint for
 * each other place, a link, and its lines name the other end, receives too. With selective=yes what
 * sends, writes or reads has an entry only where its line says completion=yes: counters tell of the rest.
 * Needs line.h.
 */
#ifndef GENERATED_PROGRAM_H
#define GENERATED_PROGRAM_H

static const char *const kind_words[] = {"rdm", "msg", NULL};
static const char *const key_words[] = {"given", "chosen", NULL};
static const char *const progress_words[] = {"manual", "auto", NULL};
static const char *const threading_words[] = {"domain",   "safe",       "fid",
					      "endpoint", "completion", NULL};
static const char *const queue_words[] = {"own", "one", "all", NULL};
static const char *const wait_words[] = {"sread", "set", "fd", NULL};
static const char *const look_words[] = {"read", "poll", NULL};
static const char *const selective_words[] = {"no", "yes", "plain", NULL};
static const char *const av_words[] = {"map", "table", NULL};

enum kind {
	KIND_RDM,
	KIND_MSG, /* connected: a link for each pair of places, and receives of one link each */
};

enum queues {
	QUEUES_OWN, /* one for sends and one for receives of each endpoint */
	QUEUES_ONE, /* one for an endpoint */
	QUEUES_ALL, /* one for a process */
};

enum waits {
	WAITS_SREAD, /* fi_cq_sread of each queue */
	WAITS_SET,   /* fi_wait */
	WAITS_FD,    /* fi_trywait and poll */
};

enum selective {
	SELECTIVE_NO,
	SELECTIVE_YES,   /* FI_SELECTIVE_COMPLETION: calls without flags have no entry */
	SELECTIVE_PLAIN, /* they have one by default: FI_COMPLETION in op_flags */
};

struct program {
	uint64_t kind; /* of endpoints */
	uint64_t selective;
	uint64_t procs, eps, batch, queues, cq_size, tx_size, av;
	uint64_t progress, threading;
	uint64_t waits;  /* how a process sleeps */
	uint64_t looks;  /* at each queue, or at those that a poll set names */
	uint64_t helper; /* a second thread of each process makes progress: FI_THREAD_SAFE */
	uint64_t keys; /* of memory: chosen by the program, with offsets, or given by the library */
	uint64_t counters;                     /* of sends, receives, reads and writes */
	char sets[PROGRAM_SETS][PROGRAM_WORD]; /* NAME=VALUE for the environment */
	unsigned int set_count;
	struct line lines[PROGRAM_LINES];
	unsigned int count;
};

static const struct key program_keys[] = {
	{"processes", offsetof(struct program, procs), 0, NULL},
	{"kind", offsetof(struct program, kind), KIND_RDM, kind_words},
	{"endpoints", offsetof(struct program, eps), 1, NULL},
	{"batch", offsetof(struct program, batch), 1, NULL},
	{"queues", offsetof(struct program, queues), QUEUES_OWN, queue_words},
	{"cq_size", offsetof(struct program, cq_size), 0, NULL},
	{"tx_size", offsetof(struct program, tx_size), 0, NULL},
	{"av", offsetof(struct program, av), 0, av_words},
	{"keys", offsetof(struct program, keys), 0, key_words},
	{"progress", offsetof(struct program, progress), 0, progress_words},
	{"threading", offsetof(struct program, threading), 0, threading_words},
	{"helper", offsetof(struct program, helper), 0, no_yes},
	{"counters", offsetof(struct program, counters), 0, no_yes},
	{"selective", offsetof(struct program, selective), SELECTIVE_NO, selective_words},
	{"waits", offsetof(struct program, waits), WAITS_SREAD, wait_words},
	{"looks", offsetof(struct program, looks), 0, look_words},
};

/*
 * Receives and deferred work always have an entry, that their messages can be told; a fence needs one to
 * tell what it waits for.
 */
static inline void program_mend_completion(const struct program *p, struct line *l)
{
	bool asks = p->selective && line_begins(l) && !line_receives(l);

	if (!asks || l->start == START_DEFERRED || l->form == FORM_INJECT)
		l->completion = 1;
	else if (l->form != FORM_MSG)
		l->completion = p->selective == SELECTIVE_PLAIN;
	if (asks)
		l->fence = 0;
}

/* Makes lines possible in their program. */
static inline void program_mend(struct program *p)
{
	if (p->selective)
		p->counters = 1;
	for (unsigned int i = 0; i < p->count; i++) {
		struct line *l = &p->lines[i];

		line_mend(l);
		if (p->kind == KIND_MSG)
			l->again = 0; /* an endpoint is connected once */
		program_mend_completion(p, l);
	}
}

static inline void program_print(const struct program *p, FILE *to)
{
	fprintf(to, "program");
	keys_print(program_keys, API_COUNT(program_keys), p, to);
	fprintf(to, "\n");
	for (unsigned int i = 0; i < p->set_count; i++)
		fprintf(to, "set %s\n", p->sets[i]);
	for (unsigned int i = 0; i < p->count; i++) {
		line_print(&p->lines[i], to);
		fprintf(to, "\n");
	}
}

/* One line of the text. Returns whether it is valid. */
static inline bool program_take(struct program *p, char *text)
{
	char *word;

	text[strcspn(text, "\n")] = 0;
	if (!*text || *text == '#')
		return true;
	if (!strncmp(text, "set ", 4)) {
		if (p->set_count == PROGRAM_SETS || strlen(text + 4) >= PROGRAM_WORD)
			return false;
		strcpy(p->sets[p->set_count++], text + 4);
		return true;
	}
	if (strncmp(text, "program ", 8) != 0)
		return p->count < PROGRAM_LINES && line_take(&p->lines[p->count++], text);
	text += 8;
	while ((word = strsep(&text, " ")))
		if (!keys_take(program_keys, API_COUNT(program_keys), p, word))
			return false;
	return true;
}

static inline void program_new(struct program *p)
{
	memset(p, 0, sizeof(*p));
	keys_usual(program_keys, API_COUNT(program_keys), p);
}

/* Returns whether the line names whom it needs; connected endpoints have no link to themselves. */
static inline bool program_line_valid(const struct program *p, const struct line *l)
{
	bool linked = p->kind == KIND_MSG && line_begins(l);

	if (l->with.proc == PLACE_ANY)
		return !linked && !line_directed(l);
	return l->with.proc < p->procs && l->with.ep < p->eps &&
	       !(linked && place_same(l->at, l->with));
}

/* Returns whether all lines name processes and endpoints there are. */
static inline bool program_valid(const struct program *p)
{
	if (!p->procs || p->procs > PROGRAM_PROCS || !p->eps || p->eps > PROGRAM_EPS || !p->batch)
		return false;
	for (unsigned int i = 0; i < p->count; i++) {
		const struct line *l = &p->lines[i];

		if (l->at.proc >= p->procs || l->at.ep >= p->eps || !program_line_valid(p, l) ||
		    (l->form == FORM_INJECT && l->len > PROGRAM_INJECT))
			return false;
	}
	return true;
}

static inline bool program_read(struct program *p, const char *path)
{
	FILE *from = fopen(path, "r");
	char text[512];
	bool good = from;

	program_new(p);
	while (good && fgets(text, sizeof(text), from)) {
		char was[512];

		strcpy(was, text);
		good = program_take(p, text);
		if (!good)
			fprintf(stderr, "%s: not understood: %s", path, was);
	}
	if (from)
		fclose(from);
	else
		perror(path);
	program_mend(p);
	return good && program_valid(p);
}

#endif
