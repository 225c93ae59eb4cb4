/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The oracle: properties that every history has, whatever the library does inside. `judge_owes`
 * tells at any time what must still come, `judge` whether the whole history is right. The
 * properties' names begin what is printed: docs/PROMISES.md refers to them. Needs world.h.
 */
#ifndef GENERATED_JUDGE_H
#define GENERATED_JUDGE_H

/* Which receive took which message. WORLD_OPS: none. */
struct matching {
	unsigned int by[WORLD_OPS];   /* message: the receive */
	unsigned int took[WORLD_OPS]; /* receive: the message */
};

static inline bool judge_got(const struct world *w, const struct op *r)
{
	return line_receives(world_line(w, r)) && op_ended(r) && (!r->err || r->err == FI_ETRUNC);
}

/*
 * Returns whether receive `r`, which holds too little of its message to name it, may have taken
 * `m`: all that can be seen of both is equal.
 */
static inline bool judge_same(const struct world *w, const struct op *r, const struct op *m)
{
	const struct line *l = world_line(w, m);

	return line_sends(l) && op_state(m) != OP_NONE && line_fits(world_line(w, r), l) &&
	       (r->source.proc == PLACE_ANY || place_same(r->source, l->at)) &&
	       l->len == r->len + r->olen && (!line_tagged(l) || l->tag == r->tag) &&
	       l->data == r->data;
}

/* Messages too short to be named were taken in order, since they are equal to receives. */
static inline unsigned int judge_unnamed(const struct world *w, const struct matching *x,
					 const struct op *r)
{
	for (unsigned int m = 0; m < w->count; m++)
		if (x->by[m] == WORLD_OPS && judge_same(w, r, &w->ops[m]))
			return m;
	return WORLD_OPS;
}

static inline bool judge_note(struct world *w, struct matching *x, unsigned int r, unsigned int m)
{
	if (x->by[m] != WORLD_OPS) {
		world_fail(w, "once: %s is received twice, by %s and %s", world_name(w, &w->ops[m]),
			   world_name(w, &w->ops[x->by[m]]), world_name(w, &w->ops[r]));
		return false;
	}
	x->by[m] = r;
	x->took[r] = m;
	return true;
}

/* Fills `x`. Returns whether each message was taken once. */
static inline bool judge_match(struct world *w, struct matching *x)
{
	for (unsigned int i = 0; i < w->count; i++)
		x->by[i] = x->took[i] = WORLD_OPS;
	for (unsigned int named = 1; named + 1; named--)
		for (unsigned int r = 0; r < w->count; r++) {
			const struct op *o = &w->ops[r];
			unsigned int m = o->message;

			if (!judge_got(w, o) || (m != WORLD_OPS) != named)
				continue;
			if (!named)
				m = judge_unnamed(w, x, o);
			if (m != WORLD_OPS && !judge_note(w, x, r, m))
				return false;
		}
	return true;
}

/* Bytes of a message that ends at its sender though nobody receives it. */
#define JUDGE_EAGER 4096

static inline bool judge_ends_alone(const struct world *w, const struct line *l)
{
	return l->len <= JUDGE_EAGER && level_flags[l->level] != FI_DELIVERY_COMPLETE &&
	       level_flags[l->level] != FI_MATCH_COMPLETE && !w->program.set_count;
}

/* Returns whether a message that waits fits receive `r`. */
static inline const struct op *judge_waiting(const struct world *w, const struct matching *x,
					     const struct op *r)
{
	for (unsigned int m = 0; m < w->count; m++)
		if (x->by[m] == WORLD_OPS && line_sends(world_line(w, &w->ops[m])) &&
		    op_state(&w->ops[m]) == OP_POSTED &&
		    line_fits(world_line(w, r), world_line(w, &w->ops[m])))
			return &w->ops[m];
	return NULL;
}

/* Returns whether the end of `o` must still come. */
static inline bool judge_owes(const struct world *w, const struct matching *x, const struct op *o)
{
	const struct line *l = world_line(w, o);

	if (!op_accepted(o) || op_ended(o))
		return false;
	if (line_receives(l))
		return op_state(o) == OP_CANCELLED || judge_waiting(w, x, o);
	return l->form != FORM_INJECT &&
	       (x->by[op_number(w, o)] != WORLD_OPS || judge_ends_alone(w, l));
}

/* ---- The whole history ----------------------------------------------------------------------- */

/* each operation that was accepted ends once, injected ones without an entry */
static inline void judge_once(struct world *w, const struct matching *x, const struct op *o)
{
	const struct line *l = world_line(w, o);
	unsigned int most = op_accepted(o) && l->form != FORM_INJECT;

	if (o->entries > most)
		world_fail(w, "once: %s has %u completions, at most %u are right", world_name(w, o),
			   o->entries, most);
	if (judge_owes(w, x, o))
		world_fail(w, "delivered: %s has not ended", world_name(w, o));
}

#define JUDGE_FLAGS                                                                                \
	(FI_SEND | FI_RECV | FI_MSG | FI_TAGGED | FI_READ | FI_WRITE | FI_ATOMIC |                 \
	 FI_REMOTE_READ | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA | FI_MULTI_RECV)

static inline void judge_sent(struct world *w, const struct op *o)
{
	uint64_t flags = FI_SEND | (line_tagged(world_line(w, o)) ? FI_TAGGED : FI_MSG);

	if (!o->entries)
		return;
	if (o->err)
		world_fail(w, "ends: %s ended with %d", world_name(w, o), o->err);
	if ((o->flags & JUDGE_FLAGS & ~FI_REMOTE_CQ_DATA) != flags)
		world_fail(w, "entry: %s has flags %#" PRIx64 ", right are %#" PRIx64,
			   world_name(w, o), o->flags, flags);
}

/* a completion names a receive that fits the message, with its length, tag, data, source, flags */
static inline void judge_entry(struct world *w, const struct op *r, const struct op *m)
{
	const struct line *l = world_line(w, m), *rl = world_line(w, r);
	uint64_t flags = FI_RECV | (line_tagged(l) ? FI_TAGGED : FI_MSG);
	size_t room = line_room(rl), len = l->len < room ? l->len : room;

	if (l->data)
		flags |= FI_REMOTE_CQ_DATA;
	if (op_state(m) == OP_REFUSED || op_state(m) == OP_NONE)
		world_fail(w, "entry: %s was refused, and %s has it", world_name(w, m),
			   world_name(w, r));
	else if (!line_fits(rl, l))
		world_fail(w, "fits: %s took %s", world_name(w, r), world_name(w, m));
	else if ((r->flags & JUDGE_FLAGS) != flags)
		world_fail(w, "entry: %s took %s: flags %#" PRIx64 ", right are %#" PRIx64,
			   world_name(w, r), world_name(w, m), r->flags, flags);
	else if (r->err != (l->len > room ? FI_ETRUNC : 0) || r->len != len ||
		 r->olen != l->len - len)
		world_fail(w, "length: %s took %s: error %d, len %zu, olen %zu", world_name(w, r),
			   world_name(w, m), r->err, r->len, r->olen);
	else if (line_tagged(l) && r->tag != l->tag)
		world_fail(w, "entry: %s took %s: tag %" PRIu64, world_name(w, r), world_name(w, m),
			   r->tag);
	else if (l->data && r->data != l->data)
		world_fail(w, "entry: %s took %s: data %" PRIu64, world_name(w, r),
			   world_name(w, m), r->data);
	else if (r->source.proc != PLACE_ANY && !place_same(r->source, l->at))
		world_fail(w, "entry: %s took %s: source p%" PRIu64 ".e%" PRIu64, world_name(w, r),
			   world_name(w, m), r->source.proc, r->source.ep);
}

/* the bytes of a message too short to be named, or of its beginning */
static inline void judge_first(struct world *w, const struct op *r, const struct op *m)
{
	unsigned char right[WORLD_FIRST];
	unsigned int number = op_number(w, m);
	size_t len = r->len < WORLD_FIRST ? r->len : WORLD_FIRST;

	memset(right, 0xe0, sizeof(right));
	if (world_line(w, m)->len >= WORLD_FIRST)
		memcpy(right, &number, WORLD_FIRST);
	if (memcmp(right, r->first, len) != 0)
		world_fail(w, "bytes: %s took %s with other bytes", world_name(w, r),
			   world_name(w, m));
}

static inline void judge_received(struct world *w, const struct matching *x, const struct op *r)
{
	unsigned int m = x->took[op_number(w, r)];

	if (!r->entries || (r->err == FI_ECANCELED && r->state == OP_CANCELLED))
		return;
	if (r->err && r->err != FI_ETRUNC) {
		world_fail(w, "ends: %s ended with %d", world_name(w, r), r->err);
	} else if (m == WORLD_OPS) {
		world_fail(w, "fits: %s took %zu of %zu bytes that nobody sent", world_name(w, r),
			   r->len, r->len + r->olen);
	} else {
		judge_entry(w, r, &w->ops[m]);
		judge_first(w, r, &w->ops[m]);
	}
}

/*
 * Of two messages of one sender, the later one `second` took receive `r`, which fits the first one,
 * too: then that was taken by an earlier receive.
 */
static inline void judge_senders_order(struct world *w, const struct matching *x,
				       unsigned int second)
{
	const struct line *l = world_line(w, &w->ops[second]);
	unsigned int r = x->by[second];

	for (unsigned int first = 0; first < second; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_sends(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    place_same(f->at, l->at) && line_fits(world_line(w, &w->ops[r]), f) &&
		    (x->by[first] == WORLD_OPS || x->by[first] > r))
			world_fail(w, "order: %s was overtaken by %s, which %s took",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[second]),
				   world_name(w, &w->ops[r]));
	}
}

/*
 * Of two receives, the later one `second` took message `m`, which fits the first one, too: then
 * that has ended.
 */
static inline void judge_receives_order(struct world *w, const struct matching *x,
					unsigned int second)
{
	const struct line *l = world_line(w, &w->ops[second]);
	const struct op *m = &w->ops[x->took[second]];

	for (unsigned int first = 0; first < second; first++) {
		const struct line *f = world_line(w, &w->ops[first]);

		if (line_receives(f) && op_state(&w->ops[first]) == OP_POSTED &&
		    place_same(f->at, l->at) && line_fits(f, world_line(w, m)) &&
		    !op_ended(&w->ops[first]))
			world_fail(w, "order: %s was passed over when %s took %s",
				   world_name(w, &w->ops[first]), world_name(w, &w->ops[second]),
				   world_name(w, m));
	}
}

static inline void judge(struct world *w)
{
	static struct matching x;

	if (!judge_match(w, &x))
		return;
	for (unsigned int i = 0; i < w->count && !world_failed(w); i++) {
		const struct op *o = &w->ops[i];

		judge_once(w, &x, o);
		if (line_sends(world_line(w, o)))
			judge_sent(w, o);
		else
			judge_received(w, &x, o);
		if (x.by[i] != WORLD_OPS)
			judge_senders_order(w, &x, i);
		if (x.took[i] != WORLD_OPS)
			judge_receives_order(w, &x, i);
	}
}

#endif
