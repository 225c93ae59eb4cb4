/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/lobby.h"

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
#include "xfer/dial.h"
#include "xfer/hello.h"

#define STRANGERS_MAX 64
#define STRANGER_MS   5000 /* a stranger who says nothing is shown the door anyway */

struct stranger {
	struct list link; /* lobby->strangers */
	int sock;
	bool inside;
	pid_t pid;
	uint64_t since; /* ms */
};

void lobby_init(struct lobby *l, int epfd)
{
	l->epfd = epfd;
	l->inside = l->network = l->timer = -1;
	l->count = 0;
	l->shut = false;
	list_init(&l->strangers);
	pool_init(&l->pool, sizeof(struct stranger));
}

static int watch(struct lobby *l, int fd, enum lobby_source source, uint32_t id)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | id};

	return epoll_ctl(l->epfd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* Before it is needed: then there may be no descriptor to be had. */
static int make_timer(struct lobby *l)
{
	int err = 0, timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	if (timer < 0)
		return -errno;
	err = watch(l, timer, LOBBY_TIMER, 0);
	if (err)
		close(timer);
	else
		l->timer = timer;
	return err;
}

int lobby_listen(struct lobby *l, enum lobby_source source, int sock)
{
	int err = l->timer < 0 ? make_timer(l) : 0;

	if (!err)
		err = watch(l, sock, source, 0);
	if (!err)
		*(source == LOBBY_INSIDE ? &l->inside : &l->network) = sock;
	return err;
}

static void listen_for(struct lobby *l, uint32_t events)
{
	const int socks[] = {[LOBBY_INSIDE] = l->inside, [LOBBY_NETWORK] = l->network};

	for (uint64_t i = LOBBY_INSIDE; i <= LOBBY_NETWORK; i++) {
		struct epoll_event ev = {.events = events, .data.u64 = i << 32};

		if (socks[i] >= 0)
			epoll_ctl(l->epfd, EPOLL_CTL_MOD, socks[i], &ev);
	}
}

/* 0: it does not go off. */
static void set_timer(struct lobby *l, long ms)
{
	const struct itimerspec when = {.it_value.tv_nsec = ms * 1000000};

	if (timerfd_settime(l->timer, 0, &when, NULL))
		LOG_WARN(LOG_EP_CTRL, "a timer cannot be set: %s", fi_strerror(errno));
}

static void open_door(struct lobby *l)
{
	if (!l->shut)
		return;
	l->shut = false;
	set_timer(l, 0);
	listen_for(l, EPOLLIN);
}

/*
 * There is no room, or no descriptor, for those outside: whoever sleeps is not to be woken by them until
 * somebody leaves, or some time is over.
 */
static void shut_door(struct lobby *l)
{
	if (l->shut)
		return;
	l->shut = true;
	set_timer(l, LOBBY_CROWDED_MS);
	listen_for(l, 0);
}

static void stranger_free(struct lobby *l, struct stranger *s)
{
	list_remove(&s->link);
	pool_put(&l->pool, s);
	l->count--;
	open_door(l);
}

static bool readable(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void show_door(struct lobby *l, struct stranger *s, uint64_t now)
{
	LOG_WARN(LOG_EP_CTRL, "%s %d connected and said nothing for %u ms: closed",
		 s->inside ? "process" : "socket", s->inside ? (int)s->pid : s->sock,
		 (unsigned int)(now - s->since));
	forked_close(s->sock);
	stranger_free(l, s);
}

/* Silent strangers must not keep those outside who have something to say. */
static bool make_room(struct lobby *l)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH (node, &l->strangers) {
		struct stranger *s = LIST_ENTRY(node, struct stranger, link);

		if (now - s->since < LOBBY_CROWDED_MS)
			return false;
		if (readable(s->sock))
			continue; /* it has spoken: its turn comes */
		show_door(l, s, now);
		return true;
	}
	return false;
}

/* Takes the socket. */
static void admit(struct lobby *l, int sock, bool inside)
{
	struct stranger *s = pool_get(&l->pool);
	pid_t pid = inside ? dial_pid(sock) : 0;

	if (!inside)
		dial_tune(sock);
	if (!s || pid < 0 || forked_guard(sock) || watch(l, sock, LOBBY_STRANGER, pool_id(s))) {
		if (s)
			pool_put(&l->pool, s);
		forked_close(sock);
		return;
	}
	*s = (struct stranger){
		.sock = sock, .inside = inside, .pid = pid, .since = clock_coarse_ms()};
	list_push(&l->strangers, &s->link);
	l->count++;
}

static void accept_strangers(struct lobby *l, bool inside)
{
	int listener = inside ? l->inside : l->network;

	while (l->count < STRANGERS_MAX || (readable(listener) && make_room(l))) {
		int sock = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (sock < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			shut_door(l);
		if (sock < 0)
			return;
		admit(l, sock, inside);
	}
	shut_door(l);
}

/* True: it has said hello. */
static bool listen_to(struct lobby *l, struct stranger *s, struct guest *guest)
{
	int ret = hello_recv(s->sock, s->inside, &guest->hello, guest->fds);

	if (ret == 0)
		return false;
	guest->sock = s->sock;
	guest->inside = s->inside;
	guest->pid = s->pid;
	epoll_ctl(l->epfd, EPOLL_CTL_DEL, s->sock, NULL);
	stranger_free(l, s);
	if (ret > 0)
		return true;
	forked_close(guest->sock);
	return false;
}

bool lobby_event(struct lobby *l, uint64_t data, struct guest *guest)
{
	struct stranger *s;

	switch (data >> 32) {
	case LOBBY_INSIDE:
	case LOBBY_NETWORK:
		accept_strangers(l, data >> 32 == LOBBY_INSIDE);
		return false;
	case LOBBY_TIMER:
		open_door(l);
		return false;
	default:
		s = pool_find(&l->pool, (uint32_t)data);
		return s && listen_to(l, s, guest);
	}
}

void lobby_expire(struct lobby *l)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH_SAFE (node, &l->strangers) {
		struct stranger *s = LIST_ENTRY(node, struct stranger, link);

		if (now - s->since >= STRANGER_MS && !readable(s->sock))
			show_door(l, s, now);
	}
}

void lobby_dismiss(struct guest *guest)
{
	hello_close_fds(guest->fds);
	forked_close(guest->sock);
}

void lobby_close(struct lobby *l)
{
	while (l->count) {
		struct stranger *s = LIST_ENTRY(l->strangers.next, struct stranger, link);

		forked_close(s->sock);
		stranger_free(l, s);
	}
	if (l->inside >= 0)
		forked_close(l->inside);
	if (l->network >= 0)
		forked_close(l->network);
	if (l->timer >= 0)
		close(l->timer);
	pool_fini(&l->pool);
	lobby_init(l, l->epfd);
}
