/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds peers that no longer answer. Keepalive probes of the kernel (connect_tune) cover idle peers. For peers with
 * unacknowledged data we check how long ago they last acknowledged anything. TCP_USER_TIMEOUT would also end
 * connections to live peers that just do not read, and a program may compute for long.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "hw/tcp/tcp.h"

#define POLLS 8 /* checks per FI_WEFT_PEER_TIMEOUT */

void tcp_alive_poll(struct tcp *t)
{
	int timeout = env_get()->peer_timeout;
	uint64_t now = clock_coarse_ms(), expired;

	if (t->railed)
		tcp_rails_ops->poll(t, now);
	if ((timeout <= 0 || now < t->next_poll) && !t->due)
		return;
	if (t->timer >= 0 && read(t->timer, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		LOG_PEER(LOG_EP_CTRL, "tcp: cannot read a timer: %s", fi_strerror(errno));
	t->due = false;
	if (timeout <= 0 || now < t->next_poll)
		return;
	t->next_poll = now + (uint64_t)timeout / POLLS;
	LIST_EACH_OF (struct tcp_link, l, &t->links, in_state)
		if (l->tx != TCP_FAILED && l->stream->is_dead(l, (uint32_t)timeout))
			tcp_fail(l, FI_ETIMEDOUT);
}

/* The shorter one of two limits of time, of which 0 and less means none. */
static int tcp_alive_shortest(int a, int b)
{
	return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* Makes sleepers check, too. Without the timer they sleep until the kernel gives the peer up. */
void tcp_alive_timer(struct tcp *t)
{
	int timeout = tcp_alive_shortest(env_get()->peer_timeout, env_get()->operation_timeout);
	int rails = t->railed ? (int)tcp_rails_ops->period() : 0;
	int ms = tcp_alive_shortest(rails, timeout > 0 ? timeout / POLLS + 1 : 0);
	struct timespec every = {ms / 1000, ms % 1000 * 1000000L};
	struct epoll_event ev = {.events = EPOLLIN};

	if (!ms || t->timer >= 0)
		return;
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (t->timer < 0 ||
	    timerfd_settime(t->timer, 0, &(struct itimerspec){every, every}, NULL) ||
	    epoll_ctl(t->epfd, EPOLL_CTL_ADD, t->timer, &ev))
		LOG_PEER(
			LOG_EP_CTRL,
			"tcp: no timer for peers that do not answer: %s (ulimit -n limits descriptors)",
			fi_strerror(errno));
}
