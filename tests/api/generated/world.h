/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a program share: its history, and turns. A turn is a read of every queue,
 * after which a process waits until each other one has called the library, too: so that what must
 * come can be bounded by turns, whatever the machine is busy with. Needs program.h.
 */
#ifndef GENERATED_WORLD_H
#define GENERATED_WORLD_H

#include <stdarg.h>

enum {
	WORLD_OPS = 8192,
	WORLD_NAME = 128,
	WORLD_BLOCK = 8 << 20, /* bytes of random data that messages are made of */
	WORLD_FIRST = 4,       /* bytes of a message that say which it is */
};

enum op_state {
	OP_NONE,      /* not called yet */
	OP_POSTED,    /* accepted */
	OP_REFUSED,   /* -FI_EAGAIN as long as the queue was full */
	OP_CANCELLED, /* accepted, and fi_cancel called */
};

/* One call that begins something. */
struct op {
	unsigned int line;
	enum op_state state;
	unsigned int entries; /* completions, errors too */
	/* of the last completion: */
	int err;
	uint64_t flags, tag, data;
	size_t len, olen;
	struct place source;              /* .proc: PLACE_ANY: unknown */
	unsigned char first[WORLD_FIRST]; /* of what was received */
	unsigned int message;             /* op that was received, or WORLD_OPS */
};

enum proc_state {
	PROC_CALLS, /* calls the library again and again */
	PROC_WAITS, /* in one call, asleep or for the others */
};

struct proc {
	unsigned int calls;
	enum proc_state state;
	bool idle;    /* begins nothing before something has come */
	bool settled; /* has done all lines, and nothing is owed to it */
	int line;
	const char *doing;
	char names[PROGRAM_EPS][WORLD_NAME];
};

struct world {
	struct program program;
	struct proc procs[PROGRAM_PROCS];
	unsigned int arrived; /* at barriers, all together */
	char why[512];        /* the first failure */
	unsigned int failed;
	unsigned int count;
	struct op ops[WORLD_OPS];
};

static unsigned char *world_block; /* WORLD_BLOCK random bytes */

static inline bool world_failed(const struct world *w)
{
	return __atomic_load_n(&w->failed, __ATOMIC_ACQUIRE);
}

/* Notes the first failure only. */
static inline __attribute__((format(printf, 2, 3))) void world_fail(struct world *w,
								    const char *form, ...)
{
	va_list args;

	if (__atomic_exchange_n(&w->failed, 1, __ATOMIC_ACQ_REL))
		return;
	va_start(args, form);
	vsnprintf(w->why, sizeof(w->why), form, args);
	va_end(args);
}

static inline const struct line *world_line(const struct world *w, const struct op *o)
{
	return &w->program.lines[o->line];
}

/* "p0.e0 send ... (3rd of its line)" */
static inline const char *world_name(const struct world *w, const struct op *o)
{
	static char texts[4][256];
	static unsigned int turn;
	char *text = texts[turn++ % 4];
	FILE *to = fmemopen(text, sizeof(texts[0]), "w");
	unsigned int nth = 0;

	while (o - nth > w->ops && (o - nth - 1)->line == o->line)
		nth++;
	fprintf(to, "[");
	line_print(world_line(w, o), to);
	fprintf(to, "]");
	if (world_line(w, o)->n > 1)
		fprintf(to, " number %u", nth);
	fclose(to);
	return text;
}

static inline bool line_sends(const struct line *l)
{
	return l->verb == VERB_SEND || l->verb == VERB_TSEND;
}

static inline bool line_receives(const struct line *l)
{
	return l->verb == VERB_RECV || l->verb == VERB_TRECV;
}

static inline bool line_tagged(const struct line *l)
{
	return l->verb == VERB_TSEND || l->verb == VERB_TRECV;
}

/*
 * Bytes of a buffer. Those that may get messages of several senders have room for what names the
 * message, for the error of one that is cut off does not tell who sent it.
 */
static inline size_t line_room(const struct line *l)
{
	return line_receives(l) && l->with.proc == PLACE_ANY && l->len < WORLD_FIRST ? WORLD_FIRST
										     : l->len;
}

static inline unsigned int op_number(const struct world *w, const struct op *o)
{
	return (unsigned int)(o - w->ops);
}

/* The bytes of a message: `number` in the first ones, then a part of the block. */
static inline void world_fill(void *buf, size_t len, unsigned int number)
{
	const unsigned char *from = world_block + number * 509u % (WORLD_BLOCK / 4);

	memcpy(buf, from, len);
	if (len >= WORLD_FIRST)
		memcpy(buf, &number, WORLD_FIRST);
	else
		memset(buf, 0xe0, len);
}

/* Returns the first byte that is not that of message `number`, or `len`. */
static inline size_t world_differs(const unsigned char *buf, size_t len, unsigned int number)
{
	const unsigned char *from = world_block + number * 509u % (WORLD_BLOCK / 4);

	if (len <= WORLD_FIRST || !memcmp(buf + WORLD_FIRST, from + WORLD_FIRST, len - WORLD_FIRST))
		return len;
	for (size_t i = WORLD_FIRST; i < len; i++)
		if (buf[i] != from[i])
			return i;
	return len;
}

/* Each line that begins something becomes `n` operations. */
static inline bool world_expand(struct world *w)
{
	for (unsigned int i = 0; i < w->program.count; i++) {
		const struct line *l = &w->program.lines[i];

		if (!line_sends(l) && !line_receives(l))
			continue;
		if (l->n > WORLD_OPS - w->count || l->len > WORLD_BLOCK / 2)
			return false;
		for (uint64_t j = 0; j < l->n; j++)
			w->ops[w->count++] = (struct op){
				.line = i, .message = WORLD_OPS, .source = {PLACE_ANY, 0}};
	}
	return true;
}

static inline struct world *world_new(const struct program *p)
{
	struct world *w =
		mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (w == MAP_FAILED)
		return NULL;
	w->program = *p;
	return w;
}

static inline void world_free(struct world *w)
{
	munmap(w, sizeof(*w));
}

static inline void world_block_fill(void)
{
	uint64_t x = 88172645463325252u;

	if (world_block)
		return;
	world_block = malloc(WORLD_BLOCK);
	for (size_t i = 0; i < WORLD_BLOCK; i += 8) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		memcpy(world_block + i, &x, 8);
	}
}

/* ---- What is owed ---------------------------------------------------------------------------- */

static inline enum op_state op_state(const struct op *o)
{
	return __atomic_load_n(&o->state, __ATOMIC_ACQUIRE);
}

static inline bool op_accepted(const struct op *o)
{
	enum op_state s = op_state(o);

	return s == OP_POSTED || s == OP_CANCELLED;
}

static inline bool op_ended(const struct op *o)
{
	return __atomic_load_n(&o->entries, __ATOMIC_ACQUIRE) > 0;
}

static inline bool place_same(struct place a, struct place b)
{
	return a.proc == b.proc && a.ep == b.ep;
}

/* Returns whether receive `r` may take message `m`. */
static inline bool line_fits(const struct line *r, const struct line *m)
{
	return line_tagged(r) == line_tagged(m) && place_same(m->with, r->at) &&
	       (r->with.proc == PLACE_ANY || place_same(r->with, m->at)) &&
	       !((r->tag ^ m->tag) & ~r->ignore);
}

#endif
