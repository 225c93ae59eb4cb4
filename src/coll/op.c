/* SPDX-License-Identifier: BSD-2-Clause */
#include "coll/op.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/ep.h"
#include "xfer/worker.h"

/*
 * After so many collectives in which some members may run ahead, a barrier follows. One of more than
 * SPELL_SHORT bytes counts as SPELL_LONG.
 */
#define SPELL_MAX   512
#define SPELL_SHORT 64
#define SPELL_LONG  8

/* ---- Ends ------------------------------------------------------------------------------------ */

static struct cntr *op_counter_of(const struct ep *ep)
{
	return ep->write_cntr ? ep->write_cntr : ep->tx_cntr;
}

static void tell_failure(const struct op *op, int err)
{
	struct cntr *cntr = op_counter_of(op->ep);
	struct cq_slot slot = {.context = op->args.context, .flags = FI_COLLECTIVE};

	if (op->ep->tx_cq)
		cq_push_error(op->ep->tx_cq, &slot,
			      &(struct cq_error){.err = err, .prov_errno = err}, NULL);
	if (cntr && err != FI_ECANCELED)
		cntr_fail(cntr);
}

static void op_report(const struct op *op)
{
	struct cntr *cntr = op_counter_of(op->ep);

	if (op->args.flags & FI_COMPLETION)
		cq_push_done(op->ep->tx_cq, op->args.context, FI_COLLECTIVE);
	if (cntr)
		cntr_done(cntr, op->args.out_count * op->args.width);
}

/* Begins operations that waited for the end of another one. */
static void begin_next(struct group *g)
{
	bool first = true;

	LIST_EACH_OF (struct op, op, &g->ops, in_group) {
		if (op->begun && op->alone)
			return;
		if (!op->begun && op->alone && !first)
			return;
		if (!op->begun) {
			op->begun = true;
			if (list_empty(&op->in_ready))
				list_push(&g->coll->ready, &op->in_ready);
			if (op->alone)
				return;
		}
		first = false;
	}
}

/* Clears the plan and the current round. */
static void forget_plan(struct op *op)
{
	op->planned = 0;
	op->round = &op->kept[0];
	op->round->plan.messages = op->round->plan.sends = op->round->plan.locals = 0;
}

/* Moves the operation to the idle list, where op_new takes it. */
static inline void put_away(struct op *op)
{
	struct group *g = op->group;

	list_remove(&op->in_group);
	list_remove(&op->in_ready);
	if (op->memory)
		spare_put(&g->coll->worker->spare, op->memory);
	op->memory = NULL;
	list_push_front(&g->coll->idle,
			&op->in_ready); /* first, because the next call may reuse its plan */
	g->op_count--;
}

static void op_end(struct op *op)
{
	struct group *g = op->group;

	if (op->ep)
		op_report(op);
	put_away(op);
	if (g->alone_count) {
		g->alone_count -= op->alone;
		begin_next(g);
	}
}

void op_end_all(struct group *g)
{
	while (!list_empty(&g->ops)) {
		struct op *op = LIST_ENTRY(g->ops.next, struct op, in_group);

		if (op->ep)
			tell_failure(op, g->err);
		forget_plan(op);
		exchange_prepare(op);
		put_away(op);
	}
}

struct op_round *op_round(struct op *op, size_t n)
{
	struct op_round *round = &op->kept[n % OP_KEPT];

	if (n == op->rounds)
		return NULL;
	if (n != round->number && !plan_round(&op->plan, n, &round->plan)) {
		op->rounds = n;
		return NULL;
	}
	round->number = n;
	return round;
}

void op_step(struct op *op)
{
	if (op->group->err)
		return; /* group_end will end it */
	while (!op->pending) {
		struct op_round *next = op_round(op, op->next);

		if (op->next && op->round->plan.locals)
			local_run(&op->local, &op->round->plan);
		if (!next) {
			op_end(op);
			return;
		}
		op->round = next;
		op->next++;
		exchange_start(op);
		if (op->group->err)
			return;
	}
}

/* ---- Starting operations --------------------------------------------------------------------- */

static struct op *op_new(struct coll *c)
{
	struct list *node = list_pop(&c->idle);
	struct op *op = node ? LIST_ENTRY(node, struct op, in_ready) : malloc(sizeof(*op));

	if (!op)
		return NULL;
	if (!node) {
		forget_plan(op);
		exchange_prepare(op);
		list_init(&op->in_group);
		list_init(&op->in_ready);
		op->memory = NULL;
	}
	op->begun = false;
	op->pending = 0;
	op->next = 0;
	return op;
}

static enum plan_overlap overlap_of(const struct op_args *a)
{
	const char *in = a->in, *out = a->out;
	size_t in_len = a->in_count * a->width, out_len = a->out_count * a->width;

	if (!in_len || !out_len || !in || !out || in >= out + out_len || out >= in + in_len)
		return PLAN_APART;
	return in == out ? PLAN_SAME : PLAN_MIXED;
}

/* Does the operator commute bit by bit? */
static bool op_commutes(const struct op_args *a)
{
	return a->op != FI_ATOMIC_WRITE &&
	       (a->type <= FI_UINT64 || a->type == FI_INT128 || a->type == FI_UINT128);
}

/* Keeps the plan of the last call if the shape is the same: programs repeat calls. */
static void plan_anew(struct op *op, struct group *g, const struct plan_shape *s)
{
	struct plan_shape *last = &op->shape;

	if (op->planned == g->serial && last->kind == s->kind && last->root == s->root &&
	    last->count == s->count && last->width == s->width && last->ordered == s->ordered &&
	    last->overlap == s->overlap)
		return;
	*last = *s;
	last->layout = g->layout;
	last->cpus = g->cpus;
	last->shares = g->shares;
	plan_make(&op->plan, last);
	op->planned = g->serial;
	op->rounds = SIZE_MAX;
	for (unsigned int i = 0; i < OP_KEPT; i++)
		op->kept[i].number = SIZE_MAX;
}

uint64_t op_what(const struct op_args *a)
{
	uint64_t op = plan_reduces(a->kind) ? a->op : 0;

	return hash_mix(a->count ^
			((uint64_t)a->root << 32 | op << 16 | (uint64_t)a->type << 8 | a->kind) *
				UINT64_C(0x9e3779b97f4a7c15));
}

/* Memory that the call does not give is not touched either; no place in it is behind a null pointer. */
static void *op_given(struct op *op, void *memory)
{
	return memory ? memory : op->scratch;
}

static void make_plan(struct op *op, struct group *g, const struct op_args *a)
{
	struct plan_shape shape = {.kind = a->kind,
				   .rank = g->rank,
				   .size = g->size,
				   .root = a->root,
				   .count = a->count,
				   .width = a->width,
				   .ordered = a->op == FI_ATOMIC_WRITE,
				   .overlap = overlap_of(a)};

	plan_anew(op, g, &shape);
	op->what = op_what(a);
	op->local = (struct local){
		.space = {[PLAN_IN] = op_given(op, a->in),
			  [PLAN_OUT] = op_given(op, a->out),
			  [PLAN_TMP] = op->scratch},
		.width = a->width,
		.kernel = plain_find(a->op, a->type),
		.commutes = op_commutes(a),
	};
}

/* Does the call repeat the last one? */
static bool op_repeats(const struct op *op, const struct group *g, const struct op_args *a)
{
	const struct op_args *last = &op->args;

	return op->planned == g->serial && a->kind == last->kind && a->type == last->type &&
	       a->op == last->op && a->in == last->in && a->out == last->out &&
	       a->count == last->count && a->root == last->root;
}

static int op_prepare(struct op *op, struct group *g, const struct op_args *a)
{
	size_t bytes;

	if (op_repeats(op, g, a)) {
		op->args.flags = a->flags;
		op->args.context = a->context;
	} else {
		make_plan(op, g, a);
		op->args = *a;
	}
	bytes = op->plan.scratch * a->width;
	if (bytes <= sizeof(op->scratch))
		return 0;
	op->memory = spare_get(&g->coll->worker->spare, bytes);
	op->local.space[PLAN_TMP] = op->memory;
	return op->memory ? 0 : -FI_ENOMEM;
}

static void op_begin(struct op *op)
{
	struct group *g = op->group;
	struct coll *c = g->coll;
	/* Must it wait for earlier ones to end? */
	bool wait = !list_empty(&g->ops) && (op->alone || g->alone_count);

	list_push(&g->ops, &op->in_group);
	g->op_count++;
	g->alone_count += op->alone;
	if (wait)
		return;
	op->begun = true;
	if (c->running) {
		list_push(&c->ready, &op->in_ready);
		return;
	}
	c->running = true;
	op_step(op);
	c->running = false;
	if (coll_ready(c))
		coll_run(c);
}

static int op_post_now(struct ep *ep, struct group *g, const struct op_args *args, bool alone)
{
	struct op *op = op_new(g->coll);
	int err;

	if (!op)
		return -FI_ENOMEM;
	op->group = g;
	op->ep = ep ? g->ep : NULL; /* an alias may be closed before the operation ends */
	op->alone = alone || args->flags & FI_FENCE;
	err = op_prepare(op, g, args);
	if (err) {
		list_push_front(&g->coll->idle, &op->in_ready);
		return err;
	}
	op->seq = ++g->seq;
	op_begin(op);
	return 0;
}

/*
 * If only some members wait for others, the rest can run ahead, and their messages would be kept
 * without limit. So after SPELL_MAX short ones a barrier follows. All members count alike.
 */
static int op_meet(struct group *g)
{
	static const struct op_args barrier = {
		.kind = FI_BARRIER, .type = FI_VOID, .op = FI_NOOP, .width = 1};
	int err = op_post_now(NULL, g, &barrier, true);

	if (!err)
		g->spell = 0;
	return err;
}

int op_post(struct ep *ep, struct group *g, const struct op_args *args)
{
	bool empty = !args->count && args->kind != FI_BARRIER;
	unsigned int weight = args->count * args->width > SPELL_SHORT ? SPELL_LONG : 1;
	bool meets = (!plan_rooted(args->kind) && !empty) || g->size == 1;
	int err = 0;

	if (g->op_count >= ep->tx_size)
		return -FI_EAGAIN;
	if (!meets && g->spell >= SPELL_MAX)
		err = op_meet(g);
	if (!err)
		err = op_post_now(ep, g, args, false);
	if (!err)
		g->spell = meets ? 0 : g->spell + weight;
	return err;
}
