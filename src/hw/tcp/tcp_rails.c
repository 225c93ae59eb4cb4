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

#include "base/clock.h"
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
#define ON_WAY_MS     16 /* limits what a rail has on its way, but for the fastest */
#define POLLS         8  /* checks within a limit of time */
#define TIMEOUT_LEAST 40 /* ms */

/* FI_WEFT_RAIL_TIMEOUT, in ms; there is a least one. */
static uint32_t time_limit(void)
{
	int ms = env_get()->rail_timeout;

	return ms > TIMEOUT_LEAST ? (uint32_t)ms : TIMEOUT_LEAST;
}

uint32_t tcp_rails_period(void)
{
	int peer = env_get()->peer_timeout;
	uint32_t limit = time_limit();

	if (peer > 0 && (uint32_t)peer < limit)
		limit = (uint32_t)peer;
	return limit / POLLS + 1;
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
	l->rails->rail[rail] = (struct tcp_rail){.sock = sock, .most = UINT64_MAX};
}

int tcp_rails_open(struct tcp_link *l, uint32_t count, bool initiator)
{
	struct tcp_rails *rails = calloc(1, sizeof(*rails));

	if (!rails)
		return -FI_ENOMEM;
	l->rails = rails;
	l->indirect = true;
	rails->wanted = initiator ? count : 0;
	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++)
		rails->rail[i].sock = -1;
	begin(l, 0, l->sock);
	if (!l->own->railed++)
		l->own->looked_rails = clock_coarse_ms();
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
	uint64_t bytes = tcp_rails_again(l, rail);

	drop(l, &rails->rail[rail], false);
	name_sock(l);
	rails->err = err;
	/* An answer may be lost with the rail; a peer that has closed it in good order asks again, or has ended. */
	rails->ack_due |= err != 0;
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
 * A rail keeps no more bytes on their way than it carries in ON_WAY_MS and two round trips of an empty wire: what a slow one
 * has queued holds back all that comes later in the stream, and with the window the fast ones.
 */
static void limit_on_way(struct tcp_rail *r, const struct tcp_info *info)
{
	uint64_t us = ON_WAY_MS * 1000 + 2ull * info->tcpi_min_rtt;

	r->rate = info->tcpi_delivery_rate;
	r->most = r->rate * us / 1000000;
	if (r->most < UNSENT_LEAST)
		r->most = UNSENT_LEAST;
}

/*
 * Does the rail leave packets unanswered that went before the last check? What has just been sent says nothing yet, unless
 * it was sent before; nor do packets of the peer, which may hear nothing of us. Adapts what the kernel keeps to the rate that it has found.
 */
static bool unanswered(struct tcp_rail *r, uint32_t period)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (getsockopt(r->sock, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	limit_unsent(r->sock, info.tcpi_delivery_rate);
	limit_on_way(r, &info);
	if (info.tcpi_probes || !info.tcpi_unacked)
		return info.tcpi_probes;
	return info.tcpi_retransmits ||
	       (info.tcpi_last_ack_recv >= period && info.tcpi_last_data_sent >= period);
}

/* What is under way over the rail goes over others. */
static void set_silent(struct tcp_link *l, uint32_t rail)
{
	struct tcp_rail *r = &l->rails->rail[rail];
	uint64_t bytes = tcp_rails_again(l, rail);

	r->silent = true;
	l->rails->ack_due = true;
	LOG_INFO(LOG_EP_CTRL,
		 "tcp: rail %u to peer %#x has not answered for %llu ms "
		 "(FI_WEFT_RAIL_TIMEOUT=%u): %llu bytes on it go over others",
		 rail, l->id, (unsigned long long)r->silence, time_limit(),
		 (unsigned long long)bytes);
}

/*
 * Between two checks the process may have been stopped, or have computed: the time between them counts, but no single check
 * decides.
 */
static uint64_t counted(uint64_t elapsed, uint64_t limit)
{
	uint64_t most = limit / 2 + limit % 2;

	return elapsed < most ? elapsed : most;
}

/* Checks one rail, `elapsed` ms after the last check. False: it leaves packets unanswered. */
static bool check(struct tcp_link *l, uint32_t rail, uint64_t elapsed, uint32_t period)
{
	struct tcp_rail *r = &l->rails->rail[rail];

	if (!unanswered(r, period)) {
		if (r->silent)
			LOG_INFO(LOG_EP_CTRL, "tcp: rail %u to peer %#x answers again", rail,
				 l->id);
		r->silence = 0;
		r->silent = false;
		return true;
	}
	r->silence += counted(elapsed, time_limit());
	/* The next look would be too late, and what was under way has to go again. */
	if (!r->silent && r->silence + 2ull * period >= time_limit())
		set_silent(l, rail);
	return false;
}

/* Returns whether the peer answers over one of the rails, or there is none. Asks the engine for those that are missing or silent. */
static bool check_rails(struct tcp_link *l, uint64_t elapsed, uint32_t period)
{
	struct tcp_rail *fastest = NULL;
	bool any = false, answers = false;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		struct tcp_rail *r = &l->rails->rail[i];

		if (r->broken) /* what was not read of it comes again over another one */
			tcp_rails_end(l, i, FI_ECONNRESET);
		any |= r->sock >= 0;
		answers |= r->sock >= 0 && check(l, i, elapsed, period);
		if (tcp_rails_usable(r) && (!fastest || r->rate > fastest->rate))
			fastest = r;
		if (i < l->rails->wanted && (r->sock < 0 || r->silent))
			rail_wanted(l->own->worker, l->id, i, time_limit());
	}
	if (fastest)
		fastest->most = UINT64_MAX;
	return answers || !any;
}

/* Closes windows that are not used, unless a rail, which may be silent, is in the middle of a chunk. */
static void trim(struct tcp_rails *rails)
{
	bool sends = false, receives = false;

	for (uint32_t i = 0; i < WIRE_RAILS_MAX; i++) {
		sends |= rails->rail[i].busy;
		receives |= rails->rail[i].have == sizeof(rails->rail[i].in);
	}
	if (!sends)
		tcp_window_trim(&rails->out);
	if (!receives)
		tcp_window_trim(&rails->in);
}

/* Nothing was sent since the last check: what the windows hold is asked for, and given back. */
static void rest(struct tcp_rails *rails)
{
	struct tcp_window *out = &rails->out;

	if (rails->quiet == out->next && out->begin < out->next && rails->ask <= out->begin) {
		rails->ask = out->next;
		rails->ask_due = true;
	}
	rails->quiet = out->next;
	trim(rails);
}

static void check_link(struct tcp_link *l, uint64_t elapsed, uint32_t period)
{
	struct tcp_rails *rails = l->rails;
	uint64_t timeout =
		env_get()->peer_timeout > 0 ? (uint64_t)env_get()->peer_timeout : UINT64_MAX;

	if (check_rails(l, elapsed, period))
		rails->silence = 0;
	else
		rails->silence += counted(elapsed, timeout);
	name_sock(l);
	rest(rails);
	tcp_rails_flush(l);
	if (l->sock < 0 && !rail_coming(l->own->worker, l->id))
		tcp_fail(l, rails->err ? rails->err : FI_ECONNRESET);
	else if (rails->silence >= timeout)
		tcp_fail(l, FI_ETIMEDOUT);
}

void tcp_rails_poll(struct tcp *t, uint64_t now)
{
	uint32_t period = tcp_rails_period();
	uint64_t elapsed = now - t->looked_rails;

	if (now < t->next_rails)
		return;
	t->looked_rails = now;
	t->next_rails = now + period;
	LIST_EACH (node, &t->links) {
		struct tcp_link *l = LIST_ENTRY(node, struct tcp_link, in_state);

		if (l->rails && l->tx != TCP_FAILED)
			check_link(l, elapsed, period);
	}
}

void tcp_rails_attend(struct tcp_link *l)
{
	list_remove(&l->in_attend);
	list_push(&l->own->attend, &l->in_attend);
}

bool tcp_rails_linger(struct tcp_link *l)
{
	if (!tcp_rails_drop(l))
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
