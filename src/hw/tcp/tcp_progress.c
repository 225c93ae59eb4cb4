/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Progress and sleep. A few links are read one by one; for more, epoll tells which ones are readable. Sockets are
 * registered with epoll only when that is first needed, as every packet costs more from then on.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/log.h"
#include "core/domain.h"
#include "hw/tcp/tcp_output.h"

#define EVENTS 32
/*
 * If the worker has other transports: after IDLE_CALLS calls that received nothing, poll only every
 * IDLE_EVERY calls (a power of two).
 */
#define IDLE_CALLS 64u
#define IDLE_EVERY 16u
/* Mask: every 16th progress call reads the clock for tcp_alive_poll. */
#define POLL_CALLS 15u

int tcp_watch_all(struct tcp *t)
{
	int err = 0;

	LIST_EACH_OF (struct tcp_link, l, &t->links, in_state) {
		if (!l->events)
			err = l->stream->watch(l, EPOLLIN);
		if (err)
			return err;
	}
	t->watching = true;
	return 0;
}

/*
 * As tcp_read, for links that mostly have nothing to read. recv is called here, not in a function below: on processors
 * whose return stack does not survive a system call, each further return is mispredicted.
 */
static inline bool tcp_progress_look(struct tcp_link *l)
{
	ssize_t len;

	if (__builtin_expect(l->begun || l->indirect, 0))
		return tcp_read(l);
	len = recv(l->sock, l->own->buf, tcp_ahead(l), MSG_DONTWAIT);
	return (len >= 0 || errno != EAGAIN) && tcp_take(l, len);
}

/* Reads each link once, in rotation. Upcalls may add and close links meanwhile. */
static bool tcp_progress_read_all(struct tcp *t)
{
	bool any = false;

	for (unsigned int n = t->live; n-- > 0 && !list_empty(&t->links);) {
		struct tcp_link *l = LIST_ENTRY(t->links.next, struct tcp_link, in_state);

		list_remove(&l->in_state);
		list_push(&t->links, &l->in_state);
		any |= tcp_progress_look(l);
	}
	return any;
}

static bool read_ready(struct tcp *t)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(t->epfd, ev, EVENTS, 0);
	bool any = false;

	for (int i = 0; i < n; i++) {
		struct tcp_link *l = ev[i].data.ptr;

		if (!l)
			t->due = true;
		else if (!l->closed && ev[i].events & ~(uint32_t)EPOLLOUT)
			any |= tcp_read(l);
	}
	return any;
}

/*
 * Sends the link's rest, and reads what was too much for one call. A broken connection may still have unread input, such as a
 * disconnect message: ends the link only when that is read.
 */
static bool attend_link(struct tcp_link *l)
{
	bool any = l->tx == TCP_REST && l->stream->flush(l);

	any |= l->stream->unread(l) && tcp_read(l);
	if (l->ended || l->closed)
		return any;
	if (l->tx == TCP_READY && !l->stream->unread(l))
		list_remove(&l->in_attend);
	if (l->tx == TCP_FAILED && !tcp_read(l)) {
		tcp_end(l, l->err);
		any = true;
	}
	return any;
}

static bool tcp_progress_attend(struct tcp *t)
{
	struct list todo = t->attend, *node;
	bool any = false;

	todo.next->prev = todo.prev->next = &todo;
	list_init(&t->attend);
	while ((node = list_pop(&todo))) {
		list_push(&t->attend, node);
		any |= attend_link(LIST_ENTRY(node, struct tcp_link, in_attend));
	}
	return any;
}

/* Nothing was sent behind answers that the kernels keep: they go now. */
static void push_answers(struct tcp *t)
{
	struct list *node;

	while ((node = list_pop(&t->answers))) {
		struct tcp_link *l = LIST_ENTRY(node, struct tcp_link, in_answers);

		setsockopt(l->sock, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
	}
}

static bool poll_links(struct tcp *t)
{
	const struct list *workers = &t->opener->dom->workers;
	bool any = false;

	/* Not if this transport is the only one of its worker, and that the only worker of the domain. */
	if (t->idle++ >= IDLE_CALLS && t->idle % IDLE_EVERY &&
	    (t->opener->opened != 1 || workers->next != workers->prev))
		return false;
	t->in_progress = true;
	if (__builtin_expect(t->due || !(++t->progress_calls & POLL_CALLS), 0))
		tcp_alive_poll(t);
	if (__builtin_expect(!list_empty(&t->gathering), 0))
		any = tcp_gather_end_all(t);
	if (__builtin_expect(!list_empty(&t->answers), 0))
		push_answers(t);
	if (__builtin_expect(!list_empty(&t->attend), 0))
		any |= tcp_progress_attend(t);
	any |= t->live <= TCP_DIRECT_MAX ? tcp_progress_read_all(t) : read_ready(t);
	t->in_progress = false;
	while (__builtin_expect(!list_empty(&t->closed), 0))
		tcp_free(LIST_ENTRY(list_pop(&t->closed), struct tcp_link, in_state));
	if (__builtin_expect(!list_empty(&t->lingering), 0))
		tcp_linger(t);
	if (any)
		t->idle = 0;
	return any;
}

bool tcp_progress(void *state)
{
	struct tcp *t = state;

	return t->count && poll_links(t);
}

bool tcp_idle(const void *state)
{
	return !((const struct tcp *)state)->count;
}

bool tcp_arm(void *state)
{
	struct tcp *t = state;
	struct epoll_event ev[EVENTS];
	int n;

	t->idle = 0; /* the next progress call polls */
	if (!list_empty(&t->gathering))
		return false;
	push_answers(t);
	if (!t->watching && tcp_watch_all(t))
		return false;
	if (t->live)
		tcp_alive_timer(t);
	LIST_EACH (node, &t->lingering)
		tcp_linger_watch(LIST_ENTRY(node, struct tcp_link, in_state));
	/* Watches for space in the sockets of blocked links, unless a progress call has work. */
	LIST_EACH_OF (struct tcp_link, l, &t->attend, in_attend) {
		if (l->tx == TCP_FAILED || l->stream->unread(l) ||
		    l->stream->watch(l, EPOLLIN | EPOLLOUT))
			return false;
	}
	n = epoll_wait(t->epfd, ev, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		struct tcp_link *l = ev[i].data.ptr;

		if (!l)
			t->due = true;
		else if (ev[i].events & EPOLLOUT && l->tx == TCP_FULL)
			tcp_reopen(l);
	}
	return n <= 0;
}
