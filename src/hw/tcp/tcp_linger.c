/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing. Closing a socket while input arrives or is unread makes the kernel drop unsent output.
 * So a healthy link lingers after the engine has closed it: it sends its rest, shuts down its side,
 * and discards input until all output is acknowledged. The connection of a failed link is reset.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "hw/tcp/tcp_output.h"

#define NAP_NS 500000 /* ns between two checks: no event announces an acknowledgement */

void tcp_free(struct tcp_link *l)
{
	tcp_rest_drop(l);
	free(l);
}

static void tcp_linger_reap(struct tcp_link *l)
{
	struct tcp *t = l->own;

	t->count--;
	tcp_flusher_lock(l);
	tcp_gather_drop(l);
	list_remove(&l->in_attend);
	list_remove(&l->in_state);
	/* Resets: sends reported as failed must not arrive, even if the network recovers. */
	l->stream->close(l, l->tx == TCP_FAILED || l->link.failed);
	l->sock = -1;
	tcp_flusher_unlock(l);
	if (t->in_progress)
		list_push(&t->closed, &l->in_state);
	else
		tcp_free(l);
}

void tcp_close_link(struct link *link)
{
	struct tcp_link *l = (struct tcp_link *)link;
	struct tcp *t = l->own;
	bool broken = link->failed || l->ended || l->tx >= TCP_SECURING || tcp_zcopy_copy_out(link);

	l->closed = true;
	t->opener->events->payload_free(t->opener, l->id, l->kept);
	l->kept = NULL;
	if (l->stream->forget)
		l->stream->forget(l);
	list_remove(&l->in_answers);
	/* The last open link is closed: no timer may wake a sleeper for tcp_alive_poll. */
	if (--t->live == 0 && t->timer >= 0) {
		close(t->timer);
		t->timer = -1;
	}
	l->stream->watch(l, 0);
	if (broken || l->stream->linger(l)) {
		tcp_linger_reap(l);
		return;
	}
	list_remove(&l->in_attend);
	list_remove(&l->in_state);
	list_push(&t->lingering, &l->in_state);
	l->deadline = clock_coarse_ms() + TCP_LINGER_MS;
}

/* Wakes a sleeping waiter when the kernel has space for the rest. */
void tcp_linger_watch(struct tcp_link *l)
{
	l->stream->watch(l, l->tx == TCP_REST ? EPOLLOUT : 0);
}

static void tcp_linger_go_on(struct tcp *t, uint64_t now)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the lists */
	LIST_EACH_SAFE_OF (struct tcp_link, l, &t->lingering, in_state) {
		bool done = l->stream->linger(l);

		list_remove(&l->in_attend);
		if (!done && now >= l->deadline)
			LOG_INFO(LOG_EP_CTRL,
				 "tcp: peer %#x did not take all that was sent in %d ms", l->id,
				 TCP_LINGER_MS);
		if (done || now >= l->deadline)
			tcp_linger_reap(l);
		else if (l->events)
			tcp_linger_watch(l);
	}
}

void tcp_linger(struct tcp *t)
{
	uint64_t now = clock_coarse_ms();

	if (now == t->looked)
		return;
	t->looked = now;
	tcp_linger_go_on(t, now);
}

/*
 * Hands lingering links to another worker of the domain, if there is one: waiting here would block
 * the whole domain while a peer does not read.
 */
static void tcp_linger_bequeath(struct tcp *t)
{
	struct tcp *successor = t->opener->events->successor(t->opener, t);

	if (!successor)
		return;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the lists */
	LIST_EACH_SAFE_OF (struct tcp_link, l, &t->lingering, in_state) {
		list_remove(&l->in_state);
		list_push(&successor->lingering, &l->in_state);
		l->stream->watch(l, 0);
		l->own = successor;
		tcp_linger_watch(l);
		t->count--;
		successor->count++;
	}
}

void tcp_linger_out(struct tcp *t)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	tcp_linger_go_on(t, clock_coarse_ms());
	tcp_linger_bequeath(t);
	while (!list_empty(&t->lingering)) {
		nanosleep(&nap, NULL);
		tcp_linger_go_on(t, clock_coarse_ms());
	}
}
