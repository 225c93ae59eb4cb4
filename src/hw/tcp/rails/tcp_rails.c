/* SPDX-License-Identifier: BSD-2-Clause */
/* The rails of a link: their sockets, which come and go. */
#include "hw/tcp/rails/tcp_rails.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/tcp/tcp_output.h"
#include "hw/tcp/tcp_tls.h"

/* The rail has no socket any more. */
static void tcp_rails_leave(struct tcp_rail *r)
{
	tcp_tls_end(&r->secure);
	free(r->encrypted.bytes);
	*r = (struct tcp_rail){.sock = -1};
}

/* Makes the rail one by a socket, which stays the caller's on failure. 0 or a negative error. */
static int tcp_rails_begin(struct tcp_link *l, uint32_t rail, const struct link_peer *peer)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	int err = 0;

	*r = (struct tcp_rail){.sock = peer->sock, .most = UINT64_MAX, .securing = peer->key};
	tcp_rails_limit(peer->sock, 0);
	if (peer->key)
		err = tcp_tls_start(l, &r->secure, peer, &r->encrypted);
	if (err)
		tcp_rails_leave(r);
	return err;
}

static int tcp_rails_watch(struct tcp_link *l, uint32_t events)
{
	int err = 0;

	TCP_OUTPUT_LOCKED(l);
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		struct tcp_rail *r = &l->rails->rail[i];
		bool waits = r->busy && tcp_rails_usable(r);
		uint32_t wanted = waits ? events : events & ~(uint32_t)EPOLLOUT;
		struct epoll_event ev = {.events = wanted, .data.ptr = l};
		int op = !wanted ? EPOLL_CTL_DEL : r->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

		if (r->sock < 0 || r->events == wanted)
			continue;
		if (epoll_ctl(l->own->epfd, op, r->sock, &ev))
			err = -errno;
		else
			r->events = wanted;
	}
	l->events = events;
	return err;
}

void tcp_rails_name(struct tcp_link *l)
{
	bool silent = true;

	l->sock = -1;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX && silent; i++) {
		const struct tcp_rail *r = &l->rails->rail[i];

		if (r->sock < 0 || (r->silent && l->sock >= 0))
			continue;
		l->sock = r->sock;
		silent = r->silent;
	}
}

static void tcp_rails_drop_rail(struct tcp_link *l, struct tcp_rail *r, bool abort)
{
	if (r->sock < 0)
		return;
	if (r->events)
		epoll_ctl(l->own->epfd, EPOLL_CTL_DEL, r->sock, NULL);
	if (abort)
		setsockopt(r->sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	forked_close(r->sock);
	tcp_rails_leave(r);
}

static void tcp_rails_finish(struct tcp_link *l, bool abort)
{
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		tcp_rails_drop_rail(l, &l->rails->rail[i], abort);
	tcp_window_close(&l->rails->in);
	tcp_window_close(&l->rails->out);
	free(l->rails);
	l->rails = NULL;
}

void tcp_rails_end(struct tcp_link *l, uint32_t rail, int err)
{
	struct tcp_rails *rails = l->rails;
	uint64_t bytes = tcp_rails_again(l, rail);

	tcp_rails_drop_rail(l, &rails->rail[rail], false);
	tcp_rails_name(l);
	rails->end_due = l->sock < 0;
	if (l->sock < 0 && !l->ended && !l->closed)
		tcp_attend(l);
	rails->err = err;
	/* An answer may be lost with the rail; a peer that has closed it in good order asks again, or has ended. */
	rails->ack_due |= err != 0;
	LOG_INFO(LOG_EP_DATA,
		 "tcp: rail %u to peer %#x ended: %s; %llu bytes on it are not acknowledged", rail,
		 l->id, err ? fi_strerror(err) : "closed", (unsigned long long)bytes);
}

/* Something may go over the rail from now on. */
static void tcp_rails_ready(struct tcp_link *l, uint32_t rail)
{
	LOG_INFO(LOG_EP_CTRL, "tcp: rail %u to peer %#x is there", rail, l->id);
	tcp_rails_flush(l);
}

static int tcp_rails_join(struct link *link, uint32_t rail, const struct link_peer *peer)
{
	struct tcp_link *l = (struct tcp_link *)link;
	int err;

	if (link->ops->send != tcp_rails_send || rail >= WIRE_RAILS_MAX || l->ended || l->closed ||
	    l->tx == TCP_FAILED)
		return -FI_ENOTCONN;
	TCP_OUTPUT_LOCKED(l);
	if (l->rails->rail[rail].sock >= 0)
		tcp_rails_end(l, rail, FI_ETIMEDOUT);
	err = tcp_rails_begin(l, rail, peer);
	if (err)
		return err;
	tcp_rails_name(l);
	if (l->events)
		tcp_rails_watch(l, l->events);
	if (!peer->key)
		tcp_rails_ready(l, rail);
	return 0;
}

void tcp_rails_shake(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	ssize_t ret = tcp_tls_shake(l, &r->secure);

	if (ret > 0) {
		r->securing = false;
		tcp_rails_ready(l, rail);
	} else if (ret == 0 || (errno != EAGAIN && errno != EINTR)) {
		tcp_rails_end(l, rail, ret ? errno : 0);
	}
}

/* Has the peer read all? What it has not may go again over another rail, as long as the link is there. */
static bool tcp_rails_arrived(const struct tcp_link *l)
{
	return l->rails->out.begin == l->rails->out.end;
}

/* What is complete, and the end if that came with the last rail. */
static bool tcp_rails_unread(const struct tcp_link *l)
{
	return l->rails->in.begin != l->rails->in.next || l->rails->end_due;
}

/* tcp_rails_poll finds that out. */
static bool is_dead(struct tcp_link *l, uint32_t timeout)
{
	(void)l, (void)timeout;
	return false;
}

static bool tcp_rails_linger(struct tcp_link *l)
{
	if (l->tx == TCP_FAILED)
		return true;
	TCP_OUTPUT_LOCKED(l);
	if (!tcp_rails_drop(l))
		return true;
	tcp_rails_flush(l);
	if (l->tx == TCP_REST)
		return false;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX && !l->shut; i++) {
		const struct tcp_rail *r = &l->rails->rail[i];

		/* Not where the kernel encrypts: the end would pass records that it still keeps back. Closing sends them first. */
		if (r->sock >= 0 && (r->secure.tls || !r->secure.kernel))
			shutdown(r->sock, SHUT_WR);
	}
	l->shut = true;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		const struct tcp_rail *r = &l->rails->rail[i];

		if (r->sock >= 0 && !r->silent && !tcp_acknowledged(r->sock))
			return tcp_rails_arrived(l);
	}
	return true;
}

static void tcp_rails_forget_link(struct tcp_link *l)
{
	l->own->railed--;
	tcp_rails_forget(l);
}

static const struct tcp_stream_ops rails_ops = {
	.recv = tcp_rails_recv,
	.unread = tcp_rails_unread,
	.keeps = true,
	.hear = tcp_rails_hear,
	.flush = tcp_rails_flush,
	.push = tcp_rails_fill,
	.watch = tcp_rails_watch,
	.arrived = tcp_rails_arrived,
	.is_dead = is_dead,
	.forget = tcp_rails_forget_link,
	.linger = tcp_rails_linger,
	.close = tcp_rails_finish,
};

static const struct link_ops rails_link_ops = {
	.send = tcp_rails_send,
	.sendv = tcp_rails_sendv,
	.close = tcp_close_link,
};

static const struct link_zcopy_ops rails_zcopy_ops = {
	.sendv = tcp_rails_post,
	.copy_out = tcp_rails_copy_out,
	.cork = tcp_rails_cork,
};

/* Each message gets a number, by which its end is reported when it is out. */
static void set_ops(struct tcp_link *l)
{
	struct link *link = &l->link;

	l->stream = &rails_ops;
	l->indirect = true;
	link->ops = &rails_link_ops;
	link->zcopy = &rails_zcopy_ops;
	link->zcopy_min = 0;
	link->packet_max = link->eager_max > TCP_FRAGMENT ? link->eager_max : TCP_FRAGMENT;
}

/* The worker's first such link, or one more. */
static void tcp_rails_count(struct tcp *t)
{
	if (!t->railed++)
		t->looked_rails = clock_coarse_ms();
	t->next_rails = 0;
	if (t->timer >= 0)
		close(t->timer); /* the next sleeper makes one that expires more often */
	t->timer = -1;
}

static int rails_open(struct tcp_link *l, const struct link_peer *peer)
{
	int err;

	l->rails = calloc(1, sizeof(*l->rails));
	if (!l->rails)
		return -FI_ENOMEM;
	err = tcp_rails_begin(l, 0, peer);
	if (err) {
		free(l->rails);
		return err;
	}
	l->rails->wanted = peer->initiator ? peer->rails : 0;
	l->rails->rail[0].events = l->events;
	for (uint32_t i = 1; i < WIRE_RAILS_MAX; i++)
		l->rails->rail[i].sock = -1;
	if (peer->key) {
		l->tx = TCP_SECURING;
		l->link.securing = true;
	}
	set_ops(l);
	tcp_rails_count(l->own);
	return 0;
}

const struct tcp_rails_ops tcp_rails_here = {
	.open = rails_open,
	.join = tcp_rails_join,
	.poll = tcp_rails_poll,
	.period = tcp_rails_period,
};
