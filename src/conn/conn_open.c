/* SPDX-License-Identifier: BSD-2-Clause */
/* Our attempts to connect. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "conn/advertise.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"
#include "conn/listen.h"

#define ROOM_MS 2 /* until an attempt looks for a descriptor again */

int conn_control(struct station *station, int op, struct contact *peer, uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)STATION_PEER << 32 | pool_id(peer)};

	return epoll_ctl(station->driven.fd, op, peer->sock, &ev) ? -errno : 0;
}

int conn_watch(struct contact *peer, uint32_t events)
{
	return conn_control(peer->station, EPOLL_CTL_ADD, peer, events);
}

int conn_listen(struct station *station)
{
	struct listen_how how = {.inside = station->via[LINK_HOST].state != NULL,
				 .network = station_on_network(station),
				 .backlog = SOMAXCONN};
	struct addr all = {.kind = station->name.kind, .port = station->name.port};
	int err;

	/* An advertised port number stands for one address, a name within the host for one process. */
	station->opener.all &= how.network && !env_get()->advertise;
	err = listen_open(&station->acceptor, station->opener.all ? &all : &station->name, &how);
	if (err)
		return err;
	if (station->opener.all)
		station->name.port = all.port;
	station->key = addr_unmapped(&station->name);
	return 0;
}

/* Connects to ourselves: a shm link, with a socket pair for the wake-ups. 0 or a negative error. */
static int connect_self(struct contact *peer)
{
	struct station *station = peer->station;
	struct accepted self = {.inside = true,
				.pid = getpid(),
				.hello = {.your_id = pool_id(peer),
					  .incarnation = station->incarnation,
					  .cma_addr = (uintptr_t)&station->cma_word,
					  .cma_value = station->cma_word}};
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = hello_own_fds(station, self.fds);
	if (err)
		goto close_pair;
	peer->sock = pair[0];
	peer->wake = pair[1];
	peer->kind = LINK_HOST;
	err = conn_link(peer, &self, &(struct wire_nic){.qpn = 0});
	if (!err)
		err = conn_watch(peer, EPOLLIN);
	if (err)
		goto close_pair;
	peer->real->silent = false;
	contact_connected(peer);
	return 0;
close_pair:
	peer->sock = peer->wake = -1;
	close(pair[0]);
	close(pair[1]);
	return err;
}

int conn_say_hello(struct contact *peer)
{
	struct station *station = peer->station;
	struct hello_fields fields = {.kind = station->cm ? HELLO_REQUEST : HELLO_CONNECT,
				      .id = pool_id(peer),
				      .data = station->cm_data,
				      .data_len = station->cm_len,
				      .auth = peer->attempt->auth};
	struct wire_rails rails;

	if (station->cm)
		conn_single_sent(peer);
	if (station->auth.keyed && !peer->attempt->auth)
		return auth_greet(peer, peer->sock, contact_inside(peer), &peer->attempt->auth);
	conn_prepare(peer, NULL, &fields.nic, &peer->attempt->pending);
	conn_options_say(peer, &fields, &rails);
	return hello_send(station, peer->sock, contact_inside(peer), &fields);
}

/* Begins the handshake on `sock`, or returns it if it is a negative error. Owns the socket. 0 or a negative error. */
static int conn_open_attempt(struct contact *peer, int sock, bool inside)
{
	int err;

	if (sock < 0)
		return sock;
	auth_end(&peer->attempt->auth);
	peer->sock = peer->wake = sock;
	peer->kind = inside ? LINK_HOST : LINK_SOCKET;
	peer->attempt->late = false;
	err = inside ? conn_say_hello(peer) : 0;
	if (err == -EPIPE)
		err = -FI_EAGAIN; /* closed already to make room for others */
	if (!err)
		err = conn_watch(peer, inside ? EPOLLIN : EPOLLOUT);
	if (err) {
		connect_close(sock);
		peer->sock = peer->wake = -1;
		return err;
	}
	conn_event(peer, inside ? CONN_GREETS : CONN_REACHES, NULL);
	idle_end(&peer->station->driven.idle);
	return 0;
}

/* Returns the deadline (ms) of an attempt that begins now; UINT64_MAX without a peer timeout. */
static uint64_t deadline_from_now(void)
{
	int ms = env_get()->peer_timeout;

	return ms > 0 ? clock_coarse_ms() + (uint64_t)ms : UINT64_MAX;
}

int conn_overdue(const struct contact *peer)
{
	return peer->state == PEER_AWAITED ? FI_EFIREWALLADDR
	       : peer->attempt->no_files   ? FI_EMFILE
					   : FI_ETIMEDOUT;
}

/*
 * Tries a local address within the host first: that reaches a process in our network namespace that
 * uses shared memory. All others are reached across the network, which may be the loopback.
 */
static int connect_somehow(struct contact *peer)
{
	struct station *station = peer->station;
	/* Others, if they are closed, too, know this endpoint by its address. */
	const struct addr *source = station->auth.closed ? &station->name : NULL;
	struct addr to = conn_reach_address(peer);
	int err = -FI_EHOSTUNREACH;

	peer->attempt_ms = clock_coarse_ms();
	peer->attempt->deadline = deadline_from_now();
	if (station->via[LINK_HOST].state &&
	    (addr_is_local(&peer->name) || advertise_is_own(&peer->name)))
		err = conn_open_attempt(peer, conn_reach_inside(peer), true);
	peer->host_error = -err;
	if (station_on_network(station) && peer->name.kind != ADDR_STR &&
	    (err == -FI_EHOSTUNREACH || err == -FI_ECONNREFUSED || err == -FI_EACCES))
		err = conn_reach_firewalled(peer)
			      ? conn_event(peer, CONN_HIDDEN, NULL)
			      : conn_open_attempt(peer, connect_network(&to, source), false);
	peer->attempt->no_files = err == -FI_EMFILE;
	if (err != -FI_EMFILE || !conn_options_make_room(station))
		return err;
	peer->attempt->again_ms = peer->attempt_ms + ROOM_MS;
	return -FI_EAGAIN;
}

/* -FI_EAGAIN becomes 0: the attempt pauses. */
static int attempt_now(struct contact *peer)
{
	int err = connect_somehow(peer);

	if (err == -FI_EAGAIN)
		return conn_event(peer, CONN_PAUSES, NULL);
	if (!err && peer->station->cm)
		conn_single_connecting(peer);
	return err;
}

void conn_wait(struct contact *peer)
{
	idle_end(&peer->station->driven.idle);
	if (peer->station->cm)
		conn_single_waits(peer->station);
	else
		peer->station->up->soon(peer); /* makes a sleeping waiter poll again soon */
}

/* Closes the attempt's socket, if it has one; the attempt goes on with another one. */
static void conn_open_close_socket(struct contact *peer)
{
	if (peer->sock >= 0)
		connect_close(peer->sock);
	peer->sock = peer->wake = -1;
	attempt_reset(peer);
}

bool conn_later(struct contact *peer)
{
	struct attempt *a = peer->attempt;
	uint64_t now = clock_coarse_ms();

	if (now >= a->deadline)
		return false;
	conn_open_close_socket(peer);
	conn_event(peer, CONN_PAUSES, NULL);
	a->again_ms = now + (1u << (a->pauses < PAUSES_MAX ? a->pauses++ : PAUSES_MAX));
	return true;
}

void conn_again(struct contact *peer)
{
	struct attempt *a = peer->attempt;
	uint64_t deadline = a->deadline;
	int err;

	if (peer->station->cm)
		conn_single_unname(peer->station);
	err = attempt_now(peer);
	if (a->pauses || peer->state == PEER_RETRYING)
		a->deadline = deadline;
	if (err)
		conn_fail(peer, -err, NULL);
}

void conn_restart(struct contact *peer)
{
	conn_open_close_socket(peer);
	peer->attempt->deadline = deadline_from_now();
	conn_event(peer, CONN_RESTARTS, NULL);
}

/* Is the peer to be proven a key that its address vector got after our endpoint was enabled? */
static bool lacks_key(const struct contact *peer)
{
	const struct auth_own *own = &peer->station->auth;

	if (!own->keyed || auth_key(own, peer->key_slot))
		return false;
	LOG_WARN(LOG_EP_CTRL,
		 "%s: the endpoint was enabled before its address vector got the key: insert keys "
		 "before fi_enable",
		 contact_text(peer));
	return true;
}

int conn_begin(struct contact *peer, const struct conn_with *with)
{
	struct station *station = peer->station;
	int err;

	if (!station->cm && station_goes_by(station, &peer->key) && station->via[LINK_HOST].state)
		return connect_self(peer);
	err = attempt_begin(peer);
	if (err)
		return err;
	peer->attempt->in_advance = with->in_advance;
	peer->attempt->until = with->until;
	err = lacks_key(peer) ? -FI_EACCES : attempt_now(peer);
	if (!err)
		return 0;
	peer->last_error = -err;
	if (!station->cm)
		conn_reach_explain(peer, -err);
	attempt_end(peer);
	return err;
}

static int conn_open_start(struct contact *peer, const struct conn_with *how)
{
	return peer->station->cm ? -FI_ENOTCONN : conn_event(peer, CONN_START, how);
}

int conn_start(struct contact *peer)
{
	return conn_open_start(peer, &(struct conn_with){.in_advance = false});
}

int conn_start_in_advance(struct contact *peer, uint64_t until)
{
	return conn_open_start(peer, &(struct conn_with){.in_advance = true, .until = until});
}

void conn_timer_set(struct station *station, int ms)
{
	struct itimerspec when = {.it_value = {ms / 1000, ms % 1000 * 1000000L}};
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)STATION_HW << 32};

	conn_timer_clear(station);
	if (ms <= 0)
		return;
	station->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (station->timer < 0 || timerfd_settime(station->timer, 0, &when, NULL) ||
	    epoll_ctl(station->driven.fd, EPOLL_CTL_ADD, station->timer, &ev))
		LOG_WARN(LOG_EP_CTRL,
			 "no timer for a connection attempt: %s (ulimit -n limits descriptors)",
			 fi_strerror(errno));
}

void conn_timer_clear(struct station *station)
{
	if (station->timer < 0)
		return;
	/* A forked child has it open, too, so to close it does not end the watch. */
	epoll_ctl(station->driven.fd, EPOLL_CTL_DEL, station->timer, NULL);
	close(station->timer);
	station->timer = -1;
}
