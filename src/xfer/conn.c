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
 *   DIALING, CONNECTING  end of the socket, our hello was late: again    -> DIALING
 *   any         end of the socket                                        -> IDLE, by peer_lost
 * A connected endpoint's port does the same with HELLO_REQUEST, from conn_single.c, and nobody comes to it.
 */
#include "xfer/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/forked.h"
#include "base/log.h"
#include "xfer/conn_own.h"
#include "xfer/dial.h"

#define EVENTS_PER_POLL 32
#define POLLS_PER_TURN  8  /* then others have their turn */
#define BYTES_PER_EVENT 64 /* of wake-ups, each alone inside a host */
#define CROSSED_MS      30000
#define LAST_TURNS      4096 /* of what a peer sent before its end */
/* Less than it takes until who is silent is shown the door, by clocks that may be some ms behind. */
#define LATE_MS (LOBBY_CROWDED_MS - 50)
#define KNOCKS  8 /* again, at most */

void conn_forget(struct peer *peer)
{
	if (!peer->unread && !peer->named)
		peer_free(peer);
}

void conn_lose(struct peer *peer, int err, const struct wire_hello *hello)
{
	struct port *port = peer->port;

	peer_lost(peer, err);
	if (port->cm)
		port->cm->ended(port, err, hello);
	else
		conn_forget(peer);
}

/*
 * Who knocks and then makes no progress for a while may be shown the door before it has said a word, and not
 * because it is unwanted: it knocks again. True: it did, and the attempt goes on or has failed.
 */
static bool knocks_again(struct peer *peer)
{
	if (!peer->late || peer->inside || peer->knocks++ >= KNOCKS)
		return false;
	LOG_INFO(LOG_EP_CTRL, "our hello came too late: it is said again");
	forked_close(peer->sock);
	peer->sock = peer->wake = -1;
	conn_abandon(peer);
	peer->state = PEER_DIALING;
	peer->deadline = conn_deadline();
	conn_again(peer);
	return true;
}

/* It will not hear us: what a hello is made of takes its time, where devices have a part in it. */
static bool has_ended(int sock)
{
	char byte;

	return recv(sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* The network has let us through, or not. */
static void dialed_event(struct peer *peer)
{
	int err = dial_connected(peer->sock);

	if (err == -FI_EAGAIN)
		return; /* an event of the socket it had before */
	peer->late = clock_coarse_ms() - peer->knocked >= LATE_MS;
	if (!err && peer->late && has_ended(peer->sock))
		err = -FI_ECONNRESET;
	if (!err)
		err = conn_say_hello(peer);
	if (!err)
		err = conn_control(peer->port, EPOLL_CTL_MOD, peer, EPOLLIN);
	if ((err == -FI_ECONNRESET || err == -EPIPE) && knocks_again(peer))
		return;
	if (err)
		conn_lose(peer, err == -FI_ECONNRESET ? FI_ECONNREFUSED : -err, NULL);
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
	conn_lose(peer,
		  hello->error && hello->error <= UINT16_MAX ? (int)hello->error : FI_ECONNREFUSED,
		  hello);
}

static void accepted(struct peer *peer, struct guest *guest)
{
	struct port *port = peer->port;
	int err;

	if (!guest->inside)
		epoll_ctl(port->epfd, EPOLL_CTL_DEL, peer->sock, NULL);
	err = conn_link(peer, guest, &(struct wire_nic){.qpn = 0});
	if (!err && !guest->inside && peer->sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (err) {
		conn_lose(peer, -err, NULL);
		return;
	}
	port->handshakes--;
	peer->real->silent = false;
	/* The other side knows by this byte that we have heard it; across the network the first packet says so. */
	if (guest->inside)
		send(peer->sock, &(char){BOOT_WAKE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	peer_connected(peer);
	if (port->cm)
		port->cm->connected(port, &guest->hello);
}

static void handshake_event(struct peer *peer)
{
	struct guest guest = {.sock = peer->sock, .inside = peer->inside};
	int ret = hello_recv(peer->sock, peer->inside, &guest.hello, guest.fds);

	if (ret == 0 || (ret == -FI_ECONNRESET && knocks_again(peer)))
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
	if (peer->state == PEER_CONNECTING && !peer->losing)
		handshake_event(peer);
}

/*
 * Whoever ends its socket in good order has seen to it that all it sent is here: that comes first. It may
 * end the peer, too.
 */
static struct peer *hear_out(struct peer *peer)
{
	struct port *port = peer->port;
	unsigned int hw = peer->hw;
	uint32_t id = pool_id(peer);

	for (unsigned int i = 0; i < LAST_TURNS && port_transports[hw]->turn(port->hw[hw]); i++)
		;
	peer = pool_find(&port->peer_pool, id);
	return peer && peer->state == PEER_CONNECTED ? peer : NULL;
}

/*
 * Reads wake-ups and good-byes away: what the last recv returned. Whoever closes its end before it has read
 * ours makes the kernel say so first, and what it had said itself comes after that.
 */
static ssize_t hear_boot(struct peer *peer)
{
	bool reset = false;
	char byte;
	ssize_t len = 1;

	for (int i = 0; i < BYTES_PER_EVENT && len > 0; i++) {
		len = recv(peer->sock, &byte, 1, MSG_DONTWAIT);
		if (len < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			len = recv(peer->sock, &byte, 1, MSG_DONTWAIT);
		}
		if (len > 0)
			peer->real->silent = false;
		if (len > 0 && byte == BOOT_BYE)
			peer->said_bye = true;
	}
	return len;
}

/* The end of the socket is the end of the peer. */
static void connected_event(struct peer *peer)
{
	ssize_t len = hear_boot(peer);
	int err = len < 0 && errno == ETIMEDOUT ? FI_ETIMEDOUT : FI_ECONNRESET;

	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (!peer->inside)
		peer = hear_out(peer);
	if (peer)
		conn_ended(peer, err);
}

void conn_ended(struct peer *peer, int err)
{
	LOG_INFO(LOG_EP_CTRL, "a peer %s: %s", peer->said_bye ? "closed its endpoint" : "is gone",
		 fi_strerror(err));
	conn_lose(peer, peer->said_bye ? FI_ESHUTDOWN : err, NULL);
}

void rx_ended(struct port *port, uint32_t src, int err)
{
	struct peer *peer = pool_find(&port->peer_pool, src);

	if (peer && peer->state == PEER_CONNECTED)
		conn_ended(peer, err);
}

/*
 * Inside a host it may be writing to our memory at this moment: it is told to go, and buried when it has,
 * as always.
 */
void conn_expel(struct peer *peer)
{
	if (peer->state != PEER_CONNECTED || !peer->inside) {
		rx_ended(peer->port, pool_id(peer), peer->starved ? FI_ENOMEM : FI_EPROTO);
		return;
	}
	shutdown(peer->sock, SHUT_WR);
	list_remove(&peer->in_busy);
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
			conn_greet(port, &guest);
	}
}

static void expire(struct port *port)
{
	uint64_t now = clock_coarse_ms();

	lobby_expire(&port->lobby);
	LIST_EACH_SAFE (node, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_port);

		/* Whoever has our hello may take as long as it likes: it lives. */
		if ((peer->state == PEER_CROSSED || peer->state == PEER_DIALING) &&
		    now >= peer->deadline)
			conn_lose(peer, FI_ETIMEDOUT, NULL);
		else if (peer_reads_out(peer))
			conn_forget(peer);
		else
			conn_again(peer);
	}
}

bool conn_poll(struct port *port)
{
	struct epoll_event events[EVENTS_PER_POLL];
	bool any = false;
	int n = EVENTS_PER_POLL;

	for (int polls = 0; n == EVENTS_PER_POLL && polls < POLLS_PER_TURN; polls++) {
		n = epoll_wait(port->epfd, events, EVENTS_PER_POLL, 0);
		for (int i = 0; i < n; i++)
			dispatch(port, events[i].data.u64);
		any |= n > 0;
	}
	port->armed |= n == EVENTS_PER_POLL; /* the next turn goes on */
	if (port->handshakes || port->lobby.count || port->unread)
		expire(port);
	return any;
}

void conn_goodbye(struct peer *peer)
{
	if (peer->state != PEER_CONNECTED)
		return;
	if (peer->inside)
		send(peer->sock, &(char){BOOT_BYE}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		peer->real->ops->send(peer->real, NULL, 0, 0, WIRE_HEAD(WIRE_BYE, 0, 0, 0), 0);
}

void conn_drain(struct port *port)
{
	for (unsigned int i = 0; i < PORT_TRANSPORTS; i++)
		if (port->hw[i] && port_transports[i]->drain)
			port_transports[i]->drain(port->hw[i]);
}

void conn_close(struct port *port)
{
	LIST_EACH (at, &port->peers_list)
		conn_goodbye(LIST_ENTRY(at, struct peer, in_port));
	conn_drain(port);
	LIST_EACH_SAFE (at, &port->peers_list) {
		struct peer *peer = LIST_ENTRY(at, struct peer, in_port);

		peer_lost(peer, FI_ECANCELED);
		peer_free(peer);
	}
	lobby_close(&port->lobby);
	conn_single_settled(port);
	free(port->cm_data);
}
