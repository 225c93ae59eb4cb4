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
 * is a program, too: what is left without a partner is taken back at the end. Needs api.h.
 */
#ifndef GENERATED_PROGRAM_H
#define GENERATED_PROGRAM_H

#include <stddef.h>

enum {
	PROGRAM_PROCS = 4,
	PROGRAM_EPS = 3, /* endpoints of a process, at most */
	PROGRAM_LINES = 512,
	PROGRAM_SETS = 8,
	PROGRAM_WORD = 64,
};

enum verb {
	VERB_SEND,
	VERB_TSEND,
	VERB_RECV,
	VERB_TRECV,
	VERB_CANCEL, /* the oldest receive that waits */
	VERB_READ,   /* `n` turns that read `batch` entries of each queue */
	VERB_SREAD,  /* waits for entries of each queue, `us` at most */
	VERB_AWAIT,  /* turns until all receives have ended, or nothing more can come */
	VERB_SLEEP,
	VERB_STOP, /* the process is stopped after `us`, for as long */
	VERB_COUNT
};

static const char *const verb_names[] = {"send", "tsend", "recv",  "trecv", "cancel",
					 "read", "sread", "await", "sleep", "stop"};

/* What names a value, in a line or in the header: as a number, or as a word of `words`. */
struct key {
	const char *name;
	size_t at;
	uint64_t usual; /* is not printed */
	const char *const *words;
};

enum form {
	FORM_PLAIN,
	FORM_VECTOR, /* three pieces */
	FORM_MSG,
	FORM_INJECT,
	FORM_COUNT
};

static const char *const form_words[] = {"plain", "vector", "msg", "inject", NULL};
static const char *const level_words[] = {"usual", "inject", "transmit", "delivery", "match", NULL};
static const uint64_t level_flags[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
				       FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE};
static const char *const queue_words[] = {"own", "one", "all", NULL};
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
	uint64_t between; /* turns after each of the `n` */
	uint64_t form, data, level;
};

static const struct key line_keys[] = {
	{"tag", offsetof(struct line, tag), 0, NULL},
	{"ignore", offsetof(struct line, ignore), 0, NULL},
	{"len", offsetof(struct line, len), 0, NULL},
	{"n", offsetof(struct line, n), 1, NULL},
	{"us", offsetof(struct line, us), 0, NULL},
	{"between", offsetof(struct line, between), 0, NULL},
	{"form", offsetof(struct line, form), FORM_PLAIN, form_words},
	{"data", offsetof(struct line, data), 0, NULL},
	{"level", offsetof(struct line, level), 0, level_words},
};

enum queues {
	QUEUES_OWN, /* one for sends and one for receives of each endpoint */
	QUEUES_ONE, /* one for an endpoint */
	QUEUES_ALL, /* one for a process */
};

struct program {
	uint64_t procs, eps, batch, queues, cq_size, tx_size, av;
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
};

static inline uint64_t *key_value(const struct key *k, void *of)
{
	return (uint64_t *)(void *)((char *)of + k->at);
}

static inline void keys_usual(const struct key *keys, size_t count, void *of)
{
	for (size_t i = 0; i < count; i++)
		*key_value(&keys[i], of) = keys[i].usual;
}

/* Appends to `text` what is not as usual. */
static inline void keys_print(const struct key *keys, size_t count, const void *of, FILE *to)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value = *key_value(&keys[i], (void *)(uintptr_t)of);

		if (value == keys[i].usual)
			continue;
		if (keys[i].words)
			fprintf(to, " %s=%s", keys[i].name, keys[i].words[value]);
		else
			fprintf(to, " %s=%" PRIu64, keys[i].name, value);
	}
}

/* Takes NAME=VALUE. Returns whether a key has that name and the value is one. */
static inline bool keys_take(const struct key *keys, size_t count, void *of, char *word)
{
	char *value = strchr(word, '='), *end;

	if (!value)
		return false;
	*value++ = 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t *to = key_value(&keys[i], of);

		if (strcmp(keys[i].name, word) != 0)
			continue;
		if (!keys[i].words) {
			*to = strtoull(value, &end, 0);
			return !*end;
		}
		for (*to = 0; keys[i].words[*to]; ++*to)
			if (!strcmp(keys[i].words[*to], value))
				return true;
	}
	return false;
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
		    (l->verb <= VERB_TSEND && l->with.proc == PLACE_ANY))
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
