/* SPDX-License-Identifier: BSD-2-Clause */
#include "xfer/peer.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/probe.h"
#include "core/av_keys.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/conn/attempt.h"
#include "xfer/conn/conn.h"
#include "xfer/conn/conn_options.h"
#include "xfer/conn/conn_rows.h"
#include "xfer/conn/connect.h"
#include "xfer/group.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"

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
struct peer peer_nobody = {.link = &peer_full_link,
			   .addr = FI_ADDR_NOTAVAIL,
			   .conn = {.kind = LINK_SOCKET, .sock = -1}};

static void peer_init_lists(struct peer *peer)
{
	list_init(&peer->tx.in_busy);
	list_init(&peer->tx.controls);
	list_init(&peer->rx.in_xoff);
	list_init(&peer->rx.rxreqs);
	list_init(&peer->rma.in_awaiting);
	list_init(&peer->target.in_acks_pending);
	list_init(&peer->kept_controls);
	for (unsigned int i = 0; i < TXREQ_LISTS; i++)
		list_init(&peer->txreqs[i]);
}

struct peer *peer_new(struct worker *worker, const struct addr *name)
{
	struct peer *peer = pool_get(&worker->peer_pool);

	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	if (addr_dup(&peer->name, name)) {
		pool_put(&worker->peer_pool, peer);
		return NULL;
	}
	peer_init_lists(peer);
	budget_account_init(&peer->rx.account);
	peer->key = addr_unmapped(&peer->name);
	peer->worker = worker;
	peer->link = &peer_full_link;
	peer->addr = peer->reported = FI_ADDR_NOTAVAIL;
	peer->conn.sock = peer->conn.wake = -1;
	peer->conn.kind = LINK_SOCKET;
	list_push(&worker->peers_list, &peer->in_worker);
	return peer;
}

fi_addr_t peer_reported_lookup(struct peer *peer)
{
	fi_addr_t addr = peer_addr(peer), id;

	if (addr == FI_ADDR_NOTAVAIL)
		return addr;
	id = av_user_id(peer->worker->av, addr);
	if (peer->addr == addr && !peer_expelled(peer))
		peer->reported = id;
	return id;
}

fi_addr_t peer_reported_key(const struct peer *peer)
{
	struct av *av = peer->worker->av;

	return av ? av_keys_reported(av, peer->key_slot) : FI_ADDR_NOTAVAIL;
}

void peer_busy(struct peer *peer)
{
	if (!list_empty(&peer->tx.in_busy))
		return;
	list_push(&peer->worker->busy, &peer->tx.in_busy);
	idle_end(&peer->worker->driven.idle);
	if (peer->worker->opener.sleepers)
		worker_wake(peer->worker);
}

void peer_free(struct peer *peer)
{
	if (peer->worker->coll)
		peer->worker->groups->forget_peer(peer->worker->coll, peer);
	budget_account_fini(peer);
	list_remove(&peer->in_worker);
	list_remove(&peer->tx.in_busy);
	list_remove(&peer->rx.in_xoff);
	list_remove(&peer->rma.in_awaiting);
	list_remove(&peer->target.in_acks_pending);
	addr_free(&peer->name);
	free(peer->also);
	conn_options_changed(peer);
	pool_put(&peer->worker->peer_pool, peer);
}

void peer_refresh(struct peer *peer)
{
	bool open = peer->state == PEER_CONNECTED && !peer->tx.xoff_ms && !peer->rma.bulk &&
		    !peer_behind(peer) && list_empty(&peer->txreqs[TXREQ_RDMA]);

	peer->link = open ? peer->real : &peer_full_link;
}

/*
 * Makes all contexts forget the peer. Receives that name it alone end with `err` (positive), unless
 * `err` is 0.
 */
static void forget_in_receives(struct peer *peer, int err)
{
	struct worker *worker = peer->worker;

	for (unsigned int i = 0; i < WORKER_RX_MAX; i++) {
		if (!worker->rx[i])
			continue;
		rx_forget_peer(worker->rx[i], peer);
		if (err)
			rx_fail_directed(worker->rx[i], peer_addr(peer), err);
	}
}

/*
 * Ends the unread state: all messages have been delivered, so receives that name the peer alone end
 * now.
 */
static void read_out(struct peer *peer)
{
	peer->conn.unread_ms = 0;
	peer->worker->unread--;
	if (peer->state == PEER_IDLE)
		forget_in_receives(peer, peer->conn.directed_err);
}

void peer_connected(struct peer *peer)
{
	if (peer->conn.unread_ms)
		read_out(peer);
	idle_end(&peer->worker->driven.idle); /* a transport without a link may have been idle */
	peer->conn.refused = 0;
	conn_event(peer, peer->real->securing ? CONN_SECURES : CONN_LINKS, NULL);
}

void peer_open(struct peer *peer)
{
	peer->counts.connections++;
	PROBE2(connect, peer, peer->conn.kind);
	peer_pause_end(peer); /* of the last connection, read after its end */
	peer_refresh(peer);
	tx_flush(peer);
	/* Messages that came before our link was made may have exceeded a budget. */
	if (__builtin_expect(peer_expelled(peer), 0))
		peer_busy(peer);
}

void peer_expel(struct peer *peer, enum conn_end why)
{
	if (!peer_expelled(peer))
		peer->conn.end = why;
	peer->reported = FI_ADDR_NOTAVAIL;
	if (peer->real)
		peer->real->silent = false; /* its receives end: we end the link, not the peer */
	peer_busy(peer);
}

void peer_over_budget(struct peer *peer, const char *of_what, size_t max)
{
	char text[ADDR_STR_MAX + 32];

	if (peer_expelled(peer))
		return;
	addr_print(&peer->name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA, "%s exceeds %zu bytes %s: disconnecting the peer", text, max,
		 of_what);
	peer_expel(peer, END_BUDGET);
}

void peer_starve(struct peer *peer, const char *what)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(&peer->name, text, sizeof(text));
	LOG_PEER(LOG_EP_DATA, "%s: out of memory for %s: disconnecting the peer", text, what);
	peer_expel(peer, END_MEMORY);
}

void peer_starve_all(struct worker *worker)
{
	LIST_EACH (node, &worker->peers_list) {
		struct peer *peer = LIST_ENTRY(node, struct peer, in_worker);

		if (peer_linked(peer) && !peer_expelled(peer))
			peer_starve(peer, "a completion");
	}
}

void peer_overdue(struct peer *peer, int ms)
{
	char text[ADDR_STR_MAX + 32];

	addr_print(&peer->name, text, sizeof(text));
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
	if (!peer->real)
		return;
	peer->real->failed = peer->conn.end < END_CLOSED || peer_expelled(peer);
	peer->real->ops->close(peer->real);
	peer->real = NULL;
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
	struct worker *worker = peer->worker;

	/* The peer may have sent through our hello's descriptors before we made our link. */
	bool came = peer->real || (peer->state == PEER_HANDSHAKE && peer_inside(peer));
	enum link_kind kind = peer->real ? peer->conn.kind : LINK_HOST;
	const struct transport *t = worker->via[kind].transport;

	idle_end(&worker->driven.idle);
	attempt_end(peer);
	/* The requests end below, and the application may then reuse their memory. */
	if (peer->real)
		peer->real->memory->abort(peer->real);
	if (came && t->reap && t->reap(worker->via[kind].state, pool_id(peer))) {
		worker->unread++;
		peer->conn.unread_ms = clock_coarse_ms();
	}
	conn_event(peer, CONN_ENDS, NULL);
	free(peer->also);
	peer->also = NULL;
	peer_pause_end(peer);
	budget_recount(&worker->budget);
	peer_refresh(peer);
	close_sockets(peer);
}

/* Do receives that name this peer alone end with its connection? */
static bool fails_directed(const struct peer *peer)
{
	return peer->real && !peer->real->silent && peer->conn.end != END_CLOSED;
}

bool peer_reads_out(struct peer *peer)
{
	struct worker *worker = peer->worker;

	/* Do not reap while the peer connects anew: its new slot claims look like the old ones. */
	if (!peer->conn.unread_ms || peer->state != PEER_IDLE ||
	    worker->via[LINK_HOST].transport->reap(worker->via[LINK_HOST].state, pool_id(peer)))
		return false;
	read_out(peer);
	return true;
}

void peer_failed(struct peer *peer, int found)
{
	struct worker *worker = peer->worker;
	int err = conn_end_decide(peer, found);
	bool queued = !list_empty(&peer->txreqs[TXREQ_BACKLOG]) ||
		      !list_empty(&peer->txreqs[TXREQ_AHEAD]);

	peer->conn.refused = peer_attempts(peer) && !queued && !peer->conn.attempt->early ? err : 0;
	peer->conn.last_error = err;
	PROBE3(lost, peer, err, peer->state);
	peer_disconnect(peer);
	tx_end_zcopy(peer);
	tx_fail_all(peer, err, conn_end_reason(peer, err));
	rxreq_fail_peer(peer, err);
	list_remove(&peer->rx.in_xoff);
	peer->rx.xoff_sent = false;
	peer->conn.directed_err = fails_directed(peer) ? err : 0;
	forget_in_receives(peer, peer->conn.unread_ms ? 0 : peer->conn.directed_err);
	if (worker->coll)
		worker->groups->peer_failed(worker->coll, peer, err);
	end_ended(peer);
}

void peer_not_taken(struct peer *peer, int found)
{
	struct worker *worker = peer->worker;
	int err;

	conn_end_decide(peer, found);
	peer_disconnect(peer);
	tx_drop_answers(peer);
	end_ended(peer);
	if (worker->coll)
		worker->groups->not_taken(worker->coll);
	if (list_empty(&peer->txreqs[TXREQ_BACKLOG]) && list_empty(&peer->txreqs[TXREQ_AHEAD])) {
		list_remove(&peer->tx.in_busy); /* an attempt may have put it there */
		return;
	}
	err = conn_start(peer);
	if (err)
		peer_failed(peer, -err);
}
