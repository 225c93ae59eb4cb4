/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process does for each line of a program. Needs proc.h. */
#ifndef GENERATED_PLAY_H
#define GENERATED_PLAY_H

#include <sys/time.h>
#include <sys/uio.h>

#define PLAY_PIECES 3

/* The arguments of a send or a receive. */
struct play {
	struct fid_ep *ep;
	const struct line *l;
	void *buf;
	size_t len;
	struct iovec iov[PLAY_PIECES];
	fi_addr_t peer;
	void *context;
};

static inline struct play play_args(struct self *s, struct op *o, void *buf)
{
	const struct line *l = world_line(s->w, o);
	struct play a = {.ep = s->ends[l->at.ep].ep,
			 .l = l,
			 .buf = buf,
			 .len = line_room(l),
			 .peer = FI_ADDR_UNSPEC,
			 .context = o};
	size_t from = 0;

	if (l->with.proc != PLACE_ANY)
		a.peer = s->addr[l->with.proc][l->with.ep];
	for (size_t i = 0; i < PLAY_PIECES; i++) {
		size_t to = a.len * (i + 1) / PLAY_PIECES;

		a.iov[i] = (struct iovec){(char *)buf + from, to - from};
		from = to;
	}
	return a;
}

static inline ssize_t play_send(const struct play *a)
{
	struct fi_msg m = {a->iov, NULL, PLAY_PIECES, a->peer, a->context, a->l->data};
	uint64_t data = a->l->data;

	switch (a->l->form) {
	case FORM_VECTOR:
		return fi_sendv(a->ep, a->iov, NULL, PLAY_PIECES, a->peer, a->context);
	case FORM_MSG:
		return fi_sendmsg(a->ep, &m,
				  level_flags[a->l->level] | (data ? FI_REMOTE_CQ_DATA : 0));
	case FORM_INJECT:
		return data ? fi_injectdata(a->ep, a->buf, a->len, data, a->peer)
			    : fi_inject(a->ep, a->buf, a->len, a->peer);
	default:
		return data ? fi_senddata(a->ep, a->buf, a->len, NULL, data, a->peer, a->context)
			    : fi_send(a->ep, a->buf, a->len, NULL, a->peer, a->context);
	}
}

static inline ssize_t play_tsend(const struct play *a)
{
	uint64_t data = a->l->data, tag = a->l->tag;
	struct fi_msg_tagged m = {a->iov, NULL, PLAY_PIECES, a->peer, tag, 0, a->context, data};

	switch (a->l->form) {
	case FORM_VECTOR:
		return fi_tsendv(a->ep, a->iov, NULL, PLAY_PIECES, a->peer, tag, a->context);
	case FORM_MSG:
		return fi_tsendmsg(a->ep, &m,
				   level_flags[a->l->level] | (data ? FI_REMOTE_CQ_DATA : 0));
	case FORM_INJECT:
		return data ? fi_tinjectdata(a->ep, a->buf, a->len, data, a->peer, tag)
			    : fi_tinject(a->ep, a->buf, a->len, a->peer, tag);
	default:
		return data ? fi_tsenddata(a->ep, a->buf, a->len, NULL, data, a->peer, tag,
					   a->context)
			    : fi_tsend(a->ep, a->buf, a->len, NULL, a->peer, tag, a->context);
	}
}

static inline ssize_t play_recv(const struct play *a)
{
	struct fi_msg m = {a->iov, NULL, PLAY_PIECES, a->peer, a->context, 0};

	switch (a->l->form) {
	case FORM_VECTOR:
		return fi_recvv(a->ep, a->iov, NULL, PLAY_PIECES, a->peer, a->context);
	case FORM_MSG:
		return fi_recvmsg(a->ep, &m, 0);
	default:
		return fi_recv(a->ep, a->buf, a->len, NULL, a->peer, a->context);
	}
}

static inline ssize_t play_trecv(const struct play *a)
{
	const struct line *l = a->l;
	struct fi_msg_tagged m = {a->iov, NULL,      PLAY_PIECES, a->peer,
				  l->tag, l->ignore, a->context,  0};

	switch (l->form) {
	case FORM_VECTOR:
		return fi_trecvv(a->ep, a->iov, NULL, PLAY_PIECES, a->peer, l->tag, l->ignore,
				 a->context);
	case FORM_MSG:
		return fi_trecvmsg(a->ep, &m, 0);
	default:
		return fi_trecv(a->ep, a->buf, a->len, NULL, a->peer, l->tag, l->ignore,
				a->context);
	}
}

static inline ssize_t play_call(const struct play *a)
{
	switch (a->l->verb) {
	case VERB_SEND:
		return play_send(a);
	case VERB_TSEND:
		return play_tsend(a);
	case VERB_RECV:
		return play_recv(a);
	default:
		return play_trecv(a);
	}
}

/* Operations of endpoint `ep`, sends or receives, that have not ended. */
static inline unsigned int play_under_way(const struct self *s, const struct line *l)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct op *o = &s->w->ops[i];
		const struct line *k = world_line(s->w, o);

		count += place_same(k->at, l->at) && line_sends(k) == line_sends(l) &&
			 op_accepted(o) && !op_ended(o);
	}
	return count;
}

/* Calls again with turns between while the call is refused. */
static inline void play_op(struct self *s, struct op *o)
{
	const struct line *l = world_line(s->w, o);
	size_t size = line_sends(l) ? s->info->tx_attr->size : s->info->rx_attr->size;
	struct play a = play_args(s, o, proc_buffer(s, o, line_room(l)));
	unsigned int last = s->turns + proc_limit(s->w);
	ssize_t ret;

	if (line_sends(l))
		world_fill(a.buf, a.len, op_number(s->w, o));
	while ((ret = play_call(&a)) == -FI_EAGAIN) {
		s->mine->doing = "is refused by -FI_EAGAIN";
		proc_turn(s);
		if (s->turns <= last)
			continue;
		if (play_under_way(s, l) < size)
			PROC_FAIL(s, "accepted: %s is refused for ever", world_name(s->w, o));
		break;
	}
	if (ret && ret != -FI_EAGAIN)
		PROC_FAIL(s, "call: %s: %zd %s", world_name(s->w, o), ret, api_word(ret));
	if (l->form == FORM_INJECT || ret)
		proc_buffer_free(s, o, a.len);
	__atomic_store_n(&o->state, ret ? OP_REFUSED : OP_POSTED, __ATOMIC_RELEASE);
	proc_called(s);
}

/* Cancels receives of an endpoint that wait, `n` at most; -1: all of the process. */
static inline void play_cancel(struct self *s, const struct line *l)
{
	uint64_t left = l ? l->n : UINT64_MAX;

	for (unsigned int i = 0; i < s->w->count && left; i++) {
		struct op *o = &s->w->ops[i];
		const struct line *k = world_line(s->w, o);

		if (!line_receives(k) || k->at.proc != s->me || (l && k->at.ep != l->at.ep) ||
		    op_state(o) != OP_POSTED || op_ended(o))
			continue;
		PROC_OK(s, fi_cancel(&s->ends[k->at.ep].ep->fid, o));
		__atomic_store_n(&o->state, OP_CANCELLED, __ATOMIC_RELEASE);
		proc_called(s);
		left--;
	}
}

static inline void play_stopped(int sig)
{
	(void)sig;
	raise(SIGSTOP); /* trial_wait lets it go on */
}

static inline void play_stop(const struct line *l)
{
	struct itimerval in = {.it_value = {0, (suseconds_t)(l->us + 1)}};

	signal(SIGALRM, play_stopped);
	setitimer(ITIMER_REAL, &in, NULL);
}

static inline void play_sleep(struct self *s, uint64_t us)
{
	__atomic_store_n(&s->mine->state, PROC_WAITS, __ATOMIC_RELEASE);
	usleep((useconds_t)us);
	__atomic_store_n(&s->mine->state, PROC_CALLS, __ATOMIC_RELEASE);
}

static inline void play_turns(struct self *s, uint64_t n)
{
	while (n--)
		proc_turn(s);
}

static inline bool play_receives(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->count; i++) {
		const struct line *l = world_line(s->w, &s->w->ops[i]);

		if (l->at.proc == s->me && line_receives(l) && op_accepted(&s->w->ops[i]) &&
		    !op_ended(&s->w->ops[i]))
			return true;
	}
	return false;
}

static inline bool play_others_idle(const struct self *s)
{
	for (unsigned int i = 0; i < s->w->program.procs; i++)
		if (i != s->me && !__atomic_load_n(&s->w->procs[i].idle, __ATOMIC_ACQUIRE))
			return false;
	return true;
}

static inline void play_await(struct self *s)
{
	s->mine->doing = "waits for what must come";
	for (;;) {
		bool last = play_others_idle(s);

		proc_owed(s);
		if (!s->owed && (last || !play_receives(s)))
			break;
		__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
		proc_turn(s);
	}
	__atomic_store_n(&s->mine->idle, false, __ATOMIC_RELEASE);
}

/* `first`: the first operation of the line, if it begins any */
static inline void play_line(struct self *s, const struct line *l, struct op *first)
{
	s->mine->doing = "does";
	switch (l->verb) {
	case VERB_CANCEL:
		play_cancel(s, l);
		break;
	case VERB_READ:
		play_turns(s, l->n);
		break;
	case VERB_SREAD:
		for (unsigned int i = 0; i < s->queue_count; i++)
			proc_sread(s, s->queues[i], (int)(l->us / 1000) + 1);
		break;
	case VERB_AWAIT:
		play_await(s);
		break;
	case VERB_SLEEP:
		play_sleep(s, l->us);
		break;
	case VERB_STOP:
		play_stop(l);
		break;
	default:
		for (uint64_t i = 0; i < l->n; i++) {
			play_op(s, first + i);
			play_turns(s, l->between);
		}
	}
}

/* Turns until nothing is owed to anybody, and some more. */
static inline void play_settle(struct self *s)
{
	const unsigned int more = 8;

	__atomic_store_n(&s->mine->idle, true, __ATOMIC_RELEASE);
	s->mine->doing = "has done all and waits for what must come";
	for (unsigned int quiet = 0; quiet < more; quiet++) {
		proc_owed(s);
		__atomic_store_n(&s->mine->settled, !s->owed, __ATOMIC_RELEASE);
		for (unsigned int i = 0; i < s->w->program.procs; i++)
			if (!__atomic_load_n(&s->w->procs[i].settled, __ATOMIC_ACQUIRE))
				quiet = 0;
		proc_turn(s);
	}
	s->mine->doing = "waits for the others";
	proc_meet(s);
	__atomic_store_n(&s->mine->settled, false, __ATOMIC_RELEASE);
	proc_meet(s);
}

/* The whole program, in one of its processes. */
static inline void play(struct world *w, unsigned int me)
{
	static struct self s;
	unsigned int op = 0;

	s = (struct self){.w = w, .me = me, .mine = &w->procs[me], .turns = 1};
	s.mine->doing = "opens";
	for (unsigned int i = 0; i < w->program.set_count; i++)
		putenv(w->program.sets[i]);
	proc_open(&s);
	for (unsigned int i = 0; i < w->program.count; i++) {
		s.mine->line = (int)i;
		if (w->program.lines[i].at.proc == me)
			play_line(&s, &w->program.lines[i], &w->ops[op]);
		while (op < w->count && w->ops[op].line == i)
			op++;
	}
	play_settle(&s);
	play_cancel(&s, NULL);
	play_settle(&s);
	s.mine->doing = "closes";
	proc_close(&s);
}

#endif
