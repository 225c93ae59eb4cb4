/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/acceptor.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/closer.h"
#include "base/forked.h"
#include "base/log.h"
#include "conn/connect.h"
#include "conn/hello.h"

#define SILENT_MS 5000 /* ms: maximum age of a connection without a hello */
/* Connections accepted in one call: others have their share of time, however many wait. */
#define ACCEPTS_PER_CALL 64

void acceptor_init(struct acceptor *a, int epfd)
{
	a->epfd = epfd;
	a->inside = a->network[0] = a->timer = -1;
	a->networks = 0;
	a->auth = NULL;
	a->count = a->held_count = 0;
	a->paused = a->lacks_files = false;
	list_init(&a->origins);
	list_init(&a->held);
	pool_init(&a->pool, sizeof(struct pending));
	pool_init(&a->origin_pool, sizeof(struct origin));
}

static int acceptor_watch(struct acceptor *a, int fd, enum acceptor_source source, uint32_t id)
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
	err = acceptor_watch(a, timer, ACCEPTOR_TIMER, 0);
	if (err)
		close(timer);
	else
		a->timer = timer;
	return err;
}

int acceptor_listen(struct acceptor *a, enum acceptor_source source, int sock)
{
	int err = a->timer < 0 ? make_timer(a) : 0;

	if (!err && a->networks == WIRE_RAILS_MAX)
		err = -FI_ENOSPC;
	if (!err)
		err = acceptor_watch(a, sock, source, source == ACCEPTOR_INSIDE ? 0 : a->networks);
	if (err)
		return err;
	if (source == ACCEPTOR_INSIDE)
		a->inside = sock;
	else
		a->network[a->networks++] = sock;
	return 0;
}

static void watch_listeners(struct acceptor *a, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)ACCEPTOR_INSIDE << 32};

	if (a->inside >= 0)
		epoll_ctl(a->epfd, EPOLL_CTL_MOD, a->inside, &ev);
	for (unsigned int i = 0; i < a->networks; i++) {
		ev.data.u64 = (uint64_t)ACCEPTOR_NETWORK << 32 | i;
		epoll_ctl(a->epfd, EPOLL_CTL_MOD, a->network[i], &ev);
	}
}

/* Arms the timer while something waits for time to pass. */
static void acceptor_set_timer(struct acceptor *a)
{
	bool waits = a->paused || a->held_count;
	const struct itimerspec when = {.it_value.tv_nsec = waits ? ACCEPTOR_FULL_MS * 1000000 : 0};

	if (timerfd_settime(a->timer, 0, &when, NULL))
		LOG_PEER(LOG_EP_CTRL, "a timer cannot be set: %s", fi_strerror(errno));
}

void acceptor_resume(struct acceptor *a)
{
	if (!a->paused)
		return;
	a->paused = false;
	acceptor_set_timer(a);
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
	acceptor_set_timer(a);
	watch_listeners(a, 0);
}

/* An entry leaves: there is room for others. */
static void acceptor_leave(struct acceptor *a, struct pending *p)
{
	acceptor_pending_free(a, p);
	acceptor_resume(a);
}

/* Adds an accepted socket to the pending ones, or closes it. Owns the socket. */
static void acceptor_admit(struct acceptor *a, int sock, int listener)
{
	bool inside = listener == a->inside;
	pid_t pid = inside ? connect_pid(sock) : -1;
	struct pending *p = NULL;

	if (!inside)
		connect_tune(sock);
	if ((!inside || pid >= 0) && !forked_guard(sock))
		p = acceptor_pending_add(a, sock, pid, clock_coarse_ms());
	if (p)
		p->joins = !inside && listener != a->network[0];
	if (p && !acceptor_watch(a, sock, ACCEPTOR_PENDING, pool_id(p)))
		return;
	if (p)
		acceptor_pending_free(a, p);
	connect_close(sock);
}

/* Mostly for lack of descriptors. The connection waits in the listener's backlog. */
static void cannot_accept(int err)
{
	LOG_PEER(LOG_EP_CTRL, "a connection is not accepted yet, and waits: %s%s", fi_strerror(err),
		 err == EMFILE ? " (ulimit -n)" : "");
}

static void accept_all(struct acceptor *a, int listener)
{
	for (unsigned int i = 0; i < ACCEPTS_PER_CALL; i++) {
		int sock;

		/* They wait until it has its keys, or until what others have passed is closed. */
		if ((a->auth && !a->auth->keys) || (listener == a->inside && closer_full())) {
			pause_listening(a);
			return;
		}
		/* One after the other borrows a descriptor of those that are left to the application. */
		if (connect_affordable())
			a->lacks_files = false;
		else if (acceptor_pending_readable(listener))
			a->lacks_files = true;
		if (a->count >= acceptor_pending_places(a) &&
		    !(acceptor_pending_readable(listener) && acceptor_pending_room(a))) {
			pause_listening(a);
			return;
		}
		sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (sock < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) {
			cannot_accept(errno);
			pause_listening(a);
		}
		if (sock < 0)
			return;
		acceptor_admit(a, sock, listener);
	}
}

/* Reads the hello of a pending connection. True: *conn is complete, and its key is proven. */
static bool read_hello(struct acceptor *a, struct pending *p, struct accepted *conn)
{
	bool inside = acceptor_pending_inside(p);
	int ret = hello_recv(p->sock, inside, &conn->hello, conn->fds);

	conn->sock = p->sock;
	conn->inside = inside;
	conn->joins = p->joins;
	conn->pid = inside ? p->origin->pid : 0;
	conn->held_ms = 0;
	if (ret)
		ret = auth_accept(a->auth, &p->auth, conn, ret);
	if (ret == 0)
		return false;
	epoll_ctl(a->epfd, EPOLL_CTL_DEL, p->sock, NULL);
	acceptor_leave(a, p);
	if (ret > 0)
		return true;
	connect_close(conn->sock);
	return false;
}

bool acceptor_event(struct acceptor *a, uint64_t data, struct accepted *conn)
{
	struct pending *p;

	switch (data >> 32) {
	case ACCEPTOR_INSIDE:
		accept_all(a, a->inside);
		return false;
	case ACCEPTOR_NETWORK:
		accept_all(a, a->network[(uint32_t)data]);
		return false;
	case ACCEPTOR_TIMER:
		acceptor_resume(a);
		acceptor_set_timer(a);
		return false;
	default:
		p = pool_find(&a->pool, (uint32_t)data);
		return p && !p->held && read_hello(a, p, conn);
	}
}

bool acceptor_hold(struct acceptor *a, const struct accepted *conn)
{
	struct pending *p = NULL;
	struct accepted *held = acceptor_pending_room(a) ? malloc(sizeof(*held)) : NULL;

	if (held)
		p = acceptor_pending_add(a, conn->sock, conn->inside ? conn->pid : -1,
					 conn->held_ms);
	if (!p) {
		free(held);
		return false;
	}
	*held = *conn;
	p->held = held;
	list_push(&a->held, &p->in_held);
	if (a->held_count++ == 0)
		acceptor_set_timer(a);
	return true;
}

bool acceptor_unhold(struct acceptor *a, struct accepted *conn)
{
	struct pending *p;

	if (list_empty(&a->held))
		return false;
	p = LIST_ENTRY(a->held.next, struct pending, in_held);
	*conn = *p->held;
	acceptor_leave(a, p);
	return true;
}

void acceptor_expire(struct acceptor *a)
{
	if (acceptor_pending_expire(a, SILENT_MS))
		acceptor_resume(a);
}

void acceptor_dismiss(struct accepted *conn)
{
	hello_close_fds(conn->fds);
	connect_close(conn->sock);
}

void acceptor_close(struct acceptor *a)
{
	struct auth_own *auth = a->auth;

	acceptor_pending_close(a);
	if (a->inside >= 0)
		connect_close(a->inside);
	for (unsigned int i = 0; i < a->networks; i++)
		connect_close(a->network[i]);
	if (a->timer >= 0)
		close(a->timer);
	pool_fini(&a->pool);
	pool_fini(&a->origin_pool);
	acceptor_init(a, a->epfd);
	a->auth = auth;
}
