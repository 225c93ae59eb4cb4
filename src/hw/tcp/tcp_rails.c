/* SPDX-License-Identifier: BSD-2-Clause */
/* The rails of a link: their sockets, which come and go. */
#include "hw/tcp/tcp_rails.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "link/upcall.h"

/*
 * Bytes that a kernel keeps unsent for a rail: what it carries in UNSENT_MS, while the process may not run. More would
 * wait at a slow rail while a fast one has nothing to do.
 */
#define UNSENT_MS     8
#define UNSENT_LEAST  65536u
#define UNSENT_MOST   1048576u
#define PROBES        2  /* unanswered probes of a full receiver that are no sign of a stall yet */
#define POLLS         8  /* checks within FI_WEFT_RAIL_TIMEOUT */
#define TIMEOUT_LEAST 40 /* ms */

/* FI_WEFT_RAIL_TIMEOUT, in ms; there is a least one. */
static uint32_t time_limit(void)
{
	int ms = env_get()->rail_timeout;

	return ms > TIMEOUT_LEAST ? (uint32_t)ms : TIMEOUT_LEAST;
}

uint32_t tcp_rails_period(void)
{
	return time_limit() / POLLS;
}

/* `rate`: bytes a second. */
static void limit_unsent(int sock, uint64_t rate)
{
	uint64_t bytes = rate * UNSENT_MS / 1000;
	uint32_t most = bytes < UNSENT_LEAST  ? UNSENT_LEAST
			: bytes > UNSENT_MOST ? UNSENT_MOST
					      : (uint32_t)bytes;

	setsockopt(sock, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &most, sizeof(most));
}

static void begin(struct tcp_link *l, uint32_t rail, int sock)
{
	limit_unsent(sock, 0);
	l->rails->rail[rail] = (struct tcp_rail){.sock = sock, .heard = UINT64_MAX};
}

int tcp_rails_open(struct tcp_link *l, bool initiator)
{
	struct tcp_rails *rails = calloc(1, sizeof(*rails));

	if (!rails)
		return -FI_ENOMEM;
	if (!tcp_window_open(&rails->in) || !tcp_window_open(&rails->out)) {
		tcp_window_close(&rails->in);
		free(rails);
		return -FI_ENOMEM;
	}
	l->rails = rails;
	rails->initiator = initiator;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		rails->rail[i].sock = -1;
	begin(l, 0, l->sock);
	l->own->railed++;
	l->own->next_rails = 0;
	if (l->own->timer >= 0)
		close(l->own->timer); /* the next sleeper makes one that expires more often */
	l->own->timer = -1;
	return 0;
}

void tcp_rails_abandon(struct tcp_link *l)
{
	l->rails->rail[0].sock = -1;
	l->own->railed--;
	tcp_rails_close(l, false);
}

int tcp_rails_watch(struct tcp_link *l, uint32_t events)
{
	int err = 0;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		struct tcp_rail *r = &l->rails->rail[i];
		uint32_t wanted = r->busy ? events : events & ~(uint32_t)EPOLLOUT;
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

/* The socket that stands for the link in questions to the kernel: one that answers, if there is any. */
static void name_sock(struct tcp_link *l)
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

static void drop(struct tcp_link *l, struct tcp_rail *r, bool abort)
{
	if (r->sock < 0)
		return;
	if (r->events)
		epoll_ctl(l->own->epfd, EPOLL_CTL_DEL, r->sock, NULL);
	if (abort)
		setsockopt(r->sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	forked_close(r->sock);
	*r = (struct tcp_rail){.sock = -1};
}

void tcp_rails_close(struct tcp_link *l, bool abort)
{
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		drop(l, &l->rails->rail[i], abort);
	l->sock = -1;
	tcp_window_close(&l->rails->in);
	tcp_window_close(&l->rails->out);
	free(l->rails);
	l->rails = NULL;
}

void tcp_rails_end(struct tcp_link *l, uint32_t rail, int err)
{
	struct tcp_rails *rails = l->rails;
	uint64_t bytes = tcp_window_lost(&rails->out, rail);

	drop(l, &rails->rail[rail], false);
	name_sock(l);
	rails->err = err;
	rails->due = true;
	LOG_INFO(LOG_EP_DATA,
		 "tcp: rail %u to peer %#x ended: %s; %llu bytes on it are not acknowledged", rail,
		 l->id, err ? fi_strerror(err) : "closed", (unsigned long long)bytes);
}

int tcp_rails_join(struct link *link, uint32_t rail, int sock)
{
	struct tcp_link *l = (struct tcp_link *)link;

	if (link->ops->send != tcp_rails_send || rail >= WIRE_RAILS_MAX || l->ended || l->closed ||
	    l->tx == TCP_FAILED)
		return -FI_ENOTCONN;
	if (l->rails->rail[rail].sock >= 0)
		tcp_rails_end(l, rail, FI_ETIMEDOUT);
	begin(l, rail, sock);
	name_sock(l);
	if (l->events)
		tcp_rails_watch(l, l->events);
	LOG_INFO(LOG_EP_CTRL, "tcp: rail %u to peer %#x is there", rail, l->id);
	tcp_rails_flush(l);
	return 0;
}

/*
 * Does the rail leave packets unanswered that went before the last check? Adapts what its kernel keeps to the rate that
 * it has found.
 */
static bool unanswered(const struct tcp_rail *r, uint32_t period)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(r->sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	limit_unsent(r->sock, info.tcpi_delivery_rate);
	return (info.tcpi_unacked && info.tcpi_last_ack_recv >= period) ||
	       info.tcpi_probes > PROBES;
}

/* What is under way over the rail goes over others. */
static void set_silent(struct tcp_link *l, uint32_t rail, uint64_t silence)
{
	uint64_t bytes = tcp_window_lost(&l->rails->out, rail);

	l->rails->rail[rail].silent = true;
	l->rails->due = true;
	LOG_INFO(LOG_EP_CTRL,
		 "tcp: rail %u to peer %#x has not answered for %llu ms "
		 "(FI_WEFT_RAIL_TIMEOUT=%u): %llu bytes on it go over others",
		 rail, l->id, (unsigned long long)silence, time_limit(), (unsigned long long)bytes);
}

/* Checks one rail. Returns the ms since it was last found to answer. */
static uint64_t check(struct tcp_link *l, uint32_t rail, uint64_t now, uint32_t period)
{
	struct tcp_rail *r = &l->rails->rail[rail];

	if (r->heard > now || !unanswered(r, period)) {
		if (r->silent)
			LOG_INFO(LOG_EP_CTRL, "tcp: rail %u to peer %#x answers again", rail,
				 l->id);
		r->heard = now;
		r->silent = false;
	} else if (!r->silent && now - r->heard + period >= time_limit()) {
		set_silent(l, rail, now - r->heard);
	}
	return now - r->heard;
}

static void check_all(struct tcp_link *l, uint64_t now, uint32_t period)
{
	int timeout = env_get()->peer_timeout;
	uint64_t least = UINT64_MAX, silence;
	struct tcp_rails *rails = l->rails;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		const struct tcp_rail *r = &rails->rail[i];

		silence = r->sock >= 0 ? check(l, i, now, period) : UINT64_MAX;
		least = silence < least ? silence : least;
		if (rails->initiator && (r->sock < 0 || r->silent))
			rail_wanted(l->own->worker, l->id, i, time_limit());
	}
	name_sock(l);
	rails->due |= rails->acked != rails->in.begin;
	tcp_rails_flush(l);
	tcp_window_trim(&rails->in);
	tcp_window_trim(&rails->out);
	if (l->sock < 0 && !rail_coming(l->own->worker, l->id))
		tcp_fail(l, rails->err ? rails->err : FI_ECONNRESET);
	else if (timeout > 0 && l->sock >= 0 && least >= (uint64_t)timeout)
		tcp_fail(l, FI_ETIMEDOUT);
}

void tcp_rails_poll(struct tcp *t, uint64_t now)
{
	uint32_t period = tcp_rails_period();

	if (!t->railed || now < t->next_rails)
		return;
	t->next_rails = now + period;
	LIST_EACH (node, &t->links) {
		struct tcp_link *l = LIST_ENTRY(node, struct tcp_link, in_state);

		if (l->rails && l->tx != TCP_FAILED)
			check_all(l, now, period);
	}
}

bool tcp_rails_linger(struct tcp_link *l)
{
	struct tcp_window *in = &l->rails->in;
	char scrap[4096];
	struct iovec iov = {scrap, sizeof(scrap)};
	ssize_t len = tcp_rails_recv(l, &iov, 1);

	/* What comes is dropped, all of it: acknowledgements come with it. */
	if (len < 0 && errno != EAGAIN && errno != EINTR)
		return true;
	in->begin = in->next;
	if (l->sock < 0)
		return true;
	tcp_rails_flush(l);
	if (l->tx == TCP_REST)
		return false;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX && !l->shut; i++)
		if (l->rails->rail[i].sock >= 0)
			shutdown(l->rails->rail[i].sock, SHUT_WR);
	l->shut = true;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		const struct tcp_rail *r = &l->rails->rail[i];

		if (r->sock >= 0 && !r->silent && !tcp_acknowledged(r->sock))
			return l->rails->out.begin == l->rails->out.end;
	}
	return true;
}
