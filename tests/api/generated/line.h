/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of a program: what one process does. Needs keys.h. */
#ifndef GENERATED_LINE_H
#define GENERATED_LINE_H

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
	uint64_t multi;      /* a buffer for many messages */
	uint64_t over;       /* a write to, or a read of, the one place of both endpoints */
	uint64_t more;       /* FI_MORE in all but the last of `n` */
	uint64_t completion; /* no: without an entry; see program_mend */
	uint64_t again;      /* who leaves or dies comes again, at its addresses */
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
	{"completion", offsetof(struct line, completion), 1, no_yes},
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

/* Returns whether its success has no entry, though it is not injected: a counter tells. */
static inline bool line_silent(const struct line *l)
{
	return l->form != FORM_INJECT && !l->completion;
}

/* Returns whether there is an entry at the end, also of success. */
static inline bool line_reported(const struct line *l)
{
	return l->form != FORM_INJECT && l->completion;
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
	return l->verb < VERB_COUNT;
}

#endif
