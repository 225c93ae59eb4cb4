/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of a program share: its history, and rounds. A round is a read of every queue,
 * after which a process waits until each other one has called the library, too: so that what must
 * come can be bounded by rounds, whatever the machine is busy with. Needs program.h.
 */
#ifndef GENERATED_WORLD_H
#define GENERATED_WORLD_H

#include <stdarg.h>

enum {
	WORLD_OPS = 8192,
	WORLD_NAME = 128,
	WORLD_BLOCK = 8 << 20, /* bytes of random data that messages are made of */
	WORLD_FIRST = 4,       /* bytes of a message that say which it is */
	WORLD_WORDS = 8,       /* that are added to, then as many to swap, in the memory of each */
	WORLD_GAP = 64,        /* bytes between places in the memory */
	WORLD_NONE = WORLD_OPS,
	WORLD_EMPTY = 0x5a, /* what memory holds before something comes */
};

enum op_state {
	OP_NONE,    /* not called yet */
	OP_CALLING, /* nobody knows whether it will be accepted, or was if its process is killed */
	OP_POSTED,  /* accepted */
	OP_REFUSED, /* -FI_EAGAIN as long as the queue was full */
	OP_CANCELLED, /* accepted, and fi_cancel called */
};

/* One call that begins something. */
struct op {
	unsigned int line;
	enum op_state state;
	unsigned int entries;     /* completions, errors too, that its process has read */
	bool ended;               /* the last one, which releases a buffer for many messages */
	unsigned int there;       /* that its target has read */
	unsigned int life;        /* of its process */
	unsigned int target_life; /* that its process knew of, when it called */
	unsigned int first;       /* entry in the log of its process; WORLD_NONE */
	size_t at;                /* in the memory of its target */
	uint64_t old;             /* what a fetching atomic brought */
};

/* What a completion said. */
struct entry {
	unsigned int op;
	int err;
	uint64_t flags, tag, data;
	size_t len, olen;
	size_t from;                     /* in a buffer for many messages */
	struct place source;             /* .proc: PLACE_ANY: unknown */
	unsigned char head[WORLD_FIRST]; /* of what was received */
	unsigned int message;            /* op that was received, if that can be seen */
	unsigned int next;               /* of the same op */
};

enum proc_state {
	PROC_CALLS, /* calls the library again and again */
	PROC_WAITS, /* in one call, asleep or for the others */
};

struct proc {
	unsigned int calls;
	enum proc_state state;
	bool idle;         /* begins nothing before something has come */
	bool refused;      /* calls again and again what is refused by -FI_EAGAIN */
	unsigned int life; /* see lives.h */
	bool again;        /* comes again at its address */
	bool going;        /* is about to leave, or to be killed: still there */
	bool torn;         /* was to be killed while it called the library */
	bool finished;     /* has done all lines, and nothing is owed to it */
	int line;
	const char *doing;
	char names[PROGRAM_EPS][WORLD_NAME];
	size_t name_len[PROGRAM_EPS];
	uint64_t begun[PROGRAM_EPS];     /* value of the counters that `start` waits for */
	size_t tx_size;                  /* of an endpoint */
	uint64_t base, key;              /* of its memory */
	size_t memory;                   /* bytes */
	uint64_t words[2 * WORLD_WORDS]; /* of its memory, at the end */
	unsigned int count;
	struct entry log[WORLD_OPS];
};

struct world {
	struct program program;
	struct proc procs[PROGRAM_PROCS];
	unsigned int arrived; /* at barriers, all together */
	char why[512];        /* the first failure */
	unsigned int failed;
	unsigned int count;
	struct op ops[WORLD_OPS];
	size_t over[PROGRAM_PROCS][PROGRAM_EPS][PROGRAM_PROCS][PROGRAM_EPS]; /* see over.h */
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

static inline unsigned int op_number(const struct world *w, const struct op *o)
{
	return (unsigned int)(o - w->ops);
}

/* "[p0.e0 send ...] number 3" */
static inline const char *world_name(const struct world *w, const struct op *o)
{
	static char texts[4][256];
	static unsigned int round;
	char *text = texts[round++ % 4];
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

/*
 * Bytes of a buffer. Those that may get messages of several senders have room for what names the
 * message, for the error of one that is cut off does not tell who sent it.
 */
static inline size_t line_room(const struct line *l)
{
	return line_receives(l) && l->with.proc == PLACE_ANY && l->len < WORLD_FIRST ? WORLD_FIRST
										     : l->len;
}

/* How many times longer limits of time are. */
static inline unsigned int world_slower(void)
{
	const char *slower = getenv("SLOWER");

	return slower && atoi(slower) > 0 ? (unsigned int)atoi(slower) : 1;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

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

static inline const unsigned char *world_bytes(unsigned int number)
{
	return world_block + number * 509u % (WORLD_BLOCK / 4);
}

/* The first bytes of a message: those of `number`, if there is room for them. */
static inline void world_head(unsigned char *head, size_t len, unsigned int number)
{
	if (len >= WORLD_FIRST)
		memcpy(head, &number, WORLD_FIRST);
	else
		memset(head, 0xe0, len);
}

static inline void world_fill(void *buf, size_t len, unsigned int number)
{
	memcpy(buf, world_bytes(number), len);
	world_head(buf, len, number);
}

/* Returns the first byte that is not that of a message, or `len`. Of the first ones: see `head`. */
static inline size_t world_differs(const unsigned char *buf, size_t len, unsigned int number)
{
	const unsigned char *from = world_bytes(number);

	if (len <= WORLD_FIRST || !memcmp(buf + WORLD_FIRST, from + WORLD_FIRST, len - WORLD_FIRST))
		return len;
	for (size_t i = WORLD_FIRST; i < len; i++)
		if (buf[i] != from[i])
			return i;
	return len;
}

/* Returns whether all `len` bytes are those of `number`. */
static inline bool world_holds(const unsigned char *buf, size_t len, unsigned int number)
{
	unsigned char head[WORLD_FIRST];

	world_head(head, len, number);
	return !memcmp(buf, head, len < WORLD_FIRST ? len : WORLD_FIRST) &&
	       world_differs(buf, len, number) == len;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* The one place of the endpoints of `l`: after those of lines of which each has its own. */
static inline size_t world_over(struct world *w, const struct line *l)
{
	size_t len = 0, *at = &w->over[l->at.proc][l->at.ep][l->with.proc][l->with.ep];

	for (unsigned int i = 0; i < w->program.count; i++)
		if (line_over(&w->program.lines[i], l) && w->program.lines[i].len > len)
			len = w->program.lines[i].len;
	if (!*at) {
		*at = w->procs[l->with.proc].memory;
		w->procs[l->with.proc].memory += len + WORLD_GAP;
	}
	return *at;
}

/* The place of a one-sided operation in the memory of its target. */
static inline void world_place(struct world *w, const struct line *l, struct op *o)
{
	struct proc *p;

	if (line_receives(l))
		return;
	p = &w->procs[l->with.proc];
	if (line_atomic(l)) {
		o->at = 8 * (l->tag % WORLD_WORDS + (l->verb == VERB_SWAP ? WORLD_WORDS : 0));
	} else if (l->over) {
		o->at = world_over(w, l);
	} else if (l->verb == VERB_WRITE || l->verb == VERB_READ) {
		o->at = p->memory;
		p->memory += l->len + WORLD_GAP;
	}
}

/* Each line that begins something becomes `n` operations. Returns whether there is room for all. */
static inline bool world_expand(struct world *w)
{
	for (unsigned int i = 0; i < w->program.procs; i++)
		w->procs[i].memory = 16 * WORLD_WORDS + WORLD_GAP;
	for (unsigned int i = 0; i < w->program.count; i++) {
		const struct line *l = &w->program.lines[i];

		if (!line_begins(l))
			continue;
		if (l->n > WORLD_OPS - w->count || l->len > WORLD_BLOCK / 2)
			return false;
		for (uint64_t j = 0; j < l->n; j++) {
			struct op *o = &w->ops[w->count++];

			*o = (struct op){.line = i, .first = WORLD_NONE};
			world_place(w, l, o);
		}
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

/* Adds what a completion said to the log of its process. */
static inline void world_log(struct world *w, struct op *o, struct entry e, bool ended)
{
	struct proc *p = &w->procs[world_line(w, o)->at.proc];
	unsigned int *to = &o->first;

	if (p->count == WORLD_OPS)
		return;
	while (*to != WORLD_NONE)
		to = &p->log[*to].next;
	e.op = op_number(w, o);
	e.next = WORLD_NONE;
	p->log[p->count] = e;
	__atomic_store_n(to, p->count++, __ATOMIC_RELEASE);
	__atomic_add_fetch(&o->entries, 1, __ATOMIC_RELEASE);
	if (ended)
		__atomic_store_n(&o->ended, true, __ATOMIC_RELEASE);
}

/* The entry after `e` of `o`, or the first one; NULL: no more. */
static inline const struct entry *world_entry(const struct world *w, const struct op *o,
					      const struct entry *e)
{
	const struct proc *p = &w->procs[world_line(w, o)->at.proc];
	unsigned int at = __atomic_load_n(e ? &e->next : &o->first, __ATOMIC_ACQUIRE);

	return at == WORLD_NONE ? NULL : &p->log[at];
}

/* ---- Looking --------------------------------------------------------------------------------- */

static inline enum op_state op_state(const struct op *o)
{
	return __atomic_load_n(&o->state, __ATOMIC_ACQUIRE);
}

/* Returns whether `o` was accepted, or may have been. */
static inline bool op_called(const struct op *o)
{
	enum op_state s = op_state(o);

	return s != OP_NONE && s != OP_REFUSED;
}

static inline bool op_accepted(const struct op *o)
{
	enum op_state s = op_state(o);

	return s == OP_POSTED || s == OP_CANCELLED;
}

static inline bool op_ended(const struct op *o)
{
	return __atomic_load_n(&o->ended, __ATOMIC_ACQUIRE);
}

static inline bool op_reported_there(const struct op *o)
{
	return __atomic_load_n(&o->there, __ATOMIC_ACQUIRE) > 0;
}

/* Returns whether receive `r` may take message `m`. */
static inline bool line_fits(const struct line *r, const struct line *m)
{
	return line_tagged(r) == line_tagged(m) && place_same(m->with, r->at) &&
	       (r->with.proc == PLACE_ANY || place_same(r->with, m->at)) &&
	       (!line_tagged(r) || !((r->tag ^ m->tag) & ~r->ignore));
}

#endif
