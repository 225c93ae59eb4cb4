/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Closing. Closing a socket while input arrives or is unread makes the kernel drop unsent output.
 * So a healthy link lingers after the engine has closed it: it sends its rest, shuts down its side,
 * and discards input until all output is acknowledged. The connection of a failed link is reset.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "hw/tcp/tcp_flusher.h"
#include "hw/tcp/tcp_gather.h"
#include "hw/tcp/tcp_rails.h"
#include "hw/tcp/tcp_tls.h"

#define DROPS  64     /* reads per call of drop_input */
#define NAP_NS 500000 /* ns between two checks: no event announces an acknowledgement */

void tcp_free(struct tcp_link *l)
{
	if (l->rails)
		tcp_rails_close(l, false);
	tcp_rest_drop(l);
	if (l->sock >= 0)
		forked_close(l->sock);
	tcp_tls_end(&l->secure);
	free(l);
}

static void unwatch(struct tcp_link *l)
{
	if (l->rails)
		tcp_rails_watch(l, 0);
	else if (l->events)
		epoll_ctl(l->own->epfd, EPOLL_CTL_DEL, l->sock, NULL);
	l->events = 0;
}

/* Reads and discards input. False: the connection is broken. */
static bool drop_input(const struct tcp_link *l)
{
	char scrap[4096];
	ssize_t len = 1;

	for (int i = 0; i < DROPS && len > 0; i++)
		len = recv(l->sock, scrap, sizeof(scrap), MSG_DONTWAIT);
	return len >= 0 || errno == EAGAIN || errno == EINTR;
}

/*
 * Has the output arrived, although it is not acknowledged? Some kernels acknowledge a lone segment
 * as late as 40 ms after it came. Assume arrival when all was sent, nothing retransmitted, and
 * twice the round-trip time has passed.
 */
static bool arrived(int sock)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int unsent = 0;

	return !ioctl(sock, SIOCOUTQNSD, &unsent) && !unsent &&
	       !getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &len) && !info.tcpi_retransmits &&
	       !info.tcpi_lost && info.tcpi_last_data_sent * 1000ull > 2ull * info.tcpi_rtt + 1000;
}

/* The FIN counts as one byte and need not be acknowledged. */
bool tcp_acknowledged(int sock)
{
	int unsent;

	return ioctl(sock, SIOCOUTQ, &unsent) || unsent <= 1 || arrived(sock);
}

/* Continues a lingering link. True: there is nothing left to wait for. */
static bool step(struct tcp_link *l)
{
	if (l->rails)
		return l->tx == TCP_FAILED || tcp_rails_linger(l);
	if (l->tx == TCP_REST)
		tcp_flush(l);
	if (l->tx == TCP_FAILED || !drop_input(l))
		return true;
	if (l->tx == TCP_REST)
		return false;
	if (!l->shut)
		shutdown(l->sock, SHUT_WR);
	l->shut = true;
	return tcp_acknowledged(l->sock);
}

static void reap(struct tcp_link *l)
{
	struct tcp *t = l->own;

	t->count--;
	tcp_flusher_lock(l);
	tcp_gather_drop(l);
	list_remove(&l->in_attend);
	list_remove(&l->in_state);
	if (l->rails)
		tcp_rails_close(l, l->tx == TCP_FAILED || l->link.failed);
	/* Resets: sends reported as failed must not arrive, even if the network recovers. */
	if (l->sock >= 0 && (l->tx == TCP_FAILED || l->link.failed))
		setsockopt(l->sock, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1},
			   sizeof(struct linger));
	if (l->sock >= 0)
		forked_close(l->sock);
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
	if (l->rails)
		tcp_rails_forget(l);
	list_remove(&l->in_held);
	/* The last open link is closed: no timer may wake a sleeper for tcp_alive_poll. */
	if (--t->live == 0 && t->timer >= 0) {
		close(t->timer);
		t->timer = -1;
	}
	t->railed -= l->rails != NULL;
	unwatch(l);
	if (broken || step(l)) {
		reap(l);
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
	if (l->tx == TCP_REST) {
		tcp_watch(l, EPOLLOUT);
	} else {
		unwatch(l);
	}
}

static void go_on(struct tcp *t, uint64_t now)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the lists */
	LIST_EACH_SAFE (node, &t->lingering) {
		struct tcp_link *l = LIST_ENTRY(node, struct tcp_link, in_state);
		bool done = step(l);

		list_remove(&l->in_attend);
		if (!done && now >= l->deadline)
			LOG_INFO(LOG_EP_CTRL,
				 "tcp: peer %#x did not take all that was sent in %d ms", l->id,
				 TCP_LINGER_MS);
		if (done || now >= l->deadline)
			reap(l);
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
	go_on(t, now);
}

/*
 * Hands lingering links to another worker of the domain, if there is one: waiting here would block
 * the whole domain while a peer does not read.
 */
static void bequeath(struct tcp *t)
{
	struct tcp *successor = t->opener->events->successor(t->opener, t);

	if (!successor)
		return;
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the lists */
	LIST_EACH_SAFE (node, &t->lingering) {
		struct tcp_link *l = LIST_ENTRY(node, struct tcp_link, in_state);

		list_remove(&l->in_state);
		list_push(&successor->lingering, &l->in_state);
		unwatch(l);
		l->own = successor;
		tcp_linger_watch(l);
		t->count--;
		successor->count++;
	}
}

void tcp_linger_out(struct tcp *t)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};

	go_on(t, clock_coarse_ms());
	bequeath(t);
	while (!list_empty(&t->lingering)) {
		nanosleep(&nap, NULL);
		go_on(t, clock_coarse_ms());
	}
}
