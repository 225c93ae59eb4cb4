/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Newcomers in the name of a peer that is connected, or that we are connecting to. A hello proves nothing: a link
 * ends only by its own socket, or by its devices where these can tell (conn_socket.c). So the newcomer waits while the
 * old link is asked for a sign of life. The socket of a process that has ended is closed by its kernel, and a host that
 * has forgotten the connection answers a probe with a reset. If the old link answers as one that lives, the newcomer is
 * refused.
 */
#include <rdma/fi_errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "conn/conn_own.h"
#include "conn/connect.h"

#define HOLD_MS 2000 /* time for the end of the old link's socket, and for the answer to a probe */
/* Signs of life from before the newcomer came do not count; coarse clocks lag some ms. */
#define LAG_MS     50
#define FOREVER_MS 60000 /* a link that nobody gives up (no peer timeout), and nobody answers for */

/* The TCP socket of the peer's link; -1: none. */
static int link_sock(const struct contact *peer)
{
	const struct transport *t = peer->station->via[peer->kind].transport;

	if (contact_inside(peer) || !peer->real)
		return -1;
	return peer->sock < 0 && t->sock ? t->sock(peer->real) : peer->sock;
}

/* Once for all newcomers: see connect_probe. */
static void conn_hold_ask(struct contact *peer)
{
	int sock = contact_linked(peer) && !peer->probing ? link_sock(peer) : -1;

	if (sock < 0)
		return;
	connect_probe(sock, true);
	conn_probe(peer);
	peer->probing = peer->station->probing = true;
}

/* Nobody waits any more. */
static void ask_no_more(struct station *station)
{
	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		int sock = peer->probing ? link_sock(peer) : -1;

		peer->probing = false;
		if (sock >= 0)
			connect_probe(sock, false);
	}
	station->probing = false;
}

/* Where a connection comes from. */
static void conn_hold_origin(int sock, bool inside, pid_t pid, char *text, size_t len)
{
	struct addr from;

	if (inside)
		snprintf(text, len, "process %d", (int)pid);
	else if (sock >= 0 && connect_remote(sock, &from))
		addr_print(&from, text, len);
	else
		snprintf(text, len, "an unknown address");
}

static void conn_hold_refuse(struct contact *peer, struct accepted *conn)
{
	char name[ADDR_STR_MAX + 32], ours[ADDR_STR_MAX + 32], from[ADDR_STR_MAX + 32];

	addr_print(&peer->name, name, sizeof(name));
	conn_hold_origin(link_sock(peer), contact_inside(peer),
			 contact_inside(peer) ? connect_pid(peer->sock) : 0, ours, sizeof(ours));
	conn_hold_origin(conn->sock, conn->inside, conn->pid, from, sizeof(from));
	LOG_PEER(LOG_EP_CTRL,
		 "peer %s is connected from %s, and that link lives: a hello in its name from "
		 "%s is refused",
		 name, ours, from);
	/* It may know us by two addresses: by our incarnation it finds the link that it has. */
	conn_refuse(peer->station, conn, FI_EADDRINUSE);
}

/* Has the newcomer waited in vain for the end of a link? */
static bool conn_hold_outlived(const struct contact *peer, uint64_t waited)
{
	int timeout = env_get()->peer_timeout, sock = link_sock(peer);

	if (!contact_linked(peer) || waited < HOLD_MS)
		return false;
	return sock < 0 || connect_heard(sock, waited - LAG_MS) ||
	       waited >= (timeout > 0 ? 2 * (uint64_t)timeout : FOREVER_MS) + HOLD_MS;
}

void conn_hold(struct contact *peer, struct accepted *conn)
{
	uint64_t now = clock_coarse_ms();

	if (conn->held_ms && connect_closed(conn->sock)) {
		acceptor_dismiss(conn);
		return;
	}
	if (!conn->held_ms)
		conn->held_ms = now;
	if (conn_hold_outlived(peer, now - conn->held_ms))
		conn_hold_refuse(peer, conn);
	else if (!connect_is_spare(conn->sock) && acceptor_hold(&peer->station->acceptor, conn))
		conn_hold_ask(peer);
	else
		conn_refuse(NULL, conn, FI_EAGAIN);
}

void conn_retry_held(struct station *station)
{
	struct accepted conn;

	for (unsigned int n = station->acceptor.held_count;
	     n-- > 0 && acceptor_unhold(&station->acceptor, &conn);)
		conn_on_hello(station, &conn);
	if (station->probing && !station->acceptor.held_count)
		ask_no_more(station);
}
