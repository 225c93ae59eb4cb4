/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer that is stopped, or never calls the library, looks alive: its kernel answers for it. So its operations have no
 * bound but the one that the user sets: FI_WEFT_OPERATION_TIMEOUT. A connected peer of this host is never given up: it
 * may still read the memory of an operation, and its end is seen at once.
 */
#include "base/env.h"
#include "base/log.h"
#include "conn/attempt.h"
#include "conn/conn.h"
#include "xfer/worker.h"
#include "xfer/msg/tx.h"
#include "xfer/rndv/rxreq.h"

#define CHECKS 8 /* in the time that an operation, or a sender, has */

/* Is a check due that CHECKS of make `ms`, or that never comes if `ms` is none? *next: when. */
static bool worker_stuck_due(uint64_t *next, uint64_t now, int ms)
{
	if (now < *next)
		return false;
	*next = ms > 0 ? now + (uint64_t)ms / CHECKS + 1 : UINT64_MAX;
	return ms > 0;
}

/* Has the first request of a list moved since the last check, or come to the head? Else counts the check. */
static bool has_moved(struct txreq *req)
{
	size_t bytes = req->sent + req->got;
	bool moved = !req->checks || req->seen != bytes;

	req->checks = moved ? 1 : (uint8_t)(req->checks + 1);
	req->seen = bytes;
	return moved;
}

/*
 * Requests of one list make progress in order, so the first one tells. Lists whose requests may wait for those of others
 * come last, and do not count while another moves. Answers are none of our operations.
 */
static bool is_stuck(struct peer *peer)
{
	static const enum txreq_state lists[] = {TXREQ_RMA,    TXREQ_RDMA,  TXREQ_ACK,
						 TXREQ_STREAM, TXREQ_ZCOPY, TXREQ_BACKLOG,
						 TXREQ_AHEAD};
	bool stuck = false, moving = false;

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct txreq *first = lists[i] == TXREQ_ACK ? tx_req_first_unreported(peer)
							    : tx_req_first(peer, lists[i]);
		bool waits = lists[i] == TXREQ_BACKLOG || lists[i] == TXREQ_AHEAD;

		if (!first)
			continue;
		if (waits && moving)
			first->checks = 0;
		moving |= has_moved(first);
		stuck |= first->checks > CHECKS;
	}
	return stuck;
}

/* Does an attempt that a call asked for last too long? No request waits for it. */
static bool attempt_is_stuck(struct peer *peer)
{
	if (!contact_attempts(&peer->conn) || peer->conn.attempt->in_advance)
		return false;
	return ++peer->conn.attempt->checks > CHECKS;
}

static void worker_stuck_give_up(struct peer *peer, int ms)
{
	LOG_WARN(LOG_EP_DATA,
		 "%s: an operation has stood still for %d ms (FI_WEFT_OPERATION_TIMEOUT): %s",
		 contact_text(&peer->conn), ms,
		 contact_linked(&peer->conn) ? "its connection is ended"
					     : "it has not accepted us");
	conn_give_up(&peer->conn);
}

/*
 * A message that is announced and not sent holds the receive that it matched. Inside a host a peer may be stopped for
 * as long as it likes, and ends with its process. Across the network its kernel answers for it, so that nothing but
 * the absence of the message tells a peer that will never send it from one that computes: see FI_WEFT_SENDER_TIMEOUT.
 */

/* Does the peer owe us a part of a message? A device fetches by itself. */
static bool peer_owes(const struct peer *peer)
{
	LIST_EACH (node, &peer->rx.rxreqs)
		if (LIST_ENTRY(node, struct rxreq, link)->state == RXREQ_COMES)
			return true;
	return false;
}

static bool sender_is_exempt(struct peer *peer)
{
	return !contact_linked(&peer->conn) || contact_inside(&peer->conn) ||
	       contact_expelled(&peer->conn) ||
	       (env_get()->sender_timeout < 0 &&
		(peer->conn.station->cm || contact_addr(&peer->conn) != FI_ADDR_NOTAVAIL));
}

static void check_sender(struct peer *peer, int ms)
{
	if (!peer_owes(peer) || peer->rx.came != peer->rx.seen || sender_is_exempt(peer)) {
		peer->rx.seen = peer->rx.came;
		peer->rx.stalls = 0;
	} else if (++peer->rx.stalls > CHECKS) {
		contact_overdue(&peer->conn, ms);
	}
}

/*
 * Disconnects peers across the network of whose messages nothing has come for FI_WEFT_SENDER_TIMEOUT. Counts only the
 * time in which it is called.
 */
static void rxreq_check(struct worker *worker, uint64_t now)
{
	const struct env_settings *env = env_get();
	int ms = env->sender_timeout < 0 ? env->peer_timeout : env->sender_timeout;

	if (!worker_stuck_due(&worker->next_check, now, ms))
		return;
	LIST_EACH (node, &worker->conn.peers_list)
		check_sender(LIST_ENTRY(node, struct peer, conn.in_station), ms);
}

void worker_stuck_check(struct worker *worker, uint64_t now)
{
	int ms = env_get()->operation_timeout;

	rxreq_check(worker, now);
	if (!worker_stuck_due(&worker->next_stuck, now, ms))
		return;
	LIST_EACH_SAFE_OF (struct peer, peer, &worker->conn.peers_list, conn.in_station) {
		bool exempt = contact_linked(&peer->conn) &&
			      (contact_inside(&peer->conn) || contact_expelled(&peer->conn));

		if (peer->conn.state != PEER_IDLE && !exempt &&
		    (is_stuck(peer) || attempt_is_stuck(peer)))
			worker_stuck_give_up(peer, ms);
	}
}
