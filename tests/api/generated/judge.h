/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle: properties that every history has, whatever the library does inside. `judge_owes`
 * tells at any time what must still come, `history` whether all that came was right. Each failure
 * begins with the name of its property: docs/PROMISES.md refers to them. Needs lives.h.
 */
#ifndef GENERATED_JUDGE_H
#define GENERATED_JUDGE_H

/* Which receive took which message. */
struct matching {
	unsigned int by[WORLD_OPS];           /* message: the receive, or WORLD_NONE */
	const struct entry *entry[WORLD_OPS]; /* and what it was told */
	unsigned int waiting[WORLD_OPS];      /* messages that may be received */
	unsigned int waiting_count;
	unsigned int posted[WORLD_OPS]; /* receives that may take one */
	unsigned int posted_count;
	/* For each pair of endpoints, the operation from which on a fence holds all back. */
	unsigned int held[PROGRAM_PROCS][PROGRAM_EPS][PROGRAM_PROCS][PROGRAM_EPS];
};

static inline unsigned int *judge_held(struct matching *x, const struct line *l)
{
	return &x->held[l->at.proc][l->at.ep][l->with.proc][l->with.ep];
}

/* A fence holds back what comes after it until all before it has ended. */
static inline void judge_fences(const struct world *w, struct matching *x)
{
	static struct matching
		waits; /* .held: the first operation of the pair that has not ended */

	memset(x->held, 0xff, sizeof(x->held));
	memset(waits.held, 0xff, sizeof(waits.held));
	for (unsigned int i = 0; i < w->count; i++) {
		const struct line *l = world_line(w, &w->ops[i]);

		if (line_receives(l) || !op_accepted(&w->ops[i]) || op_orphan(w, &w->ops[i]))
			continue;
		if (l->fence && *judge_held(&waits, l) < i && *judge_held(x, l) > i)
			*judge_held(x, l) = i;
		if (line_reported(l) && !op_ended(&w->ops[i]) && *judge_held(&waits, l) > i)
			*judge_held(&waits, l) = i;
	}
}

static inline bool judge_is_held(const struct world *w, const struct matching *x,
				 const struct op *o)
{
	const struct line *l = world_line(w, o);

	return !line_receives(l) &&
	       x->held[l->at.proc][l->at.ep][l->with.proc][l->with.ep] <= op_number(w, o);
}

/* Returns whether entry `e` of a receive tells of a message. */
static inline bool judge_got(const struct entry *e)
{
	return (!e->err || e->err == FI_ETRUNC) && e->flags & FI_RECV;
}

/* bytes: returns whether those that `e` of receive `r` has, less than WORLD_FIRST, are of `m` */
static inline bool judge_head(const struct world *w, const struct op *r, const struct entry *e,
			      const struct op *m)
{
	unsigned char right[WORLD_FIRST];
	size_t len = world_line(w, m)->len;

	world_head(right, len < WORLD_FIRST ? len : WORLD_FIRST, op_number(w, m));
	return world_line(w, r)->how == HOW_DISCARD || !memcmp(right, e->head, e->len);
}

/*
 * Returns whether an entry of receive `r`, which holds too little of its message to name it, may be
 * of `m`: all that can be seen of both is equal.
 */
static inline bool judge_same(const struct world *w, const struct op *r, const struct entry *e,
			      const struct op *m)
{
	const struct line *l = world_line(w, m);

	return line_sends(l) && op_called(m) && op_begun(w, m) && line_fits(world_line(w, r), l) &&
	       (e->source.proc == PLACE_ANY || place_same(e->source, l->at)) &&
	       l->len == e->len + e->olen && (!line_tagged(l) || l->tag == e->tag) &&
	       (l->data ? op_number(w, m) + 1 : 0) == e->data && judge_head(w, r, e, m);
}

/*
 * Messages too short to be named were taken in order, since they are equal to receives. What may have
 * been lost is taken for lost, if another one was not.
 */
static inline unsigned int judge_unnamed(const struct world *w, const struct matching *x,
					 const struct op *r, const struct entry *e)
{
	unsigned int unsure = WORLD_NONE;

	for (unsigned int m = 0; m < w->count; m++) {
		const struct op *o = &w->ops[m];

		if (x->by[m] != WORLD_NONE || !judge_same(w, r, e, o))
			continue;
		if (o->target_life == r->life && !op_lost(w, o))
			return m;
		if (unsure == WORLD_NONE)
			unsure = m;
	}
	return unsure;
}

/*
 * All messages that entry `e` may be of are given to others: takes one from an entry, too short to name it, that shows
 * less and may as well be of another message. WORLD_NONE: there is none.
 */
static inline unsigned int judge_exchange(const struct world *w, struct matching *x,
					  const struct op *r, const struct entry *e)
{
	for (unsigned int m = 0; m < w->count; m++) {
		unsigned int other;

		if (x->by[m] == WORLD_NONE || x->entry[m]->message != WORLD_NONE ||
		    !judge_same(w, r, e, &w->ops[m]))
			continue;
		other = judge_unnamed(w, x, &w->ops[x->by[m]], x->entry[m]);
		if (other == WORLD_NONE)
			continue;
		x->by[other] = x->by[m];
		x->entry[other] = x->entry[m];
		x->by[m] = WORLD_NONE;
		return m;
	}
	return WORLD_NONE;
}

/* The message that entry `e` of receive `r` tells of. Returns whether nobody else has it. */
static inline bool judge_note(struct world *w, struct matching *x, const struct op *r,
			      const struct entry *e)
{
	unsigned int m = e->message;

	if (m == WORLD_NONE)
		m = judge_unnamed(w, x, r, e);
	if (m == WORLD_NONE)
		m = judge_exchange(w, x, r, e);
	if (m == WORLD_NONE) {
		world_fail(w, "fits: %s took %zu of %zu bytes that nobody sent", world_name(w, r),
			   e->len, e->len + e->olen);
	} else if (x->by[m] != WORLD_NONE) {
		world_fail(w, "once: %s is received twice, by %s and %s", world_name(w, &w->ops[m]),
			   world_name(w, &w->ops[x->by[m]]), world_name(w, r));
		m = WORLD_NONE;
	} else {
		x->by[m] = op_number(w, r);
		x->entry[m] = e;
	}
	return m != WORLD_NONE;
}

/* `named`: of messages that name themselves. Returns whether each was taken once. */
static inline bool judge_entries(struct world *w, struct matching *x, bool named)
{
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *r = &w->ops[i];
		const struct entry *e = NULL;

		if (!line_receives(world_line(w, r)))
			continue;
		while ((e = world_entry(w, r, e)))
			if (judge_got(e) && (e->message != WORLD_NONE) == named &&
			    !judge_note(w, x, r, e))
				return false;
	}
	return true;
}

/* Fills `x`. Returns whether each message was taken once. */
static inline bool judge_match(struct world *w, struct matching *x)
{
	x->waiting_count = x->posted_count = 0;
	for (unsigned int i = 0; i < w->count; i++)
		x->by[i] = WORLD_NONE;
	if (!judge_entries(w, x, true) || !judge_entries(w, x, false))
		return false;
	judge_fences(w, x);
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if (op_state(o) != OP_POSTED || !op_begun(w, o))
			continue;
		if (line_receives(l) && !op_ended(o) && !op_orphan(w, o))
			x->posted[x->posted_count++] = i;
		if (line_sends(l) && x->by[i] == WORLD_NONE && !op_unsure(w, o) &&
		    !judge_is_held(w, x, o))
			x->waiting[x->waiting_count++] = i;
	}
	return true;
}

/*
 * Returns whether an operation that begins later may find no place: its endpoint has as many messages at the same
 * target as it may have under way, which nobody has received, and that keeps less than usual.
 */
static inline bool judge_is_stuck(const struct world *w, const struct matching *x,
				  const struct op *o)
{
	const struct line *l = world_line(w, o);
	uint64_t count = 0;

	if (!w->program.set_count || l->start == START_NOW || line_receives(l) || op_ended(o))
		return false;
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *m = &w->ops[i];
		const struct line *k = world_line(w, m);

		count += line_sends(k) && m != o && place_same(k->at, l->at) &&
			 place_same(k->with, l->with) && op_accepted(m) && op_begun(w, m) &&
			 x->by[i] == WORLD_NONE;
	}
	return count >= w->procs[l->at.proc].tx_size;
}

/* Bytes of a message that ends at its sender though nobody receives it. */
#define JUDGE_EAGER 4096

static inline bool judge_ends_alone(const struct world *w, const struct line *l)
{
	uint64_t level = level_flags[l->level];

	return !line_sends(l) || (l->len <= JUDGE_EAGER && level != FI_DELIVERY_COMPLETE &&
				  level != FI_MATCH_COMPLETE && !w->program.set_count);
}

/* Returns whether a message that waits fits receive `r`. */
static inline bool judge_waiting(const struct world *w, const struct matching *x,
				 const struct op *r)
{
	for (unsigned int i = 0; i < x->waiting_count; i++)
		if (line_fits(world_line(w, r), world_line(w, &w->ops[x->waiting[i]])))
			return true;
	return false;
}

/* Returns whether a posted receive fits message `m`, which waits. */
static inline bool judge_wanted(const struct world *w, const struct matching *x, const struct op *m)
{
	for (unsigned int i = 0; i < x->posted_count; i++)
		if (line_fits(world_line(w, &w->ops[x->posted[i]]), world_line(w, m)))
			return true;
	return false;
}

/* Returns whether a receive that cannot name its message takes `a` for `b`. */
static inline bool judge_equal(const struct world *w, unsigned int a, unsigned int b)
{
	const struct line *l = world_line(w, &w->ops[a]), *k = world_line(w, &w->ops[b]);

	return place_same(l->at, k->at) && l->verb == k->verb && l->tag == k->tag &&
	       l->len == k->len;
}

/*
 * Returns whether what was taken for message `m`, too short to be named, may be an equal one of those that may have been lost,
 * which judge_unnamed takes last.
 */
static inline bool judge_may_be_other(const struct world *w, const struct matching *x,
				      unsigned int m)
{
	if (x->by[m] == WORLD_NONE || x->entry[m]->message != WORLD_NONE)
		return false;
	for (unsigned int i = 0; i < w->count; i++)
		if (i != m && line_sends(world_line(w, &w->ops[i])) && op_unsure(w, &w->ops[i]) &&
		    judge_equal(w, i, m) &&
		    (x->by[i] == WORLD_NONE || x->entry[i]->message == WORLD_NONE))
			return true;
	return false;
}

/* Returns whether message `m` has been received, and not an equal one of which nobody knows which is first. */
static inline bool judge_taken(const struct world *w, const struct matching *x, unsigned int m)
{
	if (x->by[m] == WORLD_NONE || x->entry[m]->message != WORLD_NONE)
		return x->by[m] != WORLD_NONE;
	if (judge_may_be_other(w, x, m))
		return false;
	for (unsigned int i = 0; i < w->count; i++)
		if (world_line(w, &w->ops[i])->start != START_NOW && judge_equal(w, i, m))
			return false;
	return true;
}

/* Returns whether the receives of a line end since the other end of their connection has left. */
static inline bool judge_flushed(const struct world *w, const struct line *l)
{
	return w->program.kind == KIND_MSG && world_gone(w, l->with.proc);
}

/*
 * Returns whether `o` must end, if it has not. What is owed to a receive is a message, see below:
 * which one takes it first, and when, depends on the others.
 */
static inline bool judge_must_end(const struct world *w, const struct matching *x,
				  const struct op *o)
{
	const struct line *l = world_line(w, o);

	if (!op_accepted(o) || !op_begun(w, o) || op_orphan(w, o) || judge_is_held(w, x, o))
		return false;
	if (line_receives(l))
		return op_state(o) == OP_CANCELLED || judge_flushed(w, l);
	if (world_left(w, l->with.proc))
		return world_gone(w, l->with.proc);
	return !judge_is_stuck(w, x, o) &&
	       (judge_ends_alone(w, l) || judge_taken(w, x, op_number(w, o)));
}

/* Returns whether an entry must still come that says that `o` has ended. */
static inline bool judge_owes(const struct world *w, const struct matching *x, const struct op *o)
{
	return line_reported(world_line(w, o)) && !op_ended(o) && judge_must_end(w, x, o);
}

/* Returns whether `o` must still come to its target: as a message, or as what a write tells. */
static inline bool judge_owes_there(const struct world *w, const struct matching *x,
				    const struct op *o)
{
	const struct line *l = world_line(w, o);

	if (line_receives(l) || !op_accepted(o) || !op_begun(w, o) || op_unsure(w, o) ||
	    judge_is_held(w, x, o))
		return false;
	if (line_sends(l) ? x->by[op_number(w, o)] != WORLD_NONE || !judge_wanted(w, x, o)
			  : !line_reported_there(l) || op_reported_there(o))
		return false;
	return !judge_is_stuck(w, x, o);
}

/* Returns whether nobody knows if the library has done `o`, at the end: its process may have left before it knew. */
static inline bool judge_unknown(const struct world *w, const struct matching *x,
				 const struct op *o)
{
	if (line_silent(world_line(w, o)) && world_any_left(w))
		return true; /* the counter has counted what failed, too */
	return op_unsure(w, o) || (op_accepted(o) && (judge_is_stuck(w, x, o) ||
						      (op_orphan(w, o) && judge_is_held(w, x, o))));
}

/* Returns whether the library has done `o`, at the end. */
static inline bool judge_performed(const struct world *w, const struct matching *x,
				   const struct op *o)
{
	return op_accepted(o) && !op_lost(w, o) &&
	       (op_ended(o) || (!judge_is_held(w, x, o) && !judge_is_stuck(w, x, o)));
}

#endif
