/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle: properties that every history has, whatever the library does inside. `judge_owes`
 * tells at any time what must still come, `judge` whether the whole history is right. Each failure
 * begins with the name of its property: docs/PROMISES.md refers to them. Needs world.h.
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

		if (line_receives(l) || !op_accepted(&w->ops[i]))
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

	return line_sends(l) && op_state(m) != OP_NONE && op_begun(w, m) &&
	       line_fits(world_line(w, r), l) &&
	       (e->source.proc == PLACE_ANY || place_same(e->source, l->at)) &&
	       l->len == e->len + e->olen && (!line_tagged(l) || l->tag == e->tag) &&
	       (l->data ? op_number(w, m) + 1 : 0) == e->data && judge_head(w, r, e, m);
}

/* Messages too short to be named were taken in order, since they are equal to receives. Of one refused only if need be. */
static inline unsigned int judge_unnamed(const struct world *w, const struct matching *x,
					 const struct op *r, const struct entry *e)
{
	unsigned int refused = WORLD_NONE;

	for (unsigned int m = 0; m < w->count; m++) {
		if (x->by[m] != WORLD_NONE || !judge_same(w, r, e, &w->ops[m]))
			continue;
		if (op_accepted(&w->ops[m]))
			return m;
		if (refused == WORLD_NONE)
			refused = m;
	}
	return refused;
}

/* The message that entry `e` of receive `r` tells of. Returns whether nobody else has it. */
static inline bool judge_note(struct world *w, struct matching *x, const struct op *r,
			      const struct entry *e)
{
	unsigned int m = e->message;

	if (m == WORLD_NONE)
		m = judge_unnamed(w, x, r, e);
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
		if (line_receives(l) && !op_ended(o))
			x->posted[x->posted_count++] = i;
		if (line_sends(l) && x->by[i] == WORLD_NONE && !op_lost(w, o) &&
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

/*
 * Returns whether the end of `o` must still come. What is owed to a receive is a message, see
 * below: which one takes it first, and when, depends on the others.
 */
static inline bool judge_owes(const struct world *w, const struct matching *x, const struct op *o)
{
	const struct line *l = world_line(w, o);

	if (!op_accepted(o) || op_ended(o) || !op_begun(w, o) || world_left(w, l->at.proc) ||
	    judge_is_held(w, x, o))
		return false;
	if (line_receives(l))
		return op_state(o) == OP_CANCELLED;
	if (world_left(w, l->with.proc))
		return line_reported(l);
	return line_reported(l) && !judge_is_stuck(w, x, o) &&
	       (x->by[op_number(w, o)] != WORLD_NONE || judge_ends_alone(w, l));
}

/* Returns whether `o` must still come to its target: as a message, or as what a write tells. */
static inline bool judge_owes_there(const struct world *w, const struct matching *x,
				    const struct op *o)
{
	const struct line *l = world_line(w, o);

	if (line_receives(l) || !op_accepted(o) || !op_begun(w, o) || op_lost(w, o) ||
	    world_left(w, l->with.proc) || judge_is_held(w, x, o))
		return false;
	if (line_sends(l) ? x->by[op_number(w, o)] != WORLD_NONE || !judge_wanted(w, x, o)
			  : !line_reported_there(l) || op_reported_there(o))
		return false;
	return !judge_is_stuck(w, x, o);
}

/* Returns whether nobody knows if the library has done `o`, at the end. */
static inline bool judge_unknown(const struct world *w, const struct matching *x,
				 const struct op *o)
{
	return op_accepted(o) && (op_lost(w, o) || judge_is_stuck(w, x, o));
}

/* Returns whether the library has done `o`, at the end. */
static inline bool judge_performed(const struct world *w, const struct matching *x,
				   const struct op *o)
{
	return op_accepted(o) &&
	       (op_ended(o) || (!judge_is_held(w, x, o) && !judge_unknown(w, x, o)));
}

/* ---- The whole history ----------------------------------------------------------------------- */

/* once: what was accepted ends once, what was injected without an entry; delivered: it does end */
static inline void judge_once(struct world *w, const struct matching *x, const struct op *o)
{
	const struct line *l = world_line(w, o);
	unsigned int most = op_accepted(o) && line_reported(l);

	if (o->entries > most && !l->multi)
		world_fail(w, "once: %s has %u completions, at most %u are right", world_name(w, o),
			   o->entries, most);
	if (o->there > (op_accepted(o) && line_reported_there(l)))
		world_fail(w, "once: the target of %s has %u completions", world_name(w, o),
			   o->there);
	if (judge_owes(w, x, o) || judge_owes_there(w, x, o))
		world_fail(w, "delivered: %s has not ended", world_name(w, o));
}

#define JUDGE_FLAGS                                                                                \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_READ | FI_WRITE | FI_RMA | FI_ATOMIC |        \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)

static const uint64_t judge_flags[] = {
	[VERB_SEND] = FI_SEND | FI_MSG,    [VERB_TSEND] = FI_SEND | FI_TAGGED,
	[VERB_RECV] = FI_RECV | FI_MSG,    [VERB_TRECV] = FI_RECV | FI_TAGGED,
	[VERB_WRITE] = FI_WRITE | FI_RMA,  [VERB_READ] = FI_READ | FI_RMA,
	[VERB_ADD] = FI_WRITE | FI_ATOMIC, [VERB_FETCH] = FI_READ | FI_ATOMIC,
	[VERB_SWAP] = FI_READ | FI_ATOMIC,
};

/* ends: in success; entry: with the flags of its kind */
static inline void judge_done(struct world *w, const struct op *o, const struct entry *e)
{
	uint64_t flags = judge_flags[world_line(w, o)->verb];

	if (e->err && !world_left(w, world_line(w, o)->with.proc))
		world_fail(w, "ends: %s ended with %d", world_name(w, o), e->err);
	else if (!e->err && (e->flags & JUDGE_FLAGS & ~FI_REMOTE_CQ_DATA) != flags)
		world_fail(w, "entry: %s has flags %#" PRIx64 ", right are %#" PRIx64,
			   world_name(w, o), e->flags, flags);
}

/* length: what fits the buffer, and FI_ETRUNC with the rest if there is one */
static inline void judge_length(struct world *w, const struct op *r, const struct entry *e,
				const struct op *m)
{
	size_t len = world_line(w, m)->len, room = line_room(world_line(w, r)) - e->from;
	size_t fits = len < room ? len : room;

	if (e->err != (len > room ? FI_ETRUNC : 0) || e->len != fits || e->olen != len - fits)
		world_fail(w, "length: %s took %s: error %d, len %zu, olen %zu", world_name(w, r),
			   world_name(w, m), e->err, e->len, e->olen);
}

/* fits: the receive and the message; entry: flags, tag, data and source are the message's */
static inline void judge_entry(struct world *w, const struct op *r, const struct entry *e,
			       const struct op *m)
{
	const struct line *l = world_line(w, m);
	uint64_t flags = judge_flags[world_line(w, r)->verb] | (l->data ? FI_REMOTE_CQ_DATA : 0);

	if (!op_accepted(m))
		world_fail(w, "fits: %s was refused, and %s has it", world_name(w, m),
			   world_name(w, r));
	else if (!line_fits(world_line(w, r), l))
		world_fail(w, "fits: %s took %s", world_name(w, r), world_name(w, m));
	else if ((e->flags & JUDGE_FLAGS) != flags)
		world_fail(w, "entry: %s took %s: flags %#" PRIx64 ", right are %#" PRIx64,
			   world_name(w, r), world_name(w, m), e->flags, flags);
	else if ((line_tagged(l) && e->tag != l->tag) ||
		 e->data != (l->data ? op_number(w, m) + 1 : 0) ||
		 (e->source.proc != PLACE_ANY && !place_same(e->source, l->at)))
		world_fail(w,
			   "entry: %s took %s: tag %" PRIu64 ", data %" PRIu64 ", source p%" PRIu64
			   ".e%" PRIu64,
			   world_name(w, r), world_name(w, m), e->tag, e->data, e->source.proc,
			   e->source.ep);
}

/* The errors of a receive: no message of it is looked at here. */
static inline void judge_receive(struct world *w, const struct op *r, const struct entry *e)
{
	bool cancelled = e->err == FI_ECANCELED && r->state == OP_CANCELLED;

	if (e->err && e->err != FI_ETRUNC && !cancelled && !world_any_left(w))
		world_fail(w, "ends: %s ended with %d", world_name(w, r), e->err);
}

/* Returns whether a receive took message `m`, or an equal one, that began at a time nobody knows. */
static inline bool judge_taken_later(const struct world *w, const struct matching *x,
				     unsigned int m)
{
	const struct line *l = world_line(w, &w->ops[m]);

	for (unsigned int i = 0; i < w->count; i++) {
		const struct line *k = world_line(w, &w->ops[i]);

		if (line_sends(k) && x->by[i] != WORLD_NONE &&
		    world_line(w, &w->ops[x->by[i]])->start != START_NOW &&
		    (i == m || (x->entry[i]->message == WORLD_NONE && place_same(k->at, l->at) &&
				k->verb == l->verb && k->tag == l->tag && k->len == l->len)))
			return true;
	}
	return false;
}

/*
 * order: of two messages of one sender, the later one, `second`, took receive `r`, which fits the
 * first one, too: then that was taken by an earlier receive, or before it in the same buffer.
 */
static inline void judge_senders_order(struct world *w, const struct matching *x,
				       unsigned int second)
{
	const struct line *l = world_line(w, &w->ops[second]);
	unsigned int r = x->by[second];

	if (l->start != START_NOW || judge_taken_later(w, x, second))
		return;
	for (unsigned int first = 0; first < second; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_sends(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    f->start == START_NOW && place_same(f->at, l->at) &&
		    !op_lost(w, &w->ops[first]) && line_fits(world_line(w, &w->ops[r]), f) &&
		    !judge_taken_later(w, x, first) &&
		    (x->by[first] == WORLD_NONE || x->by[first] > r ||
		     (x->by[first] == r && x->entry[first]->from > x->entry[second]->from)))
			world_fail(w, "order: %s was overtaken by %s, which %s took",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[second]),
				   world_name(w, &w->ops[r]));
	}
}

/* order: of two receives, the later one took message `m`, which fits the first one: that has ended */
static inline void judge_receives_order(struct world *w, const struct matching *x, unsigned int m)
{
	const struct line *l = world_line(w, &w->ops[m]);

	if (judge_taken_later(w, x, m) || world_left(w, l->with.proc))
		return;
	for (unsigned int first = 0; first < x->by[m]; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_receives(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    f->start == START_NOW && line_fits(f, l) && !op_ended(&w->ops[first]))
			world_fail(w, "order: %s was passed over when %s took %s",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[x->by[m]]),
				   world_name(w, &w->ops[m]));
	}
}

static inline void judge_message(struct world *w, const struct matching *x, unsigned int m)
{
	const struct op *r = &w->ops[x->by[m]];
	const struct entry *e = x->entry[m];

	judge_entry(w, r, e, &w->ops[m]);
	if (world_line(w, r)->how != HOW_DISCARD)
		judge_length(w, r, e, &w->ops[m]);
	judge_senders_order(w, x, m);
	judge_receives_order(w, x, m);
}

/* atomics: the words hold what was added, and those who fetched saw each value between once */
static inline void judge_adds(struct world *w, const struct matching *x, unsigned int proc,
			      unsigned int word)
{
	static bool seen[WORLD_OPS + 1];
	uint64_t sum = 0, unknown = 0, end = w->procs[proc].words[word];

	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if ((l->verb != VERB_ADD && l->verb != VERB_FETCH) || l->with.proc != proc ||
		    l->tag % WORLD_WORDS != word)
			continue;
		unknown += judge_unknown(w, x, o);
		if (!judge_performed(w, x, o))
			continue;
		sum++;
		if (l->verb == VERB_ADD)
			continue;
		if (o->old >= end || seen[o->old])
			world_fail(w,
				   "atomics: %s saw %" PRIu64 ", seen before or not below %" PRIu64,
				   world_name(w, o), o->old, end);
		else
			seen[o->old] = true;
	}
	if (end < sum || end > sum + unknown)
		world_fail(w, "atomics: word %u of p%u is %" PRIu64 " after %" PRIu64 " times 1",
			   word, proc, end, sum);
}

/* atomics: one of those who swap saw 0, all others its number */
static inline void judge_swaps(struct world *w, const struct matching *x, unsigned int proc,
			       unsigned int word)
{
	uint64_t end = w->procs[proc].words[WORLD_WORDS + word];

	for (unsigned int i = 0; i < w->count; i++) {
		const struct op *o = &w->ops[i];
		const struct line *l = world_line(w, o);

		if (l->verb == VERB_SWAP && l->with.proc == proc && l->tag % WORLD_WORDS == word &&
		    judge_performed(w, x, o) && !world_any_left(w) &&
		    o->old != (end == i + 1 ? 0 : end))
			world_fail(w, "atomics: %s saw %" PRIu64 ", and the word is %" PRIu64,
				   world_name(w, o), o->old, end);
	}
}

static inline void judge_op(struct world *w, const struct matching *x, const struct op *o)
{
	const struct entry *e = NULL;
	bool receives = line_receives(world_line(w, o));

	judge_once(w, x, o);
	while ((e = world_entry(w, o, e)))
		if (receives)
			judge_receive(w, o, e);
		else
			judge_done(w, o, e);
	if (x->by[op_number(w, o)] != WORLD_NONE)
		judge_message(w, x, op_number(w, o));
}

static inline void judge(struct world *w)
{
	static struct matching x;

	if (!judge_match(w, &x))
		return;
	for (unsigned int i = 0; i < w->count && !world_failed(w); i++)
		judge_op(w, &x, &w->ops[i]);
	for (unsigned int i = 0; i < w->program.procs; i++)
		for (unsigned int j = 0; j < WORLD_WORDS && !world_left(w, i); j++) {
			judge_adds(w, &x, i, j);
			judge_swaps(w, &x, i, j);
		}
}

#endif
