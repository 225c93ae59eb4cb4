/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the whole history is right. Needs atomics.h. */
#ifndef GENERATED_HISTORY_H
#define GENERATED_HISTORY_H

/* once: what was accepted ends once, what was injected without an entry; delivered: it does end */
static inline void history_once(struct world *w, const struct matching *x, const struct op *o)
{
	const struct line *l = world_line(w, o);
	const struct entry *e = world_entry(w, o, NULL);
	unsigned int most = op_accepted(o) && (line_reported(l) || (line_silent(l) && e && e->err));

	if (o->entries > most && !l->multi)
		world_fail(w, "once: %s has %u completions, at most %u are right", world_name(w, o),
			   o->entries, most);
	if (o->there > (op_accepted(o) && line_reported_there(l)))
		world_fail(w, "once: the target of %s has %u completions", world_name(w, o),
			   o->there);
	if (judge_owes(w, x, o) || judge_owes_there(w, x, o))
		world_fail(w, "delivered: %s has not ended", world_name(w, o));
}

#define HISTORY_FLAGS                                                                              \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_READ | FI_WRITE | FI_RMA | FI_ATOMIC |        \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)

static const uint64_t history_flags[] = {
	[VERB_SEND] = FI_SEND | FI_MSG,    [VERB_TSEND] = FI_SEND | FI_TAGGED,
	[VERB_RECV] = FI_RECV | FI_MSG,    [VERB_TRECV] = FI_RECV | FI_TAGGED,
	[VERB_WRITE] = FI_WRITE | FI_RMA,  [VERB_READ] = FI_READ | FI_RMA,
	[VERB_ADD] = FI_WRITE | FI_ATOMIC, [VERB_FETCH] = FI_READ | FI_ATOMIC,
	[VERB_SWAP] = FI_READ | FI_ATOMIC,
};

/* ends: in success; entry: with the flags of its kind */
static inline void history_done(struct world *w, const struct op *o, const struct entry *e)
{
	uint64_t flags = history_flags[world_line(w, o)->verb];

	if (e->err && !op_target_gone(w, o))
		world_fail(w, "ends: %s ended with %d", world_name(w, o), e->err);
	else if (!e->err && (e->flags & HISTORY_FLAGS & ~FI_REMOTE_CQ_DATA) != flags)
		world_fail(w, "entry: %s has flags %#" PRIx64 ", right are %#" PRIx64,
			   world_name(w, o), e->flags, flags);
}

/* length: what fits the buffer, and FI_ETRUNC with the rest if there is one */
static inline void history_length(struct world *w, const struct op *r, const struct entry *e,
				  const struct op *m)
{
	size_t len = world_line(w, m)->len, room = line_room(world_line(w, r)) - e->from;
	size_t fits = len < room ? len : room;

	if (e->err != (len > room ? FI_ETRUNC : 0) || e->len != fits || e->olen != len - fits)
		world_fail(w, "length: %s took %s: error %d, len %zu, olen %zu", world_name(w, r),
			   world_name(w, m), e->err, e->len, e->olen);
}

/* fits: the receive and the message; entry: flags, tag, data and source are the message's */
static inline void history_entry(struct world *w, const struct op *r, const struct entry *e,
				 const struct op *m)
{
	const struct line *l = world_line(w, m);
	uint64_t flags = history_flags[world_line(w, r)->verb] | (l->data ? FI_REMOTE_CQ_DATA : 0);

	if (!op_accepted(m) && !op_unsure(w, m))
		world_fail(w, "fits: %s was refused, and %s has it", world_name(w, m),
			   world_name(w, r));
	else if (!line_fits(world_line(w, r), l))
		world_fail(w, "fits: %s took %s", world_name(w, r), world_name(w, m));
	else if ((e->flags & HISTORY_FLAGS) != flags)
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
static inline void history_receive(struct world *w, const struct op *r, const struct entry *e)
{
	bool cancelled = e->err == FI_ECANCELED && r->state == OP_CANCELLED;
	bool left = w->program.kind == KIND_MSG ? op_target_gone(w, r) : world_any_left(w);

	if (e->err && e->err != FI_ETRUNC && !cancelled && !left)
		world_fail(w, "ends: %s ended with %d", world_name(w, r), e->err);
}

/* Returns whether message `m`, or an equal one, or the receive that took it, began at a time nobody knows. */
static inline bool history_taken_later(const struct world *w, const struct matching *x,
				       unsigned int m)
{
	for (unsigned int i = 0; i < w->count; i++) {
		const struct line *l = world_line(w, &w->ops[i]);

		if (x->by[i] == WORLD_NONE || !line_sends(l) ||
		    (l->start == START_NOW && world_line(w, &w->ops[x->by[i]])->start == START_NOW))
			continue;
		if (i == m || (x->entry[i]->message == WORLD_NONE && judge_equal(w, i, m)))
			return true;
	}
	return false;
}

/*
 * order: of two messages of one sender, the later one, `second`, took receive `r`, which fits the
 * first one, too: then that was taken by an earlier receive, or before it in the same buffer.
 */
static inline void history_senders_order(struct world *w, const struct matching *x,
					 unsigned int second)
{
	const struct line *l = world_line(w, &w->ops[second]);
	unsigned int r = x->by[second];

	if (history_taken_later(w, x, second) || judge_may_be_other(w, x, second))
		return;
	for (unsigned int first = 0; first < second; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_sends(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    line_begins_before(f, l) && w->ops[first].life == w->ops[second].life &&
		    !op_unsure(w, &w->ops[first]) && line_fits(world_line(w, &w->ops[r]), f) &&
		    !history_taken_later(w, x, first) && !judge_may_be_other(w, x, first) &&
		    (x->by[first] == WORLD_NONE || x->by[first] > r ||
		     (x->by[first] == r && x->entry[first]->from > x->entry[second]->from)))
			world_fail(w, "order: %s was overtaken by %s, which %s took",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[second]),
				   world_name(w, &w->ops[r]));
	}
}

/* order: of two receives, the later one took message `m`, which fits the first one: that has ended */
static inline void history_receives_order(struct world *w, const struct matching *x, unsigned int m)
{
	const struct line *l = world_line(w, &w->ops[m]);

	if (history_taken_later(w, x, m) || judge_may_be_other(w, x, m))
		return;
	for (unsigned int first = 0; first < x->by[m]; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_receives(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    f->start == START_NOW && line_fits(f, l) && !op_ended(&w->ops[first]) &&
		    w->ops[first].life == w->ops[x->by[m]].life && !op_orphan(w, &w->ops[first]))
			world_fail(w, "order: %s was passed over when %s took %s",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[x->by[m]]),
				   world_name(w, &w->ops[m]));
	}
}

static inline void history_message(struct world *w, const struct matching *x, unsigned int m)
{
	const struct op *r = &w->ops[x->by[m]];
	const struct entry *e = x->entry[m];

	history_entry(w, r, e, &w->ops[m]);
	if (world_line(w, r)->how != HOW_DISCARD)
		history_length(w, r, e, &w->ops[m]);
	history_senders_order(w, x, m);
	history_receives_order(w, x, m);
}

static inline void history_op(struct world *w, const struct matching *x, const struct op *o)
{
	const struct entry *e = NULL;
	bool receives = line_receives(world_line(w, o));

	history_once(w, x, o);
	while ((e = world_entry(w, o, e)))
		if (receives)
			history_receive(w, o, e);
		else
			history_done(w, o, e);
	if (x->by[op_number(w, o)] != WORLD_NONE)
		history_message(w, x, op_number(w, o));
}

static inline void history(struct world *w)
{
	static struct matching x;

	if (!judge_match(w, &x))
		return;
	for (unsigned int i = 0; i < w->count && !world_failed(w); i++)
		history_op(w, &x, &w->ops[i]);
	atomics(w, &x);
}

#endif
