/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handshake, seen from a peer's state (xfer/peer.h):
 *   IDLE        conn_start: inside the host connect, send HELLO_CONNECT  -> CONNECTING
 *               across the network the connection takes its time         -> DIALING
 *   DIALING     connected: send HELLO_CONNECT                            -> CONNECTING
 *   CONNECTING  HELLO_ACCEPT came: make the link                         -> CONNECTED
 *               HELLO_CROSSED came: theirs wins, wait for it             -> CROSSED
 *               its HELLO_CONNECT came, our incarnation is the greater:
 *               drop ours, accept                                        -> CONNECTED
 *               its HELLO_CONNECT came, ours is the lesser: answer HELLO_CROSSED
 *   IDLE, DIALING, CROSSED  its HELLO_CONNECT came: accept               -> CONNECTED
 *   any         end of the socket                                        -> IDLE, by peer_lost
 * A connected endpoint's port does the same with HELLO_REQUEST, from conn_single.c, and nobody comes to it.
 */
#include "xfer/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/forked.h"
#include "base/log.h"
#include "xfer/conn_own.h"
#include "xfer/dial.h"
#include "xfer/hello.h"
#include "xfer/listen.h"

#define EVENTS_PER_POLL 32
#define CROSSED_MS      30000

static int control(struct port *port, int op, struct peer *peer, uint32_t events)
{
	struct epoll_event ev = {.events = events,
				 .data.u64 = (uint64_t)PORT_PEER << 32 | pool_id(peer)};

	return epoll_ctl(port->epfd, op, peer->sock, &ev) ? -errno : 0;
}

static int watch(struct peer *peer, uint32_t events)
{
	return control(peer->port, EPOLL_CTL_ADD, peer, events);
}

int conn_listen(struct port *port)
{
	struct listen_how how = {.inside = port->hw[PORT_SHM] != NULL,
				 .network = port->hw[PORT_TCP] != NULL,
				 .backlog = SOMAXCONN};
	int err = listen_open(&port->lobby, &port->name, &how);

	if (!err)
		port->key = addr_unmapped(&port->name);
	return err;
}

int conn_link(struct peer *peer, struct guest *guest)
{
	struct port *port = peer->port;
	enum port_transport hw = guest->inside ? PORT_SHM : PORT_TCP;
	struct link_peer lp = {.hello = &guest->hello,
			       .id = guest->inside ? guest->hello.your_id : pool_id(peer),
			       .sock = peer->wake,
			       .pid = guest->pid};
	int err, one = 1;

	memcpy(lp.fds, guest->fds, sizeof(lp.fds));
	port->cm_sock = peer->sock;
	if (port_transports[hw]->takes_socks)
		setsockopt(peer->sock, SOL_SOCKET, SO_RCVLOWAT, &one, sizeof(one));
	err = port_transports[hw]->connect(port->hw[hw], &lp, &peer->real);
	if (err)
		return err;
	peer->hw = hw;
	peer->incarnation = guest->hello.incarnation;
	if (port_transports[hw]->takes_socks)
		peer->sock = peer->wake = -1;
	return 0;
}

/* To ourselves: the same link, with a pair of sockets for the wake-ups. */
static int connect_self(struct peer *peer)
{
	struct port *port = peer->port;
	struct guest self = {.inside = true,
			     .pid = getpid(),
			     .hello = {.your_id = pool_id(peer),
				       .incarnation = port->incarnation,
				       .probe_addr = (uintptr_t)&port->probe,
				       .probe_value = port->probe}};
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = hello_own_fds(port, self.fds);
	if (err)
		goto close_pair;
	peer->sock = pair[0];
	peer->wake = pair[1];
	err = conn_link(peer, &self);
	if (!err)
		err = watch(peer, EPOLLIN);
	if (err)
		goto close_pair;
	peer_connected(peer);
	return 0;
close_pair:
	peer->sock = peer->wake = -1;
	close(pair[0]);
	close(pair[1]);
	return err;
}

static int say_hello(struct peer *peer)
{
	struct port *port = peer->port;
	struct hello_words words = {.kind = port->cm ? HELLO_REQUEST : HELLO_CONNECT,
				    .id = pool_id(peer),
				    .data = port->cm_data,
				    .data_len = port->cm_len};

	if (port->cm)
		conn_single_name(peer);
	return hello_send(port, peer->sock, peer->inside, &words);
}

/* Takes the socket. 0 or a negative error. */
static int attempt(struct peer *peer, int sock, bool inside)
{
	int err;

	if (sock < 0)
		return sock;
	peer->sock = peer->wake = sock;
	peer->inside = inside;
	err = inside ? say_hello(peer) : 0;
	if (!err)
		err = watch(peer, inside ? EPOLLIN : EPOLLOUT);
	if (err) {
		forked_close(sock);
		peer->sock = peer->wake = -1;
		return err;
	}
	peer->state = inside ? PEER_CONNECTING : PEER_DIALING;
	peer->deadline = clock_coarse_ms() + (uint64_t)env_get()->peer_timeout;
	peer->port->handshakes++;
	return 0;
}

/*
 * That an address is one of this host's own says only where to ask first: whoever listens by that name
 * in our network namespace is here. Others, and those who do not use shared memory, are across the
 * network, which may be the loopback.
 */
int conn_dial(struct peer *peer)
{
	struct port *port = peer->port;
	int err = -FI_EHOSTUNREACH;

	if (port->hw[PORT_SHM] && addr_is_local(&peer->name))
		err = attempt(peer, dial_inside(&peer->key), true);
	if (err == -FI_ECONNREFUSED && port->cm)
		err = attempt(peer, conn_single_inside(peer), true);
	if (port->hw[PORT_TCP] && peer->name.kind != ADDR_STR &&
	    (err == -FI_EHOSTUNREACH || err == -FI_ECONNREFUSED || err == -FI_EACCES))
		err = attempt(peer, dial_network(&peer->name), false);
	return err;
}

int conn_start(struct peer *peer)
{
	char text[ADDR_STR_MAX + 32];
	int err;

	if (peer->port->cm)
		return -FI_ENOTCONN;
	if (addr_equal(&peer->key, &peer->port->key) && peer->port->hw[PORT_SHM])
		return connect_self(peer);
	err = conn_dial(peer);
	if (err && err != -FI_EAGAIN) {
		addr_print(&peer->name, text, sizeof(text));
		LOG_WARN(LOG_EP_CTRL, "cannot connect to %s: %s", text, fi_strerror(-err));
	}
	return err;
}

void conn_lose(struct peer *peer, int err, const struct wire_hello *hello)
{
	struct port *port = peer->port;

	peer_lost(peer, err);
	if (port->cm) {
		port->cm->ended(port, err, hello);
		return;
	}
	/* Nobody names it: keep nothing of a client that came and went. */
	if (!peer->unread && peer_addr(peer) == FI_ADDR_NOTAVAIL)
		peer_free(peer);
}

/* Ends our own attempt, if there is one: the peer's connection is taken instead. */
static void abandon_attempt(struct peer *peer)
{
	if (!peer_attempts(peer))
		return;
	if (peer->sock >= 0)
		forked_close(peer->sock);
	peer->sock = peer->wake = -1;
	peer->state = PEER_IDLE;
	peer->port->handshakes--;
}

int conn_take(struct peer *peer, struct guest *guest, const struct hello_words *words)
{
	int err;

	abandon_attempt(peer);
	peer->sock = peer->wake = guest->sock;
	peer->inside = guest->inside;
	err = conn_link(peer, guest);
	if (!err)
		err = hello_send(peer->port, guest->sock, guest->inside, words);
	if (!err && peer->sock >= 0)
		err = watch(peer, EPOLLIN);
	if (!err) {
		peer_connected(peer);
		return 0;
	}
	LOG_WARN(LOG_EP_CTRL, "cannot accept a peer: %s", fi_strerror(-err));
	peer_lost(peer, -err);
	return err;
}

/* Where somebody across the network says that it is on its loopback, it can only be found where it is. */
static void name_by_socket(const struct guest *guest, struct addr *name)
{
	struct addr from;
	uint16_t port = name->port;

	if (guest->inside || !addr_is_loopback(name) || !dial_remote(guest->sock, &from) ||
	    addr_is_local(&from))
		return;
	*name = from;
	name->port = port;
}

/* Who is it? NULL: nobody to be connected to. */
static struct peer *identify(struct port *port, const struct guest *guest)
{
	struct addr name;
	struct peer *peer;

	if (guest->hello.kind != HELLO_CONNECT || port->cm || hello_name(&guest->hello, &name))
		return NULL;
	name_by_socket(guest, &name);
	/* To ourselves across the network: the other end is somebody else of the same name. */
	peer = guest->hello.incarnation == port->incarnation ? peer_new(port, &name)
							     : peer_by_name(port, &name);
	addr_free(&name);
	return peer;
}

/* Does its connection count? Takes the guest. */
static void greet(struct port *port, struct guest *guest)
{
	struct peer *peer = identify(port, guest);

	if (!peer) {
		hello_send(NULL, guest->sock, guest->inside,
			   &(struct hello_words){.kind = HELLO_REJECT, .error = FI_ECONNREFUSED});
		lobby_dismiss(guest);
		return;
	}
	if (peer->state == PEER_CONNECTED && peer->incarnation == guest->hello.incarnation) {
		lobby_dismiss(guest); /* its attempt crossed ours and lost */
		return;
	}
	if (peer->state == PEER_CONNECTED)
		peer_lost(peer, FI_ECONNRESET); /* it died and came back before we noticed */
	if (peer->state == PEER_CONNECTING && port->incarnation < guest->hello.incarnation) {
		hello_send(port, guest->sock, guest->inside,
			   &(struct hello_words){.kind = HELLO_CROSSED});
		lobby_dismiss(guest);
		return;
	}
	conn_take(peer, guest, &(struct hello_words){.kind = HELLO_ACCEPT, .id = pool_id(peer)});
}

/* The network has let us through, or not. */
static void dialed_event(struct peer *peer)
{
	int err = dial_connected(peer->sock);

	if (!err)
		err = say_hello(peer);
	if (!err)
		err = control(peer->port, EPOLL_CTL_MOD, peer, EPOLLIN);
	if (err)
		conn_lose(peer, -err, NULL);
	else
		peer->state = PEER_CONNECTING;
}

static void crossed(struct peer *peer)
{
	forked_close(peer->sock);
	peer->sock = peer->wake = -1;
	peer->state = PEER_CROSSED;
	peer->deadline = clock_coarse_ms() + CROSSED_MS;
}

static void rejected(struct peer *peer, const struct wire_hello *hello)
{
	conn_lose(peer, hello->error ? (int)hello->error : FI_ECONNREFUSED, hello);
}

static void accepted(struct peer *peer, struct guest *guest)
{
	struct port *port = peer->port;
	int err;

	if (!guest->inside)
		epoll_ctl(port->epfd, EPOLL_CTL_DEL, peer->sock, NULL);
	err = conn_link(peer, guest);
	if (err) {
		conn_lose(peer, -err, NULL);
		return;
	}
	port->handshakes--;
	peer_connected(peer);
	if (port->cm)
		port->cm->connected(port, &guest->hello);
}

static void handshake_event(struct peer *peer)
{
	struct guest guest = {.sock = peer->sock, .inside = peer->inside};
	int ret = hello_recv(peer->sock, peer->inside, &guest.hello, guest.fds);

	if (ret == 0)
		return;
	if (ret < 0) {
		conn_lose(peer, ret == -FI_ECONNRESET ? FI_ECONNREFUSED : -ret, NULL);
		return;
	}
	guest.pid = guest.inside ? dial_pid(peer->sock) : 0;
	switch (guest.hello.kind) {
	case HELLO_CROSSED:
		crossed(peer);
		break;
	case HELLO_REJECT:
		rejected(peer, &guest.hello);
		break;
	case HELLO_ACCEPT:
		accepted(peer, &guest);
		break;
	default:
		hello_close_fds(guest.fds);
		conn_lose(peer, FI_EPROTO, NULL);
	}
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
	conn_ended(peer, FI_ECONNRESET);
}

void conn_ended(struct peer *peer, int err)
{
	LOG_INFO(LOG_EP_CTRL, "a peer %s: %s", peer->said_bye ? "closed its endpoint" : "is gone",
		 fi_strerror(err));
	if (peer->port->cm && peer->inside)
		conn_single_drain(peer);
	conn_lose(peer, peer->said_bye ? FI_ESHUTDOWN : err, NULL);
}

void rx_ended(struct port *port, uint32_t src, int err)
{
	struct peer *peer = pool_find(&port->peer_pool, src);

	if (peer && peer->state == PEER_CONNECTED)
		conn_ended(peer, err);
}

static void peer_event(struct peer *peer)
{
	/* An event of a socket it had when the events were asked for. */
	if (peer->sock < 0)
		return;
	switch (peer->state) {
	case PEER_DIALING:
		dialed_event(peer);
		break;
	case PEER_CONNECTING:
		handshake_event(peer);
		break;
	case PEER_CONNECTED:
		connected_event(peer);
		break;
	default:
		break;
	}
}

static void dispatch(struct port *port, uint64_t data)
{
	struct guest guest;
	struct peer *peer;

	switch (data >> 32) {
	case PORT_HW: /* a turn of the transport sees to it */
		break;
	case PORT_PEER:
		peer = pool_find(&port->peer_pool, (uint32_t)data);
		if (peer)
			peer_event(peer);
		break;
	default:
		if (lobby_event(&port->lobby, data, &guest))
			greet(port, &guest);
	}
}

static void expire(struct port *port)
{
	uint64_t now = clock_coarse_ms();

	lobby_expire(&port->lobby);
	LIST_EACH_SAFE (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		if (port->cm)
			conn_single_again(peer);
		/* Whoever has our hello may take as long as it likes: it lives. */
		if ((peer->state == PEER_CROSSED || peer->state == PEER_DIALING) &&
		    now >= peer->deadline)
			conn_lose(peer, FI_ETIMEDOUT, NULL);
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
	if (port->handshakes || port->lobby.count)
		expire(port);
	return any;
}

void conn_goodbye(struct peer *peer)
{
	if (peer->state != PEER_CONNECTED)
		return;
	if (peer->sock >= 0)
		send(peer->sock, &(char){BOOT_BYE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		peer->real->ops->send(peer->real, NULL, 0, 0, WIRE_HEAD(WIRE_BYE, 0, 0, 0), 0);
}

void conn_close(struct port *port)
{
	LIST_EACH (at, &port->peers_list)
		conn_goodbye(LIST_ENTRY(at, struct peer, in_port));
	LIST_EACH_SAFE (at, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(at, struct peer, in_port);

		peer_lost(peer, FI_ECANCELED);
		peer_free(peer);
	}
	lobby_close(&port->lobby);
	free(port->cm_data);
}
