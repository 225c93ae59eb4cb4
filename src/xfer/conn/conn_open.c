/* SPDX-License-Identifier: BSD-2-Clause */
/* Our attempts to connect. */
#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "xfer/conn/advertise.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_own.h"
#include "xfer/conn/connect.h"
#include "xfer/conn/listen.h"

#define ROOM_MS 2 /* until an attempt looks for a descriptor again */

int conn_control(struct worker *worker, int op, struct peer *peer, uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)WORKER_PEER << 32 | pool_id(peer)};

	return epoll_ctl(worker->conn.driven.fd, op, peer->conn.sock, &ev) ? -errno : 0;
}

int conn_watch(struct peer *peer, uint32_t events)
{
	return conn_control(peer->conn.worker, EPOLL_CTL_ADD, peer, events);
}

int conn_listen(struct worker *worker)
{
	struct listen_how how = {.inside = worker->conn.via[LINK_HOST].state != NULL,
				 .network = worker_on_network(worker),
				 .backlog = SOMAXCONN};
	struct addr all = {.kind = worker->conn.name.kind, .port = worker->conn.name.port};
	int err;

	/* An advertised port number stands for one address, a name within the host for one process. */
	worker->conn.opener.all &= how.network && !env_get()->advertise;
	err = listen_open(&worker->conn.acceptor,
			  worker->conn.opener.all ? &all : &worker->conn.name, &how);
	if (err)
		return err;
	if (worker->conn.opener.all)
		worker->conn.name.port = all.port;
	worker->conn.key = addr_unmapped(&worker->conn.name);
	return 0;
}

/* Connects to ourselves: a shm link, with a socket pair for the wake-ups. 0 or a negative error. */
static int connect_self(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;
	struct accepted self = {.inside = true,
				.pid = getpid(),
				.hello = {.your_id = pool_id(peer),
					  .incarnation = worker->conn.incarnation,
					  .probe_addr = (uintptr_t)&worker->conn.probe,
					  .probe_value = worker->conn.probe}};
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = hello_own_fds(worker, self.fds);
	if (err)
		goto close_pair;
	peer->conn.sock = pair[0];
	peer->conn.wake = pair[1];
	peer->conn.kind = LINK_HOST;
	err = conn_link(peer, &self, &(struct wire_nic){.qpn = 0});
	if (!err)
		err = conn_watch(peer, EPOLLIN);
	if (err)
		goto close_pair;
	peer->conn.real->silent = false;
	peer_connected(peer);
	return 0;
close_pair:
	peer->conn.sock = peer->conn.wake = -1;
	close(pair[0]);
	close(pair[1]);
	return err;
}

int conn_say_hello(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;
	struct hello_fields fields = {.kind = worker->conn.cm ? HELLO_REQUEST : HELLO_CONNECT,
				      .id = pool_id(peer),
				      .data = worker->conn.cm_data,
				      .data_len = worker->conn.cm_len,
				      .auth = peer->conn.attempt->auth};
	struct wire_rails rails;

	if (worker->conn.cm)
		conn_single_sent(peer);
	if (worker->conn.auth.keyed && !peer->conn.attempt->auth)
		return auth_greet(peer, peer->conn.sock, peer_inside(peer),
				  &peer->conn.attempt->auth);
	conn_prepare(peer, NULL, &fields.nic, &peer->conn.attempt->pending);
	conn_options_say(peer, &fields, &rails);
	return hello_send(worker, peer->conn.sock, peer_inside(peer), &fields);
}

/*
 * Begins the handshake on `sock`, or returns it if it is a negative error. Owns the socket. 0 or a
 * negative error.
 */
static int conn_open_attempt(struct peer *peer, int sock, bool inside)
{
	int err;

	if (sock < 0)
		return sock;
	auth_end(&peer->conn.attempt->auth);
	peer->conn.sock = peer->conn.wake = sock;
	peer->conn.kind = inside ? LINK_HOST : LINK_SOCKET;
	peer->conn.attempt->late = false;
	err = inside ? conn_say_hello(peer) : 0;
	if (err == -EPIPE)
		err = -FI_EAGAIN; /* closed already to make room for others */
	if (!err)
		err = conn_watch(peer, inside ? EPOLLIN : EPOLLOUT);
	if (err) {
		connect_close(sock);
		peer->conn.sock = peer->conn.wake = -1;
		return err;
	}
	conn_event(peer, inside ? CONN_GREETS : CONN_REACHES, NULL);
	idle_end(&peer->conn.worker->conn.driven.idle);
	return 0;
}

/* Returns the deadline (ms) of an attempt that begins now; UINT64_MAX without a peer timeout. */
static uint64_t deadline_from_now(void)
{
	int ms = env_get()->peer_timeout;

	return ms > 0 ? clock_coarse_ms() + (uint64_t)ms : UINT64_MAX;
}

int conn_overdue(const struct peer *peer)
{
	return peer->conn.state == PEER_AWAITED ? FI_EFIREWALLADDR
	       : peer->conn.attempt->no_files   ? FI_EMFILE
						: FI_ETIMEDOUT;
}

/*
 * Tries a local address within the host first: that reaches a process in our network namespace that
 * uses shared memory. All others are reached across the network, which may be the loopback.
 */
static int connect_somehow(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;
	/* Others, if they are closed, too, know this endpoint by its address. */
	const struct addr *source = worker->conn.auth.closed ? &worker->conn.name : NULL;
	struct addr to = conn_reach_address(peer);
	int err = -FI_EHOSTUNREACH;

	peer->conn.attempt_ms = clock_coarse_ms();
	peer->conn.attempt->deadline = deadline_from_now();
	if (worker->conn.via[LINK_HOST].state &&
	    (addr_is_local(&peer->conn.name) || advertise_is_own(&peer->conn.name)))
		err = conn_open_attempt(peer, conn_reach_inside(peer), true);
	peer->conn.host_error = -err;
	if (worker_on_network(worker) && peer->conn.name.kind != ADDR_STR &&
	    (err == -FI_EHOSTUNREACH || err == -FI_ECONNREFUSED || err == -FI_EACCES))
		err = conn_reach_firewalled(peer)
			      ? conn_event(peer, CONN_HIDDEN, NULL)
			      : conn_open_attempt(peer, connect_network(&to, source), false);
	peer->conn.attempt->no_files = err == -FI_EMFILE;
	if (err != -FI_EMFILE || !conn_options_make_room(worker))
		return err;
	peer->conn.attempt->again_ms = peer->conn.attempt_ms + ROOM_MS;
	return -FI_EAGAIN;
}

/* -FI_EAGAIN becomes 0: the attempt pauses. */
static int attempt_now(struct peer *peer)
{
	int err = connect_somehow(peer);

	if (err == -FI_EAGAIN)
		return conn_event(peer, CONN_PAUSES, NULL);
	if (!err && peer->conn.worker->conn.cm)
		conn_single_connecting(peer);
	return err;
}

void conn_wait(struct peer *peer)
{
	idle_end(&peer->conn.worker->conn.driven.idle);
	if (peer->conn.worker->conn.cm)
		conn_single_waits(peer->conn.worker);
	else
		peer->conn.worker->conn.up->soon(
			peer); /* makes a sleeping waiter poll again soon */
}

/* Closes the attempt's socket, if it has one; the attempt goes on with another one. */
static void conn_open_close_socket(struct peer *peer)
{
	if (peer->conn.sock >= 0)
		connect_close(peer->conn.sock);
	peer->conn.sock = peer->conn.wake = -1;
	attempt_reset(peer);
}

bool conn_later(struct peer *peer)
{
	struct attempt *a = peer->conn.attempt;
	uint64_t now = clock_coarse_ms();

	if (now >= a->deadline)
		return false;
	conn_open_close_socket(peer);
	conn_event(peer, CONN_PAUSES, NULL);
	a->again_ms = now + (1u << (a->pauses < PAUSES_MAX ? a->pauses++ : PAUSES_MAX));
	return true;
}

void conn_again(struct peer *peer)
{
	struct attempt *a = peer->conn.attempt;
	uint64_t deadline = a->deadline;
	int err;

	if (peer->conn.worker->conn.cm)
		conn_single_unname(peer->conn.worker);
	err = attempt_now(peer);
	if (a->pauses || peer->conn.state == PEER_RETRYING)
		a->deadline = deadline;
	if (err)
		conn_fail(peer, -err, NULL);
}

void conn_restart(struct peer *peer)
{
	conn_open_close_socket(peer);
	peer->conn.attempt->deadline = deadline_from_now();
	conn_event(peer, CONN_RESTARTS, NULL);
}

/* Is the peer to be proven a key that its address vector got after our endpoint was enabled? */
static bool lacks_key(const struct peer *peer)
{
	const struct auth_own *own = &peer->conn.worker->conn.auth;

	if (!own->keyed || auth_key(own, peer->conn.key_slot))
		return false;
	LOG_WARN(LOG_EP_CTRL,
		 "%s: the endpoint was enabled before its address vector got the key: insert keys "
		 "before fi_enable",
		 peer_text(peer));
	return true;
}

int conn_begin(struct peer *peer, const struct conn_with *with)
{
	struct worker *worker = peer->conn.worker;
	int err;

	if (!worker->conn.cm && worker_goes_by(worker, &peer->conn.key) &&
	    worker->conn.via[LINK_HOST].state)
		return connect_self(peer);
	err = attempt_begin(peer);
	if (err)
		return err;
	peer->conn.attempt->early = with->early;
	peer->conn.attempt->until = with->until;
	err = lacks_key(peer) ? -FI_EACCES : attempt_now(peer);
	if (!err)
		return 0;
	peer->conn.last_error = -err;
	if (!worker->conn.cm)
		conn_reach_explain(peer, -err);
	attempt_end(peer);
	return err;
}

static int conn_open_start(struct peer *peer, const struct conn_with *how)
{
	return peer->conn.worker->conn.cm ? -FI_ENOTCONN : conn_event(peer, CONN_START, how);
}

int conn_start(struct peer *peer)
{
	return conn_open_start(peer, &(struct conn_with){.early = false});
}

int conn_start_early(struct peer *peer, uint64_t until)
{
	return conn_open_start(peer, &(struct conn_with){.early = true, .until = until});
}
