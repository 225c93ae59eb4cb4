/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine does about a peer whose connection changes: struct conn_upcalls. Output to it. */
#include <string.h>

#include "xfer/group.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/rxreq.h"
#include "xfer/worker.h"

void peer_busy(struct peer *peer)
{
	if (!list_empty(&peer->tx.in_busy))
		return;
	list_push(&peer_worker(peer)->busy, &peer->tx.in_busy);
	idle_end(&peer->conn.station->driven.idle);
	if (peer->conn.station->opener.sleepers)
		station_wake(peer->conn.station);
}

void peer_refresh(struct peer *peer)
{
	bool open = peer->conn.state == PEER_CONNECTED && !peer->tx.xoff_ms && !peer->rma.bulk &&
		    !peer_behind(peer) && list_empty(&peer->txreqs[TXREQ_RDMA]);

	peer->conn.link = open ? peer->conn.real : &contact_full_link;
}

static void peer_made(struct contact *c)
{
	struct peer *peer = peer_of(c);

	memset(&peer->target, 0, sizeof(*peer) - offsetof(struct peer, target));
	list_init(&peer->tx.in_busy);
	list_init(&peer->tx.controls);
	list_init(&peer->rx.in_xoff);
	list_init(&peer->rx.rxreqs);
	list_init(&peer->rma.in_awaiting);
	list_init(&peer->target.in_acks_pending);
	list_init(&peer->kept_controls);
	for (unsigned int i = 0; i < TXREQ_LISTS; i++)
		list_init(&peer->txreqs[i]);
	budget_account_init(&peer->rx.account);
}

static void peer_freed(struct contact *c)
{
	struct peer *peer = peer_of(c);

	if (peer_worker(peer)->coll)
		peer_worker(peer)->groups->forget_peer(peer_worker(peer)->coll, peer);
	budget_account_fini(peer);
	list_remove(&peer->tx.in_busy);
	list_remove(&peer->rx.in_xoff);
	list_remove(&peer->rma.in_awaiting);
	list_remove(&peer->target.in_acks_pending);
}

static void peer_up(struct contact *c)
{
	struct peer *peer = peer_of(c);

	peer_pause_end(peer); /* of the last connection, read after its end */
	peer_refresh(peer);
	tx_flush(peer);
}

static void peer_stays(struct contact *c)
{
	tx_flush(peer_of(c));
}

/* Makes all contexts forget the peer. Receives that name it alone end with `directed` (positive), unless that is 0. */
static void peer_forget_in_receives(struct peer *peer, int directed)
{
	struct worker *worker = peer_worker(peer);

	list_remove(&peer->rx.in_xoff);
	peer->rx.xoff_sent = false;
	for (unsigned int i = 0; i < WORKER_RX_MAX; i++) {
		if (!worker->rx[i])
			continue;
		rx_forget_peer(worker->rx[i], peer);
		if (directed)
			rx_fail_directed(worker->rx[i], contact_addr(&peer->conn), directed);
	}
}

static void peer_down(struct contact *c, const struct conn_down *how)
{
	struct peer *peer = peer_of(c);
	struct worker *worker = peer_worker(peer);

	peer_pause_end(peer);
	budget_recount(&worker->budget);
	tx_end_zcopy(peer);
	tx_fail_all(peer, how->err, how->reason);
	rxreq_fail_peer(peer, how->err);
	peer_forget_in_receives(peer, how->directed);
	if (worker->coll)
		worker->groups->peer_failed(worker->coll, peer, how->err);
}

static void peer_parted(struct contact *c)
{
	struct peer *peer = peer_of(c);

	peer_pause_end(peer);
	budget_recount(&peer_worker(peer)->budget);
	if (peer->conn.end == END_RETIRED)
		peer_forget_in_receives(peer, 0);
	tx_drop_answers(peer);
}

static bool peer_waiting(const struct contact *c)
{
	const struct peer *peer = peer_of((struct contact *)c);

	return !list_empty(&peer->txreqs[TXREQ_BACKLOG]) || !list_empty(&peer->txreqs[TXREQ_AHEAD]);
}

static bool peer_again(struct contact *c)
{
	struct peer *peer = peer_of(c);

	if (peer_worker(peer)->coll)
		peer_worker(peer)->groups->not_taken(peer_worker(peer)->coll);
	if (peer_waiting(c))
		return true;
	list_remove(&peer->tx.in_busy); /* an attempt may have put it there */
	return false;
}

static bool peer_receiving(const struct contact *c)
{
	return !list_empty(&peer_of((struct contact *)c)->rx.rxreqs);
}

static bool peer_quiet(const struct contact *c)
{
	const struct peer *peer = peer_of((struct contact *)c);

	for (unsigned int i = 0; i < TXREQ_LISTS; i++)
		if (!list_empty(&peer->txreqs[i]))
			return false;
	return list_empty(&peer->tx.controls) && !peer->tx.xoff_ms && !peer->rma.bulk &&
	       list_empty(&peer->target.in_acks_pending) && !peer_receiving(c) &&
	       list_empty(&peer->rx.account.kept) && !peer->rx.xoff_sent &&
	       list_empty(&peer->kept_controls) && !peer->rx.kept;
}

static bool peer_awaited(struct contact *c)
{
	const struct worker *worker = worker_station(c->station);

	for (unsigned int i = 0; i < WORKER_RX_MAX; i++)
		if (worker->rx[i] && rx_awaits(worker->rx[i], contact_addr(c)))
			return true;
	return false;
}

/* Groups watch their members' connections. */
static bool peer_watched(const struct station *s)
{
	const struct worker *worker = worker_station((struct station *)s);

	return worker->coll && worker->groups->has_groups(worker->coll);
}

static void peer_mute(struct contact *c)
{
	struct peer *peer = peer_of(c);

	tx_drop_answers(peer);
	list_remove(&peer->tx.in_busy);
}

static void peer_lost(struct contact *c)
{
	rx_lost(peer_of(c));
}

static void peer_read_out(struct contact *c, int directed)
{
	peer_forget_in_receives(peer_of(c), directed);
}

static void peer_soon(struct contact *c)
{
	peer_busy(peer_of(c));
}

static void peer_say(struct contact *c, uint64_t head, uint64_t word)
{
	tx_control(peer_of(c), head, word);
}

const struct conn_upcalls peer_upcalls = {
	.made = peer_made,
	.freed = peer_freed,
	.up = peer_up,
	.stays = peer_stays,
	.down = peer_down,
	.parted = peer_parted,
	.again = peer_again,
	.waiting = peer_waiting,
	.quiet = peer_quiet,
	.awaited = peer_awaited,
	.receiving = peer_receiving,
	.watched = peer_watched,
	.lost = peer_lost,
	.mute = peer_mute,
	.read_out = peer_read_out,
	.soon = peer_soon,
	.say = peer_say,
};
