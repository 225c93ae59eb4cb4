/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that post atomics concurrently on a few elements of rank 0. Several workers can share an
 * endpoint and its queue. Needs atomic.h, eval.h.
 */
#ifndef API_HAMMER_H
#define API_HAMMER_H

#define HAMMER_RANKS  4
#define HAMMER_WINDOW 8   /* operations in flight per worker */
#define HAMMER_ARRAY  3   /* elements of HAMMER_SUM */
#define HAMMER_SLOT   128 /* bytes between targets */

/* Type of the targets, and their offset (bytes) from alignment. */
static const struct hammer_kind {
	enum fi_datatype type;
	unsigned int odd;
} hammer_kinds[] = {{FI_UINT64, 0}, {FI_INT32, 0},  {FI_DOUBLE, 0}, {FI_INT128, 0},
		    {FI_UINT64, 1}, {FI_INT32, 62}, {FI_DOUBLE, 3}, {FI_INT128, 8}};

/* The targets, one slot each. */
enum { HAMMER_SUM, HAMMER_MIX, HAMMER_TICKET, HAMMER_SWAP, HAMMER_WHOLE };

struct hammer_op {
	struct amo amo;
	unsigned char buf[HAMMER_ARRAY * EVAL_ELEMENT], compare[EVAL_ELEMENT], result[EVAL_ELEMENT];
	bool done; /* set by the thread that reads the queue */
};

struct worker {
	struct amo_side *m;
	const struct hammer_kind *kind;
	struct fid_ep *ep;
	struct fid_cq *cq;
	unsigned int id, workers;
	struct hammer_op ops[HAMMER_WINDOW];
};

/* ---- Numbers of any of the types ------------------------------------------------------------- */

static inline void hammer_number(enum fi_datatype type, void *to, uint64_t value)
{
	unsigned __int128 whole = value;

	if (eval_class(type) == EVAL_INTEGER)
		memcpy(to, &whole, eval_size(type));
	else
		eval_put(type, to, (long double)value);
}

static inline uint64_t hammer_value(enum fi_datatype type, const void *from)
{
	if (eval_class(type) == EVAL_INTEGER)
		return (uint64_t)eval_load(type, from);
	return (uint64_t)eval_get(type, from);
}

static inline unsigned char *hammer_target(struct api *a, const struct hammer_kind *k, int slot)
{
	return amo_memory(a, 0) + slot * HAMMER_SLOT + k->odd;
}

/* ---- Posting and waiting --------------------------------------------------------------------- */

/* Reads completions, also those of other workers that share the queue. */
static inline void hammer_reap(struct worker *w)
{
	struct fi_cq_tagged_entry e[HAMMER_WINDOW];
	ssize_t n = fi_cq_read(w->cq, e, HAMMER_WINDOW);

	CHECK(n > 0 || n == -FI_EAGAIN);
	for (ssize_t i = 0; i < n; i++)
		__atomic_store_n(&((struct hammer_op *)e[i].op_context)->done, true,
				 __ATOMIC_RELEASE);
	sched_yield();
}

static inline void hammer_wait(struct worker *w, struct hammer_op *op)
{
	while (!__atomic_load_n(&op->done, __ATOMIC_ACQUIRE))
		hammer_reap(w);
}

static inline void hammer_post(struct worker *w, struct hammer_op *op)
{
	ssize_t ret;

	op->amo.context = op;
	__atomic_store_n(&op->done, false, __ATOMIC_RELAXED);
	while ((ret = amo_post(w->ep, &op->amo)) == -FI_EAGAIN)
		hammer_reap(w);
	CHECK_EQ(ret, 0);
}

/* Starts an operation with the operands in `op`, which stays in use until hammer_wait. */
static inline void hammer_start(struct worker *w, struct hammer_op *op, enum amo_family family,
				enum fi_op what, int slot, size_t count)
{
	op->amo = (struct amo){.family = family, .type = w->kind->type, .op = what};
	op->amo.buf->addr = op->buf;
	op->amo.compare->addr = op->compare;
	op->amo.result->addr = op->result;
	amo_aim(&op->amo, w->m, 0, (uint64_t)slot * HAMMER_SLOT + w->kind->odd, count);
	hammer_post(w, op);
}

static inline void hammer_perform(struct worker *w, enum amo_family family, enum fi_op what,
				  int slot)
{
	hammer_start(w, &w->ops[0], family, what, slot, 1);
	hammer_wait(w, &w->ops[0]);
}

/* Yields, as there may be fewer cores than workers. */
static inline void hammer_progress(void *arg)
{
	side_progress(arg);
	sched_yield();
}

static inline void hammer_open(struct amo_side *m, struct api *a)
{
	amo_open(m, a, &(struct side_opts){.threading = FI_THREAD_SAFE}, AMO_ACCESS);
	a->progress = hammer_progress;
}

/* Returns whether the library supports the type; ours supports all. */
static inline bool hammer_has(struct amo_side *m, const struct hammer_kind *k)
{
	size_t count;

	return !api_other() ||
	       (k->type <= FI_DOUBLE && eval_class(k->type) == EVAL_INTEGER && !k->odd &&
		!fi_compare_atomicvalid(m->s.ep, k->type, FI_CSWAP_NE, &count));
}

static inline void hammer_clear(struct api *a)
{
	api_meet(a);
	if (!a->rank)
		memset(amo_memory(a, 0), 0, 2 * AMO_REGION);
	api_meet(a);
}

#endif
