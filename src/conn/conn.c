/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets of a station, and the ends of its connections. docs/CONNECTIONS.md tells what becomes of each event. */
#include "conn/conn.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/reason.h"
#include "conn/conn_options.h"
#include "conn/conn_own.h"
#include "conn/connect.h"
#include "conn/stall.h"

#define EVENTS_PER_POLL 32
#define POLLS_PER_CALL  8 /* at most; then other stations are polled */

void conn_forget(struct contact *peer)
{
	if (!peer->unread_ms && !peer->named)
		contact_free(peer);
}

void conn_fail(struct contact *peer, int err, const struct wire_hello *hello)
{
	struct station *station = peer->station;
	bool again;

	err = conn_end_decide(peer, err);
	again = station->reaches_out && conn_reach_renews(peer, err);
	if (contact_attempts(peer))
		conn_reach_explain(peer, err);
	contact_failed(peer, err);
	if (station->cm)
		station->cm->ended(station, err, hello ? hello->data : NULL,
				   hello ? hello->data_len : 0);
	else if (again)
		conn_reach_out(station, peer->addr);
	else
		conn_forget(peer);
}

void conn_finish(struct contact *peer)
{
	if (!peer->end)
		conn_event(peer, CONN_PACKET, NULL);
}

void conn_ended(struct contact *peer, int err)
{
	err = conn_end_decide(peer, err);
	LOG_INFO(LOG_EP_CTRL, "%s: %s: %s", contact_text(peer),
		 reason_text(conn_end_reason(peer, err)), fi_strerror(err));
	conn_fail(peer, err, NULL);
}

void conn_link_ready(struct opener *o, uint32_t src)
{
	struct station *station = station_opener(o);
	struct contact *peer = pool_find(&station->peer_pool, src);

	peer->real->securing = false;
	contact_connected(peer);
}

void conn_link_ended(struct opener *o, uint32_t src, int err)
{
	struct station *station = station_opener(o);
	struct contact *peer = pool_find(&station->peer_pool, src);

	if (peer && err < 0)
		station->up->lost(peer);
	if (peer)
		conn_event(peer, CONN_LOST, &(struct conn_with){.err = err});
}

/* Within a host the peer may be writing to our memory now: asks it to disconnect, and reaps it afterwards. */
void conn_expelled(struct contact *peer)
{
	if (contact_inside(peer)) {
		shutdown(peer->sock, SHUT_WR);
		peer->station->up->mute(peer);
	} else {
		conn_ended(peer, FI_EPROTO);
	}
}

void conn_give_up(struct contact *peer)
{
	if (contact_linked(peer)) {
		contact_expel(peer, END_STUCK);
		return;
	}
	peer->end = END_STUCK;
	conn_fail(peer, FI_ETIMEDOUT, NULL);
}

void conn_expel(struct contact *peer)
{
	conn_event(peer, CONN_EXPEL, NULL);
}

static void conn_dispatch(struct station *station, uint64_t data)
{
	struct accepted conn;
	struct contact *peer;

	switch (data >> 32) {
	case STATION_HW: /* the transport's next progress call handles it */
		break;
	case STATION_STALL:
		stall_tick(station);
		break;
	case STATION_PEER:
		peer = pool_find(&station->peer_pool, (uint32_t)data);
		/* A stale event: the peer's socket was closed after epoll_wait. */
		if (peer && peer->sock >= 0)
			conn_event(peer, CONN_SOCKET, NULL);
		break;
	case STATION_RAIL:
		conn_options_socket(station, (uint32_t)data);
		break;
	default:
		if (acceptor_event(&station->acceptor, data, &conn))
			conn_on_hello(station, &conn);
	}
}

/* The peer may be freed. */
static void peer_tick(struct contact *peer, uint64_t now)
{
	const struct attempt *a = peer->attempt;

	if (attempt_forsaken(peer, now))
		conn_event(peer, CONN_FORSAKEN, NULL);
	else if (a && now >= a->deadline)
		conn_event(peer, CONN_OVERDUE, NULL);
	else if (a && now >= a->again_ms)
		conn_event(peer, CONN_DUE, NULL);
	else if (contact_reads_out(peer))
		conn_forget(peer);
}

static void conn_expire(struct station *station, bool heard)
{
	uint64_t now = clock_coarse_ms();

	acceptor_expire(&station->acceptor);
	/* Not with each poll: only time and the end of another connection change anything. */
	if (!heard && now == station->expired_ms)
		return;
	station->expired_ms = now;
	if (station->acceptor.held_count || station->pinging)
		conn_retry_held(station);
	LIST_EACH_SAFE (node, &station->peers_list)
		peer_tick(LIST_ENTRY(node, struct contact, in_station), now);
}

/* Connections that come are accepted again once descriptors are free. */
static void look_for_room(struct station *station)
{
	uint64_t now = clock_coarse_ms();

	if (now == station->looked_ms)
		return;
	station->looked_ms = now;
	station->acceptor.lacks_files = !connect_affordable();
	if (station->acceptor.lacks_files)
		conn_options_make_room(station);
	else
		acceptor_resume(&station->acceptor);
}

bool conn_poll(struct station *station)
{
	struct epoll_event events[EVENTS_PER_POLL];
	bool any = false;
	int n = EVENTS_PER_POLL;

	for (int polls = 0; n == EVENTS_PER_POLL && polls < POLLS_PER_CALL; polls++) {
		n = epoll_wait(station->driven.fd, events, EVENTS_PER_POLL, 0);
		for (int i = 0; i < n; i++)
			conn_dispatch(station, events[i].data.u64);
		any |= n > 0;
	}
	stall_watch(station);
	station->opener.armed |= n == EVENTS_PER_POLL; /* the next progress call polls on */
	if (any)
		idle_end(&station->driven.idle);
	if (station->acceptor.lacks_files)
		look_for_room(station);
	if (station->handshakes || station->acceptor.count || station->unread)
		conn_expire(station, any);
	return any;
}

void conn_disconnect(struct contact *peer)
{
	if (contact_inside(peer))
		send(peer->sock, &(char){BOOT_DISCONNECT}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	else
		peer->real->ops->send(peer->real, NULL, 0, 0, WIRE_HEAD(WIRE_DISCONNECT, 0, 0, 0),
				      0);
}

void conn_drain(struct station *station)
{
	for (unsigned int i = 0; i < LINK_KINDS; i++)
		if (station->via[i].state && station->via[i].transport->drain)
			station->via[i].transport->drain(station->via[i].state);
}

void conn_close(struct station *station)
{
	LIST_EACH (at, &station->peers_list)
		conn_event(LIST_ENTRY(at, struct contact, in_station), CONN_CLOSE, NULL);
	conn_drain(station);
	LIST_EACH_SAFE_OF (struct contact, peer, &station->peers_list, in_station) {
		peer->end = END_LOCAL;
		contact_failed(peer, FI_ECANCELED);
		contact_free(peer);
	}
	acceptor_close(&station->acceptor);
	source_free(&station->sources);
	conn_timer_clear(station);
	free(station->cm_data);
}

void conn_wrong_key(struct contact *peer, uint64_t key)
{
	struct station *station = peer->station;
	uint64_t now = clock_coarse_ms(), source = peer->source;

	peer->wrong_key = true;
	if (!source_wrong_key(&station->sources, source, key, now)) {
		if (source_refused(&station->sources, source, now))
			contact_expel(peer, END_KEYS);
		return;
	}
	LOG_PEER(LOG_EP_DATA,
		 "%u wrong keys within %u ms from the address of %s: the connections that used "
		 "some end, new ones are refused for %u ms",
		 SOURCE_WRONG_MAX, SOURCE_WINDOW_MS, contact_text(peer), SOURCE_REFUSED_MS);
	LIST_EACH_OF (struct contact, other, &station->peers_list, in_station) {
		if (other->source == source && other->wrong_key && contact_linked(other))
			contact_expel(other, END_KEYS);
	}
}

#define BYTES_PER_EVENT 64   /* bytes read at most; within a host each is one packet */
#define LAST_CALLS      4096 /* at most, to deliver what a peer sent before its end */

bool conn_ping(struct contact *peer)
{
	const struct transport *t = peer->station->via[peer->kind].transport;

	return t->ping && t->ping(peer->real);
}

static bool socket_outlives(struct contact *peer)
{
	if (peer->end == END_CLOSED || !conn_ping(peer))
		return false;
	LOG_INFO(LOG_EP_CTRL, "the link to %s has lost its socket", contact_text(peer));
	epoll_ctl(peer->station->driven.fd, EPOLL_CTL_DEL, peer->sock, NULL);
	peer->socket_lost = true;
	return true;
}

/*
 * Delivers what the peer sent before it closed its socket in good order. Returns the peer, or NULL
 * if it ended meanwhile.
 */
static struct contact *hear_out(struct contact *peer)
{
	struct station *station = peer->station;
	const struct transport *t = station->via[peer->kind].transport;
	void *state = station->via[peer->kind].state;
	uint32_t id = pool_id(peer);

	for (unsigned int i = 0; i < LAST_CALLS && t->progress(state); i++)
		;
	peer = pool_find(&station->peer_pool, id);
	return peer && contact_linked(peer) ? peer : NULL;
}

/*
 * Reads wake-ups and disconnect messages; returns the result of the last recv(). If a peer closes its socket with
 * unread bytes of ours, the kernel reports that error first; the peer's bytes follow.
 */
static ssize_t hear_boot(struct contact *peer)
{
	bool reset = false;
	char byte;
	ssize_t len = 1;

	for (int i = 0; i < BYTES_PER_EVENT && len > 0; i++) {
		len = connect_hear(peer->sock, &byte);
		if (len < 0 && errno == ECONNRESET && !reset) {
			reset = true;
			len = connect_hear(peer->sock, &byte);
		}
		if (len > 0)
			peer->real->silent = false;
		if (len > 0 && byte == BOOT_DISCONNECT)
			conn_end_closed(peer);
	}
	return reset && !len ? -1 : len; /* errno is that of the reset */
}

void conn_socket_hear(struct contact *peer)
{
	ssize_t len = hear_boot(peer);
	int err = len < 0 && errno == ETIMEDOUT ? FI_ETIMEDOUT : FI_ECONNRESET;

	if (len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	if (len < 0 && socket_outlives(peer))
		return;
	if (!contact_inside(peer))
		peer = hear_out(peer);
	if (peer)
		conn_ended(peer, err);
}

void conn_hear_disconnect(struct contact *peer)
{
	conn_end_closed(peer);
	if (peer->socket_lost)
		conn_ended(peer, FI_ESHUTDOWN);
}
