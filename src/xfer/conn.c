/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshake, seen from a peer's state (xfer/peer.h):
 *   IDLE        conn_start: connect, send HELLO_CONNECT       -> CONNECTING
 *   CONNECTING  HELLO_ACCEPT came: make the link              -> CONNECTED
 *               HELLO_CROSSED came: theirs wins, wait for it  -> CROSSED
 *               its HELLO_CONNECT came and our name is the greater: drop ours, accept -> CONNECTED
 *               its HELLO_CONNECT came and our name is the lesser: answer HELLO_CROSSED
 *   IDLE, CROSSED  its HELLO_CONNECT came: accept             -> CONNECTED
 *   any         end of the socket                             -> IDLE, by peer_lost
 */
#include "xfer/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "xfer/hello.h"
#include "xfer/listen.h"

#define EVENTS_PER_POLL 32
#define STRANGERS_MAX   64
#define STRANGER_MS     5000 /* a stranger who says nothing is shown the door */
#define CROWDED_MS      200  /* or after this, when others wait outside */
#define CROSSED_MS      30000

/* What an event's data says, above the id of the object. */
enum source { SOURCE_LISTEN, SOURCE_STRANGER, SOURCE_PEER };

struct stranger {
	struct list link; /* port->strangers */
	int sock;
	pid_t pid;
	uint64_t since; /* ms */
};

_Static_assert(sizeof(struct stranger) <= CONN_STRANGER_SIZE, "port.c makes room for it");

static int watch(struct port *port, int fd, enum source source, uint32_t id)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = (uint64_t)source << 32 | id};

	if (epoll_ctl(port->epfd, EPOLL_CTL_ADD, fd, &ev))
		return -errno;
	return 0;
}

int conn_listen(struct port *port)
{
	int err = listen_open(port);

	if (!err && (err = watch(port, port->listen, SOURCE_LISTEN, 0))) {
		forked_close(port->listen);
		port->listen = -1;
	}
	return err;
}

/* Makes the peer's link of what its hello brought; takes `fds`. */
static int make_link(struct peer *peer, const struct wire_hello *hello, const int fds[WIRE_FDS],
		     pid_t pid)
{
	struct link_peer lp = {
		.hello = hello, .id = hello->your_id, .sock = peer->wake, .pid = pid};
	int err;

	memcpy(lp.fds, fds, sizeof(lp.fds));
	err = port_transports[0]->connect(peer->port->hw[0], &lp, &peer->real);
	if (err)
		return err;
	peer->hw = 0;
	peer->incarnation = hello->incarnation;
	return 0;
}

static pid_t peer_pid(int sock)
{
	struct ucred cred = {.uid = (uid_t)-1};
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -1;
	if (cred.uid != geteuid()) {
		LOG_WARN(LOG_EP_CTRL, "user %u is refused: endpoints are for user %u alone",
			 (unsigned int)cred.uid, (unsigned int)geteuid());
		return -1;
	}
	return cred.pid;
}

/* To ourselves: the same link, with a pair of sockets for the wake-ups. */
static int connect_self(struct peer *peer)
{
	struct port *port = peer->port;
	struct wire_hello hello = {.your_id = pool_id(peer),
				   .incarnation = port->incarnation,
				   .probe_addr = (uintptr_t)&port->probe,
				   .probe_value = port->probe};
	int pair[2], fds[WIRE_FDS], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = hello_own_fds(port, fds);
	if (err)
		goto close_pair;
	peer->wake = pair[1];
	err = make_link(peer, &hello, fds, getpid());
	if (!err)
		err = watch(port, pair[0], SOURCE_PEER, pool_id(peer));
	if (err)
		goto close_pair;
	peer->sock = pair[0];
	peer_connected(peer);
	return 0;
close_pair:
	peer->wake = -1;
	close(pair[0]);
	close(pair[1]);
	return err;
}

static int open_connection(struct peer *peer)
{
	struct sockaddr_un un;
	socklen_t len = listen_name(&un, &peer->key);
	int err, sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (sock < 0)
		return -errno;
	if (connect(sock, (struct sockaddr *)&un, len)) {
		err = errno == EAGAIN ? -FI_EAGAIN : -errno;
		goto close_sock;
	}
	if (peer_pid(sock) < 0) {
		err = -FI_EACCES;
		goto close_sock;
	}
	err = hello_send(peer->port, sock, HELLO_CONNECT, pool_id(peer));
	if (!err)
		err = watch(peer->port, sock, SOURCE_PEER, pool_id(peer));
	if (!err)
		err = forked_guard(sock);
	if (err)
		goto close_sock;
	peer->sock = peer->wake = sock;
	return 0;
close_sock:
	close(sock);
	return err;
}

int conn_start(struct peer *peer)
{
	char text[ADDR_STR_MAX + 32];
	int err;

	if (addr_equal(&peer->key, &peer->port->key))
		return connect_self(peer);
	if (peer->name.kind != ADDR_STR && !addr_is_local(&peer->name))
		err = -FI_EHOSTUNREACH;
	else
		err = open_connection(peer);
	if (err && err != -FI_EAGAIN) {
		addr_print(&peer->name, text, sizeof(text));
		LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s", text, fi_strerror(-err));
	}
	if (err)
		return err;
	peer->state = PEER_CONNECTING;
	peer->port->handshakes++;
	return 0;
}

/* Ends our own attempt, if there is one: the peer's connection is taken instead. */
static void abandon_attempt(struct peer *peer)
{
	if (peer->state != PEER_CONNECTING && peer->state != PEER_CROSSED)
		return;
	if (peer->sock >= 0)
		forked_close(peer->sock);
	peer->sock = peer->wake = -1;
	peer->state = PEER_IDLE;
	peer->port->handshakes--;
}

/* Takes `sock` and `fds` in any case. */
static void accept_peer(struct peer *peer, const struct wire_hello *hello, int sock,
			const int fds[WIRE_FDS], pid_t pid)
{
	struct port *port = peer->port;
	int err;

	abandon_attempt(peer);
	peer->sock = peer->wake = sock;
	err = make_link(peer, hello, fds, pid);
	if (!err)
		err = hello_send(port, sock, HELLO_ACCEPT, pool_id(peer));
	if (!err)
		err = watch(port, sock, SOURCE_PEER, pool_id(peer));
	if (err) {
		LOG_WARN(LOG_EP_CTRL, "cannot accept a peer: %s", fi_strerror(-err));
		peer_lost(peer, -err);
		return;
	}
	peer_connected(peer);
}

/* A stranger's hello: who is it, and does its connection count? Takes `sock` and `fds`. */
static void greet(struct port *port, const struct wire_hello *hello, int sock, int fds[WIRE_FDS],
		  pid_t pid)
{
	struct addr name;
	struct peer *peer;
	bool ours_wins;

	if (hello_name(hello, &name))
		goto refuse;
	peer = peer_by_name(port, &name);
	addr_free(&name);
	if (!peer)
		goto refuse;
	if (peer->state == PEER_CONNECTED && peer->incarnation == hello->incarnation)
		goto refuse; /* its attempt crossed ours and lost */
	if (peer->state == PEER_CONNECTED)
		peer_lost(peer, FI_ECONNRESET); /* it died and came back before we noticed */
	ours_wins = peer->state == PEER_CONNECTING && addr_compare(&port->key, &peer->key) < 0;
	if (ours_wins) {
		hello_send(port, sock, HELLO_CROSSED, 0);
		goto refuse;
	}
	accept_peer(peer, hello, sock, fds, pid);
	return;
refuse:
	hello_close_fds(fds);
	forked_close(sock);
}

static void stranger_free(struct port *port, struct stranger *s)
{
	list_remove(&s->link);
	pool_put(&port->stranger_pool, s);
	port->stranger_count--;
	port->handshakes--;
}

static void show_door(struct port *port, struct stranger *s, uint64_t now)
{
	LOG_WARN(LOG_EP_CTRL, "process %d connected and said nothing for %u ms: closed",
		 (int)s->pid, (unsigned int)(now - s->since));
	forked_close(s->sock);
	stranger_free(port, s);
}

/* Silent strangers must not keep those outside who have something to say. */
static bool make_room(struct port *port)
{
	struct stranger *oldest = LIST_ENTRY(port->strangers.next, struct stranger, link);
	uint64_t now = clock_coarse_ms();

	if (now - oldest->since < CROWDED_MS)
		return false;
	show_door(port, oldest, now);
	return true;
}

static void accept_strangers(struct port *port)
{
	while (port->stranger_count < STRANGERS_MAX || make_room(port)) {
		int sock = accept4(port->listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct stranger *s = sock < 0 ? NULL : pool_get(&port->stranger_pool);
		pid_t pid;

		if (sock < 0)
			return;
		pid = peer_pid(sock);
		if (!s || pid < 0 || forked_guard(sock) ||
		    watch(port, sock, SOURCE_STRANGER, pool_id(s))) {
			if (s)
				pool_put(&port->stranger_pool, s);
			forked_close(sock);
			continue;
		}
		*s = (struct stranger){.sock = sock, .pid = pid, .since = clock_coarse_ms()};
		list_push(&port->strangers, &s->link);
		port->stranger_count++;
		port->handshakes++;
	}
}

static void stranger_event(struct port *port, struct stranger *s)
{
	struct wire_hello hello;
	int sock = s->sock, fds[WIRE_FDS], ret = hello_recv(sock, &hello, fds);
	pid_t pid = s->pid;

	if (ret == 0)
		return;
	stranger_free(port, s);
	if (ret < 0 || hello.kind != HELLO_CONNECT) {
		if (ret > 0)
			hello_close_fds(fds);
		forked_close(sock);
		return;
	}
	epoll_ctl(port->epfd, EPOLL_CTL_DEL, sock, NULL);
	greet(port, &hello, sock, fds, pid);
}

static void handshake_event(struct peer *peer)
{
	struct wire_hello hello;
	int fds[WIRE_FDS], ret = hello_recv(peer->sock, &hello, fds);

	if (ret == 0)
		return;
	if (ret > 0 && hello.kind == HELLO_CROSSED) {
		forked_close(peer->sock);
		peer->sock = peer->wake = -1;
		peer->state = PEER_CROSSED;
		peer->deadline = clock_coarse_ms() + CROSSED_MS;
		return;
	}
	if (ret > 0)
		ret = make_link(peer, &hello, fds, peer_pid(peer->sock));
	if (ret < 0) {
		peer_lost(peer, ret == -FI_ECONNRESET ? FI_ECONNREFUSED : -ret);
		return;
	}
	peer->port->handshakes--;
	peer_connected(peer);
}

void conn_finish(struct peer *peer)
{
	if (peer->state == PEER_CONNECTING)
		handshake_event(peer);
}

/* Wake-ups and good-byes are read away; the end of the socket is the end of the peer. */
static void connected_event(struct peer *peer)
{
	char byte;
	ssize_t len;

	while ((len = recv(peer->sock, &byte, 1, MSG_DONTWAIT)) > 0)
		if (byte == BOOT_BYE)
			peer->said_bye = true;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	LOG_INFO(LOG_EP_CTRL, "a peer %s", peer->said_bye ? "closed its endpoint" : "is gone");
	peer_lost(peer, peer->said_bye ? FI_ESHUTDOWN : FI_ECONNRESET);
	/* Nobody names it: keep nothing of a client that came and went. */
	if (!peer->unread && peer_addr(peer) == FI_ADDR_NOTAVAIL)
		peer_free(peer);
}

static void dispatch(struct port *port, uint64_t data)
{
	void *object;

	switch (data >> 32) {
	case SOURCE_LISTEN:
		accept_strangers(port);
		break;
	case SOURCE_STRANGER:
		object = pool_find(&port->stranger_pool, (uint32_t)data);
		if (object)
			stranger_event(port, object);
		break;
	default:
		object = pool_find(&port->peer_pool, (uint32_t)data);
		if (!object)
			break;
		if (((struct peer *)object)->state == PEER_CONNECTED)
			connected_event(object);
		else if (((struct peer *)object)->state == PEER_CONNECTING)
			handshake_event(object);
	}
}

static void expire(struct port *port)
{
	uint64_t now = clock_coarse_ms();

	LIST_EACH_SAFE (node, &port->strangers) {
		struct stranger *s = LIST_ENTRY(node, struct stranger, link);

		if (now - s->since >= STRANGER_MS)
			show_door(port, s, now);
	}
	LIST_EACH_SAFE (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		if (peer->state == PEER_CROSSED && now >= peer->deadline)
			peer_lost(peer, FI_ETIMEDOUT);
	}
}

bool conn_poll(struct port *port)
{
	struct epoll_event events[EVENTS_PER_POLL];
	bool any = false;
	int n;

	do {
		n = epoll_wait(port->epfd, events, EVENTS_PER_POLL, 0);
		for (int i = 0; i < n; i++)
			dispatch(port, events[i].data.u64);
		any |= n > 0;
	} while (n == EVENTS_PER_POLL);
	if (port->handshakes)
		expire(port);
	return any;
}

void conn_close(struct port *port)
{
	struct list *node;

	LIST_EACH_SAFE (at, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(at, struct peer, in_port);

		if (peer->state == PEER_CONNECTED)
			send(peer->sock, &(char){BOOT_BYE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		peer_lost(peer, FI_ECANCELED);
		peer_free(peer);
	}
	while ((node = port->strangers.next) != &port->strangers) {
		struct stranger *s = LIST_ENTRY(node, struct stranger, link);

		forked_close(s->sock);
		stranger_free(port, s);
	}
	if (port->listen >= 0)
		forked_close(port->listen);
}
