/* SPDX-License-Identifier: BSD-2-Clause */
#include "hw/tcp/tcp_output.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/copy.h"

_Static_assert(sizeof(struct tcp_frame) + TCP_GATHER_LEN <= TCP_GATHER_MAX, "a packet fits");

/* A thread that sleeps would have to be woken to report what has left. */
void tcp_gather_begin(struct tcp_link *l, enum tcp_waits waits)
{
	if (l->own->no_flusher || l->own->opener->sleepers)
		return;
	l->waits = waits;
	l->link.zcopy_min = 0;
	l->link.gather_max = TCP_GATHER_LEN;
}

void tcp_gather_stop(struct tcp_link *l)
{
	l->waits = TCP_AT_ONCE;
	l->link.zcopy_min = l->zcopy_min;
	l->link.gather_max = 0;
	l->more = false;
}

static struct tcp_gather *buffer_of(struct tcp_link *l)
{
	struct tcp *t = l->own;
	struct tcp_gather *g = l->gather;

	if (g)
		return g;
	if (l->tx != TCP_READY || t->opener->sleepers || !tcp_flusher_open(t))
		return NULL;
	g = malloc(sizeof(*g));
	if (!g)
		return NULL;
	g->err = 0;
	g->sent = g->len = 0;
	l->gather = g;
	list_push(&t->gathering, &l->in_gathering);
	return g;
}

void tcp_gather_send(struct tcp_link *l)
{
	struct tcp_gather *g = l->gather;
	ssize_t sent;

	if (g->err || g->sent == g->len)
		return;
	sent = send(l->sock, g->bytes + g->sent, g->len - g->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent > 0)
		g->sent += (size_t)sent;
	else if (sent < 0 && !tcp_passing(errno))
		g->err = errno;
}

/* Takes the buffer from the link. */
static struct tcp_gather *tcp_gather_take(struct tcp_link *l)
{
	struct tcp_gather *g = l->gather;

	list_remove(&l->in_gathering);
	l->gather = NULL;
	return g;
}

void tcp_gather_end(struct tcp_link *l)
{
	struct tcp_gather *g;
	struct iovec left;

	if (!l->gather)
		return;
	TCP_OUTPUT_LOCKED(l);
	tcp_gather_send(l);
	g = tcp_gather_take(l);
	left = (struct iovec){g->bytes + g->sent, g->len - g->sent};
	if (g->err)
		tcp_fail(l, g->err);
	else if (left.iov_len)
		tcp_rest_keep(l, &(struct tcp_outgoing){&left, 1, left.iov_len, 0, false}, 0);
	else
		l->link.zcopy_done = l->link.zcopy_posted;
	free(g);
}

void tcp_gather_drop(struct tcp_link *l)
{
	if (!l->gather)
		return;
	TCP_OUTPUT_LOCKED(l);
	free(tcp_gather_take(l));
}

bool tcp_gather_end_all(struct tcp *t)
{
	bool any = !list_empty(&t->gathering);

	while (!list_empty(&t->gathering))
		tcp_gather_end(LIST_ENTRY(t->gathering.next, struct tcp_link, in_gathering));
	return any;
}

/* Makes space for `len` bytes; when the buffer begins anew, the kernel must have space for a full one. */
static bool tcp_gather_make_space(struct tcp_link *l, struct tcp_gather *g, size_t len)
{
	if (g->len != g->sent && g->len + len <= TCP_GATHER_MAX)
		return true;
	tcp_gather_send(l);
	if (g->len != g->sent)
		return false;
	g->len = g->sent = 0;
	l->link.zcopy_done = l->link.zcopy_posted;
	return tcp_has_space(l, TCP_GATHER_MAX);
}

/* Copies the packet to the buffer. False: there is no space. */
static bool tcp_gather_add_packet(struct tcp_link *l, const struct packet *p,
				  const struct iovec *iov, size_t count)
{
	struct tcp_frame f = tcp_frame_of(p);
	struct tcp_gather *g;
	unsigned char *to;

	TCP_OUTPUT_LOCKED(l);
	g = buffer_of(l);
	if (!g || !tcp_gather_make_space(l, g, sizeof(f) + p->len))
		return false;
	to = g->bytes + g->len;
	memcpy(to, &f, sizeof(f));
	to += sizeof(f);
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len) /* the address of an empty segment may be NULL */
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
		to += iov[i].iov_len;
	}
	g->len += sizeof(f) + p->len;
	return true;
}

int tcp_gather_add(struct tcp_link *l, const struct packet *p, const struct iovec *iov,
		   size_t count, bool counted)
{
	l->own->idle = 0; /* the next progress call sends it */
	if (!tcp_gather_add_packet(l, p, iov, count)) {
		tcp_gather_end(l);
		tcp_gather_stop(l);
		return -FI_EAGAIN;
	}
	l->link.zcopy_posted += counted;
	l->burst++;
	if (l->waits == TCP_MORE && !l->more) {
		tcp_gather_end(l);
		tcp_gather_stop(l);
	}
	l->more = false;
	return 0;
}

void tcp_gather_cork(struct link *link, bool more)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (!more) {
		tcp_gather_end(l);
		return;
	}
	tcp_gather_row(l);
	if (!l->waits)
		tcp_gather_begin(l, TCP_MORE);
	l->more = true;
}
