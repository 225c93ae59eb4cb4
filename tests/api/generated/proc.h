/* SPDX-License-Identifier: BSD-2-Clause */
/* One process of a program: its objects, and turns. Needs judge.h. */
#ifndef GENERATED_PROC_H
#define GENERATED_PROC_H

enum {
	PROC_QUEUES = 2 * PROGRAM_EPS,
	PROC_LOOKS = 8 /* turns between two looks at what is owed */
};

/* One endpoint, with the addresses of all. */
struct end {
	struct fid_ep *ep;
	struct fid_cq *tx, *rx;
	fi_addr_t addr[PROGRAM_PROCS][PROGRAM_EPS];
};

struct self {
	struct world *w;
	struct proc *mine;
	unsigned int me;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *queues[PROC_QUEUES];
	unsigned int queue_count;
	struct end ends[PROGRAM_EPS];
	fi_addr_t addr[PROGRAM_PROCS][PROGRAM_EPS];
	unsigned int seen[PROGRAM_PROCS]; /* calls of the others at the last turn */
	unsigned int turns;               /* begins with 1 */
	unsigned int looks;
	unsigned int due[WORLD_OPS]; /* the turn until which it must have ended; 0: not owed */
	unsigned char *buffers[WORLD_OPS];
	bool owed; /* something is, at the last look */
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

/* ---- Opening and closing --------------------------------------------------------------------- */

static inline void proc_info(struct self *s)
{
	const struct program *p = &s->w->program;
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->tx_attr->size = p->tx_size;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = p->av ? FI_AV_TABLE : FI_AV_MAP;
	hints->fabric_attr->prov_name = strdup(api_provider());
	PROC_OK(s, fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &s->info));
	fi_freeinfo(hints);
}

static inline struct fid_cq *proc_queue(struct self *s)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
				  .size = s->w->program.cq_size,
				  .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cq **to = &s->queues[s->queue_count++];

	PROC_OK(s, fi_cq_open(s->domain, &attr, to, NULL));
	return *to;
}

static inline void proc_open_end(struct self *s, unsigned int i)
{
	enum queues queues = (enum queues)s->w->program.queues;
	struct end *e = &s->ends[i];
	size_t len = WORLD_NAME;

	PROC_OK(s, fi_endpoint(s->domain, s->info, &e->ep, NULL));
	PROC_OK(s, fi_ep_bind(e->ep, &s->av->fid, 0));
	e->tx = queues == QUEUES_ALL && i ? s->ends[0].tx : proc_queue(s);
	e->rx = queues == QUEUES_OWN ? proc_queue(s) : e->tx;
	PROC_OK(s, fi_ep_bind(e->ep, &e->tx->fid, FI_TRANSMIT));
	PROC_OK(s, fi_ep_bind(e->ep, &e->rx->fid, FI_RECV));
	PROC_OK(s, fi_enable(e->ep));
	PROC_OK(s, fi_getname(&e->ep->fid, s->mine->names[i], &len));
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

	proc_info(s);
	PROC_OK(s, fi_fabric(s->info->fabric_attr, &s->fabric, NULL));
	PROC_OK(s, fi_domain(s->fabric, s->info, &s->domain, NULL));
	PROC_OK(s, fi_av_open(s->domain, &av, &s->av, NULL));
	for (unsigned int i = 0; i < p->eps; i++)
		proc_open_end(s, i);
	proc_meet(s);
	for (unsigned int i = 0; i < p->procs; i++)
		for (unsigned int j = 0; j < p->eps; j++)
			if (fi_av_insert(s->av, s->w->procs[i].names[j], 1, &s->addr[i][j], 0,
					 NULL) != 1)
				PROC_FAIL(s, "call: fi_av_insert");
	proc_meet(s);
}

static inline void proc_close(struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.eps; i++)
		PROC_OK(s, fi_close(&s->ends[i].ep->fid));
	for (unsigned int i = 0; i < s->queue_count; i++)
		PROC_OK(s, fi_close(&s->queues[i]->fid));
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

/* ---- Completions ----------------------------------------------------------------------------- */

#define PROC_GUARD 64 /* bytes around a buffer */
#define PROC_EMPTY 0x5a

static inline unsigned char *proc_buffer(struct self *s, const struct op *o, size_t len)
{
	unsigned char *memory = malloc(len + 2 * PROC_GUARD);

	if (!memory)
		PROC_FAIL(s, "no memory");
	memset(memory, PROC_EMPTY, len + 2 * PROC_GUARD);
	s->buffers[op_number(s->w, o)] = memory;
	return memory + PROC_GUARD;
}

static inline void proc_buffer_free(struct self *s, const struct op *o, size_t len)
{
	unsigned char **memory = &s->buffers[op_number(s->w, o)];

	if (!*memory)
		return;
	memset(*memory, 0xdd, len + 2 * PROC_GUARD); /* who still reads it is found out */
	free(*memory);
	*memory = NULL;
}

static inline bool proc_untouched(const unsigned char *at, size_t len)
{
	return !len || (at[0] == PROC_EMPTY && !memcmp(at, at + 1, len - 1));
}

/* Looks into the buffer of a receive that has ended. */
static inline void proc_look(struct self *s, struct op *o)
{
	const unsigned char *memory = s->buffers[op_number(s->w, o)];
	const unsigned char *buf = memory + PROC_GUARD;
	size_t room = line_room(world_line(s->w, o)), len = o->len;
	unsigned int number = 0;

	if (len > room)
		PROC_FAIL(s, "length: %s got %zu bytes", world_name(s->w, o), len);
	if (o->err && o->err != FI_ETRUNC)
		return;
	if (!proc_untouched(memory, PROC_GUARD) ||
	    !proc_untouched(buf + len, room - len + PROC_GUARD))
		PROC_FAIL(s, "bytes: %s: written beside the %zu bytes of the message",
			  world_name(s->w, o), len);
	memcpy(o->first, buf, len < WORLD_FIRST ? len : WORLD_FIRST);
	if (len < WORLD_FIRST)
		return;
	memcpy(&number, o->first, WORLD_FIRST);
	if (number >= s->w->count || !line_sends(world_line(s->w, &s->w->ops[number])))
		PROC_FAIL(s, "bytes: %s: its first bytes, %#x, name no message",
			  world_name(s->w, o), number);
	if (world_differs(buf, len, number) != len)
		PROC_FAIL(s, "bytes: %s: byte %zu of %zu of %s is wrong", world_name(s->w, o),
			  world_differs(buf, len, number), len,
			  world_name(s->w, &s->w->ops[number]));
	o->message = number;
}

/* The operation that a completion names. */
static inline struct op *proc_op(struct self *s, void *context)
{
	struct op *o = context;
	ptrdiff_t at = (char *)context - (char *)s->w->ops;

	if (at < 0 || (size_t)at % sizeof(*o) || (size_t)at / sizeof(*o) >= s->w->count ||
	    world_line(s->w, o)->at.proc != s->me)
		PROC_FAIL(s, "entry: context %p is none of ours", context);
	return o;
}

static inline void proc_end(struct self *s, struct op *o)
{
	const struct line *l = world_line(s->w, o);

	if (!s->buffers[op_number(s->w, o)])
		PROC_FAIL(s, "once: %s ended again", world_name(s->w, o));
	if (line_receives(l))
		proc_look(s, o);
	proc_buffer_free(s, o, line_room(l));
	__atomic_add_fetch(&o->entries, 1, __ATOMIC_RELEASE);
}

static inline void proc_entry(struct self *s, const struct fi_cq_tagged_entry *e, fi_addr_t source)
{
	struct op *o = proc_op(s, e->op_context);

	o->flags = e->flags;
	o->len = e->len;
	o->tag = e->tag;
	o->data = e->flags & FI_REMOTE_CQ_DATA ? e->data : 0;
	if (line_receives(world_line(s->w, o)))
		o->source = proc_place(s, source);
	proc_end(s, o);
}

static inline void proc_error(struct self *s, struct fid_cq *cq)
{
	struct fi_cq_err_entry e = {0};
	struct op *o;

	if (fi_cq_readerr(cq, &e, 0) != 1)
		PROC_FAIL(s, "call: -FI_EAVAIL, and fi_cq_readerr has nothing");
	o = proc_op(s, e.op_context);
	o->err = e.err;
	o->flags = e.flags;
	o->len = e.len;
	o->olen = e.olen;
	o->tag = e.tag;
	o->data = e.flags & FI_REMOTE_CQ_DATA ? e.data : 0;
	o->source = world_line(s->w, o)->with;
	proc_end(s, o);
}

/* Handles what a read of `cq` returned. Returns whether there was something. */
static inline bool proc_took(struct self *s, struct fid_cq *cq, ssize_t ret,
			     const struct fi_cq_tagged_entry *e, const fi_addr_t *sources)
{
	if (ret == -FI_EAVAIL)
		proc_error(s, cq);
	else if (ret < 0 && ret != -FI_EAGAIN && ret != -FI_EINTR) /* VERB_STOP has a signal */
		PROC_FAIL(s, "call: a read of a queue: %zd %s", ret, api_word(ret));
	for (ssize_t i = 0; i < ret; i++)
		proc_entry(s, &e[i], sources[i]);
	return ret > 0;
}

#define PROC_BATCH 64

static inline bool proc_read(struct self *s, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry e[PROC_BATCH];
	fi_addr_t sources[PROC_BATCH];
	size_t batch = s->w->program.batch;

	return proc_took(s, cq,
			 fi_cq_readfrom(cq, e, batch < PROC_BATCH ? batch : PROC_BATCH, sources), e,
			 sources);
}

static inline bool proc_sread(struct self *s, struct fid_cq *cq, int ms)
{
	struct fi_cq_tagged_entry e;
	fi_addr_t source = FI_ADDR_UNSPEC;
	ssize_t ret;

	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	ret = fi_cq_sreadfrom(cq, &e, 1, &source, NULL, ms);
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
	return proc_took(s, cq, ret, &e, &source);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static inline void proc_called(struct self *s)
{
	__atomic_add_fetch(&s->mine->calls, 1, __ATOMIC_ACQ_REL);
}

/*
 * Waits until each other process has called, if it is not in a call that waits. Returns whether all
 * have called.
 */
static inline bool proc_others(struct self *s)
{
	bool all = true;

	for (unsigned int i = 0; i < s->w->program.procs; i++) {
		struct proc *p = &s->w->procs[i];

		if (i == s->me)
			continue;
		while (__atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) == s->seen[i] &&
		       __atomic_load_n(&p->state, __ATOMIC_ACQUIRE) == PROC_CALLS)
			sched_yield();
		all &= __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE) != s->seen[i];
		s->seen[i] = __atomic_load_n(&p->calls, __ATOMIC_ACQUIRE);
	}
	return all;
}

/*
 * Returns within how many turns what is owed now must come. Whatever was accepted before may come
 * first, one entry a turn; what begins later makes no difference.
 */
static inline unsigned int proc_limit(const struct world *w)
{
	const unsigned int least = 256, bytes_a_turn = 2048;
	unsigned int limit = least;

	for (unsigned int i = 0; i < w->count; i++)
		if (op_accepted(&w->ops[i]) && !op_ended(&w->ops[i]))
			limit += 4 + (unsigned int)world_line(w, &w->ops[i])->len / bytes_a_turn;
	return limit;
}

/* Notes what is owed to this process, and fails if it is for too many turns. */
static inline void proc_owed(struct self *s)
{
	static struct matching x;
	struct world *w = s->w;
	unsigned int limit = 0;

	s->owed = false;
	if (!judge_match(w, &x))
		_exit(1);
	for (unsigned int i = 0; i < w->count; i++) {
		struct op *o = &w->ops[i];

		if (world_line(w, o)->at.proc != s->me)
			continue;
		if (!judge_owes(w, &x, o)) {
			s->due[i] = 0;
			continue;
		}
		s->owed = true;
		if (!limit)
			limit = proc_limit(w);
		if (!s->due[i])
			s->due[i] = s->turns + limit;
		else if (s->turns > s->due[i])
			PROC_FAIL(s, "progress: %s has not ended in some %u turns",
				  world_name(w, o), limit);
	}
}

static inline void proc_turn(struct self *s)
{
	bool came = false;

	for (unsigned int i = 0; i < s->queue_count; i++)
		came |= proc_read(s, s->queues[i]);
	proc_called(s);
	if (!came)
		usleep(20); /* timers of the library have to run out within some turns */
	if (proc_others(s))
		s->turns++; /* one in which somebody slept proves nothing */
	if (++s->looks % PROC_LOOKS == 0)
		proc_owed(s);
}

#endif
