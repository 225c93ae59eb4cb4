/* SPDX-License-Identifier: BSD-2-Clause */
/* One process of a program and its objects. Needs history.h. */
#ifndef GENERATED_PROC_H
#define GENERATED_PROC_H

#include <pthread.h>

enum {
	PROC_QUEUES = 2 * PROGRAM_EPS,
	PROC_GUARD = 64, /* bytes around a buffer */
};

static const enum fi_wait_obj proc_waits[] = {FI_WAIT_UNSPEC, FI_WAIT_SET, FI_WAIT_FD};

enum { COUNT_SENDS, COUNT_RECEIVES, COUNT_READS, COUNT_WRITES, PROC_COUNTERS };

enum { PROC_POLLED = PROC_QUEUES + PROGRAM_EPS * PROC_COUNTERS };

static const uint64_t proc_counts[] = {FI_SEND, FI_RECV, FI_READ, FI_WRITE};

struct end {
	struct fid_ep *ep;
	struct fid_cq *tx, *rx;
	/* The operation that was refused for ever, or NULL: the next one to its target is not tried for long. */
	const struct line *full;
	struct fid_cntr *counters[PROC_COUNTERS];
	struct fid_cntr *start;  /* that operations wait for */
	struct fid_cntr *done;   /* counts deferred work that has ended */
	struct fid_ep *alias[2]; /* to send and to receive, with FI_TRIGGER */
};

/* For something that must come. */
struct wait {
	unsigned int since; /* round in which it began; 0: nothing is waited for */
	unsigned int limit; /* rounds; the most of any time since then */
};

struct self {
	struct world *w;
	struct proc *mine;
	unsigned int me;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_wait *set;  /* NULL: waits otherwise */
	struct fid_poll *poll; /* NULL: reads each queue */
	struct fid_cq *queues[PROC_QUEUES];
	unsigned int queue_count;
	struct end ends[PROGRAM_EPS];
	fi_addr_t addr[PROGRAM_PROCS][PROGRAM_EPS];
	struct fid_mr *mr;
	unsigned char *memory; /* that others read and write */
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
	struct entry peeked[WORLD_OPS];
	/* round.h: */
	unsigned int rounds; /* begins with 1 */
	unsigned int looks;
	unsigned int seen[PROGRAM_PROCS]; /* calls of the others at the last round */
	struct wait due[WORLD_OPS], due_there[WORLD_OPS]; /* for what is owed */
	struct matching matching;                         /* at the last look */
	bool owed;                                        /* something is, at the last look */
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

static inline bool proc_triggers(const struct program *p)
{
	for (unsigned int i = 0; i < p->count; i++)
		if (p->lines[i].start != START_NOW)
			return true;
	return false;
}

static inline void proc_info(struct self *s)
{
	const struct program *p = &s->w->program;
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SOURCE | FI_DIRECTED_RECV |
		      FI_MULTI_RECV;
	if (proc_triggers(p))
		hints->caps |= FI_TRIGGER;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order =
		FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_WAW;
	hints->tx_attr->size = p->tx_size;
	hints->domain_attr->threading =
		p->threading || p->helper ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = hints->domain_attr->control_progress =
		p->progress ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = p->av ? FI_AV_TABLE : FI_AV_MAP;
	hints->domain_attr->mr_mode =
		p->keys ? 0 : FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->fabric_attr->prov_name = strdup(api_provider());
	PROC_OK(s, fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
	s->mine->tx_size = s->info->tx_attr->size;
}

static inline struct fid_cq *proc_queue(struct self *s)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
				  .size = s->w->program.cq_size,
				  .wait_obj = proc_waits[s->w->program.waits],
				  .wait_set = s->set};
	struct fid_cq **to = &s->queues[s->queue_count++];

	PROC_OK(s, fi_cq_open(s->domain, &attr, to, to));
	return *to;
}

static inline void proc_count(struct self *s, struct end *e)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};

	for (unsigned int i = 0; i < PROC_COUNTERS; i++) {
		PROC_OK(s, fi_cntr_open(s->domain, &attr, &e->counters[i], NULL));
		PROC_OK(s, fi_ep_bind(e->ep, &e->counters[i]->fid, proc_counts[i]));
	}
}

static inline void proc_trigger(struct self *s, struct end *e)
{
	PROC_OK(s, fi_cntr_open(s->domain, NULL, &e->start, NULL));
	PROC_OK(s, fi_cntr_open(s->domain, NULL, &e->done, NULL));
	PROC_OK(s, fi_ep_alias(e->ep, &e->alias[0], FI_TRANSMIT | FI_TRIGGER));
	PROC_OK(s, fi_ep_alias(e->ep, &e->alias[1], FI_RECV | FI_TRIGGER));
}

/* Returns whether this is not its first life. */
static inline bool proc_again(const struct self *s)
{
	return life_of(s->w, s->me) != 0;
}

/* Who comes again has the addresses of before. */
static inline void proc_address(struct self *s, unsigned int i)
{
	if (!proc_again(s))
		return;
	free(s->info->src_addr);
	s->info->src_addrlen = s->mine->name_len[i];
	s->info->src_addr = malloc(s->info->src_addrlen);
	memcpy(s->info->src_addr, s->mine->names[i], s->info->src_addrlen);
}

static inline void proc_open_end(struct self *s, unsigned int i)
{
	const struct program *p = &s->w->program;
	struct end *e = &s->ends[i];
	size_t len = WORLD_NAME, multi = PROGRAM_MULTI;
	char name[WORLD_NAME];

	proc_address(s, i);
	PROC_OK(s, fi_endpoint(s->domain, s->info, &e->ep, NULL));
	PROC_OK(s, fi_ep_bind(e->ep, &s->av->fid, 0));
	e->tx = p->queues == QUEUES_ALL && i ? s->ends[0].tx : proc_queue(s);
	e->rx = p->queues == QUEUES_OWN ? proc_queue(s) : e->tx;
	PROC_OK(s, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT));
	PROC_OK(s, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV));
	PROC_OK(s, fi_setopt(&e->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &multi,
			     sizeof(multi)));
	if (p->counters)
		proc_count(s, e);
	PROC_OK(s, fi_enable(e->ep));
	if (proc_triggers(p))
		proc_trigger(s, e);
	PROC_OK(s, fi_getname(&e->ep->fid, name, &len));
	if (proc_again(s) && (len != s->mine->name_len[i] || memcmp(name, s->mine->names[i], len)))
		PROC_FAIL(s, "call: p%u.e%u has another address than it asked for", s->me, i);
	memcpy(s->mine->names[i], name, len);
	s->mine->name_len[i] = len;
}

/* Calls `change`, fi_poll_add or fi_poll_del, for each queue and counter. */
static inline void proc_polled(struct self *s,
			       int (*change)(struct fid_poll *, struct fid *, uint64_t))
{
	for (unsigned int i = 0; i < s->queue_count; i++)
		PROC_OK(s, change(s->poll, &s->queues[i]->fid, 0));
	for (unsigned int i = 0; i < s->w->program.eps && s->w->program.counters; i++)
		for (unsigned int j = 0; j < PROC_COUNTERS; j++)
			PROC_OK(s, change(s->poll, &s->ends[i].counters[j]->fid, 0));
}

/* The set that names queues with entries, and counters that have changed. */
static inline void proc_poll(struct self *s)
{
	struct fi_poll_attr attr = {0};

	PROC_OK(s, fi_poll_open(s->domain, &attr, &s->poll));
	proc_polled(s, fi_poll_add);
}

/* The memory for others. What they read is there; what they write comes. */
static inline void proc_memory(struct self *s)
{
	const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
	struct proc *p = s->mine;

	s->memory = malloc(p->memory);
	memset(s->memory, WORLD_EMPTY, p->memory);
	memset(s->memory, 0, 16 * WORLD_WORDS);
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->verb == VERB_READ && !l->over && l->with.proc == s->me)
			world_fill(s->memory + s->w->ops[i].at, l->len, i);
	}
	PROC_OK(s, fi_mr_reg(s->domain, s->memory, p->memory, access, 0, 77, 0, &s->mr, NULL));
	p->key = fi_mr_key(s->mr);
	p->base = s->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)s->memory : 0;
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

static inline void proc_open(struct self *s)
{
	const struct program *p = &s->w->program;
	struct fi_av_attr av = {.type = p->av ? FI_AV_TABLE : FI_AV_MAP};
	struct fi_wait_attr wait = {.wait_obj = FI_WAIT_UNSPEC};

	proc_info(s);
	PROC_OK(s, fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	if (p->waits == WAITS_SET)
		PROC_OK(s, fi_wait_open(s->fabric, &wait, &s->set));
	PROC_OK(s, fi_domain(s->fabric, s->info, &s->domain, NULL));
	PROC_OK(s, fi_av_open(s->domain, &av, &s->av, NULL));
	for (unsigned int i = 0; i < p->eps; i++)
		proc_open_end(s, i);
	if (p->looks)
		proc_poll(s);
	proc_memory(s);
	if (!proc_again(s))
		proc_meet(s);
	for (unsigned int i = 0; i < p->procs; i++) {
		s->known[i] = life_of(s->w, i);
		for (unsigned int j = 0; j < p->eps; j++)
			if (fi_av_insert(s->av, s->w->procs[i].names[j], 1, &s->addr[i][j], 0,
					 NULL) != 1)
				PROC_FAIL(s, "call: fi_av_insert");
	}
	if (!proc_again(s))
		proc_meet(s);
}

static inline void proc_close_end(struct self *s, struct end *e)
{
	for (unsigned int i = 0; i < 2; i++)
		if (e->alias[i])
			PROC_OK(s, fi_close(&e->alias[i]->fid));
	PROC_OK(s, fi_close(&e->ep->fid));
	for (unsigned int i = 0; i < PROC_COUNTERS; i++)
		if (e->counters[i])
			PROC_OK(s, fi_close(&e->counters[i]->fid));
	if (e->start)
		PROC_OK(s, fi_close(&e->start->fid));
	if (e->done)
		PROC_OK(s, fi_close(&e->done->fid));
}

static inline void proc_close(struct self *s)
{
	if (s->poll) {
		proc_polled(s, fi_poll_del);
		PROC_OK(s, fi_close(&s->poll->fid));
	}
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		proc_close_end(s, &s->ends[i]);
	for (unsigned int i = 0; i < s->queue_count; i++)
		PROC_OK(s, fi_close(&s->queues[i]->fid));
	if (s->set)
		PROC_OK(s, fi_close(&s->set->fid));
	PROC_OK(s, fi_close(&s->mr->fid));
	free(s->memory);
	PROC_OK(s, fi_close(&s->av->fid));
	PROC_OK(s, fi_close(&s->domain->fid));
	PROC_OK(s, fi_close(&s->fabric->fid));
	fi_freeinfo(s->info);
}

static inline struct place proc_place(const struct self *s, fi_addr_t addr)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++)
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
