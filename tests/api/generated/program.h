/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A generated program is text: what holds for all, then lines, each what one process does.
 *
 *	program processes=2 endpoints=1 batch=1 queues=one
 *	set FI_WEFT_UNEXPECTED_MAX=65536
 *	p0.e0 tsend to=p1.e0 tag=1 len=25000 n=40
 *	p1.e0 trecv tag=2 len=8
 *
 * Each process does its lines in order, without waiting for what they began. Any part of the lines
 * is a program, too: what is left without a partner is taken back at the end. Needs keys.h.
 */
#ifndef GENERATED_PROGRAM_H
#define GENERATED_PROGRAM_H

enum {
	PROGRAM_PROCS = 4,
	PROGRAM_EPS = 3, /* endpoints of a process, at most */
	PROGRAM_LINES = 512,
	PROGRAM_SETS = 8,
	PROGRAM_WORD = 64,
	PROGRAM_INJECT = 4096, /* bytes that may be injected */
	PROGRAM_MULTI = 64,    /* bytes left with which a buffer for many messages is released */
};

enum verb {
	VERB_SEND,
	VERB_TSEND,
	VERB_RECV,
	VERB_TRECV,
	VERB_WRITE, /* to a place of its own in the memory of the other process */
	VERB_READ,
	VERB_ADD,   /* 1 to the word `tag` */
	VERB_FETCH, /* the same, and brings what it was */
	VERB_SWAP,  /* the word `tag` becomes the number of the operation if it was 0 */
	/* from here on nothing begins: */
	VERB_BEGIN,  /* adds `n` to the counter that operations of `start` wait for */
	VERB_CANCEL, /* the oldest `n` receives that wait */
	VERB_ROUND,  /* `n` times; see world.h */
	VERB_WAIT,   /* for what comes, `us` at most */
	VERB_DOZE,   /* sleeps until nothing is owed to it */
	VERB_TALLY,  /* waits until each counter has one more, `us` at most */
	VERB_AWAIT,  /* rounds until all receives have ended, or nothing more can come */
	VERB_SLEEP,
	VERB_LEAVE,  /* closes all, and does nothing any more, or comes again */
	VERB_DIE,    /* is killed now; or after `us`, while it goes on */
	VERB_NOTICE, /* waits until the process `with` has left and come again */
	VERB_STOP,   /* the process is stopped after `us`, for as long */
	VERB_COUNT
};

static const char *const verb_names[] = {"send", "tsend",  "recv",  "trecv", "write",  "read",
					 "add",  "fetch",  "swap",  "begin", "cancel", "round",
					 "wait", "doze",   "tally", "await", "sleep",  "leave",
					 "die",  "notice", "stop"};

enum form {
	FORM_PLAIN,
	FORM_VECTOR, /* three pieces */
	FORM_MSG,
	FORM_INJECT,
	FORM_COUNT
};

enum start {
	START_NOW,
	START_TRIGGER,  /* FI_TRIGGER in the call */
	START_ALIAS,    /* an alias with FI_TRIGGER */
	START_DEFERRED, /* FI_QUEUE_WORK */
	START_COUNT
};

static const char *const start_words[] = {"now", "trigger", "alias", "deferred", NULL};
/* How a message is received. */
enum how {
	HOW_POST,
	HOW_CLAIM,   /* FI_PEEK | FI_CLAIM until there is one, then FI_CLAIM */
	HOW_DISCARD, /* FI_PEEK | FI_DISCARD until there is one */
	HOW_COUNT
};

static const char *const how_words[] = {"post", "claim", "discard", NULL};
static const char *const form_words[] = {"plain", "vector", "msg", "inject", NULL};
static const char *const level_words[] = {"usual", "inject", "transmit", "delivery", "match", NULL};
static const uint64_t level_flags[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
				       FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE};
static const char *const no_yes[] = {"no", "yes", NULL};
static const char *const key_words[] = {"given", "chosen", NULL};
static const char *const progress_words[] = {"manual", "auto", NULL};
static const char *const threading_words[] = {"domain", "safe", NULL};
static const char *const queue_words[] = {"own", "one", "all", NULL};
static const char *const wait_words[] = {"sread", "set", "fd", NULL};
static const char *const look_words[] = {"read", "poll", NULL};
static const char *const av_words[] = {"map", "table", NULL};

/* The place of an endpoint; `proc` and `ep` of the line itself, and of its partner. */
struct place {
	uint64_t proc, ep;
};

#define PLACE_ANY UINT64_MAX

struct line {
	enum verb verb;
	struct place at;
	struct place with; /* .proc: PLACE_ANY */
	uint64_t tag, ignore, len, n, us;
	uint64_t between; /* rounds after each of the `n` */
	uint64_t form, level;
	uint64_t data;  /* with remote CQ data: the number of the operation + 1 */
	uint64_t fence; /* of FORM_MSG */
	uint64_t start; /* when the operation begins */
	uint64_t after; /* value of the counter */
	uint64_t how;
	uint64_t multi; /* a buffer for many messages */
	uint64_t over;  /* a write to, or a read of, the one place of both endpoints */
	uint64_t more;  /* FI_MORE in all but the last of `n` */
	uint64_t again; /* who leaves or dies comes again, at its addresses */
};

static const struct key line_keys[] = {
	{"tag", offsetof(struct line, tag), 0, NULL},
	{"ignore", offsetof(struct line, ignore), 0, NULL},
	{"len", offsetof(struct line, len), 0, NULL},
	{"n", offsetof(struct line, n), 1, NULL},
	{"us", offsetof(struct line, us), 0, NULL},
	{"between", offsetof(struct line, between), 0, NULL},
	{"form", offsetof(struct line, form), FORM_PLAIN, form_words},
	{"data", offsetof(struct line, data), 0, no_yes},
	{"fence", offsetof(struct line, fence), 0, no_yes},
	{"start", offsetof(struct line, start), START_NOW, start_words},
	{"after", offsetof(struct line, after), 0, NULL},
	{"how", offsetof(struct line, how), HOW_POST, how_words},
	{"multi", offsetof(struct line, multi), 0, no_yes},
	{"level", offsetof(struct line, level), 0, level_words},
	{"over", offsetof(struct line, over), 0, no_yes},
	{"more", offsetof(struct line, more), 0, no_yes},
	{"again", offsetof(struct line, again), 0, no_yes},
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

struct program {
	uint64_t procs, eps, batch, queues, cq_size, tx_size, av;
	uint64_t progress, threading;
	uint64_t waits; /* how a process sleeps */
	uint64_t looks; /* at each queue, or at those that a poll set names */
	uint64_t
		helper; /* FI_THREAD_SAFE alone: a second thread of each process makes progress, too */
	uint64_t keys; /* of memory: chosen by the program, with offsets, or given by the library */
	uint64_t counters;                     /* of sends, receives, reads and writes */
	char sets[PROGRAM_SETS][PROGRAM_WORD]; /* NAME=VALUE for the environment */
	unsigned int set_count;
	struct line lines[PROGRAM_LINES];
	unsigned int count;
};

static const struct key program_keys[] = {
	{"processes", offsetof(struct program, procs), 0, NULL},
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
	{"waits", offsetof(struct program, waits), WAITS_SREAD, wait_words},
	{"looks", offsetof(struct program, looks), 0, look_words},
};

static inline bool place_same(struct place a, struct place b)
{
	return a.proc == b.proc && a.ep == b.ep;
}

static inline bool line_begins(const struct line *l)
{
	return l->verb < VERB_BEGIN;
}

static inline bool line_sends(const struct line *l)
{
	return l->verb == VERB_SEND || l->verb == VERB_TSEND;
}

static inline bool line_receives(const struct line *l)
{
	return l->verb == VERB_RECV || l->verb == VERB_TRECV;
}

/*
 * Returns whether what `first` calls begins before what a later line of its endpoint calls: work with
 * FI_TRIGGER is begun in the order of the thresholds, then of the calls.
 */
static inline bool line_begins_before(const struct line *first, const struct line *second)
{
	return place_same(first->at, second->at) && first->start != START_DEFERRED &&
	       second->start != START_DEFERRED && first->after <= second->after;
}

/* Returns whether both have the same one place. */
static inline bool line_over(const struct line *a, const struct line *b)
{
	return a->over && b->over && place_same(a->at, b->at) && place_same(a->with, b->with);
}

/* Returns whether a line is nothing without a partner. */
static inline bool line_directed(const struct line *l)
{
	return l->verb == VERB_NOTICE || (line_begins(l) && !line_receives(l));
}

static inline bool line_tagged(const struct line *l)
{
	return l->verb == VERB_TSEND || l->verb == VERB_TRECV;
}

static inline bool line_atomic(const struct line *l)
{
	return l->verb >= VERB_ADD && l->verb <= VERB_SWAP;
}

/* Returns whether there is an entry at the end. */
static inline bool line_reported(const struct line *l)
{
	return l->form != FORM_INJECT;
}

/* Returns whether its target has an entry, too. */
static inline bool line_reported_there(const struct line *l)
{
	return l->verb == VERB_WRITE && l->data;
}

static inline void line_mend_form(struct line *l)
{
	if (l->multi || l->how != HOW_POST || l->start == START_TRIGGER ||
	    l->start == START_DEFERRED)
		l->form = FORM_MSG;
	if (l->start == START_ALIAS && (l->form == FORM_MSG || l->form == FORM_INJECT))
		l->form = FORM_PLAIN;
	if (l->form == FORM_INJECT &&
	    (line_receives(l) || l->len > PROGRAM_INJECT || l->verb == VERB_READ ||
	     l->verb == VERB_FETCH || l->verb == VERB_SWAP))
		l->form = FORM_PLAIN;
	if (l->form == FORM_VECTOR && line_atomic(l))
		l->form = FORM_PLAIN;
}

/* Makes what is not possible together something that is: injected reads, for instance. */
static inline void line_mend(struct line *l)
{
	if (!line_begins(l))
		return;
	if (line_atomic(l))
		l->len = 8;
	if (!line_receives(l) || l->len < 2 * PROGRAM_MULTI)
		l->multi = 0;
	if (!line_receives(l))
		l->how = HOW_POST;
	if (l->how != HOW_POST)
		l->multi = 0;
	if (l->verb != VERB_WRITE && l->verb != VERB_READ)
		l->over = 0;
	if (l->multi || l->how != HOW_POST || l->over)
		l->start = START_NOW;
	if (l->start == START_NOW)
		l->after = 0;
	line_mend_form(l);
	if (l->form == FORM_VECTOR || (!line_sends(l) && l->verb != VERB_WRITE))
		l->data = 0;
	if (l->form != FORM_MSG || line_receives(l))
		l->level = 0;
	if (l->form != FORM_MSG || l->how != HOW_POST || l->start != START_NOW || l->n < 2 ||
	    l->between)
		l->more = 0;
	if (l->form != FORM_MSG || line_receives(l) || l->start != START_NOW)
		l->fence = 0;
}

static inline bool place_take(struct place *p, const char *word)
{
	return sscanf(word, "p%" SCNu64 ".e%" SCNu64, &p->proc, &p->ep) == 2 &&
	       p->proc < PROGRAM_PROCS && p->ep < PROGRAM_EPS;
}

static inline void line_print(const struct line *l, FILE *to)
{
	fprintf(to, "p%" PRIu64 ".e%" PRIu64 " %s", l->at.proc, l->at.ep, verb_names[l->verb]);
	if (l->with.proc != PLACE_ANY)
		fprintf(to, " with=p%" PRIu64 ".e%" PRIu64, l->with.proc, l->with.ep);
	keys_print(line_keys, API_COUNT(line_keys), l, to);
}

static inline bool line_take(struct line *l, char *text)
{
	char *rest = text, *at = strsep(&rest, " "), *verb = strsep(&rest, " "), *word;

	*l = (struct line){.with = {PLACE_ANY, 0}};
	keys_usual(line_keys, API_COUNT(line_keys), l);
	if (!verb || !place_take(&l->at, at))
		return false;
	while (l->verb < VERB_COUNT && strcmp(verb_names[l->verb], verb) != 0)
		l->verb++;
	while ((word = strsep(&rest, " ")))
		if (!strncmp(word, "with=", 5)
			    ? !place_take(&l->with, word + 5)
			    : !keys_take(line_keys, API_COUNT(line_keys), l, word))
			return false;
	line_mend(l);
	return l->verb < VERB_COUNT;
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

/* Returns whether all lines name processes and endpoints there are. */
static inline bool program_valid(const struct program *p)
{
	if (!p->procs || p->procs > PROGRAM_PROCS || !p->eps || p->eps > PROGRAM_EPS || !p->batch)
		return false;
	for (unsigned int i = 0; i < p->count; i++) {
		const struct line *l = &p->lines[i];

		if (l->at.proc >= p->procs || l->at.ep >= p->eps ||
		    (l->with.proc != PLACE_ANY &&
		     (l->with.proc >= p->procs || l->with.ep >= p->eps)) ||
		    (line_directed(l) && l->with.proc == PLACE_ANY) ||
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
	return good && program_valid(p);
}

#endif
