/* SPDX-License-Identifier: BSD-2-Clause */
/* One process of a program and its objects. Needs history.h. */
#ifndef GENERATED_PROC_H
#define GENERATED_PROC_H

#include <pthread.h>

enum {
	PROC_QUEUES = 2 * PROGRAM_EPS,
	PROC_LINKS = PROGRAM_EPS * PROGRAM_PROCS * PROGRAM_EPS,
	PROC_GUARD = 64, /* bytes around a buffer */
};

enum { COUNT_SENDS, COUNT_RECEIVES, COUNT_READS, COUNT_WRITES, PROC_COUNTERS };

enum { PROC_POLLED = PROC_QUEUES + PROGRAM_EPS * PROC_COUNTERS };

static const uint64_t proc_counts[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};
static const char *const proc_count_names[] = {"sends", "receives", "reads", "writes"};

/* For something that must come. */
struct wait {
	unsigned int since; /* round in which it began; 0: nothing is waited for */
	unsigned int limit; /* rounds; the most of any time since then */
};

/* An endpoint: of reliable datagrams, or the end of one connection. */
struct link {
	struct fid_ep *ep;
	struct fid_ep *alias[2]; /* to send and to receive, with FI_TRIGGER */
	struct place at, with;   /* KIND_MSG */
	bool connected, ended;   /* FI_CONNECTED, FI_SHUTDOWN has come */
	struct wait end;         /* for FI_SHUTDOWN */
};

/* What a process has at one of its places. */
struct end {
	struct fid_cq *tx, *rx;
	/* The operation that was refused for ever, or NULL: the next one to its target is not tried for long. */
	const struct line *full;
	struct fid_cntr *counters[PROC_COUNTERS];
	struct wait counts[PROC_COUNTERS]; /* for what they have to count */
	struct fid_cntr *start;            /* that operations wait for */
	struct fid_cntr *done;             /* counts deferred work that has ended */
};

struct self {
	struct world *w;
	struct proc *mine;
	unsigned int me;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_eq *eq;     /* KIND_MSG: of all connections */
	struct fid_pep *pep;   /* KIND_MSG */
	struct fid_wait *set;  /* NULL: waits otherwise */
	struct fid_poll *poll; /* NULL: reads each queue */
	struct fid_cq *queues[PROC_QUEUES];
	unsigned int queue_count;
	struct end ends[PROGRAM_EPS];
	struct link links[PROC_LINKS]; /* see proc_link */
	fi_addr_t addr[PROGRAM_PROCS][PROGRAM_EPS];
	struct fid_mr *mr;
	unsigned char *memory;    /* that others read and write */
	pthread_mutex_t sleeping; /* held to change mine->state */
	pthread_t helper;
	bool helper_ends;
	bool over;                         /* has left, and plays no more */
	unsigned int known[PROGRAM_PROCS]; /* lives of the others that it knows of */
	union {
		struct fi_context2 context;
		struct fi_triggered_context later;
	} contexts[WORLD_OPS];
	unsigned char *buffers[WORLD_OPS];
	uint64_t operands[WORLD_OPS][3]; /* of atomics: operand, compare, result */
	struct op *peeks;                /* the operation that waits for the answer to a peek */
	bool found;
	uint64_t unnamed; /* errors without a context */
	struct entry peeked[WORLD_OPS];
	/* round.h: */
	unsigned int rounds; /* begins with 1 */
	unsigned int looks;
	unsigned int seen[PROGRAM_PROCS]; /* calls of the others at the last round */
	struct wait due[WORLD_OPS], due_there[WORLD_OPS]; /* for what is owed */
	struct matching matching;                         /* at the last look */
	bool owed;      /* something is, at the last look, that wakes who sleeps on a queue */
	bool owed_else; /* something else is */
};

/* Ends the process: the history holds the reason. */
#define PROC_FAIL(s, ...)                                                                          \
	do {                                                                                       \
		world_fail((s)->w, __VA_ARGS__);                                                   \
		_exit(1);                                                                          \
	} while (0)

#define PROC_OK(s, call)                                                                           \
	do {                                                                                       \
		long proc_ret = (long)(call);                                                      \
                                                                                                   \
		if (proc_ret)                                                                      \
			PROC_FAIL(s, "call: %s: %ld %s", #call, proc_ret, api_word(proc_ret));     \
	} while (0)

/* Returns whether this is not its first life. */
static inline bool proc_again(const struct self *s)
{
	return life_of(s->w, s->me) != 0;
}

/* The endpoint of a place for another place. */
static inline struct link *proc_link(struct self *s, struct place at, struct place with)
{
	if (s->w->program.kind == KIND_RDM)
		return &s->links[at.ep];
	return &s->links[(at.ep * PROGRAM_PROCS + with.proc) * PROGRAM_EPS + with.ep];
}

/* The endpoint that does line `l`. */
static inline struct link *proc_line_link(struct self *s, const struct line *l)
{
	return proc_link(s, l->at, l->with);
}

/* Waits until all processes have come here, without progress. */
static inline void proc_meet(struct self *s)
{
	unsigned int procs = (unsigned int)s->w->program.procs;
	unsigned int at = __atomic_add_fetch(&s->w->arrived, 1, __ATOMIC_ACQ_REL);

	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	while (__atomic_load_n(&s->w->arrived, __ATOMIC_ACQUIRE) < (at + procs - 1) / procs * procs)
		sched_yield();
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
}

/* PLACE_ANY: not known */
static inline struct place proc_place(const struct self *s, fi_addr_t addr)
{
	for (unsigned int i = 0; i < s->w->program.procs && s->av; i++)
		for (unsigned int j = 0; j < s->w->program.eps; j++)
			if (s->addr[i][j] == addr)
				return (struct place){i, j};
	return (struct place){PLACE_ANY, 0};
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static inline unsigned char *proc_buffer(struct self *s, const struct op *o)
{
	size_t len = line_room(world_line(s->w, o));
	unsigned char *memory = malloc(len + 2 * PROC_GUARD);

	if (!memory)
		PROC_FAIL(s, "no memory");
	memset(memory, WORLD_EMPTY, len + 2 * PROC_GUARD);
	s->buffers[op_number(s->w, o)] = memory;
	return memory + PROC_GUARD;
}

static inline void proc_buffer_free(struct self *s, const struct op *o)
{
	size_t len = line_room(world_line(s->w, o));
	unsigned char **memory = &s->buffers[op_number(s->w, o)];

	if (!*memory)
		return;
	memset(*memory, 0xdd, len + 2 * PROC_GUARD); /* who still reads it is found out */
	free(*memory);
	*memory = NULL;
}

static inline bool proc_untouched(const unsigned char *at, size_t len)
{
	return !len || (at[0] == WORLD_EMPTY && !memcmp(at, at + 1, len - 1));
}

#endif
