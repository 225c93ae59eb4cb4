/* SPDX-License-Identifier: BSD-2-Clause */
/* The call that begins an operation, in each form. Needs proc.h. */
#ifndef GENERATED_CALL_H
#define GENERATED_CALL_H

#include <sys/uio.h>

#define CALL_PIECES 3

/* What a call is given. Deferred work keeps it. */
struct call {
	const struct line *l;
	struct fid_ep *ep;
	void *buf;
	size_t len;
	fi_addr_t peer;
	void *context;
	uint64_t data, flags;
	uint64_t at, key; /* of the target's memory */
	uint64_t *operands;
	struct iovec iov[CALL_PIECES];
	struct fi_rma_iov rma;
	struct fi_rma_ioc word;
	struct fi_ioc operand, compare, result;
	struct fi_op_msg msg;
	struct fi_op_tagged tagged;
	struct fi_op_rma one_sided;
	struct fi_op_compare_atomic atomic; /* the others are parts of it */
	struct fi_op_atomic add;
	struct fi_op_fetch_atomic fetch;
	struct fi_deferred_work work;
};

static struct call calls[WORLD_OPS];

static inline void call_target(const struct self *s, struct call *c, const struct op *o)
{
	const struct proc *p = &s->w->procs[c->l->with.proc];

	c->at = p->base + o->at;
	c->key = p->key;
	c->rma = (struct fi_rma_iov){c->at, c->len, c->key};
	c->word = (struct fi_rma_ioc){c->at, 1, c->key};
	c->operands[0] = c->l->verb == VERB_SWAP ? op_number(s->w, o) + 1 : 1;
	c->operand = (struct fi_ioc){&c->operands[0], 1};
	c->compare = (struct fi_ioc){&c->operands[1], 1};
	c->result = (struct fi_ioc){&c->operands[2], 1};
}

static inline uint64_t call_flags(const struct line *l)
{
	return level_flags[l->level] | (l->how == HOW_CLAIM ? FI_CLAIM : 0) |
	       (l->fence ? FI_FENCE : 0) | (l->multi ? FI_MULTI_RECV : 0) |
	       (l->data ? FI_REMOTE_CQ_DATA : 0) | (l->start == START_TRIGGER ? FI_TRIGGER : 0) |
	       (l->start == START_DEFERRED ? FI_COMPLETION : 0);
}

/* The structures for the forms with a message, and for deferred work. */
static inline void call_structures(struct call *c)
{
	const struct line *l = c->l;
	size_t pieces = l->multi ? 1 : CALL_PIECES;
	enum fi_op op = l->verb == VERB_SWAP ? FI_CSWAP : FI_SUM;
	struct fi_msg_atomic atomic = {&c->operand, NULL,      1,  c->peer,    &c->word,
				       1,           FI_UINT64, op, c->context, 0};

	c->msg = (struct fi_op_msg){
		c->ep, {c->iov, NULL, pieces, c->peer, c->context, c->data}, c->flags};
	c->tagged = (struct fi_op_tagged){
		c->ep,
		{c->iov, NULL, pieces, c->peer, l->tag, l->ignore, c->context, c->data},
		c->flags};
	c->one_sided = (struct fi_op_rma){
		c->ep, {c->iov, NULL, pieces, c->peer, &c->rma, 1, c->context, c->data}, c->flags};
	c->add = (struct fi_op_atomic){c->ep, atomic, c->flags};
	c->fetch = (struct fi_op_fetch_atomic){c->ep, atomic, {&c->result, NULL, 1}, c->flags};
	c->atomic = (struct fi_op_compare_atomic){
		c->ep, atomic, {&c->result, NULL, 1}, {&c->compare, NULL, 1}, c->flags};
}

/* Returns whether another operation of its line follows. */
static inline bool call_more(const struct world *w, const struct op *o)
{
	return op_number(w, o) + 1 < w->count && o[1].line == o->line;
}

/* Prepares the call of `o`, with its buffer. */
static inline struct call *call_new(struct self *s, const struct op *o)
{
	unsigned int number = op_number(s->w, o);
	struct call *c = &calls[number];
	const struct line *l = world_line(s->w, o);
	size_t from = 0;

	*c = (struct call){.l = l, .peer = FI_ADDR_UNSPEC, .len = line_room(l)};
	c->ep = l->start == START_ALIAS ? proc_line_link(s, l)->alias[line_receives(l)]
					: proc_line_link(s, l)->ep;
	c->buf = proc_buffer(s, o);
	c->context = &s->contexts[number];
	c->operands = s->operands[number];
	c->data = l->data ? number + 1 : 0;
	c->flags = call_flags(l) | (l->more && call_more(s->w, o) ? FI_MORE : 0) |
		   (s->w->program.selective && l->completion ? FI_COMPLETION : 0);
	if (l->with.proc != PLACE_ANY) {
		c->peer = s->addr[l->with.proc][l->with.ep];
		call_target(s, c, o);
	}
	if (line_sends(l) || l->verb == VERB_WRITE)
		world_fill(c->buf, c->len, number);
	for (size_t i = 0; i < CALL_PIECES; i++) {
		size_t to = l->multi ? c->len : c->len * (i + 1) / CALL_PIECES;

		c->iov[i] = (struct iovec){(char *)c->buf + from, to - from};
		from = to;
	}
	call_structures(c);
	return c;
}

static inline ssize_t call_send(struct call *c)
{
	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_sendv(c->ep, c->iov, NULL, CALL_PIECES, c->peer, c->context);
	case FORM_MSG:
		return fi_sendmsg(c->ep, &c->msg.msg, c->flags);
	case FORM_INJECT:
		return c->data ? fi_injectdata(c->ep, c->buf, c->len, c->data, c->peer)
			       : fi_inject(c->ep, c->buf, c->len, c->peer);
	default:
		return c->data ? fi_senddata(c->ep, c->buf, c->len, NULL, c->data, c->peer,
					     c->context)
			       : fi_send(c->ep, c->buf, c->len, NULL, c->peer, c->context);
	}
}

static inline ssize_t call_tsend(struct call *c)
{
	uint64_t tag = c->l->tag;

	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_tsendv(c->ep, c->iov, NULL, CALL_PIECES, c->peer, tag, c->context);
	case FORM_MSG:
		return fi_tsendmsg(c->ep, &c->tagged.msg, c->flags);
	case FORM_INJECT:
		return c->data ? fi_tinjectdata(c->ep, c->buf, c->len, c->data, c->peer, tag)
			       : fi_tinject(c->ep, c->buf, c->len, c->peer, tag);
	default:
		return c->data ? fi_tsenddata(c->ep, c->buf, c->len, NULL, c->data, c->peer, tag,
					      c->context)
			       : fi_tsend(c->ep, c->buf, c->len, NULL, c->peer, tag, c->context);
	}
}

static inline ssize_t call_recv(struct call *c)
{
	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_recvv(c->ep, c->iov, NULL, CALL_PIECES, c->peer, c->context);
	case FORM_MSG:
		return fi_recvmsg(c->ep, &c->msg.msg, c->flags);
	default:
		return fi_recv(c->ep, c->buf, c->len, NULL, c->peer, c->context);
	}
}

static inline ssize_t call_trecv(struct call *c)
{
	uint64_t tag = c->l->tag, ignore = c->l->ignore;

	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_trecvv(c->ep, c->iov, NULL, CALL_PIECES, c->peer, tag, ignore,
				 c->context);
	case FORM_MSG:
		return fi_trecvmsg(c->ep, &c->tagged.msg, c->flags);
	default:
		return fi_trecv(c->ep, c->buf, c->len, NULL, c->peer, tag, ignore, c->context);
	}
}

static inline ssize_t call_write(struct call *c)
{
	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_writev(c->ep, c->iov, NULL, CALL_PIECES, c->peer, c->at, c->key,
				 c->context);
	case FORM_MSG:
		return fi_writemsg(c->ep, &c->one_sided.msg, c->flags);
	case FORM_INJECT:
		return c->data ? fi_inject_writedata(c->ep, c->buf, c->len, c->data, c->peer, c->at,
						     c->key)
			       : fi_inject_write(c->ep, c->buf, c->len, c->peer, c->at, c->key);
	default:
		return c->data ? fi_writedata(c->ep, c->buf, c->len, NULL, c->data, c->peer, c->at,
					      c->key, c->context)
			       : fi_write(c->ep, c->buf, c->len, NULL, c->peer, c->at, c->key,
					  c->context);
	}
}

static inline ssize_t call_read(struct call *c)
{
	switch (c->l->form) {
	case FORM_VECTOR:
		return fi_readv(c->ep, c->iov, NULL, CALL_PIECES, c->peer, c->at, c->key,
				c->context);
	case FORM_MSG:
		return fi_readmsg(c->ep, &c->one_sided.msg, c->flags);
	default:
		return fi_read(c->ep, c->buf, c->len, NULL, c->peer, c->at, c->key, c->context);
	}
}

static inline ssize_t call_add(struct call *c)
{
	switch (c->l->form) {
	case FORM_MSG:
		return fi_atomicmsg(c->ep, &c->add.msg, c->flags);
	case FORM_INJECT:
		return fi_inject_atomic(c->ep, c->operands, 1, c->peer, c->at, c->key, FI_UINT64,
					FI_SUM);
	default:
		return fi_atomic(c->ep, c->operands, 1, NULL, c->peer, c->at, c->key, FI_UINT64,
				 FI_SUM, c->context);
	}
}

static inline ssize_t call_fetch(struct call *c)
{
	if (c->l->form == FORM_MSG)
		return fi_fetch_atomicmsg(c->ep, &c->fetch.msg, &c->result, NULL, 1, c->flags);
	return fi_fetch_atomic(c->ep, c->operands, 1, NULL, c->operands + 2, NULL, c->peer, c->at,
			       c->key, FI_UINT64, FI_SUM, c->context);
}

static inline ssize_t call_swap(struct call *c)
{
	if (c->l->form == FORM_MSG)
		return fi_compare_atomicmsg(c->ep, &c->atomic.msg, &c->compare, NULL, 1, &c->result,
					    NULL, 1, c->flags);
	return fi_compare_atomic(c->ep, c->operands, 1, NULL, c->operands + 1, NULL,
				 c->operands + 2, NULL, c->peer, c->at, c->key, FI_UINT64, FI_CSWAP,
				 c->context);
}

static ssize_t (*const call_verbs[])(struct call *) = {
	call_send, call_tsend, call_recv,  call_trecv, call_write,
	call_read, call_add,   call_fetch, call_swap,
};

/* Looks for a message, to receive it later or to drop it. */
static inline ssize_t call_peek(struct call *c)
{
	uint64_t flags = FI_PEEK | (c->l->how == HOW_CLAIM ? FI_CLAIM : FI_DISCARD) |
			 (c->flags & FI_COMPLETION);

	return line_tagged(c->l) ? fi_trecvmsg(c->ep, &c->tagged.msg, flags)
				 : fi_recvmsg(c->ep, &c->msg.msg, flags);
}

/* ---- Later ----------------------------------------------------------------------------------- */

static inline ssize_t call_deferred(struct self *s, struct call *c)
{
	static const enum fi_op_type types[] = {
		FI_OP_SEND, FI_OP_TSEND,  FI_OP_RECV,         FI_OP_TRECV,         FI_OP_WRITE,
		FI_OP_READ, FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, FI_OP_COMPARE_ATOMIC};
	void *const ops[] = {&c->msg,       &c->tagged, &c->msg,   &c->tagged, &c->one_sided,
			     &c->one_sided, &c->add,    &c->fetch, &c->atomic};

	c->work = (struct fi_deferred_work){.threshold = c->l->after,
					    .triggering_cntr = s->ends[c->l->at.ep].start,
					    .completion_cntr = s->ends[c->l->at.ep].done,
					    .op_type = types[c->l->verb],
					    .op.msg = ops[c->l->verb]};
	return fi_control(&s->domain->fid, FI_QUEUE_WORK, &c->work);
}

static inline ssize_t call(struct self *s, struct call *c)
{
	struct fi_triggered_context *later = c->context;

	if (c->l->start == START_DEFERRED)
		return call_deferred(s, c);
	if (c->l->start != START_NOW)
		*later = (struct fi_triggered_context){
			.event_type = FI_TRIGGER_THRESHOLD,
			.trigger.threshold = {s->ends[c->l->at.ep].start, c->l->after}};
	return call_verbs[c->l->verb](c);
}

#endif
