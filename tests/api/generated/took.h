/* SPDX-License-Identifier: BSD-2-Clause */
/* What is done with completions: they go into the history, bytes are looked at. Needs proc.h. */
#ifndef GENERATED_TOOK_H
#define GENERATED_TOOK_H

/* The message whose number is in its first bytes. */
static inline unsigned int took_number(struct self *s, const struct op *r,
				       const unsigned char *head)
{
	unsigned int number;

	memcpy(&number, head, WORLD_FIRST);
	if (number >= s->w->count || !line_sends(world_line(s->w, &s->w->ops[number])))
		PROC_FAIL(s, "bytes: %s: its first bytes, %#x, name no message",
			  world_name(s->w, r), number);
	return number;
}

/* trigger: what is to begin later does not before */
static inline void took_begun(struct self *s, const struct op *o)
{
	if (!op_begun(s->w, o))
		PROC_FAIL(s, "trigger: %s has begun before its time", world_name(s->w, o));
}

/* saw: what a sender wrote before it sent a message is there when that is received. */
static inline void took_after(struct self *s, const struct op *m)
{
	const struct line *l = world_line(s->w, m);

	for (const struct op *o = s->w->ops; o < m; o++) {
		const struct line *k = world_line(s->w, o);

		if (k->verb == VERB_WRITE && !k->over && line_begins_before(k, l) &&
		    op_accepted(o) && o->life == m->life && !op_target_gone(s->w, o) &&
		    place_same(k->at, l->at) && place_same(k->with, l->with) &&
		    !world_holds(s->memory + o->at, k->len, op_number(s->w, o)))
			PROC_FAIL(s, "saw: %s was received before %s was there",
				  world_name(s->w, m), world_name(s->w, o));
	}
}

/* Looks into the buffer of a receive that got a message. */
static inline void took_message(struct self *s, struct op *o, struct entry *e)
{
	const unsigned char *memory = s->buffers[op_number(s->w, o)];
	const unsigned char *buf = memory + PROC_GUARD + e->from;
	bool multi = world_line(s->w, o)->multi;
	size_t room = line_room(world_line(s->w, o)), len = e->len;

	if (e->from > room || len > room - e->from)
		PROC_FAIL(s, "length: %s got %zu bytes at %zu", world_name(s->w, o), len, e->from);
	if (!proc_untouched(memory, PROC_GUARD) ||
	    !proc_untouched(multi ? memory + PROC_GUARD + room : buf + len,
			    multi ? PROC_GUARD : room - len + PROC_GUARD))
		PROC_FAIL(s, "bytes: %s: written beside the %zu bytes of the message",
			  world_name(s->w, o), len);
	memcpy(e->head, buf, len < WORLD_FIRST ? len : WORLD_FIRST);
	if (len < WORLD_FIRST)
		return;
	e->message = took_number(s, o, buf);
	if (world_differs(buf, len, e->message) != len)
		PROC_FAIL(s, "bytes: %s: byte %zu of %zu of %s is wrong", world_name(s->w, o),
			  world_differs(buf, len, e->message), len,
			  world_name(s->w, &s->w->ops[e->message]));
	took_begun(s, &s->w->ops[e->message]);
	took_after(s, &s->w->ops[e->message]);
}

/* Notes what a one-sided operation has brought. */
static inline void took_result(struct self *s, struct op *o)
{
	unsigned int number = op_number(s->w, o);
	const struct line *l = world_line(s->w, o);

	if (l->verb == VERB_READ && l->over && over_promised(s->info) &&
	    !over_right(s->w, NULL, l, o, s->buffers[number] + PROC_GUARD, l->len))
		PROC_FAIL(s, "order: %s did not bring what was written before",
			  world_name(s->w, o));
	if (l->verb == VERB_READ && !l->over &&
	    !world_holds(s->buffers[number] + PROC_GUARD, l->len, number))
		PROC_FAIL(s, "bytes: %s brought others", world_name(s->w, o));
	o->old = s->operands[number][2];
}

/* The operation that a completion names. */
static inline struct op *took_op(struct self *s, void *context)
{
	ptrdiff_t at = (char *)context - (char *)s->contexts;
	size_t size = sizeof(s->contexts[0]);
	struct op *o = &s->w->ops[at < 0 ? 0 : (size_t)at / size];

	if (at < 0 || (size_t)at % size || (size_t)at / size >= s->w->count ||
	    world_line(s->w, o)->at.proc != s->me)
		PROC_FAIL(s, "entry: context %p is none of ours", context);
	return o;
}

/* What the target of a write with data is told. */
static inline void took_write(struct self *s, uint64_t flags, uint64_t data)
{
	struct op *o = &s->w->ops[data - 1];
	const struct line *l = world_line(s->w, o);

	if (data - 1 >= s->w->count || !line_reported_there(l) || l->with.proc != s->me ||
	    !(flags & FI_REMOTE_CQ_DATA) || !(flags & FI_RMA))
		PROC_FAIL(s, "entry: a remote write of flags %#" PRIx64 " and data %" PRIu64, flags,
			  data);
	took_begun(s, o);
	if (!l->over && !world_holds(s->memory + o->at, l->len, (unsigned int)data - 1))
		PROC_FAIL(s, "bytes: the target of %s is told before they are there",
			  world_name(s->w, o));
	__atomic_add_fetch(&o->there, 1, __ATOMIC_RELEASE);
}

/* The answer to a peek. What is discarded has ended with it. */
static inline void took_peek(struct self *s, struct op *o, struct entry *e)
{
	s->peeks = NULL;
	s->found = !e->err;
	if (e->err && e->err != FI_ENOMSG)
		PROC_FAIL(s, "ends: a peek of %s ended with %d", world_name(s->w, o), e->err);
	s->peeked[op_number(s->w, o)] = *e;
	if (!s->found || world_line(s->w, o)->how == HOW_CLAIM)
		return;
	__atomic_store_n(&o->state, OP_POSTED, __ATOMIC_RELEASE);
	proc_buffer_free(s, o);
	world_log(s->w, o, *e, true);
}

/* entry: a message is what the peek that claimed it has told */
static inline void took_claimed(struct self *s, const struct op *o, const struct entry *e)
{
	const struct entry *p = &s->peeked[op_number(s->w, o)];

	if (e->len + e->olen != p->len || (line_tagged(world_line(s->w, o)) && e->tag != p->tag) ||
	    e->data != p->data)
		PROC_FAIL(s,
			  "entry: %s took %zu bytes, data %" PRIu64 ", its peek told %zu, %" PRIu64,
			  world_name(s->w, o), e->len + e->olen, e->data, p->len, p->data);
}

static inline void took(struct self *s, struct op *o, struct entry *e, const char *buf)
{
	const struct line *l = world_line(s->w, o);
	unsigned char *memory = s->buffers[op_number(s->w, o)];
	bool ended = !l->multi || e->flags & FI_MULTI_RECV;

	if (!memory)
		PROC_FAIL(s, "once: %s ended again", world_name(s->w, o));
	if (l->multi && buf && e->flags & FI_RECV)
		e->from = (size_t)(buf - (char *)memory - PROC_GUARD);
	e->message = WORLD_NONE;
	if (s->peeks == o) {
		took_peek(s, o, e);
		return;
	}
	if (!e->err)
		took_begun(s, o);
	if (line_receives(l) && judge_got(e)) {
		if (l->how == HOW_CLAIM)
			took_claimed(s, o, e);
		took_message(s, o, e);
	}
	if (!line_receives(l) && !e->err)
		took_result(s, o);
	if (ended)
		proc_buffer_free(s, o);
	world_log(s->w, o, *e, ended);
}

static inline void took_entry(struct self *s, const struct fi_cq_tagged_entry *c, fi_addr_t source)
{
	struct entry e = {.flags = c->flags,
			  .tag = c->tag,
			  .data = c->flags & FI_REMOTE_CQ_DATA ? c->data : 0,
			  .len = c->len,
			  .source = proc_place(s, source)};

	if (c->flags & FI_REMOTE_WRITE)
		took_write(s, c->flags, c->data);
	else
		took(s, took_op(s, c->op_context), &e, c->buf);
}

static inline void took_error(struct self *s, struct fid_cq *cq)
{
	struct fi_cq_err_entry c = {0};
	struct op *o;
	struct entry e;

	if (fi_cq_readerr(cq, &c, 0) != 1)
		PROC_FAIL(s, "call: -FI_EAVAIL, and fi_cq_readerr has nothing");
	if (!c.op_context && world_any_left(s->w)) {
		s->unnamed += c.err != FI_ECANCELED; /* of what was injected */
		return;
	}
	o = took_op(s, c.op_context);
	e = (struct entry){.err = c.err,
			   .flags = c.flags,
			   .tag = c.tag,
			   .data = c.flags & FI_REMOTE_CQ_DATA ? c.data : 0,
			   .len = c.len,
			   .olen = c.olen,
			   .source = world_line(s->w, o)->with};
	took(s, o, &e, c.buf);
}

/* Handles what a read of `cq` returned. Returns whether there was something. */
static inline bool took_read(struct self *s, struct fid_cq *cq, ssize_t ret,
			     const struct fi_cq_tagged_entry *e, const fi_addr_t *sources)
{
	if (ret == -FI_EAVAIL)
		took_error(s, cq);
	else if (ret < 0 && ret != -FI_EAGAIN && ret != -FI_EINTR) /* VERB_STOP has a signal */
		PROC_FAIL(s, "call: a read of a queue: %zd %s", ret, api_word(ret));
	for (ssize_t i = 0; i < ret; i++)
		took_entry(s, &e[i], sources[i]);
	return ret > 0 || ret == -FI_EAVAIL;
}

#endif
