/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/conn/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "xfer/conn/connect.h"
#include "xfer/conn/hello.h"

#define PENDING_MAX 64   /* connections without a hello */
#define SILENT_MS   5000 /* ms: maximum age of a connection without a hello */

struct pending {
	struct list link; /* acceptor->pending */
	int sock;
	bool inside;
	pid_t pid;
	uint64_t since; /* ms: when it was accepted */
};

void acceptor_init(struct acceptor *a, int epfd)
{
	a->epfd = epfd;
	a->inside = a->network = a->timer = -1;
	a->count = 0;
	a->paused = false;
	list_init(&a->pending);
	pool_init(&a->pool, sizeof(struct pending));
}

static int watch(struct acceptor *a, int fd, enum acceptor_source source, uint32_t id)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | id};

	return epoll_ctl(a->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Makes the timer early: no descriptor may be free when it is needed. */
static int make_timer(struct acceptor *a)
{
	int err = 0, timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer < 0)
		return -errno;
	err = watch(a, timer, ACCEPTOR_TIMER, 0);
	if (err)
		close(timer);
	else
		a->timer = timer;
	return err;
}

int acceptor_listen(struct acceptor *a, enum acceptor_source source, int sock)
{
	int err = a->timer < 0 ? make_timer(a) : 0;

	if (!err)
		err = watch(a, sock, source, 0);
	if (!err)
		*(source == ACCEPTOR_INSIDE ? &a->inside : &a->network) = sock;
	return err;
}

static void watch_listeners(struct acceptor *a, uint32_t events)
{
	const int socks[] = {[ACCEPTOR_INSIDE] = a->inside, [ACCEPTOR_NETWORK] = a->network};

	for (uint64_t i = ACCEPTOR_INSIDE; i <= ACCEPTOR_NETWORK; i++) {
		struct epoll_event ev = {.events = events, .data.u64 = i << 32};

		if (socks[i] >= 0)
			epoll_ctl(a->epfd, EPOLL_CTL_MOD, socks[i], &ev);
	}
}

/* Sets the timer; 0 disarms it. */
static void set_timer(struct acceptor *a, long ms)
{
	const struct itimerspec when = {.it_value.tv_nsec = ms * 1000000};

	if (timerfd_settime(a->timer, 0, &when, NULL))
		LOG_WARN(LOG_EP_CTRL, "a timer cannot be set: %s", fi_strerror(errno));
}

static void resume_listening(struct acceptor *a)
{
	if (!a->paused)
		return;
	a->paused = false;
	set_timer(a, 0);
	watch_listeners(a, EPOLLIN);
}

/*
 * Stops watching the listeners until a pending connection leaves or the timer expires: the table is
 * full or no descriptor is free. Connections in their backlog then do not wake a sleeping owner.
 */
static void pause_listening(struct acceptor *a)
{
	if (a->paused)
		return;
	a->paused = true;
	set_timer(a, ACCEPTOR_FULL_MS);
	watch_listeners(a, 0);
}

static void pending_free(struct acceptor *a, struct pending *p)
{
	list_remove(&p->link);
	pool_put(&a->pool, p);
	a->count--;
	resume_listening(a);
}

static bool readable(int sock)
{
	struct pollfd poll_in = {.fd = sock, .events = POLLIN};

	return poll(&poll_in, 1, 0) == 1;
}

static void close_silent(struct acceptor *a, struct pending *p, uint64_t now)
{
	LOG_WARN(LOG_EP_CTRL, "%s %d connected and said nothing for %u ms: closed",
		 p->inside ? "process" : "socket", p->inside ? (int)p->pid : p->sock,
		 (unsigned int)(now - p->since));
	forked_close(p->sock);
	pending_free(a, p);
}

/* Closes the oldest silent connection to make room for one in the backlog. True: one was closed. */
static bool evict_silent(struct acceptor *a)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH (node, &a->pending) {
		struct pending *p = LIST_ENTRY(node, struct pending, link);

		if (now - p->since < ACCEPTOR_FULL_MS)
			return false;
		if (readable(p->sock))
			continue; /* its hello has come: the next events read it */
		close_silent(a, p, now);
		return true;
	}
	return false;
}

/* Adds an accepted socket to `pending`, or closes it. Owns the socket. */
static void admit(struct acceptor *a, int sock, bool inside)
{
	struct pending *p = pool_get(&a->pool);
	pid_t pid = inside ? connect_pid(sock) : 0;

	if (!inside)
		connect_tune(sock);
	if (!p || pid < 0 || forked_guard(sock) || watch(a, sock, ACCEPTOR_PENDING, pool_id(p))) {
		if (p)
			pool_put(&a->pool, p);
		forked_close(sock);
		return;
	}
	*p = (struct pending){
		.sock = sock, .inside = inside, .pid = pid, .since = clock_coarse_ms()};
	list_push(&a->pending, &p->link);
	a->count++;
}

static void accept_all(struct acceptor *a, bool inside)
{
	int listener = inside ? a->inside : a->network;

	while (a->count < PENDING_MAX || (readable(listener) && evict_silent(a))) {
		int sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (sock < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_listening(a);
		if (sock < 0)
			return;
		admit(a, sock, inside);
	}
	pause_listening(a);
}

/* Reads the hello of a pending connection. True: *conn is complete. */
static bool read_hello(struct acceptor *a, struct pending *p, struct accepted *conn)
{
	int ret = hello_recv(p->sock, p->inside, &conn->hello, conn->fds);

	if (ret == 0)
		return false;
	conn->sock = p->sock;
	conn->inside = p->inside;
	conn->pid = p->pid;
	epoll_ctl(a->epfd, EPOLL_CTL_DEL, p->sock, NULL);
	pending_free(a, p);
	if (ret > 0)
		return true;
	forked_close(conn->sock);
	return false;
}

bool acceptor_event(struct acceptor *a, uint64_t data, struct accepted *conn)
{
	struct pending *p;

	switch (data >> 32) {
	case ACCEPTOR_INSIDE:
	case ACCEPTOR_NETWORK:
		accept_all(a, data >> 32 == ACCEPTOR_INSIDE);
		return false;
	case ACCEPTOR_TIMER:
		resume_listening(a);
		return false;
	default:
		p = pool_find(&a->pool, (uint32_t)data);
		return p && read_hello(a, p, conn);
	}
}

void acceptor_expire(struct acceptor *a)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH_SAFE (node, &a->pending) {
		struct pending *p = LIST_ENTRY(node, struct pending, link);

		if (now - p->since >= SILENT_MS && !readable(p->sock))
			close_silent(a, p, now);
	}
}

void acceptor_dismiss(struct accepted *conn)
{
	hello_close_fds(conn->fds);
	forked_close(conn->sock);
}

void acceptor_close(struct acceptor *a)
{
	while (a->count) {
		struct pending *p = LIST_ENTRY(a->pending.next, struct pending, link);

		forked_close(p->sock);
		pending_free(a, p);
	}
	if (a->inside >= 0)
		forked_close(a->inside);
	if (a->network >= 0)
		forked_close(a->network);
	if (a->timer >= 0)
		close(a->timer);
	pool_fini(&a->pool);
	acceptor_init(a, a->epfd);
}
