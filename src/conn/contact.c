/* SPDX-License-Identifier: BSD-2-Clause */
#include "conn/contact.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/probe.h"
#include "conn/attempt.h"
#include "conn/conn.h"
#include "conn/conn_options.h"
#include "conn/conn_rows.h"
#include "conn/connect.h"
#include "conn/station.h"

static int full_send(struct link *link, const void *buf, size_t len, uint64_t data, uint64_t head,
		     uint64_t tag)
{
	(void)link, (void)buf, (void)len, (void)data, (void)head, (void)tag;
	return -FI_EAGAIN;
}

static int full_sendv(struct link *link, const struct packet *p, const struct iovec *iov,
		      size_t count)
{
	(void)link, (void)p, (void)iov, (void)count;
	return -FI_EAGAIN;
}

static void full_close(struct link *link)
{
	(void)link;
}

static const struct link_ops full_ops = {
	.send = full_send,
	.sendv = full_sendv,
	.close = full_close,
};

struct link contact_full_link = {LINK_BARE, .ops = &full_ops};

struct contact *contact_new(struct station *station, const struct addr *name)
{
	struct contact *peer = pool_get(&station->peer_pool);

	if (!peer)
		return NULL;
	*peer = (struct contact){.station = station,
				 .link = &contact_full_link,
				 .addr = FI_ADDR_NOTAVAIL,
				 .reported = FI_ADDR_NOTAVAIL,
				 .sock = -1,
				 .wake = -1,
				 .kind = LINK_SOCKET};
	if (addr_dup(&peer->name, name)) {
		pool_put(&station->peer_pool, peer);
		return NULL;
	}
	peer->key = addr_unmapped(&peer->name);
	list_push(&station->peers_list, &peer->in_station);
	station->up->made(peer);
	return peer;
}

void contact_free(struct contact *peer)
{
	peer->station->up->freed(peer);
	list_remove(&peer->in_station);
	addr_free(&peer->name);
	free(peer->also);
	conn_options_changed(peer);
	pool_put(&peer->station->peer_pool, peer);
}

/* Ends the unread state: all messages have been delivered, so receives that name the peer alone end now. */
static void read_out(struct contact *peer)
{
	peer->unread_ms = 0;
	peer->station->unread--;
	if (peer->state == PEER_IDLE)
		peer->station->up->read_out(peer, peer->directed_err);
}

void contact_connected(struct contact *peer)
{
	struct station *station = peer->station;

	if (peer->unread_ms)
		read_out(peer);
	idle_end(&station->driven.idle); /* a transport without a link may have been idle */
	peer->refused = 0;
	conn_event(peer, peer->real->securing ? CONN_SECURES : CONN_LINKS, NULL);
}

void contact_open(struct contact *peer)
{
	peer->connections++;
	PROBE2(connect, peer, peer->kind);
	peer->station->up->up(peer);
	/* Messages that came before our link was made may have exceeded a budget. */
	if (__builtin_expect(contact_expelled(peer), 0))
		peer->station->up->soon(peer);
}

void contact_expel(struct contact *peer, enum conn_end why)
{
	if (!contact_expelled(peer))
		peer->end = why;
	peer->reported = FI_ADDR_NOTAVAIL;
	/* Its receives end: we end the link, not the peer. */
	if (peer->real)
		peer->real->silent = false;
	peer->station->up->soon(peer);
}

void contact_over_budget(struct contact *peer, const char *of_what, size_t max)
{
	if (contact_expelled(peer))
		return;
	LOG_PEER(LOG_EP_DATA, "%s exceeds %zu bytes %s: disconnecting the peer", contact_text(peer),
		 max, of_what);
	contact_expel(peer, END_BUDGET);
}

void contact_starve(struct contact *peer, const char *what)
{
	LOG_PEER(LOG_EP_DATA, "%s: out of memory for %s: disconnecting the peer",
		 contact_text(peer), what);
	contact_expel(peer, END_MEMORY);
}

void contact_starve_all(struct station *station)
{
	LIST_EACH_OF (struct contact, peer, &station->peers_list, in_station) {
		if (contact_linked(peer) && !contact_expelled(peer))
			contact_starve(peer, "a completion");
	}
}

void contact_overdue(struct contact *peer, int ms)
{
	LOG_PEER(LOG_EP_DATA,
		 "%s: nothing came of a message that it announced for %d ms "
		 "(FI_WEFT_SENDER_TIMEOUT=%d): its connection is ended",
		 contact_text(peer), ms, env_get()->sender_timeout);
	contact_expel(peer, END_OVERDUE);
}

static void close_sockets(struct contact *peer)
{
	if (peer->sock >= 0)
		connect_close(peer->sock);
	if (peer->wake >= 0 && peer->wake != peer->sock)
		connect_close(peer->wake);
	peer->sock = peer->wake = -1;
}

/*
 * Closes the link. After an end in good order, ours or the peer's, posted packets are still sent.
 * Otherwise they must not be: they were reported as failed.
 */
static void peer_close_link(struct contact *peer)
{
	if (!peer->real)
		return;
	peer->real->failed = peer->end < END_CLOSED || contact_expelled(peer);
	peer->real->ops->close(peer->real);
	peer->real = NULL;
	conn_options_changed(peer);
}

/* The connection is over, and so is what it was ended for. */
static void end_ended(struct contact *peer)
{
	peer_close_link(peer);
	peer->asked = false;
	peer->end = END_NONE;
}

/* Ends the use of the link: aborts RDMA, begins to deliver what has arrived (reap), closes the sockets. */
static void peer_disconnect(struct contact *peer)
{
	struct station *station = peer->station;

	/* The peer may have sent through our hello's descriptors before we made our link. */
	bool came = peer->real || (peer->state == PEER_HANDSHAKE && contact_inside(peer));
	enum link_kind kind = peer->real ? peer->kind : LINK_HOST;
	const struct transport *t = station->via[kind].transport;

	idle_end(&station->driven.idle);
	attempt_end(peer);
	/* The requests end below, and the application may then reuse their memory. */
	if (peer->real)
		peer->real->memory->abort(peer->real);
	if (came && t->reap && t->reap(station->via[kind].state, pool_id(peer))) {
		station->unread++;
		peer->unread_ms = clock_coarse_ms();
	}
	conn_event(peer, CONN_ENDS, NULL);
	free(peer->also);
	peer->also = NULL;
	close_sockets(peer);
}

/* Do receives that name this peer alone end with its connection? */
static bool fails_directed(const struct contact *peer)
{
	return peer->real && !peer->real->silent && peer->end != END_CLOSED;
}

bool contact_reads_out(struct contact *peer)
{
	struct station *station = peer->station;

	/* Do not reap while the peer connects anew: its new slot claims look like the old ones. */
	if (!peer->unread_ms || peer->state != PEER_IDLE ||
	    station->via[LINK_HOST].transport->reap(station->via[LINK_HOST].state, pool_id(peer)))
		return false;
	read_out(peer);
	return true;
}

void contact_failed(struct contact *peer, int found)
{
	struct station *station = peer->station;
	int err = conn_end_decide(peer, found);
	bool waits = station->up->waiting(peer);
	struct conn_down how = {.err = err};

	peer->refused = contact_attempts(peer) && !waits && !peer->attempt->in_advance ? err : 0;
	peer->last_error = err;
	PROBE3(lost, peer, err, peer->state);
	peer_disconnect(peer);
	how.reason = conn_end_reason(peer, err);
	peer->directed_err = fails_directed(peer) ? err : 0;
	how.directed = peer->unread_ms ? 0 : peer->directed_err;
	station->up->down(peer, &how);
	end_ended(peer);
}

void contact_not_taken(struct contact *peer, int found)
{
	int err;

	conn_end_decide(peer, found);
	peer_disconnect(peer);
	peer->station->up->parted(peer);
	end_ended(peer);
	if (!peer->station->up->again(peer))
		return;
	err = conn_start(peer);
	if (err)
		contact_failed(peer, -err);
}
