/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/peer.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/probe.h"
#include "xfer/conn/attempt.h"
#include "xfer/conn/conn.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_rows.h"
#include "xfer/conn/connect.h"
#include "xfer/worker.h"

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

struct link peer_full_link = {LINK_BARE, .ops = &full_ops};
struct peer peer_nobody = {.conn = {.link = &peer_full_link,
				    .addr = FI_ADDR_NOTAVAIL,
				    .kind = LINK_SOCKET,
				    .sock = -1}};

struct peer *peer_new(struct worker *worker, const struct addr *name)
{
	struct peer *peer = pool_get(&worker->conn.peer_pool);

	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	if (addr_dup(&peer->conn.name, name)) {
		pool_put(&worker->conn.peer_pool, peer);
		return NULL;
	}
	peer->conn.key = addr_unmapped(&peer->conn.name);
	peer->conn.worker = worker;
	peer->conn.link = &peer_full_link;
	peer->conn.addr = peer->conn.reported = FI_ADDR_NOTAVAIL;
	peer->conn.sock = peer->conn.wake = -1;
	peer->conn.kind = LINK_SOCKET;
	list_push(&worker->conn.peers_list, &peer->conn.in_worker);
	worker->conn.up->made(peer);
	return peer;
}

void peer_free(struct peer *peer)
{
	peer->conn.worker->conn.up->freed(peer);
	list_remove(&peer->conn.in_worker);
	addr_free(&peer->conn.name);
	free(peer->conn.also);
	conn_options_changed(peer);
	pool_put(&peer->conn.worker->conn.peer_pool, peer);
}

/*
 * Ends the unread state: all messages have been delivered, so receives that name the peer alone end
 * now.
 */
static void read_out(struct peer *peer)
{
	peer->conn.unread_ms = 0;
	peer->conn.worker->conn.unread--;
	if (peer->conn.state == PEER_IDLE)
		peer->conn.worker->conn.up->read_out(peer, peer->conn.directed_err);
}

void peer_connected(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;

	if (peer->conn.unread_ms)
		read_out(peer);
	idle_end(&worker->conn.driven.idle); /* a transport without a link may have been idle */
	peer->conn.refused = 0;
	conn_event(peer, peer->conn.real->securing ? CONN_SECURES : CONN_LINKS, NULL);
}

void peer_open(struct peer *peer)
{
	peer->conn.connections++;
	PROBE2(connect, peer, peer->conn.kind);
	peer->conn.worker->conn.up->up(peer);
	/* Messages that came before our link was made may have exceeded a budget. */
	if (__builtin_expect(peer_expelled(peer), 0))
		peer->conn.worker->conn.up->soon(peer);
}

void peer_expel(struct peer *peer, enum conn_end why)
{
	if (!peer_expelled(peer))
		peer->conn.end = why;
	peer->conn.reported = FI_ADDR_NOTAVAIL;
	/* Its receives end: we end the link, not the peer. */
	if (peer->conn.real)
		peer->conn.real->silent = false;
	peer->conn.worker->conn.up->soon(peer);
}

void peer_over_budget(struct peer *peer, const char *of_what, size_t max)
{
	char text[ADDR_STR_MAX + 32];

	if (peer_expelled(peer))
		return;
	addr_print(&peer->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA, "%s exceeds %zu bytes %s: disconnecting the peer", text, max,
		 of_what);
	peer_expel(peer, END_BUDGET);
}

void peer_starve(struct peer *peer, const char *what)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(&peer->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA, "%s: out of memory for %s: disconnecting the peer", text, what);
	peer_expel(peer, END_MEMORY);
}

void peer_starve_all(struct worker *worker)
{
	LIST_EACH_OF (struct peer, peer, &worker->conn.peers_list, conn.in_worker) {
		if (peer_linked(peer) && !peer_expelled(peer))
			peer_starve(peer, "a completion");
	}
}

void peer_overdue(struct peer *peer, int ms)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(&peer->conn.name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA,
		 "%s: nothing came of a message that it announced for %d ms "
		 "(FI_WEFT_SENDER_TIMEOUT=%d): its connection is ended",
		 text, ms, env_get()->sender_timeout);
	peer_expel(peer, END_OVERDUE);
}

static void close_sockets(struct peer *peer)
{
	if (peer->conn.sock >= 0)
		connect_close(peer->conn.sock);
	if (peer->conn.wake >= 0 && peer->conn.wake != peer->conn.sock)
		connect_close(peer->conn.wake);
	peer->conn.sock = peer->conn.wake = -1;
}

/*
 * Closes the link. After an end in good order, ours or the peer's, posted packets are still sent.
 * Otherwise they must not be: they were reported as failed.
 */
static void peer_close_link(struct peer *peer)
{
	if (!peer->conn.real)
		return;
	peer->conn.real->failed = peer->conn.end < END_CLOSED || peer_expelled(peer);
	peer->conn.real->ops->close(peer->conn.real);
	peer->conn.real = NULL;
	conn_options_changed(peer);
}

/* The connection is over, and so is what it was ended for. */
static void end_ended(struct peer *peer)
{
	peer_close_link(peer);
	peer->conn.asked = false;
	peer->conn.end = END_NONE;
}

/*
 * Ends the use of the link: aborts RDMA, begins to deliver what has arrived (reap), closes the
 * sockets.
 */
static void peer_disconnect(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;

	/* The peer may have sent through our hello's descriptors before we made our link. */
	bool came = peer->conn.real || (peer->conn.state == PEER_HANDSHAKE && peer_inside(peer));
	enum link_kind kind = peer->conn.real ? peer->conn.kind : LINK_HOST;
	const struct transport *t = worker->conn.via[kind].transport;

	idle_end(&worker->conn.driven.idle);
	attempt_end(peer);
	/* The requests end below, and the application may then reuse their memory. */
	if (peer->conn.real)
		peer->conn.real->memory->abort(peer->conn.real);
	if (came && t->reap && t->reap(worker->conn.via[kind].state, pool_id(peer))) {
		worker->conn.unread++;
		peer->conn.unread_ms = clock_coarse_ms();
	}
	conn_event(peer, CONN_ENDS, NULL);
	free(peer->conn.also);
	peer->conn.also = NULL;
	close_sockets(peer);
}

/* Do receives that name this peer alone end with its connection? */
static bool fails_directed(const struct peer *peer)
{
	return peer->conn.real && !peer->conn.real->silent && peer->conn.end != END_CLOSED;
}

bool peer_reads_out(struct peer *peer)
{
	struct worker *worker = peer->conn.worker;

	/* Do not reap while the peer connects anew: its new slot claims look like the old ones. */
	if (!peer->conn.unread_ms || peer->conn.state != PEER_IDLE ||
	    worker->conn.via[LINK_HOST].transport->reap(worker->conn.via[LINK_HOST].state,
							pool_id(peer)))
		return false;
	read_out(peer);
	return true;
}

void peer_failed(struct peer *peer, int found)
{
	struct worker *worker = peer->conn.worker;
	int err = conn_end_decide(peer, found);
	bool waits = worker->conn.up->waiting(peer);
	struct conn_down how = {.err = err};

	peer->conn.refused = peer_attempts(peer) && !waits && !peer->conn.attempt->early ? err : 0;
	peer->conn.last_error = err;
	PROBE3(lost, peer, err, peer->conn.state);
	peer_disconnect(peer);
	how.reason = conn_end_reason(peer, err);
	peer->conn.directed_err = fails_directed(peer) ? err : 0;
	how.directed = peer->conn.unread_ms ? 0 : peer->conn.directed_err;
	worker->conn.up->down(peer, &how);
	end_ended(peer);
}

void peer_not_taken(struct peer *peer, int found)
{
	int err;

	conn_end_decide(peer, found);
	peer_disconnect(peer);
	peer->conn.worker->conn.up->parted(peer);
	end_ended(peer);
	if (!peer->conn.worker->conn.up->again(peer))
		return;
	err = conn_start(peer);
	if (err)
		peer_failed(peer, -err);
}
