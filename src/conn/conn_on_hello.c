/* SPDX-License-Identifier: BSD-2-Clause */
/* Accepted connections: checks the hello and decides whether the connection counts. */
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"
#include "core/av.h"

void conn_on_hello_abandon(struct contact *peer)
{
	if (peer->sock >= 0)
		connect_close(peer->sock);
	peer->sock = peer->wake = -1;
	attempt_end(peer);
}

int conn_take(struct contact *peer, struct accepted *conn, const struct hello_fields *fields)
{
	struct hello_fields answer = *fields;
	struct wire_rails rails;
	int err;

	conn_event(peer, CONN_TAKES, NULL);
	answer.auth = &conn->auth;
	peer->sock = peer->wake = conn->sock;
	peer->kind = conn->inside ? LINK_HOST : LINK_SOCKET;
	err = conn_link(peer, conn, &answer.nic);
	conn_options_say(peer, &answer, &rails);
	if (!err)
		err = hello_send(peer->station, conn->sock, conn->inside, &answer);
	if (!err && peer->sock >= 0)
		err = conn_watch(peer, EPOLLIN);
	if (!err) {
		peer->real->silent &= !peer->station->cm;
		contact_connected(peer);
		return 0;
	}
	LOG_PEER(LOG_EP_CTRL, "cannot accept %s: %s", contact_text(peer), fi_strerror(-err));
	if (peer->station->cm)
		contact_failed(peer, -err);
	else
		contact_not_taken(peer, -err);
	return err;
}

void conn_refuse(struct station *station, struct accepted *conn, int err)
{
	hello_send(station, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_REJECT, .error = err, .auth = &conn->auth});
	acceptor_dismiss(conn);
}

/* Is this a network address that has tried too many keys lately? */
static bool comes_from_refused(const struct station *station, const struct accepted *conn)
{
	struct addr from;

	return !conn->inside && connect_remote(conn->sock, &from) &&
	       source_refused(&station->sources, source_id(&from), clock_coarse_ms());
}

/* Is this our own hello, which has come back across the loopback? */
static bool is_ourselves(const struct station *station, const struct accepted *conn,
			 const struct addr *name)
{
	struct addr key = addr_unmapped(name), from;

	return station_goes_by(station, &key) && !conn_names_afar(conn, &from);
}

static struct contact *conn_on_hello_find_peer(struct station *station, const struct accepted *conn,
					       const struct addr *name)
{
	struct contact *peer;

	if (conn->hello.incarnation != station->incarnation)
		return contact_by_name(station, name, conn->auth.slot);
	peer = is_ourselves(station, conn, name) ? contact_new(station, name) : NULL;
	if (peer)
		peer->key_slot = conn->auth.slot;
	return peer;
}

/*
 * Returns the peer that the hello means. NULL: the hello is refused, or there is no memory; *error is the positive error
 * to answer. *also: its further addresses.
 */
static struct contact *conn_on_hello_identify(struct station *station, const struct accepted *conn,
					      struct peer_also *also, int *error)
{
	struct addr name;
	struct contact *peer;

	*error = FI_ECONNREFUSED;
	if (comes_from_refused(station, conn) || conn->hello.kind != HELLO_CONNECT || station->cm ||
	    conn_names_sender(station, conn, &name, also))
		return NULL;
	if (!conn->inside && name.kind == ADDR_STR) {
		addr_free(&name);
		return NULL;
	}
	if (!auth_admits(&station->auth, conn, &name)) {
		addr_free(&name);
		*error = FI_EACCES;
		return NULL;
	}
	peer = conn_on_hello_find_peer(station, conn, &name);
	addr_free(&name);
	return peer;
}

/* Is the newcomer the process that we are connecting to? */
static bool same_process(const struct contact *peer, const struct accepted *conn)
{
	return contact_inside(peer) && conn->inside && conn->pid > 0 && peer->sock >= 0 &&
	       connect_pid(peer->sock) == conn->pid;
}

/* Which event is the newcomer? */
static enum conn_event conn_on_hello_relation(const struct contact *peer,
					      const struct accepted *conn)
{
	uint64_t theirs = conn->hello.incarnation;

	if (peer->state >= PEER_CROSSED && peer->incarnation == theirs)
		return conn->hello.serial < peer->serial ? CONN_OLD : CONN_SAME_RUN;
	if (peer->state == PEER_CONNECTING &&
	    (conn_reach_unanswered(peer) || auth_comes_from(conn, &peer->key)))
		return CONN_BELIEVED;
	if (peer->station->incarnation < theirs)
		return CONN_GREATER;
	return same_process(peer, conn) ? CONN_SAME_PROCESS : CONN_LESSER;
}

/* The newcomer comes again, if there is no descriptor for it now. */
void conn_on_hello_take(struct contact *peer, const struct conn_with *with)
{
	const struct hello_fields answer = {.kind = HELLO_ACCEPT, .id = pool_id(peer)};
	struct accepted *conn = with->conn;

	if (!conn_has_place(peer))
		conn_refuse(NULL, conn, FI_EBUSY);
	else if (connect_is_spare(conn->sock) || accepted_lacks_fds(conn))
		conn_refuse(NULL, conn, FI_EAGAIN);
	else if (!conn_take(peer, conn, &answer))
		conn_names_keep(peer, with->also);
	if (peer->state == PEER_IDLE)
		conn_forget(peer);
}

void conn_on_hello_cross(struct contact *peer, struct accepted *conn)
{
	hello_send(peer->station, conn->sock, conn->inside,
		   &(struct hello_fields){.kind = HELLO_CROSSED, .auth = &conn->auth});
	acceptor_dismiss(conn);
}

void conn_on_hello(struct station *station, struct accepted *conn)
{
	struct peer_also also;
	struct contact *peer;
	int error;

	if (conn->hello.kind == HELLO_JOIN || conn->joins) {
		conn_options_join(station, conn);
		return;
	}
	peer = conn_on_hello_identify(station, conn, &also, &error);
	if (peer)
		conn_event(peer, conn_on_hello_relation(peer, conn),
			   &(struct conn_with){.conn = conn, .also = &also});
	else
		conn_refuse(NULL, conn, error);
}

/* ---- Peers that the address vector does not hold ----
 *
 * A process that reaches the port may use as many names as it likes, so FI_WEFT_UNKNOWN_MAX limits them. conn_forget frees
 * those that are disconnected.
 */

/*
 * The default: at most so many, and a part of the descriptors that the process does not use for anything else, so that known
 * peers find some left.
 */
#define DEFAULT_MOST 4096u
#define PARTS        4

/* Descriptors of connections, and those that there could be. */
static size_t conn_unknown_descriptors(const struct station *station)
{
	size_t n = connect_left() + station->acceptor.count;

	LIST_EACH_OF (const struct contact, peer, &station->peers_list, in_station) {
		n += contact_linked(peer) || contact_attempts(peer);
	}
	return n;
}

static size_t conn_unknown_most(const struct station *station)
{
	size_t n = env_get()->unknown_max;

	if (n)
		return n;
	n = conn_unknown_descriptors(station);
	n -= n / PARTS;
	return n < DEFAULT_MOST ? n : DEFAULT_MOST;
}

/* The relay is kept while it is not connected, too. */
static bool is_kept_relay(const struct contact *peer)
{
	return peer == peer->station->relay.peer && peer->state == PEER_IDLE;
}

/* Returns how many peers beside `newcomer` the address vector did not hold when they were looked up last. */
static size_t conn_unknown_count(const struct contact *newcomer)
{
	size_t n = 0;

	LIST_EACH_OF (const struct contact, peer, &newcomer->station->peers_list, in_station) {
		n += peer != newcomer && peer->addr == FI_ADDR_NOTAVAIL && !is_kept_relay(peer);
	}
	return n;
}

/* Peers may have been inserted into the address vector after they connected. */
static void conn_unknown_look_up(struct station *station)
{
	uint64_t version = station->av ? av_version(station->av) : 0;

	if (version == station->unknown.seen_av)
		return;
	station->unknown.seen_av = version;
	LIST_EACH (node, &station->peers_list)
		contact_addr(LIST_ENTRY(node, struct contact, in_station));
}

bool conn_has_place(struct contact *newcomer)
{
	struct station *station = newcomer->station;

	if (contact_addr(newcomer) != FI_ADDR_NOTAVAIL ||
	    conn_unknown_count(newcomer) < conn_unknown_most(station))
		return true;
	conn_unknown_look_up(station);
	if (conn_unknown_count(newcomer) < conn_unknown_most(station))
		return true;
	station->unknown.refused++;
	LOG_PEER(LOG_EP_CTRL,
		 "%s is refused: %zu peers are connected that the address vector does not "
		 "hold (FI_WEFT_UNKNOWN_MAX=%zu); %llu were refused so far",
		 contact_text(newcomer), conn_unknown_count(newcomer), env_get()->unknown_max,
		 (unsigned long long)station->unknown.refused);
	return false;
}

/* ---- Newcomers in the name of a peer that is connected, or that we are connecting to ----
 *
 * A hello proves nothing: a link ends only by its own socket, or by its devices where these can tell (conn_ping). So the newcomer
 * waits while the old link is asked for a sign of life. The socket of a process that has ended is closed by its kernel, and a host
 * that has forgotten the connection answers a probe with a reset. If the old link answers as one that lives, the newcomer is
 * refused.
 */

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

/* Once for all newcomers: see connect_ping. */
static void conn_hold_ask(struct contact *peer)
{
	int sock = contact_linked(peer) && !peer->pinging ? link_sock(peer) : -1;

	if (sock < 0)
		return;
	connect_ping(sock, true);
	conn_ping(peer);
	peer->pinging = peer->station->pinging = true;
}

/* Nobody waits any more. */
static void ask_no_more(struct station *station)
{
	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		int sock = peer->pinging ? link_sock(peer) : -1;

		peer->pinging = false;
		if (sock >= 0)
			connect_ping(sock, false);
	}
	station->pinging = false;
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
	if (station->pinging && !station->acceptor.held_count)
		ask_no_more(station);
}
